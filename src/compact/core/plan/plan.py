"""A plan is pure data: which messages are cleared, summarised, externalised or dropped, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from sys import maxsize
from typing import Any, ClassVar, TypeAlias

from compact.core.messages.structure import HistoryStructure
from compact.core.plan.economics import Economics, Prices, PromptChange
from compact.core.plan.regret import Regrets
from compact.core.short_repr import short_repr
from compact.core.summary.summary import StructuredSummary

# The reason of a plan that is left of another because the caller edited the past.
EDITED_PAST = "the past was edited"


class CompactionAction(Enum):
    """What happens to a message on its way into the prompt.

    Attributes:
        INCLUDE: It is sent as it is.
        CLEAR: A stub stands for its content; chosen parts of it may stay.
        SUMMARIZE: The summary stands for it.
        EXTERNALIZE: A pointer and a preview stand for its content, which is an artifact.
        DROP: Nothing stands for it; the log still has it.

    Example:
        >>> from compact import CompactionAction, CompactionPlan
        >>> action, record = CompactionPlan("chat-1").get_action("m1")
        >>> action is CompactionAction.INCLUDE
        True
    """

    INCLUDE = "include"
    CLEAR = "clear"
    SUMMARIZE = "summarize"
    EXTERNALIZE = "externalize"
    DROP = "drop"


# Where records overlap, the higher one decides.
COMPACTION_PRECEDENCE: Mapping[CompactionAction, int] = {action: rank for rank, action in enumerate(CompactionAction)}


@dataclass(frozen=True, slots=True)
class SpanReference:
    """An explicit list of message ids: it stays true whatever is added around it.

    Args:
        message_ids: The ids, the oldest first; at least one, each once.

    Raises:
        ValueError: There is no id, or one is named twice.

    Example:
        >>> from compact import SpanReference
        >>> span = SpanReference(("m1", "m2", "m3"))
        >>> len(span), span.first, span.last
        (3, 'm1', 'm3')
    """

    message_ids: tuple[str, ...]
    _ids: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())
    __repr__ = short_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "message_ids", tuple(self.message_ids))
        object.__setattr__(self, "_ids", frozenset(self.message_ids))
        if not self.message_ids:
            raise ValueError("a span needs at least one message id")
        if len(self._ids) != len(self.message_ids):
            raise ValueError("a span names each message once")

    @property
    def ids(self) -> frozenset[str]:
        """The ids without their order."""
        return self._ids

    @property
    def first(self) -> str:
        """The oldest message."""
        return self.message_ids[0]

    @property
    def last(self) -> str:
        """The newest message."""
        return self.message_ids[-1]

    def __len__(self) -> int:
        return len(self.message_ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.message_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What every record says: which messages, who decided, why, and the tokens before and after."""

    span: SpanReference
    strategy: str
    reason: str
    tokens_before: int = 0
    tokens_after: int = 0

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt gets by this record alone."""
        return self.tokens_before - self.tokens_after


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRecord(_Record):
    """A stub stands for the content; chosen parts of it may stay.

    `kept` are character ranges of the text that stay verbatim, `preserved_fields` key fields of a JSON result,
    `kept_arguments` ranges of the texts in the tool-call arguments, one after the other (None leaves them whole).
    """

    action: ClassVar[CompactionAction] = CompactionAction.CLEAR
    kept: tuple[tuple[int, int], ...] = ()
    preserved_fields: Mapping[str, str] = field(default_factory=dict[str, str])
    kept_arguments: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class AttachmentPointer:
    """What stands for an attachment that left the prompt: the id by which it comes back, its name, and a line."""

    artifact_id: str
    name: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalizationRecord(_Record):
    """The content lives in the artifact store; a pointer and a preview stand for it.

    With `attachments`, only those were moved: the text of the message stays, or the ranges of it in `kept`.
    """

    action: ClassVar[CompactionAction] = CompactionAction.EXTERNALIZE
    artifact_id: str
    preview: str = ""
    sensitivity: str = "internal"
    attachments: tuple[AttachmentPointer, ...] = ()
    kept: tuple[tuple[int, int], ...] | None = None

    def each(self) -> tuple[ExternalizationRecord, ...]:
        """Return a record for each artifact; a message may have several attachments."""
        if not self.attachments:
            return (self,)
        return tuple(replace(self, artifact_id=one.artifact_id, attachments=(one,)) for one in self.attachments)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationRecord(_Record):
    """One summary stands for the span; until it is written (`summary is None`) it weighs `max_tokens`.

    `artifacts` are the pointers that it and the summaries before it took in: its ledger names them.
    """

    action: ClassVar[CompactionAction] = CompactionAction.SUMMARIZE
    version: int = 1
    max_tokens: int = 0
    summary: StructuredSummary | None = None
    artifacts: tuple[ExternalizationRecord, ...] = ()
    __repr__ = short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRecord(_Record):
    """Nothing stands for the content; the log still has it."""

    action: ClassVar[CompactionAction] = CompactionAction.DROP


Record: TypeAlias = ClearRecord | SummarizationRecord | ExternalizationRecord | DropRecord
_KINDS: Mapping[str, type[Record]] = {
    kind.action.value: kind for kind in (ClearRecord, SummarizationRecord, ExternalizationRecord, DropRecord)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailure:
    """Something that failed on the way to a prompt, and what was done instead.

    `what` is `summary`, or the strategy that failed.
    """

    what: str
    error_type: str
    message: str
    instead: str

    def __str__(self) -> str:
        name = "the summary" if self.what == "summary" else f"the strategy {self.what}"
        first_line = self.message.partition("\n")[0]
        reason = f"{self.error_type}: {first_line}" if first_line else self.error_type
        return f"{name} failed ({reason}); {self.instead}"

    def to_dict(self) -> dict[str, str]:
        """Return plain data; `StepFailure(**data)` gives back an equal one."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRun:
    """What is known of a compaction beside its records.

    `change` is what it did to the prompt in tokens, `economics` its price as it was told when it was put in force:
    a price list of later does not change it. `prices` are those of the agent's model before and `prices_after` those
    of the smaller prompt, if they differ; `summary_prices` are those of the summariser's. What is not known is None.
    """

    seconds: float | None = None
    failures: tuple[StepFailure, ...] = ()
    model: str = ""
    change: PromptChange | None = None
    economics: Economics | None = None
    prices: Prices | None = None
    prices_after: Prices | None = None
    summary_model: str = ""
    summary_prices: Prices | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal run."""
        data: dict[str, Any] = {**asdict(self), "failures": [asdict(failure) for failure in self.failures]}
        if self.economics:
            data["economics"] = {**asdict(self.economics), "notes": list(self.economics.notes)}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompactionRun:
        """Return the run that `to_dict` made plain data of."""
        known: dict[str, Any] = {spec.name: data[spec.name] for spec in fields(cls) if spec.name in data}
        known["failures"] = tuple(StepFailure(**failure) for failure in known.get("failures", ()))
        if known.get("change"):
            known["change"] = PromptChange(**known["change"])
        if known.get("economics"):
            priced: dict[str, Any] = dict(known["economics"])
            priced["notes"] = tuple(priced["notes"])
            known["economics"] = Economics(**priced)
        for name in ("prices", "prices_after", "summary_prices"):
            if known.get(name):
                known[name] = Prices(**known[name])
        return cls(**known)


@dataclass(frozen=True, slots=True)
class _Decisions:
    """Which record decides for a message: where records overlap, the higher one, and of two equals the newer.

    The newest summary decides for all that it stands for, but for what others do there. It may be thousands of
    messages, and one compaction makes a dozen plans: they share its span.
    """

    others: Mapping[str, Record]
    summary: SummarizationRecord | None
    covered: frozenset[str]

    @classmethod
    def of(cls, records: Sequence[Record]) -> _Decisions:
        summary = next((record for record in reversed(records) if isinstance(record, SummarizationRecord)), None)
        covered = summary.span.ids if summary else frozenset[str]()
        others: dict[str, Record] = {}
        for record in records:
            rank = COMPACTION_PRECEDENCE[record.action]
            is_overruled = rank <= COMPACTION_PRECEDENCE[CompactionAction.SUMMARIZE]
            if is_overruled and record.span.ids is covered:
                continue  # it is that summary, or the one that is to be written
            for message_id in record.span.ids - covered if is_overruled else record.span:
                standing = others.get(message_id)
                if standing is None or COMPACTION_PRECEDENCE[standing.action] <= rank:
                    others[message_id] = record
        return cls(others, summary, covered)

    def get(self, message_id: str) -> Record | None:
        record = self.others.get(message_id)
        return self.summary if record is None and message_id in self.covered else record

    def deciding(self) -> Iterator[Record]:
        """Yield the records that decide for a message at least."""
        yield from self.others.values()
        if self.summary is not None and not self.others.keys() >= self.covered:
            yield self.summary


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """All records of one session at one version, and the action they come to for each message.

    `manager.current_plan(session_id)` returns the one in force, `manager.plans(session_id)` all of them. A plan is pure
    data: with the log it gives the same prompt every time.

    Attributes:
        session_id: The conversation.
        version: 0 before the first compaction; each new plan has the next number.
        records: What is done to which messages, by which strategy, why, and what that frees.
        pinned: The messages that stand before the summary.
        reason: What made this version.
        tokens_before: The size of the prompt before it.
        tokens_after: The size of the prompt with it.
        origin: The version it was restored from, if it was.
        held: True for a restored plan, which stays until the budget forbids it.
        shows_gaps: True if a line stands where a whole turn was left out; a very small prompt has no room for that.
        lines: Before which messages such lines stand, and whose turn it was; None until that is known.
        regrets: What the agent had missed until then.
        run: How the compaction went that made the plan, if one did.
        archived: How many entries of the log the archive has.
        dialect: The wire format that the caller's messages were recognised to be in, if they were.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000))
        >>> prompt = manager.preflight("chat-1", tool_run(60, words=200))
        >>> plan = manager.current_plan("chat-1")
        >>> plan.version, plan.tokens_after < plan.tokens_before
        (1, True)
        >>> sorted({record.strategy for record in plan.records})
        ['clear', 'summarize']
    """

    session_id: str
    version: int = 0
    records: tuple[Record, ...] = ()
    pinned: tuple[str, ...] = ()
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    origin: int | None = None
    held: bool = False
    shows_gaps: bool = False
    lines: Mapping[str, str] | None = None
    regrets: Regrets = field(default_factory=Regrets)
    run: CompactionRun | None = field(default=None, compare=False)
    archived: int = field(default=0, compare=False)
    dialect: str = field(default="", compare=False)
    _decisions: _Decisions = field(init=False, repr=False, compare=False)
    __repr__ = short_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", tuple(self.records))
        object.__setattr__(self, "pinned", tuple(self.pinned))
        object.__setattr__(self, "_decisions", _Decisions.of(self.records))

    @property
    def thread_id(self) -> str:
        """Another name for `session_id`, in frameworks that call a session a thread."""
        return self.session_id

    def get_action(self, message_id: str) -> tuple[CompactionAction, Record | None]:
        """Return what happens to a message, and the record that says so.

        Args:
            message_id: The id of a message of the log.

        Returns:
            The action and its record; `INCLUDE` and None for a message that no record names.

        Example:
            >>> action, record = plan.get_action(plan.summary.span.first)
            >>> action.value, record.strategy
            ('summarize', 'summarize')
        """
        record = self._decisions.get(message_id)
        return (record.action, record) if record else (CompactionAction.INCLUDE, None)

    def shows(self, message_id: str) -> bool:
        """Return True if a message is in the prompt, as it is or as a stub.

        Args:
            message_id: The id of a message of the log.

        Example:
            >>> plan.shows(plan.summary.span.first)
            False
        """
        return self.get_action(message_id)[0] not in (CompactionAction.SUMMARIZE, CompactionAction.DROP)

    def named_ids(self) -> frozenset[str]:
        """Return the messages that some record is about.

        Example:
            >>> plan.named_ids() >= plan.summarized_ids()
            True
        """
        return self._decisions.covered.union(self._decisions.others)

    def named_since(self, before: CompactionPlan) -> frozenset[str]:
        """Return the messages that some record is about, but for those that this plan and one before it summarise.

        Args:
            before: The plan that was in force until then.

        Example:
            >>> plan.named_since(plan) < plan.named_ids()
            True
        """
        mine, its = self._decisions, before._decisions
        # Of a long history both summarise nearly everything: sets are compared in C, and the rest is little.
        newly_covered = mine.covered - its.covered
        return newly_covered.union(mine.others, (one for one in its.others if one in mine.covered))

    def summarized_ids(self) -> frozenset[str]:
        """Return the messages that the summary stands for; of a long history nearly all of them.

        Example:
            >>> plan.summary.span.first in plan.summarized_ids()
            True
        """
        return self._decisions.covered.difference(self._decisions.others)

    def places_outside(self, history: HistoryStructure) -> Sequence[int]:
        """Return the places, in order, of the messages that the summary does not stand for: few of a long history.

        Args:
            history: How the history is built.

        Example:
            >>> from compact.core.messages.structure import HistoryStructure
            >>> history = manager.history("chat-1")
            >>> places = plan.places_outside(HistoryStructure(history))
            >>> len(places) == len(history) - len(plan.summarized_ids())
            True
        """
        decisions, places = self._decisions, history.places
        outside = history.outside(decisions.covered)
        # Another record may decide for a message of the span: a pointer stays where a summary would stand for it.
        others = [places[i] for i in decisions.others if i in decisions.covered and i in places]
        return sorted({*outside, *others}) if others else outside

    def hidden_ids(self) -> frozenset[str]:
        """Return the messages that the prompt does not show: those that are summarised or dropped.

        Example:
            >>> plan.summary.span.first in plan.hidden_ids()
            True
        """
        hidden: set[str] = set()
        for record in (*self.summarizations, *self.drops):
            hidden.update(record.span)
        for record in (*self.clearings, *self.externalizations):
            hidden.difference_update(i for i in record.span if self.shows(i))
        return frozenset(hidden)

    def actions(self, message_ids: Iterable[str]) -> dict[str, CompactionAction]:
        """Return one action for each of the messages.

        Args:
            message_ids: Ids of messages of the log.

        Example:
            >>> [action.value for action in plan.actions(plan.summary.span).values()][:2]
            ['summarize', 'summarize']
        """
        return {message_id: self.get_action(message_id)[0] for message_id in message_ids}

    @property
    def clearings(self) -> tuple[ClearRecord, ...]:
        """The records that leave a stub."""
        return tuple(record for record in self.records if isinstance(record, ClearRecord))

    @property
    def summarizations(self) -> tuple[SummarizationRecord, ...]:
        """The records that leave a summary."""
        return tuple(record for record in self.records if isinstance(record, SummarizationRecord))

    @property
    def externalizations(self) -> tuple[ExternalizationRecord, ...]:
        """The records that leave a pointer."""
        return tuple(record for record in self.records if isinstance(record, ExternalizationRecord))

    @property
    def artifacts(self) -> tuple[ExternalizationRecord, ...]:
        """Every artifact that the prompt names: those the summary took in, then those whose pointer stands."""
        standing = (one for pointer in self.externalizations for one in pointer.each())
        return (*(summary.artifacts if (summary := self.summary) else ()), *standing)

    @property
    def drops(self) -> tuple[DropRecord, ...]:
        """The records that leave nothing."""
        return tuple(record for record in self.records if isinstance(record, DropRecord))

    @property
    def summary(self) -> SummarizationRecord | None:
        """The one summary of the prompt, if there is one."""
        return next((record for record in reversed(self.records) if isinstance(record, SummarizationRecord)), None)

    def overlapping_ids(self) -> tuple[str, ...]:
        """Return messages that more than one record claims; precedence decides, then the newer record.

        Example:
            >>> plan.overlapping_ids()
            ()
        """
        claims: dict[str, int] = {}
        for record in self.records:
            for message_id in record.span:
                claims[message_id] = claims.get(message_id, 0) + 1
        return tuple(message_id for message_id, count in claims.items() if count > 1)

    def adding(self, *records: Record) -> CompactionPlan:
        """Return this plan with more records; those that are overruled whole are left out.

        Args:
            records: Clear, summarisation, externalisation or drop records.

        Example:
            >>> from compact import SpanReference
            >>> from compact.core.plan.plan import DropRecord
            >>> drop = DropRecord(span=SpanReference(("m99",)), strategy="mine", reason="an example")
            >>> plan.adding(drop).drops[0].reason
            'an example'
        """
        every = (*self.records, *records)
        deciding = {id(record) for record in _Decisions.of(every).deciding()}
        # A record that the plan has already moves to the end, and stands there once.
        newest = {id(record): place for place, record in enumerate(every)}
        return replace(self, records=tuple(r for n, r in enumerate(every) if id(r) in deciding and newest[id(r)] == n))

    def summarizing(self, record: SummarizationRecord, pinned: tuple[str, ...]) -> CompactionPlan:
        """Return this plan with one summary for a span; it takes in what was put there before, pointers included.

        By precedence a pointer would stay. Whoever names its messages in the span has no room for it: what it points to
        goes on in `SummarizationRecord.artifacts`, from one summary to the next.

        Args:
            record: The summary, and the span it stands for.
            pinned: The messages that stand before the summary.

        Example:
            >>> from compact import SpanReference
            >>> from compact.core.plan.plan import SummarizationRecord
            >>> record = SummarizationRecord(span=SpanReference(("m1", "m2")), strategy="mine", reason="an example")
            >>> plan.summarizing(record, pinned=()).summary.reason
            'an example'
        """
        covered = record.span.ids
        taken_in = [pointer for pointer in self.externalizations if covered.issuperset(pointer.span)]
        earlier = self.summary.artifacts if self.summary else ()
        # The preview is not shown any more, and plans are stored whole.
        moved = (one for pointer in (*earlier, *taken_in) for one in pointer.each())
        artifacts = {pointer.artifact_id: replace(pointer, preview="", kept=None) for pointer in moved}
        gone = {id(pointer) for pointer in taken_in}
        kept = tuple(r for r in self.records if id(r) not in gone)
        return replace(self, records=kept, pinned=pinned).adding(replace(record, artifacts=tuple(artifacts.values())))

    def standing_on(self, message_ids: Iterable[str]) -> CompactionPlan:
        """Return the part of this plan whose messages are all still there (after the caller edited the past).

        Args:
            message_ids: The messages that are there.

        Example:
            >>> plan.standing_on([]).records
            ()
        """
        present = set(message_ids)
        records = tuple(record for record in self.records if present.issuperset(record.span))
        if len(records) == len(self.records):
            return self
        return replace(self, records=records, pinned=tuple(i for i in self.pinned if i in present))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal plan.

        Example:
            >>> import json
            >>> json.loads(json.dumps(plan.to_dict()))["version"]
            1
        """
        return {
            "session_id": self.session_id,
            "version": self.version,
            "records": [_record_to_dict(record) for record in self.records],
            "pinned": list(self.pinned),
            "reason": self.reason,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "origin": self.origin,
            "held": self.held,
            "shows_gaps": self.shows_gaps,
            "lines": dict(self.lines) if self.lines is not None else None,
            "regrets": self.regrets.to_dict(),
            "run": self.run.to_dict() if self.run else None,
            **({"archived": self.archived} if self.archived else {}),
            **({"dialect": self.dialect} if self.dialect else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompactionPlan:
        """Build a plan from what `to_dict` gave.

        Args:
            data: The plain data, perhaps read back from JSON.

        Example:
            >>> from compact import CompactionPlan
            >>> CompactionPlan.from_dict(plan.to_dict()) == plan
            True
        """
        return cls(
            session_id=data["session_id"],
            version=data["version"],
            records=tuple(_record_from_dict(record) for record in data["records"]),
            pinned=tuple(data["pinned"]),
            reason=data["reason"],
            tokens_before=data["tokens_before"],
            tokens_after=data["tokens_after"],
            origin=data["origin"],
            held=data["held"],
            shows_gaps=data.get("shows_gaps", False),
            lines=data.get("lines"),
            # A plan from before regrets were counted does not say how long the log was: none counts under it.
            regrets=Regrets.from_dict(data["regrets"]) if "regrets" in data else Regrets(log_length=maxsize),
            run=CompactionRun.from_dict(data["run"]) if data.get("run") else None,
            archived=data.get("archived", 0),
            dialect=data.get("dialect", ""),
        )


def _record_to_dict(record: Record) -> dict[str, Any]:
    data: dict[str, Any] = {
        "action": record.action.value,
        "span": list(record.span),
        "strategy": record.strategy,
        "reason": record.reason,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
    }
    match record:
        case ClearRecord():
            data["kept"] = [list(piece) for piece in record.kept]
            data["preserved_fields"] = dict(record.preserved_fields)
            ranges = record.kept_arguments
            data["kept_arguments"] = None if ranges is None else [list(piece) for piece in ranges]
        case SummarizationRecord():
            data["version"] = record.version
            data["max_tokens"] = record.max_tokens
            data["summary"] = record.summary.to_dict() if record.summary else None
            data["artifacts"] = [_record_to_dict(pointer) for pointer in record.artifacts]
        case ExternalizationRecord():
            data["artifact_id"] = record.artifact_id
            data["preview"] = record.preview
            data["sensitivity"] = record.sensitivity
            if record.attachments:
                data["attachments"] = [[one.artifact_id, one.name, one.line] for one in record.attachments]
                data["kept"] = None if record.kept is None else [list(piece) for piece in record.kept]
        case DropRecord():
            pass
    return data


def _record_from_dict(data: Mapping[str, Any]) -> Record:
    known = dict(data)
    kind = _KINDS[known.pop("action")]
    known["span"] = SpanReference(tuple(known["span"]))
    for name in ("kept", "kept_arguments"):
        if known.get(name) is not None:
            known[name] = tuple((start, end) for start, end in known[name])
    if "attachments" in known:
        known["attachments"] = tuple(AttachmentPointer(*pointer) for pointer in known["attachments"])
    if known.get("summary"):
        known["summary"] = StructuredSummary.from_dict(known["summary"])
    if "artifacts" in known:
        known["artifacts"] = tuple(_record_from_dict(pointer) for pointer in known["artifacts"])
    return kind(**known)
