"""What is found out about the compactions of a log, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from compact.cli.audit.facts import KINDS, KnownFact, Remembered, facts_of, text_of_messages
from compact.cli.audit.repeats import RepeatedCall, repeated_calls, said_again
from compact.cli.audit.rival import compacted_by_us

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.facts.constraints import ConstraintFinder
    from compact.core.messages.message import Message
    from compact.transcripts import AgentLog


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """A fact that was in the prompt: whether the agent's compaction kept it, whether ours does, and its use later.

    `said_again` are the words in which a person repeated it.
    """

    kind: str
    text: str
    kept: bool
    kept_by_compact: bool
    used_later: bool
    said_again: str = ""

    @property
    def is_missed(self) -> bool:
        """True if it was dropped and used later."""
        return self.used_later and not self.kept


@dataclass(frozen=True, slots=True)
class KindCounts:
    """How many facts of one kind there were, and what became of them."""

    kind: str
    known: int
    kept: int
    kept_by_compact: int
    used_later: int
    used_kept: int
    used_kept_by_compact: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAudit:
    """One compaction of the agent's own.

    `tokens_after` is the room: the summary with what stayed beside it. `failure` says why ours did not fit into it.
    """

    place: str
    position: int
    trigger: str
    tokens_before: int
    tokens_after: int
    summary: str
    facts: tuple[FactOutcome, ...]
    repeats: tuple[RepeatedCall, ...]
    tokens_by_compact: int = 0
    failure: str = ""

    @property
    def counts(self) -> list[KindCounts]:
        """The facts by kind; kinds that did not occur are left out."""
        return [counts for kind in KINDS if (counts := count_kind(kind, self.facts)).known]

    @property
    def total(self) -> KindCounts:
        """All facts."""
        return count_kind("", self.facts)

    @property
    def repeated_tokens(self) -> int:
        """What the results of repeated calls cost."""
        return sum(one.tokens for one in self.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAudit:
    """What the compactions of one session forgot; `unreadable` is how many have no text of a summary in the log."""

    agent: str
    version: str
    session_id: str
    source: str
    messages: int
    compactions: tuple[CompactionAudit, ...]
    unreadable: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        data = asdict(self)
        for own, one in zip(data["compactions"], self.compactions, strict=True):
            own["counts"] = [asdict(counts) for counts in one.counts]
            own["repeated_tokens"] = one.repeated_tokens
        return data


def count_kind(kind: str, facts: Iterable[FactOutcome]) -> KindCounts:
    """Return the counts of one kind; of all kinds if it is empty."""
    own = [fact for fact in facts if kind in ("", fact.kind)]
    used = [fact for fact in own if fact.used_later]
    return KindCounts(
        kind or "all",
        len(own),
        sum(fact.kept for fact in own),
        sum(fact.kept_by_compact for fact in own),
        len(used),
        sum(fact.kept for fact in used),
        sum(fact.kept_by_compact for fact in used),
    )


def audit_log(log: AgentLog, settings: CompactConfig, *, redact: Callable[[str], str] = str) -> LogAudit:
    """Audit every compaction of a log that has a readable summary or kept messages; secrets are replaced."""
    from compact.constraints import LearnedConstraints

    finder = LearnedConstraints()
    readable = [n for n, one in enumerate(log.compactions) if one.position and (one.summary or one.kept)]
    return LogAudit(
        agent=log.agent,
        version=log.version,
        session_id=log.session_id,
        source=log.source,
        messages=len(log.messages),
        compactions=tuple(_audit(log, number, finder, settings, redact) for number in readable),
        unreadable=len(log.compactions) - len(readable),
    )


def _audit(
    log: AgentLog, number: int, finder: ConstraintFinder, settings: CompactConfig, redact: Callable[[str], str]
) -> CompactionAudit:
    from compact.stateless import estimate_messages_tokens, estimate_tokens

    compaction, entries = log.compactions[number], log.prompt_before(number)
    before, after = _messages(entries), _messages(log.prompt_after(number))
    later = _messages(log.later(number))
    room = estimate_messages_tokens(log.prompt_after(number), settings)
    size = estimate_messages_tokens(entries, settings)
    ours, failure = compacted_by_us(entries, room=room, tokens=size, settings=settings)
    shown = Remembered(text_of_messages(_messages(ours)) if ours else "")
    outcomes = _outcomes(facts_of(before, finder), Remembered(text_of_messages(after)), shown, later)
    kept = {id(log.messages[position]) for position in compaction.kept}
    gone = [one for one, entry in zip(before, entries, strict=True) if id(entry) not in kept]
    repeats = repeated_calls(gone, later, start=compaction.position, count=lambda text: estimate_tokens(text, settings))
    return CompactionAudit(
        place=compaction.place,
        position=compaction.position,
        trigger=compaction.trigger,
        tokens_before=size,
        tokens_after=room,
        summary=redact(compaction.summary),
        facts=tuple(_redacted(one, redact) for one in outcomes),
        repeats=tuple(_redacted_call(one, redact) for one in repeats),
        tokens_by_compact=estimate_messages_tokens(ours, settings) if ours else 0,
        failure=failure,
    )


def _outcomes(
    facts: Sequence[KnownFact], after: Remembered, ours: Remembered, later: Sequence[Message]
) -> list[FactOutcome]:
    """Return what became of each fact: in what the agent kept, in what we keep, and in what came later."""
    # What a tool printed later is no use of a fact; what was said and called is.
    used = Remembered(text_of_messages(one for one in later if one.role != "tool"))
    dropped = [fact for fact in facts if fact.kind == "constraint" and not after.has(fact)]
    again = dict(said_again(dropped, later))
    return [
        FactOutcome(fact.kind, fact.text, after.has(fact), ours.has(fact), used.has(fact), again.get(fact, ""))
        for fact in facts
    ]


def _redacted(one: FactOutcome, redact: Callable[[str], str]) -> FactOutcome:
    return FactOutcome(
        one.kind, redact(one.text), one.kept, one.kept_by_compact, one.used_later, redact(one.said_again)
    )


def _redacted_call(one: RepeatedCall, redact: Callable[[str], str]) -> RepeatedCall:
    return RepeatedCall(one.tool, redact(one.about), one.tokens, one.position)


def _messages(entries: Iterable[Any]) -> list[Message]:
    from compact.core.messages.entries import read_own_entry

    return [
        read_own_entry(dict(entry), f"messages[{number}]", message_id=f"m{number}")
        for number, entry in enumerate(entries)
    ]
