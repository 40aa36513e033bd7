"""The last look before a plan comes into force: what users asked to hold is in the prompt verbatim, or is put back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.core.facts.constraints import Constraint, ConstraintFinder
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.facts.text import joined_ranges
from compact.core.messages.message import Message
from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import PromptRenderer, summary_message
from compact.core.plan.stubs import render_cleared, render_externalized
from compact.core.summary.fitting import fit_summary
from compact.core.summary.summary import StructuredSummary


@dataclass(frozen=True, slots=True)
class ConstraintGuard:
    """Checks a plan against the standing constraints of a history, and repairs it.

    A summary grows up to `max_summary_tokens`; what has no room in it is shown in its own messages.
    """

    constraints: ConstraintFinder
    count_message: Callable[[Message], int]
    renderer: PromptRenderer
    max_summary_tokens: int | None = None

    def lost(self, messages: Sequence[Message], plan: CompactionPlan) -> tuple[Constraint, ...]:
        """Return the standing constraints that a prompt made with this plan would lack."""
        standing = self.constraints.standing(messages)
        at_risk = [c for c in standing if plan.get_action(c.source_id)[0] is not CompactionAction.INCLUDE]
        if not at_risk:
            return ()
        shown = "\n".join(message.text for message in self.renderer.render(messages, plan).messages)
        return tuple(constraint for constraint in at_risk if constraint.text not in shown)

    def repaired(
        self,
        messages: Sequence[Message],
        plan: CompactionPlan,
        lost: Sequence[Constraint],
        *,
        spare_tokens: int | None = None,
    ) -> CompactionPlan:
        """Return the plan with the lost constraints back: in the summary's ledger, or else in their own messages.

        A summary makes room for them; if that is not enough it grows, by no more than `spare_tokens` if that is given.
        """
        record = plan.summary
        if record and record.summary:
            fuller = self._with_constraints(record, record.summary, lost, spare_tokens)
            return self._with_messages(messages, plan.adding(fuller), fuller, spare_tokens)
        by_id = {message.id: message for message in messages}
        records = (kept for record in plan.records for kept in self._uncovered(by_id, record, lost))
        return replace(plan, records=tuple(records))

    def growth(self, messages: Sequence[Message], before: CompactionPlan, after: CompactionPlan) -> int:
        """Return how many tokens longer the prompt of the one plan is than that of the other."""
        return self._weight(messages, after) - self._weight(messages, before)

    def _weight(self, messages: Sequence[Message], plan: CompactionPlan) -> int:
        return sum(map(self.count_message, self.renderer.render(messages, plan).messages))

    def _with_constraints(
        self,
        record: SummarizationRecord,
        summary: StructuredSummary,
        lost: Sequence[Constraint],
        spare_tokens: int | None,
    ) -> SummarizationRecord:
        facts = tuple(Fact(FactKind.CONSTRAINT, c.text, source_ids=(c.source_id,)) for c in lost)
        fuller = replace(summary, ledger=Ledger((*summary.ledger.facts, *facts)))
        constraints = Ledger(fuller.ledger.of(FactKind.CONSTRAINT))
        needed = self._tokens(record, StructuredSummary(ledger=constraints))
        if spare_tokens is not None:
            needed = min(needed, record.tokens_after + spare_tokens)
        if self.max_summary_tokens is not None:
            needed = min(needed, self.max_summary_tokens)
        room = max(record.max_tokens or record.tokens_after, needed)
        fitted = fit_summary(fuller, lambda candidate: self._tokens(record, candidate) <= room)
        return replace(record, summary=fitted, tokens_after=self._tokens(record, fitted), max_tokens=room)

    def _with_messages(
        self,
        messages: Sequence[Message],
        plan: CompactionPlan,
        record: SummarizationRecord,
        spare_tokens: int | None,
    ) -> CompactionPlan:
        """Return the plan with the messages of constraints shown again that its summary has no room for."""
        if self.max_summary_tokens is None or spare_tokens is None:
            return plan
        shown = {constraint.source_id for constraint in self.lost(messages, plan)}
        inside, back = set(record.span), dict[str, int]()
        for message in messages:
            tokens = self.count_message(message) if message.id in shown & inside else 0
            if 0 < tokens <= spare_tokens:
                spare_tokens -= tokens
                back[message.id] = tokens
        span = tuple(message_id for message_id in record.span if message_id not in back)
        if not back or not span:
            return plan
        smaller = replace(record, span=SpanReference(span), tokens_before=record.tokens_before - sum(back.values()))
        return replace(plan, records=tuple(smaller if one is record else one for one in plan.records))

    def _tokens(self, record: SummarizationRecord, summary: StructuredSummary) -> int:
        return self.count_message(summary_message(replace(record, summary=summary)))

    def _uncovered(
        self, messages: Mapping[str, Message], record: Record, lost: Sequence[Constraint]
    ) -> tuple[Record, ...]:
        """Return a record that leaves the lost constraints alone."""
        mine = [constraint for constraint in lost if constraint.source_id in set(record.span)]
        if not mine:
            return (record,)
        match record:
            case ClearRecord():
                ranges = ((c.start, c.start + len(c.text)) for c in mine)
                fuller = replace(record, kept=joined_ranges((*record.kept, *ranges)))
                shown = render_cleared(messages[record.span.first], fuller)
                return (replace(fuller, tokens_after=self.count_message(shown)),)
            case ExternalizationRecord() if record.attachments:
                ranges = ((c.start, c.start + len(c.text)) for c in mine)
                longer = replace(record, kept=joined_ranges((*(record.kept or ()), *ranges)))
                shown = render_externalized(messages[record.span.first], longer)
                return (replace(longer, tokens_after=self.count_message(shown)),)
            case DropRecord():
                sources = {constraint.source_id for constraint in mine}
                ids = tuple(message_id for message_id in record.span if message_id not in sources)
                if not ids:
                    return ()
                back = sum(self.count_message(messages[source_id]) for source_id in sources)
                freed = max(0, record.tokens_before - back)
                return (replace(record, span=SpanReference(ids), tokens_before=freed),)
            case _:
                return ()
