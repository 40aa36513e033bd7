"""Compact a session: make the next plan, have its summary written, check it and put it in force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.emitter import EventEmitter, kept_of
from compact.core.engine.persistence import SessionPersistence
from compact.core.engine.prefetch import rules_without
from compact.core.engine.pricing import CompactionPricing, PromptSnapshot
from compact.core.engine.summarization import SummaryWriter, no_clock
from compact.core.errors import InsufficientBudget
from compact.core.facts.constraints import ConstraintFinder
from compact.core.facts.text import one_line
from compact.core.messages.legality import Repair, repair_chat
from compact.core.messages.message import Message
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.layers import KeepRules, Layers, partition
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import CompactionPlan, StepFailure, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer, with_lines
from compact.core.plan.strategy import SUMMARIZE, Goal
from compact.core.planning.attachment_moves import NO_ROOM
from compact.core.planning.constraint_guard import ConstraintGuard
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult, StrategyFailure
from compact.core.planning.last_resort import LAST_RESORT
from compact.core.plurals import quantity
from compact.core.session.decisions import TriggerDecision
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.core.summary.focus import message_shares

# Chosen: what the reason of a plan quotes of a focus; the event has all of it.
_FOCUS_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts sessions; it has no state of its own."""

    tokenizer: ProviderAwareTokenizer
    coordinator: CompactionCoordinator
    writer: SummaryWriter
    emitter: EventEmitter
    persistence: SessionPersistence
    claiming: SummaryClaiming
    pricing: CompactionPricing
    constraints: ConstraintFinder
    rules: KeepRules = field(default_factory=KeepRules)
    renderer: PromptRenderer = field(default_factory=PromptRenderer)
    # The share of the target that what was missed before may take; with 0 nothing is kept longer.
    missed_share: float = 0.0
    # The most that a summary may take, whatever has to stand in it; None leaves it to the room there is.
    max_summary_tokens: int | None = None
    clock: Callable[[], float] = no_clock

    def plan(
        self,
        session: Session,
        goal: Goal,
        prefetched: SummarizationRecord | None = None,
        rules: KeepRules | None = None,
    ) -> CompactionResult:
        """Return what a compaction would do; change nothing, wait for nothing."""
        view = session.log.view
        return self.coordinator.coordinate(
            view,
            session.plan,
            tokens=session.view_tokens(),
            count_message=self.tokenizer.count_message,
            rules=rules or self.rules_of(session, goal),
            goal=goal,
            turn=session.turn.context,
            prefetched=prefetched,
            structure=session.structure,
            index=session.line_index,
            constraints=session.constraint_reading.of(self.constraints),
        )

    def rules_of(self, session: Session, goal: Goal) -> KeepRules:
        """Return the rules for what stays verbatim, with what was missed before, as far as it has room."""
        missed_ids = tuple(session.missed_ids()) if self.missed_share else ()
        if not missed_ids:
            return self.rules
        view = session.log.view
        structure = session.structure
        room_tokens, kept = int(self.missed_share * goal.target_tokens), set[str]()
        for message_id in missed_ids:
            # A result stays with its call and what else that call brought.
            group = structure.groups[structure.group_numbers[structure.places[message_id]]]
            tokens = sum(session.tokens.of_messages([view[i] for i in group.indices]))
            if tokens <= room_tokens:
                room_tokens -= tokens
                kept.add(message_id)
        return replace(self.rules, missed=frozenset(kept))

    def compact(
        self, session: Session, goal: Goal, reason: str, note: str = "", *, is_optional: bool = False
    ) -> Steps[None]:
        """Plan, have the summary written, and put the new plan in force if it makes the prompt smaller."""
        with self.emitter.operation(session, "compaction"):
            yield from self._compact(session, goal, reason, note, is_optional=is_optional)

    def _compact(self, session: Session, goal: Goal, reason: str, note: str, *, is_optional: bool) -> Steps[None]:
        started, asked = self.clock(), {"note": note, "focus": goal.focus}
        if goal.focus and not any(message_shares(goal.focus, session.log.view)):
            self.emitter.notice(session, f"nothing in the history is about the focus {goal.focus!r}")
        # A prefetched summary knows nothing of a note or a focus, stands for more than one part of the prompt, and is
        # of no use where no summary is to be.
        is_usable = not note and not goal.focus and goal.part is None and SUMMARIZE not in goal.skip
        prefetched = (yield from self.claiming.prefetched(session)) if is_usable else None
        try:
            # Planning reads the whole history: the runner may do that beside its event loop.
            result: CompactionResult = yield lambda: self.plan_with(session, goal, prefetched)
        except InsufficientBudget as error:
            self._give_up(session, f"{reason}; even the smallest prompt does not fit", **asked)
            self.emitter.error(session, error, fallback="none: this cannot be sent")
            raise
        for failure in result.failures:
            fallback = f"continued without the strategy {failure.strategy}"
            self.emitter.error(session, failure.error, fallback=fallback)
            session.note_failure(_strategy_failure(failure, fallback))
        if result.tokens_freed < goal.min_freed_tokens:
            if goal.part is not None:
                session.decline(too_little_freed(goal), goal.part)
            self._leave_unchanged(session, f"{reason}; {too_little_freed(goal)}", **asked)
            return
        if is_optional and (yield from self._is_declined(session, result, goal, reason)):
            return
        if result.pending_summary:
            may_keep = session.prompt_tokens <= goal.ceiling_tokens
            try:
                written = yield from self.writer.write(
                    session, result.plan, result.pending_summary, may_keep=may_keep, **asked
                )
            except Exception as error:
                self._give_up(session, f"{reason}; the summary failed and on_failure is raise", **asked)
                self.emitter.error(session, error, fallback="none: on_failure is raise")
                raise
            if written is None:
                self._leave_unchanged(session, f"{reason}; the summary failed and on_failure is keep", **asked)
                return
            result = replace(result, plan=result.plan.adding(written))
        result = yield lambda: self._with_constraints(session, result, goal)
        yield from self.persistence.archive_transcript(session, result.plan)
        self._put_in_force(session, result, reason, started=started, **asked)

    def unchanged(self, session: Session) -> CompactionResult:
        """Return what a call does that has nothing to compact."""
        view, tokens = session.log.view, session.prompt_tokens
        may_pin = session.line_index.may_pin(self.rules.pinned_roles)
        layers = partition(view, session.structure.groups, self.rules, may_pin)
        return CompactionResult(
            plan=session.plan,
            layers=layers,
            rules=self.rules,
            tokens_before=tokens,
            tokens_after=tokens,
            proposals={},
        )

    def plan_with(self, session: Session, goal: Goal, prefetched: SummarizationRecord | None) -> CompactionResult:
        """Return a plan with the prefetched summary, if that will do, even if a little less is kept for it."""
        result = self._plan_without_rehydrated(session, goal, prefetched)
        if prefetched is None or result.pending_summary is None:
            return result
        groups = session.structure.groups
        may_pin = session.line_index.may_pin(self.rules.pinned_roles)
        rules = rules_without(prefetched.span, session.log.view, groups, self.rules_of(session, goal), may_pin)
        try:
            closer = self.plan(session, replace(goal, may_drop=False), prefetched, rules) if rules else result
        except InsufficientBudget:
            closer = result
        if closer.pending_summary is None:
            return closer
        notice = "a prefetched summary is discarded: its messages are no longer there, or it would not free enough"
        self.emitter.notice(session, notice)
        return result

    def _plan_without_rehydrated(
        self, session: Session, goal: Goal, prefetched: SummarizationRecord | None
    ) -> CompactionResult:
        """Plan; if that cannot fit, give up what was rehydrated for this turn and plan again."""
        if not session.turn.rehydrated:
            return self.plan(session, goal, prefetched)
        try:
            return self.plan(session, replace(goal, may_drop=False), prefetched)
        except InsufficientBudget:
            room = session.drop_rehydrated()
            return self.plan(session, replace(goal, ceiling_tokens=goal.ceiling_tokens + room), prefetched)

    def holding_constraints(self, session: Session, left: CompactionPlan) -> CompactionPlan:
        """Return what is left of a plan after an edit, repaired if its prompt would lack a constraint.

        A summary says nothing of what a message beside it said, too, or took back; that message may be gone. What is
        too long then is compacted.
        """
        guard, view = self._guard(session), session.log.view
        lost = guard.lost(view, left) if left.records else ()
        if not lost:
            return left
        repaired = guard.repaired(view, left, lost, spare_tokens=session.budget and session.budget.ceiling_tokens)
        self._notice_constraints(session, restored=len(lost), missing=len(guard.lost(view, repaired)))
        return repaired

    def _guard(self, session: Session) -> ConstraintGuard:
        return ConstraintGuard(
            session.constraint_reading.of(self.constraints),
            self.tokenizer.count_message,
            self.renderer,
            max_summary_tokens=self.max_summary_tokens,
        )

    def _with_constraints(self, session: Session, result: CompactionResult, goal: Goal) -> CompactionResult:
        """Return the result, repaired if its prompt would lack a constraint, as far as there is room."""
        guard = self._guard(session)
        view, plan = session.log.view, result.plan
        lost = guard.lost(view, plan)
        if not lost:
            return result
        spare_tokens = goal.ceiling_tokens - result.tokens_after
        repaired = guard.repaired(view, plan, lost, spare_tokens=spare_tokens)
        tokens_after = result.tokens_after + max(0, guard.growth(view, plan, repaired))
        if tokens_after > goal.ceiling_tokens:
            repaired, tokens_after = plan, result.tokens_after
        self._notice_constraints(session, restored=len(lost), missing=len(guard.lost(view, repaired)))
        return replace(result, plan=repaired, tokens_after=tokens_after)

    def _notice_constraints(self, session: Session, *, restored: int, missing: int) -> None:
        message = f"{quantity(restored - missing, 'constraint was', 'constraints were')} put back into the prompt"
        if missing:
            message += (
                f", {missing} found no room: raise the budget or summarizer.max_tokens, or protect their messages"
            )
        self.emitter.notice(session, message, severity="high" if missing else "normal")

    def _is_declined(self, session: Session, result: CompactionResult, goal: Goal, reason: str) -> Steps[bool]:
        """Return True if an optional compaction would not pay; remembered until the prompt has grown."""
        priced = yield lambda: self.pricing.with_planned_price(session, result)
        why_not = self.pricing.reason_to_decline(priced)
        if why_not:
            session.decline(why_not, goal.part)
            self._decide(session, TriggerDecision(False, f"{reason}; {why_not}", is_optional=True))
        return bool(why_not)

    def _leave_unchanged(self, session: Session, reason: str, **asked: str) -> None:
        session.mark_exhausted()
        self._decide(session, TriggerDecision(False, reason), **asked)

    def _give_up(self, session: Session, reason: str, **asked: str) -> None:
        """Decide that a compaction was due and could not be done, with what had to stay; the caller raises."""
        view = session.log.view
        *_, smallest = self.rules.reductions()
        may_pin = session.line_index.may_pin(self.rules.pinned_roles)
        kept = kept_of(session, partition(view, session.structure.groups, smallest, may_pin))
        self._decide(session, TriggerDecision(True, reason), **asked, **kept)

    def _decide(self, session: Session, decision: TriggerDecision, **details: Any) -> None:
        session.decide(decision)
        self.emitter.decision(session, decision, **details)

    def _put_in_force(
        self, session: Session, result: CompactionResult, reason: str, *, started: float, note: str, focus: str
    ) -> None:
        before, plan_before = PromptSnapshot.of(session), session.plan
        plan = replace(
            result.plan,
            version=session.plan.version + 1,
            reason=_with_kept_longer(_as_asked(reason, note, focus), session, result.layers),
            tokens_before=session.prompt_tokens,
            origin=None,
            held=False,
        )
        session.adopt(with_lines(plan, session.log.view, session.structure), is_compaction=True)
        self.render(session)
        session.record_plan_size()
        session.mark_exhausted()
        run = self.pricing.run_of(session, before, seconds=round(self.clock() - started, 3))
        session.record_run(run)
        result = replace(result, economics=run.economics)
        compute_economics = self.pricing.price_later(run.change, run.economics)
        pruned = _newly_changed_ids(session, plan_before)
        kept = kept_of(session, result.layers)
        self._decide(session, TriggerDecision(True, reason), pruned_count=len(pruned), note=note, focus=focus, **kept)
        self.emitter.compaction(
            session,
            result,
            before=plan_before,
            pruned_ids=pruned,
            messages_before=len(before.slots),
            kept=kept,
            compute_economics=compute_economics,
        )
        self._notice_attachments(session, plan_before)
        self._notice_dropped(session, plan_before)
        self.emitter.report(session, plan_before, self.constraints, self.persistence.default_sensitivity)

    def _notice_attachments(self, session: Session, before: CompactionPlan) -> None:
        """Tell of attachments that were moved although they are in use."""
        known = {record.artifact_id for record in before.artifacts}
        for record in session.plan.artifacts:
            if record.artifact_id not in known and record.reason.startswith(NO_ROOM):
                lines = "; ".join(one.line for one in record.attachments)
                hint = "the agent can recall it once there is room, or give it a larger window"
                self.emitter.notice(session, f"an attachment does not fit the prompt: {lines}; {hint}", severity="high")

    def _notice_dropped(self, session: Session, before: CompactionPlan) -> None:
        """Tell of messages that are left out without a word because there is no room for one."""
        dropped = [record for record in session.plan.drops if record.strategy == LAST_RESORT]
        count = sum(len(record.span) for record in dropped if record not in before.drops)
        if count:
            left_out = f"{quantity(count, 'message was', 'messages were')} left out without a summary"
            hint = "shorten what is pinned, or give the agent a larger window; recall finds them"
            self.emitter.notice(session, f"{left_out}: there is no room beside what is pinned; {hint}", severity="high")

    def render(self, session: Session) -> None:
        """Make the prompt of a session anew, from its log and plan."""
        session.show_unseen()
        prompt, repairs = self._built(session, session.plan, session.log.view)
        session.show(prompt)
        if repairs:
            self.emitter.repairs(session, repairs)

    def prompt_of(self, session: Session, plan: CompactionPlan, view: Sequence[Message]) -> CurrentPrompt:
        """Return what another plan shows of a session's line, or of one that was left."""
        return self._built(session, plan, view)[0]

    def _built(
        self, session: Session, plan: CompactionPlan, view: Sequence[Message]
    ) -> tuple[CurrentPrompt, Sequence[Repair]]:
        is_own = view is session.log.view
        outside = plan.places_outside(session.structure) if is_own else None
        rendered = self.renderer.render(view, plan, outside)
        slots, repairs = repair_chat(rendered.slots)
        prompt = CurrentPrompt.built(
            session.log,
            plan,
            rendered,
            slots,
            covered=len(view),
            view_tokens=sum(session.view_tokens() if is_own else session.tokens.of_messages(view)),
            tools=dict(session.line_index.tools if is_own else LineIndex(view).tools),
            rules=self.rules,
            message_tokens=session.tokens.of,
            count_message=self.tokenizer.count_message,
            like=session.like,
        )
        return prompt, repairs


