"""The report of a compaction: for each string it took out, whether it is kept, in the ledger, retrievable or lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from compact.core.audit.diff import (
    PromptTexts,
    RecallableLog,
    Removal,
    ReportedHistory,
    removed_asks,
    removed_decisions,
)
from compact.core.audit.failures import failures_data, plan_failures
from compact.core.audit.records import ModelCall, PlanVersion, StoredSession
from compact.core.audit.regret_finder import regrets_of
from compact.core.facts.constraints import ConstraintFinder, ConstraintReading
from compact.core.facts.entities import EntityKind
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import CompactionPlan, StepFailure
from compact.core.plan.regret import Regret, RegretCount, count_regrets
from compact.core.short_repr import short_repr
from compact.core.summary.summary import StructuredSummary, SummaryCheck

CONSTRAINT, TASK, DECISION = "constraint", "task", "decision"
# What hurts most when it is gone comes first; numbers and phrases are many.
KINDS = (
    CONSTRAINT,
    TASK,
    DECISION,
    *(
        kind.value
        for kind in (
            EntityKind.ID,
            EntityKind.PATH,
            EntityKind.URL,
            EntityKind.ERROR,
            EntityKind.DATE,
            EntityKind.IDENTIFIER,
            EntityKind.FLAG,
            EntityKind.NUMBER,
            EntityKind.QUOTED,
        )
    ),
)


class EntityState(Enum):
    """Where a string of the removed span is now, from worst to best."""

    LOST = "lost"
    RETRIEVABLE = "retrievable"
    IN_LEDGER = "in_ledger"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One string that left the prompt: what it is, where it is now, and the message that recall finds it by.

    `is_touched` says that a person or the agent used it; the others were only printed by a tool.
    """

    kind: str
    text: str
    state: EntityState
    message_id: str = ""
    is_touched: bool = False

    @property
    def is_in_prompt(self) -> bool:
        """True if the model still sees it."""
        return self.state in (EntityState.KEPT, EntityState.IN_LEDGER)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "text": self.text,
            "state": self.state.value,
            "message_id": self.message_id,
            "is_touched": self.is_touched,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """What one plan version did to the prompt before it: for each string it took out, where that is now.

    `manager.report(session_id)` returns one for each compaction.

    Attributes:
        session_id: The conversation.
        version: The plan version.
        reason: What made that version.
        tokens_before: The size of the prompt before it.
        tokens_after: The size of the prompt with it.
        removed_ids: The messages that left the prompt.
        items: The strings that left, each with its kind and its state; the worst first.
        check: What checking the summary against its sources came to.
        regrets: The removed messages that the agent asked for again later.
        failures: What failed in the compaction, with what was done instead.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000))
        >>> prompt = manager.preflight("chat-1", tool_run(60, words=200))
        >>> (report,) = manager.report("chat-1")
        >>> report.version, report.missing_constraints, len(report.removed_ids) > 0
        (1, (), True)
    """

    session_id: str
    version: int
    reason: str
    tokens_before: int
    tokens_after: int
    removed_ids: tuple[str, ...]
    items: tuple[ReportItem, ...]
    check: SummaryCheck | None = None
    regrets: tuple[Regret, ...] = ()
    failures: tuple[StepFailure, ...] = ()
    __repr__ = short_repr

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many strings of each kind are in each state; only the kinds that there are."""
        table: dict[str, dict[str, int]] = {}
        for item in self.items:
            row = table.setdefault(item.kind, {state.value: 0 for state in reversed(EntityState)})
            row[item.state.value] += 1
        return {kind: table[kind] for kind in KINDS if kind in table}

    @property
    def constraints(self) -> tuple[ReportItem, ...]:
        """The constraints whose own message is not in the prompt."""
        return tuple(item for item in self.items if item.kind == CONSTRAINT)

    @property
    def missing_constraints(self) -> tuple[ReportItem, ...]:
        """The constraints that the model does not see any more: there should be none."""
        return tuple(item for item in self.constraints if not item.is_in_prompt)

    @property
    def decisions(self) -> tuple[ReportItem, ...]:
        """The decisions, as code finds them, whose own message is not in the prompt as it came."""
        return tuple(item for item in self.items if item.kind == DECISION)

    @property
    def regret_counts(self) -> tuple[RegretCount, ...]:
        """The regrets by tool, action and strategy, the most frequent first."""
        return count_regrets(self.regrets)

    def total(self, state: EntityState) -> int:
        """Return how many strings are in a state.

        Args:
            state: `EntityState.KEPT`, `IN_LEDGER`, `RETRIEVABLE` or `LOST`.

        Example:
            >>> from compact.core.audit.report import EntityState
            >>> report.total(EntityState.LOST)
            0
        """
        return sum(item.state is state for item in self.items)

    def notable(self, limit: int) -> tuple[ReportItem, ...]:
        """Return the first of what is not in the prompt any more.

        Args:
            limit: How many at most.

        Example:
            >>> all(not item.is_in_prompt for item in report.notable(5))
            True
        """
        return tuple(item for item in self.items if not item.is_in_prompt)[:limit]

    def to_dict(self, *, examples: int | None = 20) -> dict[str, Any]:
        """Return plain data for JSON.

        Args:
            examples: How many strings to list of those that are not in the prompt any more; None lists every string.

        Example:
            >>> report.to_dict(examples=3)["removed_messages"] == len(report.removed_ids)
            True
        """
        check = self.check
        listed = self.items if examples is None else self.notable(examples)
        return {
            "session_id": self.session_id,
            "version": self.version,
            "reason": self.reason,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "removed_messages": len(self.removed_ids),
            "counts": self.counts,
            "constraints": [item.to_dict() for item in self.constraints],
            "decisions": [item.to_dict() for item in self.decisions],
            "items" if examples is None else "not_in_prompt": [item.to_dict() for item in listed],
            "check": check
            and {
                "required": check.required,
                "asked_again": list(check.asked_again),
                "appended": list(check.appended),
                "ungrounded": list(check.ungrounded),
            },
            "regrets": [regret.to_dict() for regret in self.regrets],
            "failures": failures_data(self.failures),
        }


def report_of(
    history: ReportedHistory, before: CompactionPlan, after: CompactionPlan, log: RecallableLog, log_length: int
) -> CompactionReport:
    """Report what the step from one plan to the next did; `history` is as long as it was then.

    Counted is what the prompt showed before and no longer shows as it did: messages that left, and what stood for
    others until then. What had left earlier is not counted again, but for the task, constraints and decisions: they
    are followed from round to round. `log` is where recall looks, in as many entries as there were: it may have more
    than the history, because the caller may have edited the past.
    """
    removal = Removal.between(history, before, after)
    strings = log.strings_of(removal)
    strings.update(log.find((text for text, found in strings.items() if not found.message_id), log_length))
    summary = after.summary.summary if after.summary else None
    state_of = _StateOf(PromptTexts(history, after), log, summary)
    items = [
        ReportItem(
            TASK if ask.is_task else CONSTRAINT, ask.text, state_of(ask.text, ask.message_id), ask.message_id, True
        )
        for ask in removed_asks(history, after)
    ]
    items += [
        ReportItem(DECISION, text, state_of.decision(text, message_id), message_id, True)
        for text, message_id in removed_decisions(history, after)
    ]
    items += [
        ReportItem(found.kind.value, text, state_of(text, found.message_id), found.message_id, found.is_touched)
        for text, found in strings.items()
    ]
    return CompactionReport(
        session_id=after.session_id,
        version=after.version,
        reason=after.reason,
        tokens_before=after.tokens_before,
        tokens_after=after.tokens_after,
        removed_ids=removal.new_ids,
        items=tuple(sorted(items, key=_badness)),
        check=summary.check if summary else None,
        failures=plan_failures(after),
    )


class _StateOf:
    """Tells where a string is now: what the prompt shows comes before what recall would find."""

    def __init__(self, shown: PromptTexts, log: RecallableLog, summary: StructuredSummary | None) -> None:
        self._shown, self._log = shown, log
        decisions = summary.decisions if summary else ()
        self._told = frozenset(source for decision in decisions for source in decision.source_ids)

    def __call__(self, text: str, message_id: str) -> EntityState:
        if self._shown.outside_ledger.has(text):
            return EntityState.KEPT
        if self._shown.ledger.has(text):
            return EntityState.IN_LEDGER
        return EntityState.RETRIEVABLE if self._log.is_open(message_id) else EntityState.LOST

    def decision(self, text: str, message_id: str) -> EntityState:
        """Return where a decision is: a summary that tells it in other words names the message it is from."""
        state = self(text, message_id)
        return EntityState.IN_LEDGER if state is not EntityState.KEPT and message_id in self._told else state


def reports_of(
    stored: StoredSession,
    plans: Sequence[PlanVersion],
    calls: Sequence[ModelCall],
    *,
    constraints: ConstraintFinder,
    version: int | None = None,
    default_sensitivity: str = "internal",
) -> Iterator[CompactionReport]:
    """Yield a report for every plan that was in force (or for one version), oldest first, on the history of its time.

    Where the past was edited since, messages that the plan does not name may not have been there, and are left out.
    """
    now, regrets = frozenset(stored.view_ids), _by_version(regrets_of(stored), [entry.plan for entry in plans])
    log = [item.message for item in stored.messages]
    recallable = RecallableLog(log, {message.id: message for message in log}, default_sensitivity)
    index, finder = LineIndex(), ConstraintReading().of(constraints)
    before = CompactionPlan(stored.session_id)
    for plan in (entry.plan for entry in plans):
        if version is None or version == plan.version:
            named = plan.named_ids()
            # The first call under a plan was written down with it.
            length = next((c.last_seq for c in calls if c.plan_version >= plan.version), len(log))
            history = [message for message in log[:length] if message.id in now or message.id in named]
            index = index.of(history)
            report = report_of(ReportedHistory.read(history, index, finder), before, plan, recallable, length)
            yield replace(report, regrets=tuple(regrets.get(plan.version, ())))
        before = plan


def _by_version(regrets: Iterable[Regret], plans: Sequence[CompactionPlan]) -> dict[int, list[Regret]]:
    """Return the regrets by the plan version that removed their message: the newest up to the one in force then."""
    found: dict[int, list[Regret]] = {}
    for regret in regrets:
        version, was_removed = 0, False
        for plan in plans:
            if plan.version > regret.plan_version:
                break
            is_removed = plan.get_action(regret.message_id)[1] is not None
            if is_removed and not was_removed:
                version = plan.version
            was_removed = is_removed
        found.setdefault(version, []).append(regret)
    return found


_STATES = {state: rank for rank, state in enumerate(EntityState)}
_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


def _badness(item: ReportItem) -> tuple[int, bool, int]:
    return _STATES[item.state], not item.is_touched, _RANKS[item.kind]
