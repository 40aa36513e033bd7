"""Checks a summary both ways: what it may not lack is in it, and what it tells is in its sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from compact.core.facts.entities import Entity, EntityKind, find_entities
from compact.core.facts.grounding import Sources, Stems, stands_in
from compact.core.facts.ledger import REQUIRED, Fact, FactKind, Ledger
from compact.core.facts.tool_calls import arguments_of
from compact.core.log.messages import Message
from compact.core.summary.summary import Decision, OpenItem, StructuredSummary, ToolOutcome, render_summary_text

UNVERIFIED = " [unverified]"
# A task longer than the summary may be stands in it cut: code did that, and asking again does not help.
_LEAST_OF_CUT_CHARS = 80
# Older failures were given up, or went away without anybody saying so.
_NEWEST_ERRORS = 5


def lacking(summary: StructuredSummary, ledger: Ledger, *, text: str = "") -> tuple[Fact, ...]:
    """The facts of a ledger that a summary needs and its text (as rendered, unless given) does not have.

    Task, wishes and latest ask are needed word for word; modified files, the newest open errors, open items and
    artifacts by name. A path is named by its last two parts, or by its last one where no other file is called so; an
    error or an open item by a line with most of its words.
    """
    seen = _Text(text or render_summary_text(summary, version=1, messages=1))
    names = [fact.subject.rpartition("/")[2] for fact in ledger.of(FactKind.FILE)]
    errors = [fact for fact in ledger.of(FactKind.ERROR) if fact.detail == "not resolved"][-_NEWEST_ERRORS:]

    def is_missing(fact: Fact) -> bool:
        match fact.kind:
            case FactKind.TASK | FactKind.CONSTRAINT | FactKind.LATEST_ASK:
                return not (seen.has(fact.subject) or _is_cut(fact, summary.ledger))
            case FactKind.FILE:
                return "modified" in fact.detail and not seen.names(fact.subject, names)
            case FactKind.ERROR:
                return fact in errors and not seen.tells(fact.subject)
            case FactKind.OPEN_ITEM:
                return not seen.tells(fact.subject)
            case FactKind.ARTIFACT:
                return not seen.has(fact.subject)
            case _:
                return False

    missing = [fact for fact in ledger if is_missing(fact)]
    return tuple(
        sorted(missing, key=lambda fact: REQUIRED.index(fact.kind) if fact.kind in REQUIRED else len(REQUIRED))
    )


class _Text:
    """A summary as it is read: as one text, and line by line."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        self._lines = [Stems(line) for line in text.splitlines() if line.strip()]

    def has(self, string: str) -> bool:
        return stands_in(self._text, " ".join(string.split()))

    def names(self, path: str, names: Sequence[str]) -> bool:
        parts = path.split("/")
        return self.has("/".join(parts[-2:])) or (names.count(parts[-1]) == 1 and self.has(parts[-1]))

    def tells(self, string: str) -> bool:
        return self.has(string) or Stems(string).covered_by(self._lines, share=0.6)


def _is_cut(fact: Fact, ledger: Ledger) -> bool:
    return any(
        len(known.subject) >= _LEAST_OF_CUT_CHARS and fact.subject.startswith(known.subject)
        for known in ledger.of(fact.kind)
    )


# -- what is told and not so ----------------------------------------------------------------------------------------

