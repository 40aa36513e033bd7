"""Check a summary both ways: what it may not lack is in it, and what it says is in its sources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from compact.core.facts.entities import Entity, EntityKind, find_entities
from compact.core.facts.grounding import Sources
from compact.core.facts.ledger import REQUIRED, Fact, FactKind, Ledger
from compact.core.facts.open_items import TodoList
from compact.core.facts.text import ENDS_MARK, TextRange, WordBag, one_line, sentence_ranges, stands_in
from compact.core.messages.message import Message
from compact.core.summary.summary import (
    Decision,
    OpenItem,
    StructuredSummary,
    ToolOutcome,
    render_summary_text,
    unquoted,
)

UNVERIFIED = " [unverified]"
# The facts that a summary is searched for; of the others there may be thousands.
_LOOKED_FOR = frozenset((*REQUIRED, FactKind.FILE, FactKind.ERROR, FactKind.OPEN_ITEM, FactKind.ARTIFACT))
# A task longer than the summary may be stands in it cut: code did that, and asking again does not help. Chosen.
_MIN_CUT_CHARS = 80
# Older failures were given up, or went away without anybody saying so. Chosen.
_NEWEST_ERRORS = 5
# Chosen: the share of its words that another text must have to say the same: most of them for what a person asked or a
# summary repeats, half of them for what the agent set itself to do.
_SAME_SHARE = 0.6
_OWN_STEP_SHARE = 0.5


def lacking(summary: StructuredSummary, ledger: Ledger, *, text: str = "") -> tuple[Fact, ...]:
    """Return the facts of a ledger that a summary needs and its text (as rendered, unless given) does not have.

    Task, constraints and latest ask are needed word for word; modified files, the newest open errors, open items and
    artifacts by name. A path is named by its last two parts, or by its last one where no other file is called so; an
    error or an open item by a line with most of its words.
    """
    shown = _ShownText(unquoted(text or render_summary_text(summary, version=1, messages=1)))
    names = Counter(fact.subject.rpartition("/")[2] for fact in ledger.of(FactKind.FILE))
    errors = [fact for fact in ledger.of(FactKind.ERROR) if fact.detail == "not resolved"][-_NEWEST_ERRORS:]

    def is_missing(fact: Fact) -> bool:
        match fact.kind:
            case FactKind.TASK | FactKind.CONSTRAINT | FactKind.LATEST_ASK:
                return not (shown.has(fact.subject) or _is_cut(fact, summary.ledger))
            case FactKind.FILE:
                return "modified" in fact.detail and not shown.names_file(fact.subject, names)
            case FactKind.ERROR:
                return fact in errors and not shown.has_words(fact.subject)
            case FactKind.OPEN_ITEM:
                return not shown.has_words(fact.subject)
            case _:
                return not shown.has(fact.subject)

    missing = [fact for fact in ledger if fact.kind in _LOOKED_FOR and is_missing(fact)]
    return tuple(
        sorted(missing, key=lambda fact: REQUIRED.index(fact.kind) if fact.kind in REQUIRED else len(REQUIRED))
    )


class _ShownText:
    """A summary as it is read: as one text, and line by line."""

    def __init__(self, text: str) -> None:
        self._text = one_line(text)
        self._lines = [WordBag(line) for line in text.splitlines() if line.strip()]

    def has(self, string: str) -> bool:
        return stands_in(self._text, one_line(string))

    def names_file(self, path: str, names: Mapping[str, int]) -> bool:
        """Return True if a file is named; `names` says how many files of the ledger have each name."""
        parts = path.split("/")
        return self.has("/".join(parts[-2:])) or (names[parts[-1]] == 1 and self.has(parts[-1]))

    def has_words(self, string: str) -> bool:
        return self.has(string) or WordBag(string).covered_by(self._lines, share=_SAME_SHARE)


def _is_cut(fact: Fact, ledger: Ledger) -> bool:
    return any(
        len(known.subject) >= _MIN_CUT_CHARS and fact.subject.startswith(known.subject.partition(ENDS_MARK)[0])
        for known in ledger.of(fact.kind)
    )


# -- what is said and not in the sources ----------------------------------------------------------------------------

_PEOPLE = r"(?:user|customer|client|human|operator|owner|person|caller)s?"
_REPORTED_SPEECH = re.compile(
    rf"\b{_PEOPLE}\b[^.;]{{0,60}}?\b(?:agree|allow|approv|ask|authori[sz]|confirm|demand|expect|forb|grant|insist|instruct"
    r"|need|order|permi|prefer|request|requir|said|say|tell|told|want|wish)",
    re.IGNORECASE,
)
# To these a person must have said yes.
_CONSENT = re.compile(r"\b(?:accept|agree|allow|approv|authori[sz]|confirm|consent|grant|permi)", re.IGNORECASE)
# Where reported speech ends, and what was made of it begins.
_CLAUSE_END = re.compile(r"[;—–→(]| - |, (?:and|so|but) (?:I|we)\b")
_QUOTATION = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”")
_ORDER = re.compile(
    r"^[\s\-*•\d.)(]*(?:please |important:? |note:? |rule:? )*"
    r"(?:never (?!\w+ed\b|\w+ly \w+ed\b)|always\b|do not\b|don['’]t\b|from now on\b|under no\b|ignore\b|disregard\b"
    r"|avoid\b|refrain\b)"
    r"|\b(?:you|(?:the |this )?(?:agent|assistant|model|ai))"
    r" (?:must|should|shall|needs? to|ha(?:s|ve) to|is to|are to|may not|may only)\b"
    r"|\b(?:from now on|under no circumstances|at all times|without exception)\b",
    re.IGNORECASE,
)
# What an agent may well have set itself to do, and what may be an order in other languages. The finder of constraints
# is made for what people type, and would find them everywhere in a narrative.
_STEP = re.compile(
    r"^[\s\-*•\d.)(]*(?:make sure|be sure|ensure|remember|only|stop|forget|delete|remove|send|use|keep|reply|respond"
    r"|answer|write|follow|treat|leave)\b"
    r"|\b(?:is|are) (?:forbidden|prohibited|mandatory|not allowed)\b"
    r"|\b(?:ab jetzt|ab sofort|von nun an|immer|niemals|nie|désormais|toujours|jamais|siempre|nunca|sempre|mai"
    r"|a partir de (?:ahora|agora)|d'ora in poi|altijd|nooit|vanaf nu|всегда|никогда)\b"
    r"|必须|必須|总是|總是|从现在|從現在|絶対に|必ず|항상|절대",
    re.IGNORECASE,
)
# An order by its label alone, whatever its verb: `Standing instruction: …`, `New policy - …`.
_LABEL = re.compile(
    r"^[\s\-*•\d.)(]*(?:[\w'’-]+ ){0,3}(?:instruction|directive|order|rule|policy|constraint|requirement|command"
    r"|mandate|guideline|anweisung|vorgabe|regel|consigne|règle|instrucción|regla|istruzione|regola)(?:s|e?n|es)?"
    r"(?: \([^)\n]{0,40}\))?\**\s{0,2}[:：–—-]\**\s{0,2}(?=\S)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s")
_ENTRY_NUMBER = re.compile(r"\s*(?:\d{1,2}|[A-Za-z])\.")
# Chosen: a claim of so few words is nothing without its figure; a heading of so few may be in any words.
_SHORT_CLAIM_WORDS = 8
_HEADING_WORDS = 3
_MAX_NAMED_CHARS = 160


def is_written(summary: StructuredSummary) -> bool:
    """Return True if there is something in a summary that a model may have written: code only quotes."""
    written = (summary.decisions, summary.open_items, summary.tool_outcomes, summary.facts, summary.narrative)
    return any(written)


def grounded(
    summary: StructuredSummary, sources: Iterable[Message], ledger: Ledger
) -> tuple[StructuredSummary, tuple[str, ...]]:
    """Return the summary without what its sources do not say, and every string that was marked or removed.

    Only what a model wrote is looked at. A statement that hinges on an invented string goes, otherwise the string is
    marked; an order that nobody gave goes in any case, and so does an open item that is settled or nobody's.
    """
    if not is_written(summary):
        return summary, ()
    messages = tuple(sources)
    todos = tuple(_Todo(WordBag(item.text), item.is_settled) for item in TodoList.of(messages).items())
    check = _Check(Sources(messages, ledger), frozenset(message.id for message in messages), todos)
    checked = replace(
        summary,
        decisions=tuple(_kept(check.decision, summary.decisions)),
        open_items=tuple(_kept(check.open_item, summary.open_items)),
        tool_outcomes=tuple(_kept(check.outcome, summary.tool_outcomes)),
        facts=tuple(_kept(check.statement, summary.facts)),
        narrative=check.prose(summary.narrative),
    )
    return checked, tuple(dict.fromkeys(check.found))


def _kept(check: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return (kept for item in items if (kept := check(item)) is not None)


@dataclass(frozen=True, slots=True)
class _Todo:
    """An entry of the agent's to-do lists, and whether it is done or given up by now."""

    words: WordBag
    is_settled: bool


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks the parts of a summary one by one, and collects in `found` what no source has."""

    sources: Sources
    ids: frozenset[str]
    todos: tuple[_Todo, ...]
    found: list[str] = field(default_factory=list[str])

    def decision(self, entry: Decision) -> Decision | None:
        text = self.statement(entry.decision, is_own=True)
        if text is None:
            return None
        rationale = self.prose(entry.rationale)
        return replace(entry, decision=text, rationale=rationale, source_ids=self._ids(entry.source_ids))

    def open_item(self, entry: OpenItem) -> OpenItem | None:
        words = WordBag(entry.item)
        if self._is_settled(words) or not words.covered_by(self._dialogue, share=_OWN_STEP_SHARE):
            return self._remove(entry.item)
        text = self.statement(entry.item, is_own=True)
        return None if text is None else replace(entry, item=text, source_ids=self._ids(entry.source_ids))

    def outcome(self, entry: ToolOutcome) -> ToolOutcome | None:
        if not self.sources.has_words(entry.tool):
            return self._remove(f"{entry.tool}: {entry.outcome}")
        text = self.statement(entry.outcome)
        return None if text is None else replace(entry, outcome=text, source_ids=self._ids(entry.source_ids))

    def statement(self, text: str, *, is_own: bool = False) -> str | None:
        """Return one statement, marked where it must be, or None if it goes; with `is_own` it may be the agent's."""
        return self._remove(text) if self._is_invented_order(text, is_own=is_own) else self._marked(text)

    def prose(self, text: str) -> str:
        """Return running text, sentence by sentence; what is listed below "the user asked:" must have been asked."""
        ranges = (*_clauses(text), (len(text), len(text)))
        checked: list[str] = []
        is_reported = False
        for (start, end), (next_start, _) in pairwise(ranges):
            sentence, gap = text[start:end], text[end:next_start]
            is_reported = is_reported and _BULLET.match(sentence) is not None
            kept = self._sentence(sentence, is_reported=is_reported)
            checked += [kept, gap] if kept is not None else ["\n" if "\n" in gap else ""]
            is_reported = is_reported or bool(sentence.rstrip("* ").endswith(":") and _REPORTED_SPEECH.search(sentence))
        return re.sub(r"\n{3,}", "\n\n", "".join(checked)).strip()

    def _sentence(self, text: str, *, is_reported: bool) -> str | None:
        if not text.strip():
            return text
        return self._remove(text) if is_reported and not self._was_said(text) else self.statement(text)

    @property
    def _dialogue(self) -> tuple[WordBag, ...]:
        return (*self.sources.people_words, *self.sources.agent_words)

    def _remove(self, text: str) -> None:
        self.found.append(one_line(text, _MAX_NAMED_CHARS))

    def _ids(self, source_ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(source_id for source_id in source_ids if source_id in self.ids)

    def _is_settled(self, item: WordBag) -> bool:
        nearest = max(self.todos, key=lambda todo: item.likeness(todo.words), default=None)
        return nearest is not None and nearest.is_settled and item.likeness(nearest.words) >= _SAME_SHARE

    def _is_invented_order(self, text: str, *, is_own: bool) -> bool:
        """Return True for an order in words that nobody who may give one has used."""
        if _REPORTED_SPEECH.search(text):
            return not self._was_said(text)
        label = _LABEL.match(text)
        words = WordBag(text[label.end() :] if label else text)
        if label or (_ORDER.search(text) and not is_own):
            return not words.covered_by(self.sources.people_words, share=_SAME_SHARE)
        return _STEP.search(text) is not None and not words.covered_by(self._dialogue, share=_OWN_STEP_SHARE)

    def _was_said(self, text: str) -> bool:
        """Return True if people used these words, or said yes to an agent who did."""
        begin = _REPORTED_SPEECH.search(text) or _BULLET.match(text)
        end = _CLAUSE_END.search(text, begin.end() if begin else 0)
        quotes = [one or other for one, other in _QUOTATION.findall(text)]
        if quotes and not any(map(self.sources.is_quote, quotes)):
            return False
        words = WordBag(_QUOTATION.sub("", text[: end.start()] if end else text))
        if not words.stems:  # What they said begins behind the bracket or the dash, if anywhere.
            words = WordBag(_QUOTATION.sub("", text))
        # A heading, or what leads up to a quotation, may be in any words.
        if len(words.stems) <= (_HEADING_WORDS if quotes or text.rstrip("* ").endswith(":") else 0):
            return True
        is_consent = _CONSENT.search(text) is not None
        is_asked = not is_consent and words.covered_by(self.sources.people_words, share=_SAME_SHARE)
        return is_asked or self.sources.was_agreed(words, is_consent=is_consent)

    def _marked(self, text: str) -> str | None:
        """Return a statement with its invented strings marked, or None if it says little without them."""
        entities = [entity for entity in find_entities(text) if not _is_common(entity, text)]
        invented = [entity for entity in entities if not self.sources.has(entity)]
        phrases = [entity for entity in invented if entity.kind is EntityKind.QUOTED]
        outer = [entity for entity in invented if entity in phrases or not any(_inside(entity, p) for p in phrases)]
        if not outer:
            return text
        known = [
            entity for entity in entities if entity not in invented and not any(_inside(entity, p) for p in phrases)
        ]
        if _hinges_on(outer, text, len(known)):
            return self._remove(text)
        self.found.extend(entity.text for entity in outer)
        for entity in sorted(outer, key=lambda entity: -entity.start):
            end = entity.end + (entity.kind is EntityKind.QUOTED)
            if not text.startswith(UNVERIFIED, end):
                text = text[:end] + UNVERIFIED + text[end:]
        return text


def _clauses(text: str) -> Iterator[TextRange]:
    """Yield where each clause stands; the number before an entry of a list is no sentence of its own."""
    begin: int | None = None
    for start, end in sentence_ranges(text, split_clauses=True):
        begin = start if begin is None else begin
        if not _ENTRY_NUMBER.fullmatch(text, start, end):
            yield begin, end
            begin = None
    if begin is not None:
        yield begin, len(text)


def _hinges_on(invented: Sequence[Entity], text: str, known: int) -> bool:
    """Return True if little is left of a statement without what is invented; in a long one a figure stands marked."""
    if any(entity.kind not in (EntityKind.NUMBER, EntityKind.DATE) for entity in invented):
        return len(invented) > known
    return not known and len(text.split()) <= _SHORT_CLAIM_WORDS


def _inside(entity: Entity, phrase: Entity) -> bool:
    return phrase.start <= entity.start and entity.end <= phrase.end


def _is_common(entity: Entity, text: str) -> bool:
    """Return True for an abbreviation that nobody can look for (API, JSON), and for words with hyphens in prose."""
    if entity.text.isalpha():
        return entity.text.isupper() and len(entity.text) <= 5
    return entity.text.replace("-", "").isalpha() and text[entity.start - 1 : entity.start] != "`"