def _strategy_failure(failure: StrategyFailure, instead: str) -> StepFailure:
    error = failure.error
    return StepFailure(what=failure.strategy, error_type=type(error).__name__, message=str(error), instead=instead)


def too_little_freed(goal: Goal) -> str:
    """Return why a compaction is not done that would free less than its goal asks for."""
    if goal.part is None:
        return "nothing left to compact"
    return f"less than {goal.min_freed_tokens:,} tokens of it can go"


def _as_asked(reason: str, note: str, focus: str) -> str:
    """Return the reason of a plan, with the focus and the note of whoever asked for it."""
    if focus:
        reason = f"compacted by hand, focus: {one_line(focus, _FOCUS_CHARS)}"
    return f"{reason}: {note}" if note else reason


def _newly_changed_ids(session: Session, before: CompactionPlan) -> list[str]:
    """Return the messages of the current line that are no longer in the prompt as they came."""
    came = (session.log.view[place].id for place in before.places_outside(session.structure))
    unchanged = (message_id for message_id in came if before.get_action(message_id)[1] is None)
    return [message_id for message_id in unchanged if session.plan.get_action(message_id)[1] is not None]


def _with_kept_longer(reason: str, session: Session, layers: Layers) -> str:
    """Return the reason of a plan, with what it keeps because it was missed before."""
    if not layers.missed:
        return reason
    answered = session.structure.answered
    tools = Counter(answered[index].name for index in sorted(layers.missed) if index in answered)
    results = ", ".join(f"{count} of {tool}" for tool, count in sorted(tools.items()))
    return f"{reason}; kept longer, because it was asked for again after an earlier compaction: {results}"