_PEOPLE = r"(?:user|customer|client|human|operator|owner|person|caller)s?"
_REPORTED = re.compile(
    rf"\b{_PEOPLE}\b[^.;]{{0,60}}?\b(?:agree|allow|approv|ask|authori[sz]|confirm|demand|expect|forb|grant|insist|instruct"
    r"|need|order|permi|prefer|request|requir|said|say|tell|told|want|wish)",
    re.IGNORECASE,
)
# To these an answer must say yes.
_CONSENT = re.compile(r"\b(?:accept|agree|allow|approv|authori[sz]|confirm|consent|grant|permi)", re.IGNORECASE)
# Where what somebody said ends, and what was made of it begins.
_CLAUSE_END = re.compile(r"[;—–→(]| - |, (?:and|so|but) (?:I|we)\b")
_SPOKEN = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”")
_ORDER = re.compile(
    r"^[\s\-*•\d.)(]*(?:please |important:? |note:? |rule:? )*"
    r"(?:never (?!\w+ed\b|\w+ly \w+ed\b)|always\b|do not\b|don['’]t\b|from now on\b|under no\b|ignore\b|disregard\b"
    r"|avoid\b|refrain\b)"
    r"|\b(?:you|(?:the |this )?(?:agent|assistant|model|ai))"
    r" (?:must|should|shall|needs? to|ha(?:s|ve) to|is to|are to|may not|may only)\b"
    r"|\b(?:from now on|under no circumstances|at all times|without exception)\b",
    re.IGNORECASE,
)
# What an agent may well have set itself to do, and what may be an order in other languages. A detector of wishes that
# is made for what people type finds them everywhere in a story.
_STEP = re.compile(
    r"^[\s\-*•\d.)(]*(?:make sure|be sure|ensure|remember|only|stop|forget|delete|remove|send|use|keep|reply|respond"
    r"|answer|write|follow|treat|leave)\b"
    r"|\b(?:is|are) (?:forbidden|prohibited|mandatory|not allowed)\b"
    r"|\b(?:ab jetzt|ab sofort|von nun an|immer|niemals|nie|désormais|toujours|jamais|siempre|nunca|sempre|mai"
    r"|a partir de (?:ahora|agora)|d'ora in poi|altijd|nooit|vanaf nu|всегда|никогда)\b"
    r"|必须|必須|总是|總是|从现在|從現在|絶対に|必ず|항상|절대",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s")
_SENTENCE = re.compile(r"\n+|(?<=[.!?;。！？])(?<!e\.g\.)(?<!i\.e\.)[ \t]+")
_DONE_LINE = re.compile(r"^\s*(?:[-*]\s*|\d+[.)]\s*)?(?:\[([ xX])\]|(✅|✔|☑))\s*(\S.*)$", re.MULTILINE)
_SETTLED = ("completed", "complete", "done", "cancelled", "canceled", "finished")
_SHORT_CLAIM_WORDS = 8
_FEW_WORDS = 3
_LONGEST_NAMED_CHARS = 160


def grounded(
    summary: StructuredSummary, sources: Iterable[Message], ledger: Ledger
) -> tuple[StructuredSummary, tuple[str, ...]]:
    """The summary without what its sources do not say, and every string that was marked or removed.

    Only what a model told is looked at. A statement that hinges on an invented string goes, otherwise the string is
    marked; an order that nobody gave goes in any case, and so does an open item that nobody spoke of or that is done.
    """
    if not (summary.decisions or summary.open_items or summary.tool_outcomes or summary.facts or summary.narrative):
        return summary, ()
    messages = tuple(sources)
    check = _Check(Sources(messages, ledger), frozenset(message.id for message in messages), _settled(messages))
    checked = replace(
        summary,
        decisions=tuple(_kept(check.decision, summary.decisions)),
        open_items=tuple(_kept(check.open_item, summary.open_items)),
        tool_outcomes=tuple(_kept(check.outcome, summary.tool_outcomes)),
        facts=tuple(_kept(check.statement, summary.facts)),
        narrative=check.story(summary.narrative),
    )
    return checked, tuple(dict.fromkeys(check.found))


def _kept(check: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return (kept for item in items if (kept := check(item)) is not None)


@dataclass(frozen=True, slots=True)
class _Check:
    """Looks at what was told, piece by piece, and notes what no source has."""

    known: Sources
    ids: frozenset[str]
    settled: tuple[tuple[Stems, bool], ...]
    found: list[str] = field(default_factory=list[str])

    def decision(self, told: Decision) -> Decision | None:
        text = self.statement(told.decision, is_own=True)
        if text is None:
            return None
        return replace(told, decision=text, rationale=self.story(told.rationale), source_ids=self._ids(told.source_ids))

    def open_item(self, told: OpenItem) -> OpenItem | None:
        words = Stems(told.item)
        if self._is_settled(words) or not words.covered_by((*self.known.asked, *self.known.said), share=0.5):
            return self._remove(told.item)
        text = self.statement(told.item, is_own=True)
        return None if text is None else replace(told, item=text, source_ids=self._ids(told.source_ids))

    def outcome(self, told: ToolOutcome) -> ToolOutcome | None:
        if not self.known.has_words(told.tool):
            return self._remove(f"{told.tool}: {told.outcome}")
        text = self.statement(told.outcome)
        return None if text is None else replace(told, outcome=text, source_ids=self._ids(told.source_ids))

    def statement(self, text: str, *, is_own: bool = False) -> str | None:
        """One thing that was told, marked where it must be, or None if it goes; `is_own` may be the agent's wish."""
        return self._remove(text) if self._is_invented_order(text, is_own=is_own) else self._marked(text)

    def story(self, text: str) -> str:
        """Running text, sentence by sentence; what is listed below "the user asked:" must have been asked."""
        pieces: list[str] = []
        place, is_spoken = 0, False
        for gap in (*_SENTENCE.finditer(text), None):
            sentence = text[place : gap.start() if gap else len(text)]
            is_spoken = is_spoken and _BULLET.match(sentence) is not None
            kept = self._sentence(sentence, is_spoken=is_spoken)
            pieces += [kept, gap[0] if gap else ""] if kept is not None else ["\n" if gap and "\n" in gap[0] else ""]
            is_spoken = is_spoken or bool(sentence.rstrip("* ").endswith(":") and _REPORTED.search(sentence))
            place = gap.end() if gap else len(text)
        return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip()

    def _sentence(self, text: str, *, is_spoken: bool) -> str | None:
        if not text.strip():
            return text
        return self._remove(text) if is_spoken and not self._was_said(text) else self.statement(text)

    def _remove(self, text: str) -> None:
        text = " ".join(text.split())
        self.found.append(text if len(text) <= _LONGEST_NAMED_CHARS else text[:_LONGEST_NAMED_CHARS].rstrip() + " …")

    def _ids(self, source_ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(source_id for source_id in source_ids if source_id in self.ids)

    def _is_settled(self, item: Stems) -> bool:
        nearest = max(self.settled, key=lambda entry: item.likeness(entry[0]), default=None)
        return nearest is not None and nearest[1] and item.likeness(nearest[0]) >= 0.6

    def _is_invented_order(self, text: str, *, is_own: bool) -> bool:
        """True for a wish or an order in words that nobody who may give one has used."""
        asked, dialogue = self.known.asked, (*self.known.asked, *self.known.said)
        if _REPORTED.search(text):
            return not self._was_said(text)
        words = Stems(text)
        if _ORDER.search(text) and not is_own:
            return not words.covered_by(asked, share=0.6)
        return _STEP.search(text) is not None and not words.covered_by(dialogue, share=0.5)

    def _was_said(self, text: str) -> bool:
        """True if people used these words, or said yes to an agent who did."""
        reported = _REPORTED.search(text)
        end = _CLAUSE_END.search(text, reported.end() if reported else 0)
        quotes = [one or other for one, other in _SPOKEN.findall(text)]
        if quotes and not any(map(self.known.is_quote, quotes)):
            return False
        words = Stems(_SPOKEN.sub("", text[: end.start()] if end else text))
        # A heading, or what leads up to a quotation, may be in any words.
        if len(words.words) <= (_FEW_WORDS if quotes or text.rstrip("* ").endswith(":") else 0):
            return True
        is_consent = _CONSENT.search(text) is not None
        is_asked = not is_consent and words.covered_by(self.known.asked, share=0.6)
        return is_asked or self.known.was_agreed(words, is_consent=is_consent)

    def _marked(self, text: str) -> str | None:
        entities = [entity for entity in find_entities(text) if not _is_common(entity, text)]
        invented = [entity for entity in entities if not self.known.has(entity)]
        phrases = [entity for entity in invented if entity.kind is EntityKind.QUOTED]
        outer = [entity for entity in invented if entity in phrases or not any(_inside(entity, p) for p in phrases)]
        if not outer:
            return text
        known = [
            entity for entity in entities if entity not in invented and not any(_inside(entity, p) for p in phrases)
        ]
        if _hinges(text, outer, len(known)):
            return self._remove(text)
        self.found.extend(entity.text for entity in outer)
        for entity in sorted(outer, key=lambda entity: -entity.start):
            end = entity.end + (entity.kind is EntityKind.QUOTED)
            if not text.startswith(UNVERIFIED, end):
                text = text[:end] + UNVERIFIED + text[end:]
        return text


def _hinges(text: str, invented: Sequence[Entity], known: int) -> bool:
    """True if little is left of a statement without what is invented; in a longer one a figure may stand marked."""
    if any(entity.kind not in (EntityKind.NUMBER, EntityKind.DATE) for entity in invented):
        return len(invented) > known
    return not known and len(text.split()) <= _SHORT_CLAIM_WORDS


def _inside(entity: Entity, phrase: Entity) -> bool:
    return phrase.start <= entity.start and entity.end <= phrase.end


def _is_common(entity: Entity, text: str) -> bool:
    """True for an abbreviation that nobody can look for (API, JSON), and for plain words with hyphens in prose."""
    if entity.text.isalpha():
        return entity.text.isupper() and len(entity.text) <= 5
    return entity.text.replace("-", "").isalpha() and text[entity.start - 1 : entity.start] != "`"


def _settled(messages: Iterable[Message]) -> tuple[tuple[Stems, bool], ...]:
    """Every entry of the agent's to-do lists with whether it is done by now; what was said last counts."""
    entries: dict[str, bool] = {}
    for message in messages:
        if message.role != "assistant":
            continue
        for box, tick, text in _DONE_LINE.findall(message.text):
            entries[text.strip()] = bool(tick) or box in "xX"
        for call in message.tool_calls:
            for values in arguments_of(call).values():
                entries.update(_statuses(values))
    return tuple((Stems(text), is_done) for text, is_done in entries.items())


def _statuses(values: object) -> Iterator[tuple[str, bool]]:
    for entry in cast(list[object], values) if isinstance(values, list) else ():
        if isinstance(entry, Mapping):
            known = cast(Mapping[str, object], entry)
            text = next((known[name] for name in ("content", "step", "title", "description") if name in known), None)
            if isinstance(text, str) and isinstance(known.get("status"), str):
                yield text, str(known["status"]).lower() in _SETTLED
