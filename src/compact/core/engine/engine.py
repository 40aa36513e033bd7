"""The trip of a message list: match, render, measure, decide, compact, bring back, inject, write down.

Written once, as generators that yield what they wait for; a door drives them with or without an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from compact.core.audit.store import VersionConflict
from compact.core.engine.compaction import Compactor
from compact.core.engine.emitter import Announcer
from compact.core.engine.events import CompactionEvent
from compact.core.engine.persistence import Keeper
from compact.core.engine.prefetch import Ahead, goal_ahead, smaller_rules
from compact.core.engine.session import Decision, Injected, Session
from compact.core.engine.trigger import Decider
from compact.core.errors import InsufficientBudget
from compact.core.log.thread import Match
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.plan.coordinator import CompactionResult
from compact.core.plan.plan import SummarizationRecord
from compact.core.protocols import Rehydrator
from compact.core.steps import Trip

# One lost race is usual where processes share a session, several in a row are rare; what is lost is on record.
_TRIES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Who does what on the trip; it has no state of its own."""

    decider: Decider
    compactor: Compactor
    ahead: Ahead | None = None
    rehydrator: Rehydrator | None = None
    inject: Callable[[Session], Trip[tuple[Injected, ...]]] | None = None

    @property
    def tokenizer(self) -> ProviderAwareTokenizer:
        """Who counts."""
        return self.compactor.tokenizer

    @property
    def keeper(self) -> Keeper:
        """Who goes between sessions and their store."""
        return self.compactor.keeper

    @property
    def announcer(self) -> Announcer:
        """Who tells what happens."""
        return self.compactor.announcer

    def silent(self) -> Engine:
        """The same engine, telling nobody what it does."""
        announcer = replace(self.announcer, emit=_tell_nobody)
        return replace(self, compactor=replace(self.compactor, announcer=announcer))

    def preflight(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Trip[list[object]]:
        """The whole trip of one call; returns the list to send."""

        def compact_if_needed(budget: TokenBudget) -> Trip[None]:
            used = self.decider.used_tokens(session, budget)
            self.announcer.estimated(session, budget, used)
            decision, goal = self.decider.decide(session, budget, used)
            if not decision.triggered:
                self.announcer.decided(session, decision)
            elif not (yield from self._goes_on(session, decision, fits=used <= budget.ceiling_tokens)):
                yield from self.compactor.compact(session, goal, decision.reason, is_optional=decision.is_optional)
            if (
                self.ahead
                and self.decider.enabled
                and self.decider.used_tokens(session, budget) >= budget.prefetch_tokens
            ):
                self.ahead.start(session)

        with self.announcer.operation(session, "preflight"):
            return (yield from self._with_store(session, incoming, budget, compact_if_needed))

    def manual_compact(
        self, session: Session, incoming: Sequence[object], budget: TokenBudget, *, note: str, target_tokens: int | None
    ) -> Trip[list[object]]:
        """Compact now, whatever the usage; with a target, the whole list returned fits it."""

        def compact_now(budget: TokenBudget) -> Trip[None]:
            if self.ahead and not note:
                yield from self.ahead.awaited(session)
            yield from self.compactor.compact(
                session, self.decider.manual_goal(session, budget, target_tokens), "manual", note
            )

        with self.announcer.operation(session, "manual_compact"):
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
            yield from self.keeper.catch_up(session, self.compactor.render)
            budget = _as_provider_counts(window, session)
            match = self.take_in(session, incoming, budget)
            yield from work(budget)
            yield from self._bring_back(session, budget)
            if self.inject:  # asked once in a call, and after all reduction: nothing is compacted for what they bring
                added = (yield from self.inject(session)) if added is None else added
                session.inject(added)
            if (yield from self.keeper.save(session, self.decider.estimated_tokens(session, budget))):
                break
        return session.output(incoming, match, self.compactor.form)

    def _bring_back(self, session: Session, budget: TokenBudget) -> Trip[None]:
        """Show what the newest messages ask for of what was moved out, as far as there is room."""
        rehydrator = self.rehydrator
        if rehydrator is None or not session.plan.externalizations:
            return
        room = self.decider.goal(session, budget).ceiling_tokens + budget.rehydration_reserve - session.prompt_tokens
        found = yield from self.keeper.ask(
            lambda: rehydrator(session.session_id, session.prompt.messages, session.turn, budget_tokens=room)
        )
        session.turn = found.turn
        session.brought.extend(found.messages)
        session.brought_tokens += sum(map(self.tokenizer.count_message, found.messages))
        self.announcer.rehydrated(session, found)

    def refresh(self, session: Session) -> Trip[None]:
        """Bring a session up to what its store knows."""
        yield from self.keeper.catch_up(session, self.compactor.render)

    def take_in(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Match:
        """Match a caller's list with the log and bring the prompt up to date."""
        match = session.take_in(incoming, self.compactor.form, self.tokenizer)
        session.budget = budget
        if match.branched:
            standing = session.plan.standing_on(session.thread.view_ids)
            if standing is not session.plan:
                version = session.plan.version + 1
                edited = replace(standing, version=version, reason="the past was edited", origin=None)
                session.put_in_force(edited)
            self.announcer.branched(session, match)
        if match.branched or self.compactor.form.check(match.new):
            self.compactor.render(session)
        else:
            session.extend(match.new, self.compactor.renderer)
        return match

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
            result = self.compactor.plan(session, self.decider.manual_goal(session, budget, target_tokens))
            return replace(self.compactor.appraiser.planned(session, result), reason="manual")
        decision, goal = self.decider.decide(session, budget, self.decider.used_tokens(session, budget))
        reason, economics = decision.reason, None
        if decision.triggered:
            result = self.compactor.appraiser.planned(session, self.compactor.plan(session, goal))
            why_not = self.compactor.appraiser.objection(result) if decision.is_optional else ""
            if not why_not:
                return replace(result, reason=reason)
            reason, economics = f"{reason}; {why_not}", result.economics
        goal = replace(goal, target_tokens=session.prompt_tokens, settle_tokens=session.prompt_tokens)
        goal = replace(goal, ceiling_tokens=session.prompt_tokens)
        return replace(self.compactor.plan(session, goal), reason=reason, economics=economics)

    def restore(self, session: Session, version: int) -> Trip[None]:
        """Bring an earlier plan back, exactly, as a new version that stays until the budget forbids it."""
        with self.announcer.operation(session, "restore"):
            yield from self._restore(session, version)

    def _restore(self, session: Session, version: int) -> Trip[None]:
        for _ in range(_TRIES):
            yield from self.keeper.catch_up(session, self.compactor.render)
            earlier = yield from self.keeper.plan_of(session, version)
            taken_back = session.plan.summary
            restored = replace(
                earlier.standing_on(session.thread.view_ids),
                version=session.plan.version + 1,
                reason=f"version {version} was brought back",
                tokens_before=session.prompt_tokens,
                origin=earlier.origin if earlier.origin is not None else version,
                held=True,
            )
            session.put_in_force(restored)
            self.compactor.render(session)
            session.plan = replace(session.plan, tokens_after=session.prompt_tokens)
            if (yield from self.keeper.save(session, None)):
                yield from self.keeper.throw_away_prepared(session, taken_back)
                return
        raise VersionConflict(
            f"version {version} was not brought back: session {session.session_id!r} is being written to",
            hint="try again",
        )

    def _goes_on(self, session: Session, decision: Decision, *, fits: bool) -> Trip[bool]:
        if self.ahead is None or decision.is_optional:
            return False
        return (yield from self.ahead.goes_on(session, decision, fits=fits))

    def prepare(self, session: Session, *, waits: bool = False) -> Trip[bool]:
        """Write the summary that the next compaction will need, on a session that is thrown away; False if none was.

        Whoever `waits` does so while somebody else is at it, and sees then.
        """
        if session.budget is None or not (yield from self.keeper.begin_ahead(session, waits=waits)):
            return False
        try:
            with self.announcer.operation(session, "prepare"):
                pending = yield from self._needed_ahead(session, session.budget)
                if pending:
                    yield from self.compactor.writer.write_ahead(session, pending)
        except Exception as error:
            self.announcer.failed(session, error, fallback="none was prepared; it is written when it is needed")
            yield from self.keeper.end_ahead(session)
            raise
        yield from self.keeper.end_ahead(session)
        return pending is not None

    def _needed_ahead(self, session: Session, budget: TokenBudget) -> Trip[SummarizationRecord | None]:
        """The summary to write for the time when the prompt is full; none if one is there, or the free ones will do."""
        ready = yield from self.keeper.prepared(session)
        full_tokens = budget.ceiling_tokens if session.plan.held else budget.trigger_tokens
        goal = goal_ahead(self.decider.goal(session, budget), full_tokens - self.decider.used_tokens(session, budget))
        try:
            result = self.compactor.plan_with(session, goal, ready)
        except InsufficientBudget:
            return None  # the call itself says so, and what to do about it
        will_do = result.tokens_after <= goal.settle_tokens and result.rules in smaller_rules(self.compactor.rules)
        return result.pending_summary if will_do else None


def _tell_nobody(event: CompactionEvent) -> None:
    """Let an event go."""


def _as_provider_counts(budget: TokenBudget, session: Session) -> TokenBudget:
    """The budget with as much reserved as the provider will count for what injectors add: they count like we do."""
    reserve = ceil(budget.injection_reserve * session.calibration.slope)
    return budget if reserve == budget.injection_reserve else replace(budget, injection_reserve=reserve)
