"""Makes the next plan of a session, has its summary written, checks it and puts it in force."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compact.core.engine.emitter import Announcer
from compact.core.engine.persistence import Keeper
from compact.core.engine.prefetch import rules_leaving
from compact.core.engine.pricing import Appraiser
from compact.core.engine.session import Decision, Session
from compact.core.engine.summarization import SummaryWriter
from compact.core.errors import InsufficientBudget
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.constraint_guard import ConstraintGuard
from compact.core.plan.coordinator import CompactionCoordinator, CompactionResult
from compact.core.plan.economics import PromptState
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionAction, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import SUMMARIZE, Goal
from compact.core.plan.turn import TurnContext
from compact.core.protocols import EntryForm
from compact.core.steps import Trip

# The most that a repair adds to a message it changes.
_REPAIR_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Who does what in a compaction; it has no state of its own."""

    tokenizer: ProviderAwareTokenizer
    form: EntryForm
    coordinator: CompactionCoordinator
    writer: SummaryWriter
    announcer: Announcer
    keeper: Keeper
    appraiser: Appraiser
    rules: KeepRules = field(default_factory=KeepRules)
    renderer: PromptRenderer = field(default_factory=PromptRenderer)

    def plan(
        self,
        session: Session,
        goal: Goal,
        prepared: SummarizationRecord | None = None,
        rules: KeepRules | None = None,
    ) -> CompactionResult:
        """What a compaction would do; changes nothing, waits for nothing."""
        view = session.thread.view
        return self.coordinator.coordinate(
            view,
            session.plan,
            tokens=session.tokens_of(view),
            count_message=self.tokenizer.count_message,
            rules=rules or self.rules,
            goal=goal,
            turn=session.turn,
            prepared=prepared,
        )

    def compact(
        self, session: Session, goal: Goal, reason: str, note: str = "", *, is_optional: bool = False
    ) -> Trip[None]:
        """Plan, have the summary written, and put the new plan in force if it makes the prompt smaller.

        On a long history that is a lot to read: the door may do it beside its loop.
        """
        with self.announcer.operation(session, "compaction"):
            yield from self._compact(session, goal, reason, note, is_optional=is_optional)

    def _compact(self, session: Session, goal: Goal, reason: str, note: str, *, is_optional: bool) -> Trip[None]:
        # What was written ahead knows nothing of a note, and is of no use where no summary is to be.
        is_usable = not note and SUMMARIZE not in goal.skip
        prepared = (yield from self.keeper.prepared(session)) if is_usable else None
        try:
            result: CompactionResult = yield lambda: self.plan_with(session, goal, prepared)
        except InsufficientBudget as error:
            self.announcer.failed(session, error, fallback="none: this cannot be sent")
            raise
        for strategy, error in result.failures:
            self.announcer.failed(session, error, fallback=f"went on without the strategy {strategy}")
        if result.tokens_freed <= 0:
            self._leave_as_is(session, f"{reason}; nothing left to compact", note)
            return
        if is_optional and (yield from self._declines(session, result, reason)):
            return
        if result.pending_summary:
            may_keep = session.prompt_tokens <= goal.ceiling_tokens
            written = yield from self.writer.write(session, result.pending_summary, note=note, may_keep=may_keep)
            if written is None:
                self._leave_as_is(session, f"{reason}; the summary failed and on_failure is keep", note)
                return
            result = replace(result, plan=result.plan.adding(written))
        result = yield lambda: self._keeping_constraints(session, result, goal)
        yield from self.keeper.archive(session, result.plan)
        self._put_in_force(session, result, reason, note)

    def plan_with(self, session: Session, goal: Goal, prepared: SummarizationRecord | None) -> CompactionResult:
        """A plan with the summary that was written ahead, if that will do, even if a little less is kept for it."""
        result = self._plan_for_sure(session, goal, prepared)
        if prepared is None or result.pending_summary is None:
            return result
        rules = rules_leaving(prepared.span, session.thread.view, self.rules)
        closer = self.plan(session, goal, prepared, rules) if rules else result
        if closer.pending_summary is None:
            return closer
        notice = "a summary written ahead is thrown away: its messages no longer stand, or it would not free enough"
        self.announcer.notice(session, notice)
        return result

    def _plan_for_sure(self, session: Session, goal: Goal, prepared: SummarizationRecord | None) -> CompactionResult:
        """A plan that gives up what was brought back this turn before it gives up altogether."""
        try:
            return self.plan(session, goal, prepared)
        except InsufficientBudget:
            if not session.brought:
                raise
        room, session.brought, session.brought_tokens = session.brought_tokens, [], 0
        session.turn = TurnContext(session.turn_number)
        return self.plan(session, replace(goal, ceiling_tokens=goal.ceiling_tokens + room), prepared)

    def _keeping_constraints(self, session: Session, result: CompactionResult, goal: Goal) -> CompactionResult:
        """The result, repaired if a prompt made with it would lack what a user asked to hold, as far as it fits."""
        guard = ConstraintGuard(self.tokenizer.count_message, self.renderer)
        view, plan = session.thread.view, result.plan
        lost = guard.lost(view, plan)
        if not lost:
            return result
        spare_tokens = goal.ceiling_tokens - result.tokens_after
        repaired = guard.repaired(view, plan, lost, spare_tokens=spare_tokens)
        tokens_after = result.tokens_after + max(0, guard.growth(view, plan, repaired))
        if tokens_after > goal.ceiling_tokens:
            repaired, tokens_after = plan, result.tokens_after
        missing = len(guard.lost(view, repaired))
        self.announcer.wishes_put_back(session, back=len(lost) - missing, missing=missing)
        return replace(result, plan=repaired, tokens_after=tokens_after)

    def _declines(self, session: Session, result: CompactionResult, reason: str) -> Trip[bool]:
        """True if nothing forces a compaction and it would not pay; said, and remembered until the prompt has grown."""
        why_not = self.appraiser.objection((yield lambda: self.appraiser.planned(session, result)))
        if why_not:
            session.declined = (session.plan.version, session.prompt_tokens, why_not)
            self.announcer.decided(session, Decision(False, f"{reason}; {why_not}", True))
        return bool(why_not)

    def _leave_as_is(self, session: Session, reason: str, note: str) -> None:
        session.exhausted_at = session.state
        self.announcer.decided(session, Decision(False, reason), note=note)

    def _put_in_force(self, session: Session, result: CompactionResult, reason: str, note: str) -> None:
        before, gone_before, plan_before = PromptState.of(session), set(_gone(session)), session.plan
        plan = replace(
            result.plan,
            version=session.plan.version + 1,
            reason=f"{reason}: {note}" if note else reason,
            tokens_before=session.prompt_tokens,
            origin=None,
            held=False,
        )
        session.put_in_force(plan)
        session.calibration = session.calibration.after_compaction()
        self.render(session)
        session.plan = replace(session.plan, tokens_after=session.prompt_tokens)
        session.exhausted_at = session.state
        result = self.appraiser.done(session, before, result)
        pruned = [message_id for message_id in _gone(session) if message_id not in gone_before]
        layers = result.layers
        kept = {"pinned": len(layers.pinned), "recent_turns": layers.recent_turns, "tool_pairs": layers.tool_pairs}
        self.announcer.decided(session, Decision(True, reason), kept=kept, pruned_count=len(pruned), note=note)
        self.announcer.compacted(
            session, result, before=plan_before, pruned_ids=pruned, messages_before=len(before.slots)
        )
        self.announcer.reported(session, plan_before)

    def render(self, session: Session) -> None:
        """Make the prompt of a session anew, from its log and plan."""
        prompt = self.renderer.render(session.thread.view, session.plan)
        slots, repairs = self.form.repair(prompt.slots)
        session.show(prompt, slots, self.form, self.tokenizer.count_message)
        placeholders = [slot.message for slot in slots if not slot.ids]
        session.repair_tokens = sum(map(self.tokenizer.count_message, placeholders)) + _REPAIR_TOKENS * len(repairs)
        if repairs:
            self.announcer.repaired(session, repairs)


def _gone(session: Session) -> list[str]:
    """The messages of the current line that are not in the prompt as they came."""
    view = session.thread.view
    return [m.id for m in view if session.plan.get_action(m.id)[0] is not CompactionAction.INCLUDE]
