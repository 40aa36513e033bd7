"""The way of a message list through the engine: match, measure, decide, compact, rehydrate, inject, store.

Written once, as generators that yield what they wait for; `compact.runner` runs them with or without an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TypeVar

from compact.core.audit.records import AddedMessage
from compact.core.audit.store import VersionConflict
from compact.core.engine.compaction import Compactor, too_little_freed
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.events import HistoryBranchedEvent
from compact.core.engine.persistence import SessionPersistence
from compact.core.engine.prefetch import Prefetch, prefetch_goal, smaller_rules
from compact.core.engine.trigger import Trigger
from compact.core.errors import CompactError, InsufficientBudget, WaitTimeout
from compact.core.log.log import Match
from compact.core.log.recognition import SUMMARY_MARK
from compact.core.messages.attachment_use import names_of
from compact.core.messages.attachments import attached_part, attachment_id, attachments_of
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message, content_bytes
from compact.core.messages.own_compaction import find_own_summary
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.plan.edited import after_edit
from compact.core.plan.plan import EDITED_PAST, CompactionPlan, SummarizationRecord
from compact.core.plan.regret import Regret
from compact.core.plan.renderer import with_lines
from compact.core.plan.turn import MovedAttachment, Rehydrate, Rehydration, RehydrationScope
from compact.core.planning.coordinator import CompactionResult
from compact.core.plurals import quantity
from compact.core.session.decisions import TriggerDecision
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.session import Session
from compact.core.session.store_state import UNKNOWN_HEAD
from compact.core.steps import Steps

T = TypeVar("T")

# Measured with eight processes that write to one session without a pause, on two busy cores: 6 tries were too few for
# one turn in 20, 20 for one in 100.
_MAX_TRIES = 20
# What Ariadne takes in one request: above it, what is told of the input is cut.
_LARGE_INPUT_BYTES = 262_144
# Chosen: an agent's own summary stands behind its instructions, perhaps behind a greeting.
_FIRST_MESSAGES = 4
_OWN_COMPACTION = (
    "the agent has compacted its own history ({messages} left out, a summary of its own in their place): two that "
    "compact lose more than one; switch off the agent's own compaction, or set max_context_tokens below the size at "
    "which it compacts"
)
_REUSED = (
    "the session id {session_id!r} was used before, for another conversation: this one starts anew, and recall does "
    "not find the other; give each conversation an id of its own, and pass its whole history"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Puts the parts together; it has no state of its own."""

    trigger: Trigger
    compactor: Compactor
    prefetch: Prefetch | None = None
    rehydrate: Rehydrate | None = None
    inject: Callable[[Session], Steps[tuple[AddedMessage, ...]]] | None = None
    # The names of all that inject.
    adding: frozenset[str] = frozenset()

    @property
    def tokenizer(self) -> ProviderAwareTokenizer:
        """The token counter."""
        return self.compactor.tokenizer

    @property
    def persistence(self) -> SessionPersistence:
        """What reads and writes sessions."""
        return self.compactor.persistence

    @property
    def emitter(self) -> EventEmitter:
        """What emits events."""
        return self.compactor.emitter

    def silent(self) -> Engine:
        """Return the same engine without events."""
        emitter = self.emitter.silent()
        pricing = replace(self.compactor.pricing, emitter=emitter)
        return replace(self, compactor=replace(self.compactor, emitter=emitter, pricing=pricing))

    def preflight(
        self,
        session: Session,
        incoming: Sequence[object],
        budget: TokenBudget,
        *,
        on_known: Callable[[list[object]], None] | None = None,
    ) -> Steps[list[object]]:
        """Return the list to send: the whole way of one call.

        With `on_known`, that gets the list before it is stored, unless this call made a new plan: then it has to be in
        the store before anybody sees it.
        """

        def compact_if_needed(budget: TokenBudget) -> Steps[None]:
            used = self.trigger.used_tokens(session, budget)
            self.emitter.estimate(session, budget, used)
            decision, goal = self.trigger.decide(session, budget, used)
            if not decision.triggered:
                session.decide(decision)
                self.emitter.decision(session, decision)
            elif not (yield from self._is_postponed(session, decision, fits=used <= budget.ceiling_tokens)):
                yield from self.compactor.compact(session, goal, decision.reason, is_optional=decision.is_optional)
            if self.prefetch and self._should_prefetch(session, budget):
                self.prefetch.start(session)

        with self.emitter.operation(session, "preflight"):
            return (
                yield from self._whole_or_not(
                    session, self._with_store(session, incoming, budget, compact_if_needed, on_known)
                )
            )

    def _should_prefetch(self, session: Session, budget: TokenBudget) -> bool:
        return self.trigger.enabled and self.trigger.used_tokens(session, budget) >= budget.prefetch_tokens

    def _is_postponed(self, session: Session, decision: TriggerDecision, *, fits: bool) -> Steps[bool]:
        if self.prefetch is None or (decision.is_optional and not self.prefetch.is_quick):
            return False
        return (yield from self.prefetch.postpones_compaction(session, decision, fits=fits))

    def manual_compact(
        self,
        session: Session,
        incoming: Sequence[object],
        budget: TokenBudget,
        *,
        note: str,
        target_tokens: int | None,
        focus: str = "",
    ) -> Steps[list[object]]:
        """Compact now, whatever the usage; with a target, the whole list returned fits it."""

        def compact_now(budget: TokenBudget) -> Steps[None]:
            if self.prefetch and not (note or focus):
                yield from self.prefetch.wait(session)
            self.emitter.estimate(session, budget, self.trigger.used_tokens(session, budget))
            goal = self.trigger.manual_goal(session, budget, target_tokens, focus=focus)
            yield from self.compactor.compact(session, goal, "manual", note)

        with self.emitter.operation(session, "manual_compact"):
            return (yield from self._whole_or_not(session, self._with_store(session, incoming, budget, compact_now)))

    def _whole_or_not(self, session: Session, steps: Steps[T]) -> Steps[T]:
        """Run the steps of a call; if they break off in the middle of something, the session is as it was before.

        What we raise ourselves, and a call that is cancelled where it waits, leave a session that is whole. A session
        that the store has is read from there again: copying it before each call would cost more the longer it is.
        """
        before = None if session.is_stored else session.fork()
        try:
            return (yield from steps)
        except (CompactError, GeneratorExit):
            raise
        except BaseException:
            session.go_back_to(before or Session(session.session_id))
            raise

    def _with_store(
        self,
        session: Session,
        incoming: Sequence[object],
        window: TokenBudget,
        work: Callable[[TokenBudget], Steps[None]],
        on_known: Callable[[list[object]], None] | None = None,
    ) -> Steps[list[object]]:
        """Ingest the list, do the work and store what is new; if another process was quicker, do it again on that.

        The session is up to date at first: its list was read with what it knows. What `on_known` was told then stays
        as it is: it was made of all that this process could know.
        """
        if not incoming:
            return []
        if session.kept_lists:
            yield from self._store_kept_lists(session, "still unsaved; tried again at the next call")
        match, added, emitted, budget = Match((), []), None, frozenset[Regret](), window
        for attempt in range(_MAX_TRIES):
            if attempt:
                yield from self.refresh(session)
            budget = _as_provider_counts(window, session)
            before = session.plan.summary
            match = yield from self._ingested(session, incoming, budget)
            if match.is_new_line:
                yield from self.compactor.claiming.discard_prefetched(session, before)
            if attempt == 0:
                self._warn_of_size(session, match.new)
            self.emitter.regrets(session, [regret for regret in session.new_regrets if regret not in emitted])
            emitted |= frozenset(session.new_regrets)
            yield from work(budget)
            try:
                yield from self._rehydrate(session, budget)
            except WaitTimeout as error:
                self.emitter.error(session, error, fallback="continued without what the newest messages name")
            if self.inject:  # once in a call, and after all reduction: nothing is compacted for what is injected
                added = (yield from self.inject(session)) if added is None else added
                session.inject(added)
            estimated = self.trigger.estimated_tokens(session, budget)
            told = None if attempt or session.has_unsaved_plan else on_known
            if (yield from self._save(session, estimated, partial(_tell, told, session, incoming, match))):
                break
        else:
            self._keep_for_later(session, incoming, "sent unsaved; stored later, at the next call")
        self.emitter.prompt_ready(session, budget, self.trigger.used_tokens(session, budget))
        return session.output(incoming, match)

    def _keep_for_later(self, session: Session, incoming: Sequence[object], fallback: str) -> None:
        session.keep_list(incoming)
        self.emitter.error(session, _lost_races(session), fallback=fallback)

    def add_history(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Steps[None]:
        """Write a list into the log, and nothing else: no prompt goes out, so no call is on record."""
        with self.emitter.operation(session, "add_history"):
            yield from self._whole_or_not(session, self._logged(session, incoming, budget))

    def _logged(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Steps[None]:
        if session.kept_lists:
            yield from self._store_kept_lists(session, "still unsaved; tried again at the next call")
        for attempt in range(_MAX_TRIES if incoming else 0):
            if attempt:
                yield from self.refresh(session)
            yield from self._ingested(session, incoming, budget)
            tokens = self.trigger.estimated_tokens(session, budget)
            if (yield from self.persistence.save_imported(session, tokens)):
                return
        if incoming:
            self._keep_for_later(session, incoming, "unsaved; stored later, at the next call")

    def _store_kept_lists(self, session: Session, fallback: str) -> Steps[None]:
        """Store what earlier calls could not, because other processes were quicker each time."""
        for _ in range(_MAX_TRIES):
            yield from self.persistence.catch_up(session, self.compactor.render)
            while session.kept_lists and session.budget is not None and not session.is_deleted:
                yield from self._ingested(session, session.kept_lists[0], session.budget)
                if not (yield from self._save(session, None)):
                    break
                session.drop_kept_list()
            else:
                return
        self.emitter.error(session, _lost_races(session), fallback=fallback)

    def flush(self, session: Session, *, fallback: str = "kept in memory") -> Steps[bool]:
        """Write what is not stored yet, behind what other processes have stored since; return False if that fails."""
        if not session.kept_lists:
            if (yield from self.persistence.flush(session, fallback=fallback)):
                return True
            if session.stored.head != UNKNOWN_HEAD:
                return False  # the store failed
            session.keep_list([message.original for message in session.log.view])
        yield from self._store_kept_lists(session, fallback)
        return not session.kept_lists and (yield from self.persistence.flush(session, fallback=fallback))

    def _save(
        self, session: Session, estimated_tokens: int | None, before_commit: Callable[[], None] = lambda: None
    ) -> Steps[bool]:
        """Write what is new; return False if another process was quicker."""
        before = session.stored.head.plan_version
        is_saved = yield from self.persistence.save(session, estimated_tokens, before_commit)
        if self.prefetch and self.prefetch.is_quick:
            replaced = range(before, session.stored.head.plan_version)
            yield from self.compactor.claiming.end_plans(session, replaced)
        return is_saved

    def _warn_of_size(self, session: Session, new: Sequence[Message]) -> None:
        """Emit a notice if a call brings more bytes than trace viewers show: exports of it are cut."""
        sizes = {message.id: content_bytes(message) for message in new}
        total = sum(sizes.values())
        if total <= _LARGE_INPUT_BYTES:
            return
        largest = max(sizes, key=lambda message_id: sizes[message_id])
        self.emitter.notice(
            session,
            f"the input has {total:,} new bytes, more than {_LARGE_INPUT_BYTES:,} (256 KB); "
            f"the largest message is {largest} with {sizes[largest]:,}",
            severity="low",
        )

    def _rehydrate(self, session: Session, budget: TokenBudget) -> Steps[None]:
        """Show the externalised content that the newest messages name, as far as there is room."""
        rehydrate = self.rehydrate
        if rehydrate is None or not session.plan.artifacts:
            return

        def look(scope: RehydrationScope) -> Rehydration:
            ceiling = self.trigger.goal(session, budget).ceiling_tokens + budget.rehydration_reserve
            room = ceiling - session.prompt_tokens
            return rehydrate(session.prompt.messages, session.turn.context, session.rehydration, room, scope)

        found = yield from self.persistence.call_store(lambda: look(_rehydration_scope(session)))
        needed = sum(blocked.tokens for blocked in found.blocked)
        if needed and (yield from self._make_room(session, budget, needed)):
            found = yield from self.persistence.call_store(lambda: look(_rehydration_scope(session)))
        count = self.tokenizer.count_message
        added = [AddedMessage("rehydrated", message, count(message)) for message in (*found.messages, *found.refusals)]
        session.add_rehydrated(added, found.turn, found.state)
        self.emitter.rehydration(session, found)

    def _make_room(self, session: Session, budget: TokenBudget, tokens: int) -> Steps[bool]:
        """Compact for an attachment that was asked for, if it fits then; an attachment cannot be shown in part."""
        goal = self.trigger.goal(session, budget)
        limit = goal.ceiling_tokens + budget.rehydration_reserve - tokens
        goal = replace(
            goal,
            target_tokens=min(goal.target_tokens, limit),
            settle_tokens=min(goal.settle_tokens, limit),
            ceiling_tokens=limit,
        )
        try:
            result: CompactionResult = yield lambda: self.compactor.plan(session, goal)
        except InsufficientBudget:
            return False
        if not self.trigger.enabled or result.tokens_freed <= 0:
            return False
        yield from self.compactor.compact(session, goal, "room for an attachment that was asked for")
        return True

    def refresh(self, session: Session) -> Steps[None]:
        """Bring a session up to what its store knows."""
        yield from self.persistence.catch_up(session, self.compactor.render)

    def _ingested(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Steps[Match]:
        """Do what `ingest` does; if the list may be a prompt of an earlier plan, read those first."""
        match = self.ingest(session, incoming, budget)
        while match is None:
            yield from self.read_plans(session)
            match = self.ingest(session, incoming, budget)
        return match

    def read_plans(self, session: Session) -> Steps[None]:
        """Have a session know the plans and the lines that it had before, in whatever process."""
        if session.past.are_known:
            return
        plans = yield from self.persistence.earlier_plans(session)
        session.learn_past(plans, (yield from self.persistence.lines(session)))

    def earlier_prompts(self, session: Session) -> Steps[list[CurrentPrompt]]:
        """Return what earlier plans have shown of a session's line, and of the lines that its caller has left."""

        def prompts() -> Iterator[CurrentPrompt] | None:
            return session.earlier_prompts(lambda plan, view: self.compactor.prompt_of(session, plan, view))

        if prompts() is None:
            yield from self.read_plans(session)
        return list(prompts() or ())

    def ingest(self, session: Session, incoming: Sequence[object], budget: TokenBudget) -> Match | None:
        """Match a caller's list with the log and bring the prompt up to date.

        Return None if the session must know its earlier plans for that.
        """
        if session.set_model(self.emitter.model, self.tokenizer):
            self.compactor.render(session)
        before, version = session.log.view, session.plan.version
        match = session.ingest(
            incoming,
            self.tokenizer.count_message,
            lambda plan, view: self.compactor.prompt_of(session, plan, view),
            self.adding,
        )
        if match is None:
            return None
        match = session.without_trimmed(match, session.plan)
        session.find_regrets(match)
        session.set_budget(budget)
        if match.branched:
            remaining = self._plan_after(session, match, before)
            shorter = session.without_trimmed(match, remaining)
            if shorter is not match:
                match, remaining = shorter, self._plan_after(session, shorter, before)
            line = match.returned_to.ids if match.returned_to else [message.id for message in before]
            remaining = self._holding(session, remaining, line)
            if remaining is not session.plan or match.is_new_line:
                edited = replace(remaining, version=version + 1, reason=EDITED_PAST, origin=None, held=False, run=None)
                edited = with_lines(edited, session.log.view)
                session.adopt(replace(edited, tokens_before=session.prompt_tokens))
            session.leave_line(before, version)
            new_ids = tuple(message.id for message in match.new)
            self.emitter.emit(session, HistoryBranchedEvent, left_ids=match.left_ids, new_ids=new_ids)
        if self._has_compacted_itself(session, match):
            self.emitter.notice(session, _OWN_COMPACTION.format(messages=quantity(len(match.left_ids), "message")))
        elif match.is_new_line and session.note_once("another conversation"):
            self.emitter.notice(session, _REUSED.format(session_id=session.session_id))
        if match.branched or not session.show_forms(match.formed) or check_chat(match.new):
            self.compactor.render(session)
            if session.plan.reason == EDITED_PAST:
                session.record_plan_size()
        else:
            session.extend_prompt(match.new, self.compactor.renderer, self.compactor.rules)
        return match

    def _plan_after(self, session: Session, match: Match, before: Sequence[Message]) -> CompactionPlan:
        """Return what is left of the plan in force, or of the plan of the line that the caller returns to."""
        if match.returned_to:
            plan, line = session.plan_on(match.returned_to) or session.plan, match.returned_to.ids
            known = session.log.ids_until(plan.regrets.log_length)
            return self._after_edit(session, plan, before=list(map(session.log.now, line)), known=known)
        new = {message.id for message in match.new}
        known = {m.id for m in session.log.view} - new
        return self._after_edit(session, session.plan, before=before, known=known)

    def _after_edit(
        self, session: Session, plan: CompactionPlan, *, before: Sequence[Message], known: Container[str]
    ) -> CompactionPlan:
        count, pins = self.tokenizer.count_message, self.compactor.rules.pins
        return after_edit(plan, session.log.view, count, before=before, known=known, pins=pins)

    def _holding(self, session: Session, left: CompactionPlan, line: Iterable[str]) -> CompactionPlan:
        """Return what is left of a plan that was made for this line, with the constraints that it would lack now."""
        is_all_there = session.structure.places.keys() >= set(line)
        return left if is_all_there else self.compactor.holding_constraints(session, left)

    def _has_compacted_itself(self, session: Session, match: Match) -> bool:
        """Return True, once, if the caller has put a summary of its own in place of messages, or begins with one."""
        is_beginning = len(match.new) == len(session.log.view)
        candidates = match.new if match.branched else match.new[:_FIRST_MESSAGES] if is_beginning else ()
        own = find_own_summary(candidates)
        # Ours comes back as a caller's message where another process has sent it.
        return own is not None and SUMMARY_MARK not in own.text and session.note_once("own compaction")

    def dry_run(
        self,
        session: Session,
        incoming: Sequence[object],
        budget: TokenBudget,
        *,
        now: bool,
        target_tokens: int | None,
        focus: str = "",
    ) -> CompactionResult:
        """Return what a call would do; `session` is a fork that is thrown away."""
        budget = _as_provider_counts(budget, session)
        self.ingest(session, incoming, budget)
        compactor = self.compactor
        if now or target_tokens is not None or focus:
            result = compactor.plan(session, self.trigger.manual_goal(session, budget, target_tokens, focus=focus))
            return replace(compactor.pricing.with_planned_price(session, result), reason="manual")
        decision, goal = self.trigger.decide(session, budget, self.trigger.used_tokens(session, budget))
        reason, economics = decision.reason, None
        if decision.triggered:
            result = compactor.pricing.with_planned_price(session, compactor.plan(session, goal))
            why_not = compactor.pricing.reason_to_decline(result) if decision.is_optional else ""
            if result.tokens_freed < goal.min_freed_tokens:
                why_not = too_little_freed(goal)
            if not why_not:
                return replace(result, reason=reason)
            reason, economics = f"{reason}; {why_not}", result.economics
        return replace(compactor.unchanged(session), reason=reason, economics=economics)

    def restore(self, session: Session, version: int) -> Steps[None]:
        """Restore an earlier plan, exactly, as a new version that stays until the budget forbids it."""
        with self.emitter.operation(session, "restore"):
            yield from self._restore(session, version)

    def _restore(self, session: Session, version: int) -> Steps[None]:
        for _ in range(_MAX_TRIES):
            yield from self.persistence.catch_up(session, self.compactor.render)
            earlier = yield from self.persistence.plan_of(session, version)
            known = session.log.ids_until(earlier.regrets.log_length)
            before = session.log.entries[: earlier.regrets.log_length]
            undone = session.plan.summary
            left = self._after_edit(session, earlier, before=before, known=known)
            restored = replace(
                self._holding(session, left, known),
                version=session.plan.version + 1,
                reason=f"version {version} was restored",
                tokens_before=session.prompt_tokens,
                origin=earlier.origin if earlier.origin is not None else version,
                held=True,
                run=None,
            )
            session.adopt(restored)
            self.compactor.render(session)
            session.record_plan_size()
            if (yield from self._save(session, None)):
                yield from self.compactor.claiming.discard_prefetched(session, undone)
                return
        conflict = _lost_races(session)
        raise VersionConflict(f"version {version} was not restored: {conflict.message}", hint=conflict.hint)

    def prefetch_summary(self, session: Session, *, waits: bool = False) -> Steps[bool]:
        """Write the summary that the next compaction will need, on a fork; return False if it needs none.

        With `waits`, wait for another process that is at it, and look again then.
        """
        claiming = self.compactor.claiming
        is_once = not waits and self.prefetch is not None and self.prefetch.is_quick
        if session.budget is None or not (yield from claiming.begin_prefetch(session, waits=waits, is_once=is_once)):
            return False
        try:
            with self.emitter.operation(session, "prefetch"):
                pending = yield from self._summary_to_prefetch(session, session.budget)
                if pending:
                    yield from self.compactor.writer.prefetch(session, pending)
        except Exception as error:
            fallback = "no summary was prefetched; it is written when it is needed"
            self.emitter.error(session, error, fallback=fallback)
            yield from claiming.end_prefetch(session)
            raise
        except BaseException:
            claiming.cancel_prefetch(session)
            raise
        yield from claiming.end_prefetch(session)
        return pending is not None

    def _summary_to_prefetch(self, session: Session, budget: TokenBudget) -> Steps[SummarizationRecord | None]:
        """Return the summary that will be needed when the prompt is full; None if one is ready or none will be."""
        ready = yield from self.compactor.claiming.prefetched(session)
        full_tokens = budget.ceiling_tokens if session.plan.held else budget.trigger_tokens
        growth_tokens = full_tokens - self.trigger.used_tokens(session, budget)
        goal = prefetch_goal(self.trigger.goal(session, budget), growth_tokens)
        try:
            result = self.compactor.plan_with(session, goal, ready)
        except InsufficientBudget:
            return None  # the call itself raises it, and says what to do
        rules = smaller_rules(self.compactor.rules_of(session, goal))
        will_do = result.tokens_after <= goal.settle_tokens and result.rules in rules
        return result.pending_summary if will_do else None


def _tell(
    on_known: Callable[[list[object]], None] | None, session: Session, incoming: Sequence[object], match: Match
) -> None:
    if on_known:
        on_known(session.output(incoming, match))


def _lost_races(session: Session) -> VersionConflict:
    return VersionConflict(
        f"other processes keep writing to session {session.session_id!r}: {_MAX_TRIES} tries were too late",
        hint="try again, or let one process at a time work on a session",
    )


def _as_provider_counts(budget: TokenBudget, session: Session) -> TokenBudget:
    """Return the budget with as much reserved as the provider will count for what injectors add."""
    reserve = ceil(budget.injection_reserve * session.calibration.slope)
    return budget if reserve == budget.injection_reserve else replace(budget, injection_reserve=reserve)


def _rehydration_scope(session: Session) -> RehydrationScope:
    """Return what may be rehydrated: what is of this session, and on the line of its log that the caller is on."""

    def text_of(message_id: str) -> str | None:
        return next((message.text for message in session.log.view if message.id == message_id), None)

    return RehydrationScope(session.session_id, text_of, _moved_attachments(session))


def _moved_attachments(session: Session) -> dict[str, MovedAttachment]:
    """Return the attachments that the plan has moved out of the prompt, by the ids of their artifacts.

    One that was sent again, and stands there, is not among them.
    """
    moved: dict[str, MovedAttachment] = {}
    shown = {attachment.digest for message in session.prompt.messages for attachment in attachments_of(message)}
    for record in session.plan.artifacts:
        message = session.log.get(record.span.first) if record.attachments else None
        for attachment in attachments_of(message) if message else ():
            is_it = attachment_id(session.session_id, attachment) == record.artifact_id
            if is_it and message and attachment.digest not in shown:
                part = attached_part(message, attachment)
                moved[record.artifact_id] = MovedAttachment(
                    names=names_of(attachment) if record.attachments[0].name else (),
                    line=record.attachments[0].line,
                    part=part,
                    sensitivity=record.sensitivity,
                    is_stored=record.artifact_id in session.stored.artifact_ids,
                )
    return moved
