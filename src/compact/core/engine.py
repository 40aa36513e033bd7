"""The trip of a message list: match, render, measure, decide, plan, wait for the summary, render again.

Written once, as generators that yield what they wait for; a door drives them with or without an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from compact.core.announcer import Announcer
from compact.core.appraiser import Appraiser
from compact.core.budget import TokenBudget
from compact.core.constraint_guard import ConstraintGuard
from compact.core.coordinator import SUMMARIZE, CompactionCoordinator, CompactionResult, Goal
from compact.core.economics import PromptState
from compact.core.errors import InsufficientBudget
from compact.core.keeper import Keeper
from compact.core.layers import KeepRules
from compact.core.plan import CompactionAction, SummarizationRecord
from compact.core.protocols import Dialect, ProviderAwareTokenizer, Rehydrator
from compact.core.records import VersionConflict
from compact.core.renderer import PromptRenderer
from compact.core.session import Decision, Injected, Session
from compact.core.summary_writer import SummaryWriter
from compact.core.thread import Match
from compact.core.turn import TurnContext
from compact.core.waiting import Trip

# One lost race is usual where processes share a session, several in a row are rare; what is lost is on record.
_TRIES = 6
# The most that a repair adds to a message it changes.
_REPAIR_TOKENS = 16
_SUMMARY_SHARE_OF_TARGET = 0.55
# How much a prompt must have grown before a compaction that did not pay is looked at again.
_GROWN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Who does what on the trip; it has no state of its own."""

    tokenizer: ProviderAwareTokenizer
    dialect: Dialect
    coordinator: CompactionCoordinator
    writer: SummaryWriter
    announcer: Announcer
    keeper: Keeper
    appraiser: Appraiser
    rules: KeepRules = field(default_factory=KeepRules)
    renderer: PromptRenderer = field(default_factory=PromptRenderer)
    enabled: bool = True
    every_call: bool = False
    prepare_ahead: Callable[[Session], None] | None = None
    rehydrator: Rehydrator | None = None
    inject: Callable[[Session], Trip[tuple[Injected, ...]]] | None = None

    def preflight(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Trip[list[object]]:
        """The whole trip of one call; returns the list to send."""

        def compact_if_needed(budget: TokenBudget) -> Trip[None]:
            used = self.used_tokens(session, budget)
            self.announcer.estimated(session, budget, used)
            decision, goal = self.decide(session, budget, used)
            if decision.triggered:
                yield from self.compact(session, goal, decision.reason, is_optional=decision.is_optional)
                return
            self.announcer.decided(session, decision)
            if self.prepare_ahead and self.enabled and used >= budget.prefetch_tokens:
                self.prepare_ahead(session)

        return (yield from self._with_store(session, incoming, budget, compact_if_needed))

    def manual_compact(
        self, session: Session, incoming: Sequence[object], budget: TokenBudget, *, note: str, target_tokens: int | None
    ) -> Trip[list[object]]:
        """Compact now, whatever the usage; with a target, the whole list returned fits it."""

        def compact_now(budget: TokenBudget) -> Trip[None]:
            yield from self.compact(session, self.manual_goal(session, budget, target_tokens), "manual", note)

        return (yield from self._with_store(session, incoming, budget, compact_now))

    def _with_store(
        self,
        session: Session,
        incoming: Sequence[object],
        window: TokenBudget,
        work: Callable[[TokenBudget], Trip[None]],
    ) -> Trip[list[object]]:
        """Take the list in, do the work, write down what is new; if somebody else was quicker, do it again on that."""
        if not incoming:
            return []
        match, added = Match((), []), None
        for _ in range(_TRIES):
            yield from self.keeper.catch_up(session, self._render)
            budget = _as_provider_counts(window, session)
            match = self.take_in(session, incoming, budget)
            yield from work(budget)
            yield from self._bring_back(session, budget)
            if self.inject:  # asked once in a call, and after all reduction: nothing is compacted for what they bring
                added = (yield from self.inject(session)) if added is None else added
                session.inject(added)
            if (yield from self.keeper.save(session, self.estimated_tokens(session, budget))):
                break
        return session.output(incoming, match, self.dialect)

    def _bring_back(self, session: Session, budget: TokenBudget) -> Trip[None]:
        """Show what the newest messages ask for of what was moved out, as far as there is room."""
        rehydrator = self.rehydrator
        if rehydrator is None or not session.plan.externalizations:
            return
        room = self.goal(session, budget).ceiling_tokens + budget.rehydration_reserve - session.prompt_tokens
        found = yield from self.keeper.ask(
            lambda: rehydrator(session.session_id, session.prompt.messages, session.turn, budget_tokens=room)
        )
        session.turn = found.turn
        session.brought.extend(found.messages)
        session.brought_tokens += sum(map(self.tokenizer.count_message, found.messages))
        self.announcer.rehydrated(session, found)

    def refresh(self, session: Session) -> Trip[None]:
        """Bring a session up to what its store knows."""
        yield from self.keeper.catch_up(session, self._render)

    def take_in(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Match:
        """Match a caller's list with the log and bring the prompt up to date."""
        match = session.take_in(incoming, self.dialect, self.tokenizer)
        session.budget = budget
        if match.branched:
            standing = session.plan.standing_on(session.thread.view_ids)
            if standing is not session.plan:
                version = session.plan.version + 1
                edited = replace(standing, version=version, reason="the past was edited", origin=None)
                session.put_in_force(edited)
            self.announcer.branched(session, match)
        if match.branched or self.dialect.check(match.new):
            self._render(session)
        else:
            session.extend(match.new, self.renderer)
        return match

    def _render(self, session: Session) -> None:
        prompt = self.renderer.render(session.thread.view, session.plan)
        slots, repairs = self.dialect.repair(prompt.slots)
        session.show(prompt, slots, self.dialect, self.tokenizer.count_message)
        placeholders = [slot.message for slot in slots if not slot.ids]
        session.repair_tokens = sum(map(self.tokenizer.count_message, placeholders)) + _REPAIR_TOKENS * len(repairs)
        if repairs:
            self.announcer.repaired(session, repairs)

    # -- deciding -------------------------------------------------------------------------------------------------

    def estimated_tokens(self, session: Session, budget: TokenBudget) -> int:
        """What the next request counts by our own estimate."""
        return session.prompt_tokens + session.brought_tokens + session.injected_tokens + budget.fixed_tokens

    def used_tokens(self, session: Session, budget: TokenBudget) -> int:
        """The most that the next request may count for the provider."""
        return session.calibration.upper_bound(self.estimated_tokens(session, budget))

    def decide(self, session: Session, budget: TokenBudget, used_tokens: int) -> tuple[Decision, Goal]:
        """Whether to compact, why, and how far."""
        goal = self.goal(session, budget)
        usage = f"{used_tokens:,} tokens, {budget.usage_pct(used_tokens):.1%} of {budget.max_context_tokens:,}"
        if not self.enabled:
            return Decision(False, f"{usage}; compaction is switched off"), goal
        if session.exhausted_at == session.state and used_tokens <= budget.ceiling_tokens:
            return Decision(False, f"{usage}; nothing has changed since the last compaction"), goal
        if session.plan.held and used_tokens <= budget.ceiling_tokens:
            return Decision(False, f"{usage}; held, because version {session.plan.origin} was brought back"), goal
        if budget.is_triggered(used_tokens):
            return Decision(True, f"{usage}; trigger is {budget.trigger_tokens:,}"), goal
        version, looked_at_tokens, why_not = session.declined
        if version == session.plan.version and session.prompt_tokens <= _GROWN * looked_at_tokens:
            return Decision(False, f"{usage}; {why_not}"), goal
        free_only = replace(goal, target_tokens=0, skip=frozenset({SUMMARIZE}))
        for tier, excess in session.tier_excess(budget.tier_caps).items():
            free_only = replace(free_only, target_tokens=max(0, session.prompt_tokens - excess))
            return Decision(True, f"{usage}; {tier} over their cap of {budget.tier_caps[tier]:,}", True), free_only
        if self.every_call:
            return Decision(True, f"{usage}; cadence is every call", True), free_only
        return Decision(False, f"{usage}; below the trigger of {budget.trigger_tokens:,}"), goal

    def goal(self, session: Session, budget: TokenBudget) -> Goal:
        """The thresholds in estimated tokens of messages alone."""

        def messages_only(limit_tokens: int) -> int:
            estimate = session.calibration.largest_estimate(limit_tokens)
            return estimate - budget.fixed_tokens - session.repair_tokens - session.brought_tokens

        return Goal(
            target_tokens=messages_only(budget.target_tokens),
            settle_tokens=messages_only(budget.prefetch_tokens),
            ceiling_tokens=messages_only(budget.ceiling_tokens),
            fixed={
                "instructions": budget.system_tokens,
                "tools": budget.tool_schema_tokens,
                "wire overhead": budget.formatting_overhead + session.repair_tokens,
                "brought back": session.brought_tokens,
                **_reserved(budget.injection_reserve),
            },
        )

    def manual_goal(self, session: Session, budget: TokenBudget, target_tokens: int | None) -> Goal:
        """The same thresholds with a summary in any case; a target overrules them all."""
        goal = replace(self.goal(session, budget), must_run=frozenset({SUMMARIZE}))
        if target_tokens is None:
            return goal
        reserve = budget.injection_reserve if self.inject else 0
        limit = min(target_tokens - session.repair_tokens - reserve, goal.ceiling_tokens)
        fixed = {"wire overhead": session.repair_tokens, **_reserved(reserve)}
        # Who asks for so many tokens and no more wants the best of the history in them, not the newest of it.
        goal = replace(goal, summary_share=_SUMMARY_SHARE_OF_TARGET, fixed=fixed)
        return replace(goal, target_tokens=limit, settle_tokens=limit, ceiling_tokens=limit)

    # -- compacting -----------------------------------------------------------------------------------------------

    def plan(self, session: Session, goal: Goal, prepared: SummarizationRecord | None = None) -> CompactionResult:
        """What a compaction would do; changes nothing, waits for nothing."""
        view = session.thread.view
        return self.coordinator.coordinate(
            view,
            session.plan,
            tokens=session.tokens_of(view),
            count_message=self.tokenizer.count_message,
            rules=self.rules,
            goal=goal,
            turn=session.turn,
            prepared=prepared,
        )

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

    def dry_run(
        self,
        session: Session,
        incoming: Sequence[object],
        budget: TokenBudget,
        *,
        now: bool,
        target_tokens: int | None,
    ) -> CompactionResult:
        """What this call would do, on a session that is thrown away."""
        budget = _as_provider_counts(budget, session)
        self.take_in(session, incoming, budget)
        if now or target_tokens is not None:
            result = self.plan(session, self.manual_goal(session, budget, target_tokens))
            return replace(self.appraiser.planned(session, result), reason="manual")
        decision, goal = self.decide(session, budget, self.used_tokens(session, budget))
        reason, economics = decision.reason, None
        if decision.triggered:
            result = self.appraiser.planned(session, self.plan(session, goal))
            why_not = self.appraiser.objection(result) if decision.is_optional else ""
            if not why_not:
                return replace(result, reason=reason)
            reason, economics = f"{reason}; {why_not}", result.economics
        goal = replace(goal, target_tokens=session.prompt_tokens, settle_tokens=session.prompt_tokens)
        goal = replace(goal, ceiling_tokens=session.prompt_tokens)
        return replace(self.plan(session, goal), reason=reason, economics=economics)

    def restore(self, session: Session, version: int) -> Trip[None]:
        """Bring an earlier plan back, exactly, as a new version that stays until the budget forbids it."""
        for _ in range(_TRIES):
            yield from self.keeper.catch_up(session, self._render)
            earlier = yield from self.keeper.plan_of(session, version)
            restored = replace(
                earlier.standing_on(session.thread.view_ids),
                version=session.plan.version + 1,
                reason=f"version {version} was brought back",
                tokens_before=session.prompt_tokens,
                origin=earlier.origin if earlier.origin is not None else version,
                held=True,
            )
            session.put_in_force(restored)
            self._render(session)
            session.plan = replace(session.plan, tokens_after=session.prompt_tokens)
            if (yield from self.keeper.save(session, None)):
                return
        raise VersionConflict(
            f"version {version} was not brought back: session {session.session_id!r} is being written to",
            hint="try again",
        )

    def compact(
        self, session: Session, goal: Goal, reason: str, note: str = "", *, is_optional: bool = False
    ) -> Trip[None]:
        """Plan, have the summary written, and put the new plan in force if it makes the prompt smaller."""
        prepared = yield from self.keeper.prepared(session)
        try:
            result = self._plan_for_sure(session, goal, prepared)
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
        result = self._keeping_constraints(session, result, goal)
        yield from self.keeper.archive(session, result.plan)
        self._put_in_force(session, result, reason, note)

    def _keeping_constraints(self, session: Session, result: CompactionResult, goal: Goal) -> CompactionResult:
        """The result, repaired if a prompt made with it would lack what a user asked to hold, as far as it fits."""
        guard, view, plan = (
            ConstraintGuard(self.tokenizer.count_message, self.renderer),
            session.thread.view,
            result.plan,
        )
        lost = guard.lost(view, plan)
        if not lost:
            return result
        repaired = guard.repaired(view, plan, lost)
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

    def prepare(self, session: Session) -> Trip[bool]:
        """Write the summary that the next compaction will need, on a session that is thrown away."""
        if session.budget is None:
            return False
        pending = self.plan(session, self.manual_goal(session, session.budget, None)).pending_summary
        if pending is None:
            return False
        yield from self.writer.write_ahead(session, pending)
        return True

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
        self._render(session)
        session.plan = replace(session.plan, tokens_after=session.prompt_tokens)
        session.exhausted_at = session.state
        result = self.appraiser.done(session, before, result)
        pruned = [message_id for message_id in _gone(session) if message_id not in gone_before]
        layers = result.layers
        kept = {"pinned": len(layers.pinned), "recent_turns": layers.recent_turns, "tool_pairs": layers.tool_pairs}
        self.announcer.decided(session, Decision(True, reason), kept=kept, pruned_count=len(pruned), note=note)
        self.announcer.compacted(session, result, pruned_ids=pruned, messages_before=len(before.slots))
        self.announcer.reported(session, plan_before)


def _as_provider_counts(budget: TokenBudget, session: Session) -> TokenBudget:
    """The budget with as much reserved as the provider will count for what injectors add: they count like we do."""
    reserve = ceil(budget.injection_reserve * session.calibration.slope)
    return budget if reserve == budget.injection_reserve else replace(budget, injection_reserve=reserve)


def _reserved(tokens: int) -> dict[str, int]:
    return {"injection reserve": tokens} if tokens else {}


def _gone(session: Session) -> list[str]:
    """The messages of the current line that are not in the prompt as they came."""
    view = session.thread.view
    return [m.id for m in view if session.plan.get_action(m.id)[0] is not CompactionAction.INCLUDE]
