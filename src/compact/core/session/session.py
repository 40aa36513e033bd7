"""The state of one session between two calls: its log, its plan, its prompt, and what the store has of it.

A session is the only owner of its state: others read its attributes and change it by its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from compact.core.audit.records import AddedMessage, Commit, ModelCall, SessionHead, StoredMessage, StoredSession
from compact.core.facts.constraints import ConstraintReading
from compact.core.facts.extraction import SpanReading
from compact.core.log.forms import EntryForm
from compact.core.log.known_list import KnownList, LeftLine
from compact.core.log.log import Log, Match
from compact.core.log.recognition import Shown
from compact.core.messages.entries import read_entry, write_entry
from compact.core.messages.message import Message, SettledItems, Slot, copy_plain
from compact.core.messages.structure import HistoryStructure
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import Calibration, TokenBudget
from compact.core.plan.layers import KeepRules
from compact.core.plan.line_index import LineIndex
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan, CompactionRun, StepFailure
from compact.core.plan.regret import Regret, Regrets
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.turn import RehydrationState, TurnContext, added_by
from compact.core.session.decisions import CompactionInputs, DeclinedCompaction, TriggerDecision
from compact.core.session.entry_tokens import EntryTokens
from compact.core.session.past_plans import PastPlans, PlannedLine, PromptOf, is_shown
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.regret_watch import RegretWatch
from compact.core.session.store_state import UNKNOWN_HEAD, StoreState
from compact.core.session.tails import PromptTail, PromptTails, labelled_tail
from compact.core.session.turn_state import TurnState
from compact.core.summary.summarizer import Spending

# The owner, in a caller's list, of an item that we had added behind the log: no entry of the log.
_OURS = "\0"


@dataclass(slots=True)
class Deletion:
    """Whether a session was deleted, for the session and all its forks."""

    happened: bool = False


class Session:
    """One session."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.log = Log()
        self.tokens = EntryTokens(self.log)
        self.plan = CompactionPlan(session_id)
        self.prompt = CurrentPrompt()
        self.turn_number = 0
        self.turn = TurnState()
        # The newest message of the user.
        self._asked_in = ""
        self.injected: tuple[AddedMessage, ...] = ()
        self.calibration = Calibration()
        self.budget: TokenBudget | None = None
        # The model that the newest call was for; "" if that is not known.
        self.model: str = ""
        self.decision: TriggerDecision | None = None
        # By the part of the prompt whose cap it was for; None is the cadence.
        self.declined: Mapping[PromptPart | None, DeclinedCompaction] = {}
        self.stored = StoreState()
        # The slots of the prompt that went out last.
        self.last_sent: tuple[Slot, ...] = ()
        # When each artifact was last shown again; what summaries have cost, on one account for all forks.
        self.rehydration = RehydrationState()
        self.spending = Spending()
        # What was read of the messages that the summary stands for.
        self.span_reading = SpanReading()
        # How far the caller's line was read for constraints.
        self.constraint_reading = ConstraintReading()
        self._deletion = Deletion()
        # The plan version for which a summary was asked of a job queue.
        self.queued_version: int | None = None
        self._exhausted: CompactionInputs | None = None
        self._as_stored: CompactionInputs | None = None
        # How the caller's line is built, as far as that was needed.
        self._structure, self._line_index = HistoryStructure(), LineIndex()
        self._tails = PromptTails()
        # True once this process has given a prompt for what the store has; and the names of all that add to prompts.
        self._has_answered = False
        self._adding: frozenset[str] = frozenset()
        self.past = PastPlans()
        self._watch = RegretWatch(self.log, self.tokens)
        # What failed on the way to the newest prompt.
        self.failures: tuple[StepFailure, ...] = ()
        # The newest item of the caller's, whose kind our own messages take.
        self._like: object = None
        # How often it was read from its store.
        self.reads = 0
        self._noted: set[str] = set()
        # Lists of the caller's whose entries other processes have kept from being stored, oldest first.
        self.kept_lists: tuple[tuple[object, ...], ...] = ()

    @classmethod
    def resumed(cls, stored: StoredSession) -> Session:
        """Return a session as another process left it; nothing is counted again."""
        session = cls(stored.session_id)
        session.reload(stored)
        return session

    def reload(self, stored: StoredSession) -> None:
        """Take over what another process has written.

        What only this process knows stays: the window, what it showed behind the log, what it sent last.
        """
        self.reads += 1
        self._tails, self._has_answered = replace(self._tails, has_others=True), False
        entries = [entry.message for entry in stored.messages]
        by_id = {message.id: message for message in entries}
        forms = {message_id: form.applied(by_id[message_id]) for message_id, form in stored.forms.items()}
        unseen = {message_id: form.applied(by_id[message_id]) for message_id, form in stored.unseen.items()}
        self.log = Log.restored(entries, stored.view_ids, forms, unseen)
        self.tokens = EntryTokens.restored(self.log, stored)
        self._like = entries[-1].original if entries else None
        self.plan, self.prompt = stored.plan, CurrentPrompt()
        self._structure, self._line_index = HistoryStructure(), LineIndex()
        self.past = PastPlans.in_store(stored.plan, has_branches=bool(stored.head.branch))
        self._watch = RegretWatch(self.log, self.tokens)
        self.turn_number = sum(message.role == "user" for message in entries)
        self._asked_in = _newest_question(self.log.view)
        # What was rehydrated for this turn is not in the prompt any more, and may be again.
        self.rehydration = self.rehydration.without_turn(self.turn.context.turn_number)
        self.turn, self.injected = TurnState(), ()
        self.decision, self.declined, self._exhausted = None, {}, None
        # A compaction that nothing came after; the budget that it was made for is not known, only whether it fits.
        if stored.plan.run and stored.plan.regrets.log_length == len(entries):
            self._exhausted = replace(self._state, budget=None)
        self._as_stored = replace(self._state, budget=None)
        self.mark_saved(stored.head)
        call = stored.last_report
        self.model = self.model or (str(call.details.get("model", "")) if call else "")
        is_current = call is not None and call.plan_version == stored.head.plan_version
        reported = call.tokens_reported if call and is_current else None
        self.calibration = Calibration((call.tokens_estimated, reported)) if call and reported else Calibration()

    def fork(self) -> Session:
        """Return a copy on which a compaction can be tried out: what it does never reaches this session.

        Shared are what summaries cost, which is spent on one account, that the session was deleted, and what was read
        of the messages of its summary and for constraints.
        """
        twin = copy(self)
        twin.log, twin.prompt = self.log.fork(), self.prompt.copy()
        twin.tokens = self.tokens.copy(twin.log)
        twin._structure, twin._line_index, twin._noted = self._structure.copy(), self._line_index.copy(), set()
        twin._forget_last_call()
        return twin

    def go_back_to(self, before: Session) -> None:
        """Be what another session is, an older fork or a new one: what has changed since was left half done.

        What is shared with forks stays, and so does what the process knows of itself.
        """
        own = ("spending", "span_reading", "constraint_reading", "_deletion", "_adding", "_noted")
        stays = {name: vars(self)[name] for name in own}
        vars(self).update(vars(before), **stays, reads=self.reads + 1)
        self._forget_last_call()

    def _forget_last_call(self) -> None:
        """Forget what the newest list brought back and what failed, and read the log anew for what is missed."""
        self._watch, self.failures = RegretWatch(self.log, self.tokens), ()

    def keep_list(self, incoming: Sequence[object]) -> None:
        """Keep a list that could not be stored, so that it is stored later; one that it goes on from is in it."""
        others = (kept for kept in self.kept_lists if tuple(incoming[: len(kept)]) != kept)
        self.kept_lists = (*others, tuple(incoming))

    def drop_kept_list(self) -> None:
        """Note that the oldest of the lists that were kept is stored."""
        self.kept_lists = self.kept_lists[1:]

    # -- the caller's list ------------------------------------------------------------------------------------------

    def ingest(
        self,
        incoming: Sequence[object],
        count_message: Callable[[Message], int],
        prompt_of: PromptOf = lambda plan, view: CurrentPrompt(),
        adding: frozenset[str] = frozenset(),
    ) -> Match | None:
        """Match a caller's list with the log, append what is new and count it, once.

        Messages are counted as they are read, before any is appended: a counter that fails changes nothing. `prompt_of`
        makes the prompt of an earlier plan. `adding` are the names of those who add something behind the log. Return
        None if earlier plans must be read first, and do nothing.
        """
        self._adding = adding
        counted: dict[int, int] = {}
        is_settled = isinstance(incoming, SettledItems)

        def read(item: object, place: str) -> Message:
            message = read_entry(item, place, is_settled=is_settled)
            counted[id(message.original)] = count_message(message)
            return message

        match = self._match(incoming, read, prompt_of)
        if match is None:
            return None
        self.turn_number += sum(message.role == "user" for message in self.tokens.take(match, counted))
        self._like = incoming[-1] if incoming else self._like
        if match.branched or match.rejoined:
            self.stored = replace(self.stored, has_branched=True)
        if match.formed or match.unseen:
            self.stored = self.stored.with_forms(match.formed, match.unseen)
        if self._take_question(match) or self.turn.context.turn_number != self.turn_number:
            self.turn = TurnState(TurnContext(self.turn_number))
        self.injected, self.failures = (), ()
        return match

    def _take_question(self, match: Match) -> bool:
        """Note which question is answered now; return True if it is another one by an edit of the past."""
        before, is_edit = self._asked_in, match.branched or match.rejoined
        self._asked_in = _newest_question(self.log.view if is_edit else match.new) or before
        return is_edit and self._asked_in != before

    def without_trimmed(self, match: Match, plan: CompactionPlan) -> Match:
        """Return a match; if a plan has no summary, with all left that the caller's list has lost, if it has."""
        left = () if plan.summary else self.log.leave_trimmed()
        if not left:
            return match
        self.stored = replace(self.stored, has_branched=True)
        return replace(match, branched=True, left_ids=(*match.left_ids, *left))

    def show_unseen(self) -> None:
        """Show entries as the caller has them that a plan stood for, and the plan of now does not."""
        shown = [message_id for message_id in self.log.unseen if is_shown(self.plan, message_id)]
        if not shown:
            return
        formed = self.log.show_unseen(shown)
        self.tokens.take_unseen(formed)
        self.stored = self.stored.with_forms(formed, shown)

    def note_once(self, what: str) -> bool:
        """Return True the first time that something is noted: whoever reads notices is told once in a session."""
        is_first = what not in self._noted
        self._noted.add(what)
        return is_first

    def _match(
        self,
        incoming: Sequence[object],
        read: Callable[[object, str], Message],
        prompt_of: PromptOf,
    ) -> Match | None:
        """Match a caller's list with the log; what stood behind the log in an earlier prompt is ours, not new."""
        tail = self._tails.found_in(incoming, self.log, self.prompt.items)
        if tail is None and self._tails.has_others:
            tail = labelled_tail(incoming, self.log, self.prompt.items)
            is_ours = tail is not None and self._is_ours(tail, incoming, prompt_of)
            if is_ours is None:
                return None
            tail = tail if is_ours else None
        if tail is None:
            return self._match_log(incoming, read, prompt_of, self.log)
        self._tails = self._tails.with_tail(tail)

        def read_in_place(item: object, _: str) -> Message:
            # Errors name the place in the caller's own list.
            return read(item, f"messages[{next(n for n, own in enumerate(incoming) if own is item)}]")

        without = [*incoming[: tail.start], *incoming[tail.end :]]
        match = self._match_log(without, read_in_place, prompt_of, self.log)
        return match and replace(match, added=range(tail.start, tail.end))

    def _is_ours(self, tail: PromptTail, incoming: Sequence[object], prompt_of: PromptOf) -> bool | None:
        """Return True if another process has added a labelled tail; None if earlier plans must be read to know.

        What a list ends with are the words of a user who quotes a label, if something new or an answer is before it, if
        it goes on from an answer of this process, or if it has the name of nobody who adds anything.
        """
        if tail.end < len(incoming):
            return True
        if not {added_by(read_entry(item, "messages")) for item in tail.items} <= {"", *self._adding}:
            return False
        if tail.start <= self.log.known_start(incoming, self.prompt.items):
            return not self._has_answered
        trial = self.log.fork()
        match = self._match_log(incoming[: tail.start], read_entry, prompt_of, trial)
        if match is None:
            return None
        last = trial.view[-1]
        return self.log.get(last.id) is not None and last.role in ("user", "tool")

    def _match_log(
        self,
        incoming: Sequence[object],
        read: Callable[[object, str], Message],
        prompt_of: PromptOf,
        log: Log,
    ) -> Match | None:
        plan, past = self.plan, self.past
        shown = Shown(lambda i: is_shown(plan, i), lambda i: past.always_show(i, plan), plan.summary is not None)

        def earlier() -> Iterator[KnownList] | None:
            prompts = self.earlier_prompts(prompt_of)
            return None if prompts is None else (prompt.items for prompt in prompts)

        return log.match(incoming, output=self.prompt.items, read=read, earlier=earlier, shown=shown)

    def earlier_prompts(self, prompt_of: PromptOf) -> Iterator[CurrentPrompt] | None:
        """Return the prompts of earlier plans that a caller may send back; None if these were not read."""
        return self.past.prompts(self.plan, self.log, prompt_of)

    def plan_on(self, line: LeftLine) -> CompactionPlan | None:
        """Return the plan of a line that the caller has left; None if it is not remembered."""
        return self.past.plan_on(line, self.plan)

    def leave_line(self, view: Sequence[Message], last_version: int) -> None:
        """Note that the caller has left a line by an edit of the past, and the last plan that was in force there."""
        self.past = self.past.with_line_left(view, last_version, self.plan.version)

    def learn_past(self, plans: Iterable[CompactionPlan], lines: Sequence[PlannedLine] | None) -> None:
        """Take over the plans before this one, and the lines that the caller was on; None if nobody knows these."""
        own = self.stored.unsaved_plans
        self.past = self.past.with_plans([*(plan for plan in plans if plan.version < self.plan.version), *own])
        self.past = self.past.with_lines(lines, self.log.view_ids)

    def output(self, incoming: Sequence[object], match: Match) -> list[object]:
        """Return the prompt to send, with the caller's own objects wherever nothing was changed.

        It is the very list that came, if that is settled, and nothing was changed at all.
        """
        self.last_sent, self._has_answered = self.prompt.slots, True
        added = self._written_tail() if self.turn.rehydrated or self.injected else []
        if added:
            before = self.prompt.items.originals[-1:]
            tail = PromptTail.of(added, len(self.prompt.items.owners), before[0] if before else None)
            self._tails = self._tails.with_tail(tail)
        items, owners = self.prompt.items, match.owners
        if there := match.added:
            owners = [*owners[: there.start], *[_OURS] * len(there), *owners[there.start :]]
        if items.owners == owners and self._is_shown_as_sent(incoming):
            if isinstance(incoming, SettledItems) and not added:
                return incoming
            return [*incoming, *added]
        own = self._own_items(incoming, owners)
        kept = [
            own[owner] if owner and owner in own else copy_plain(original)
            for owner, original in zip(items.owners, items.originals, strict=True)
        ]
        return kept + added

    def _own_items(self, incoming: Sequence[object], owners: Sequence[str]) -> Mapping[str, object]:
        """Return the caller's items of the prompt, by the entries that they are; of a whole history these are few."""
        places = self.structure.places
        shown = {owner: places[owner] for owner in self.prompt.items.owners if owner}
        if all(place < len(owners) and owners[place] == owner for owner, place in shown.items()):
            return {owner: incoming[place] for owner, place in shown.items()}
        return dict(zip(owners, incoming, strict=True))

    def _is_shown_as_sent(self, incoming: Sequence[object]) -> bool:
        """Return True if our own texts in a caller's list are those of now: a stub may have become shorter."""
        items = self.prompt.items
        return all(incoming[place] == items.originals[place] for place in items.ours)

    def _written_tail(self) -> list[object]:
        """Return what stands behind the log in the newest prompt, in the caller's form."""
        added = [entry.message for entry in (*self.turn.rehydrated, *self.injected)]
        if isinstance(self._like, Message):
            added = [replace(message, original=None) for message in added]
        return [write_entry(message, self._like) for message in added]

    # -- what was missed --------------------------------------------------------------------------------------------

    @property
    def regrets(self) -> tuple[Regret, ...]:
        """What compactions removed and the agent asked for again, oldest first."""
        return self._watch.found(self.plan)

    @property
    def new_regrets(self) -> tuple[Regret, ...]:
        """Those that the newest list brought."""
        return self._watch.new

    def find_regrets(self, match: Match) -> None:
        """Look for regrets among the entries that a match has just brought."""
        self._watch.look(self.plan, match)

    def missed_ids(self) -> Iterator[str]:
        """Yield the messages that brought back what was missed, newest first."""
        return self._watch.missed_ids(self.plan)

    # -- how the caller's line is built ------------------------------------------------------------------------------

    @property
    def structure(self) -> HistoryStructure:
        """The groups and turns of the caller's line; only what is new is read, unless its past was edited."""
        self._structure = self._structure.of(self.log.view)
        return self._structure

    @property
    def line_index(self) -> LineIndex:
        """What the caller's line has of the few kinds that planning asks for; read as its structure is."""
        self._line_index = self._line_index.of(self.log.view)
        return self._line_index

    # -- tokens -----------------------------------------------------------------------------------------------------

    def view_tokens(self) -> Sequence[int]:
        """Return the tokens of the caller's line, message by message."""
        return self.tokens.of_line(self.log.view)

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the prompt, without what stands behind the log."""
        return self.prompt.tokens

    @property
    def rehydrated_tokens(self) -> int:
        """The tokens of what was rehydrated for this turn."""
        return sum(entry.tokens for entry in self.turn.rehydrated) if self.turn.rehydrated else 0

    @property
    def injected_tokens(self) -> int:
        """The tokens of what injectors added to the newest prompt."""
        return sum(entry.tokens for entry in self.injected) if self.injected else 0

    def tokens_by_part(self) -> dict[PromptPart, int]:
        """Return the tokens of each part of the newest prompt; together they are what is estimated for the request."""
        parts: dict[PromptPart, int] = dict(self.prompt.tokens_by_part)
        parts[PromptPart.REHYDRATED], parts[PromptPart.INJECTED] = self.rehydrated_tokens, self.injected_tokens
        if self.budget:
            parts[PromptPart.SYSTEM] = parts.get(PromptPart.SYSTEM, 0) + self.budget.system_tokens
            parts[PromptPart.TOOLS] = self.budget.tool_schema_tokens
            parts[PromptPart.OVERHEAD] = self.budget.formatting_overhead
        return parts

    def observe_usage(self, *, estimated_tokens: int, reported_tokens: int) -> None:
        """Correct the estimate by what the provider reported for a prompt."""
        self.calibration = self.calibration.observe(estimated_tokens=estimated_tokens, reported_tokens=reported_tokens)

    def set_model(self, model: str, tokenizer: ProviderAwareTokenizer) -> bool:
        """Use this model from now on; return True if the entries had been counted by another's tokenizer.

        Then they are counted again. What another model's provider has reported says nothing about this one's.
        """
        if self.model and model != self.model:
            self.calibration = Calibration()
        self.model = model
        return self.tokens.count_again(tokenizer)

    def set_budget(self, budget: TokenBudget) -> None:
        """Use this budget until another one comes with a call."""
        self.budget = budget

    # -- plan and prompt --------------------------------------------------------------------------------------------

    def adopt(self, plan: CompactionPlan, *, is_compaction: bool = False) -> None:
        """Put a new plan version in force; a version that the store has not seen yet is kept for it."""
        if self.plan.version not in (plan.version, self.stored.head.plan_version):
            self.stored = replace(self.stored, unsaved_plans=(*self.stored.unsaved_plans, self.plan))
        regrets = Regrets(self.regrets, len(self.log.entries))
        self._watch.leave_plan(self.plan)
        self.past = self.past.with_plan(self.plan, plan)
        self.plan = replace(plan, regrets=regrets, archived=self.plan.archived, dialect=self.plan.dialect)
        if is_compaction:
            self.calibration = self.calibration.after_compaction()

    def show(self, prompt: CurrentPrompt) -> None:
        """Take a prompt that was made anew."""
        self.prompt = prompt

    def show_forms(self, message_ids: Sequence[str]) -> bool:
        """Show entries in the forms that the caller has by now; return False if the prompt must be made anew."""
        forms = {i: (self.log.forms[i], self.tokens.of(i)) for i in message_ids}
        return not forms or self.prompt.take_forms(forms)

    def record_plan_size(self) -> None:
        """Write the tokens of the prompt as it stands into the plan that made it."""
        self.plan = replace(self.plan, tokens_after=self.prompt.tokens)

    def record_run(self, run: CompactionRun) -> None:
        """Write into the plan in force how the compaction went that made it."""
        self.plan = replace(self.plan, run=run)

    def mark_archived(self, entries: int) -> None:
        """Note that the archive has so many entries of the log; the next plan says so."""
        self.plan = replace(self.plan, archived=entries)

    def mark_dialect(self, dialect: str) -> None:
        """Note the wire format that the caller's lists are in, "" if it is not known; the next plan says so."""
        if dialect != self.plan.dialect:
            self.plan = replace(self.plan, dialect=dialect)

    def note_failure(self, failure: StepFailure) -> None:
        """Remember what failed on the way to the newest prompt, and what was done instead."""
        self.failures = (*self.failures, failure)

    def take_stored_as_sent(self) -> None:
        """Take the prompt of what the store has for the one that went out last.

        So it is, whichever process sent it: a plan is stored with the first call under it. Only a plan that was
        restored is stored before.
        """
        if self.plan.origin is None:
            self.last_sent = self.prompt.slots

    def extend_prompt(self, new: Sequence[Message], renderer: PromptRenderer, rules: KeepRules) -> None:
        """Put new messages behind the prompt."""
        self.prompt.extend(new, self.tokens.of_messages(new), renderer, rules)

    @property
    def like(self) -> object:
        """The newest item of the caller's: messages that we make are written as its kind."""
        return self._like

    def decide(self, decision: TriggerDecision) -> None:
        """Remember what the last call decided."""
        self.decision = decision

    def decline(self, reason: str, part: PromptPart | None = None) -> None:
        """Remember that a compaction of the prompt as it stands, or of one part of it, would not pay."""
        declined = DeclinedCompaction(self.plan.version, self.prompt.tokens, reason)
        self.declined = {**self.declined, part: declined}

    @property
    def _state(self) -> CompactionInputs:
        return CompactionInputs(self.plan.version, len(self.log.entries), len(self.log.view), self.budget)

    @property
    def is_exhausted(self) -> bool:
        """True if a compaction of this very state was tried and would come out the same."""
        return self._exhausted in (self._state, replace(self._state, budget=None))

    @property
    def is_as_stored(self) -> bool:
        """True if nothing is new since the session was read: a call has decided on that, perhaps of another process."""
        return self._as_stored == replace(self._state, budget=None)

    def mark_exhausted(self) -> None:
        """Remember that there is nothing left to compact until something changes."""
        self._exhausted = self._state

    # -- what is added behind the log -------------------------------------------------------------------------------

    def add_rehydrated(
        self, added: Sequence[AddedMessage], context: TurnContext, rehydration: RehydrationState
    ) -> None:
        """Show artifacts again until the turn is over."""
        self.turn = replace(self.turn, context=context, rehydrated=(*self.turn.rehydrated, *added))
        self.rehydration = rehydration

    def drop_rehydrated(self) -> int:
        """Show none of the rehydrated artifacts any more; return the tokens that frees."""
        freed = self.rehydrated_tokens
        self.turn = replace(self.turn, context=TurnContext(self.turn_number), rehydrated=())
        return freed

    def inject(self, added: tuple[AddedMessage, ...]) -> None:
        """Have these stand at the end of the newest prompt, instead of what was injected before."""
        self.injected = added

    def remember_injection(self, injector: str, added: tuple[AddedMessage, ...]) -> None:
        """Keep the answer of an injector that is asked once a turn."""
        self.turn = replace(self.turn, injected_once={**self.turn.injected_once, injector: added})

    # -- the store, and other services ------------------------------------------------------------------------------

    def unsaved(self, call: ModelCall | None = None) -> Commit:
        """Return what the store does not have yet."""
        head = self.stored.head
        entries = enumerate(self.log.entries[head.last_seq :], head.last_seq + 1)
        return Commit(
            session_id=self.session_id,
            expected=head,
            messages=tuple(StoredMessage(seq, message, self.tokens.recorded[message.id]) for seq, message in entries),
            view_ids=tuple(self.log.view_ids) if self.stored.has_branched else None,
            forms=self._unsaved_forms(),
            unseen=self._unsaved_unseen(),
            plan=self.plan if self.plan.version != head.plan_version else None,
            superseded=self.stored.unsaved_plans,
            call=call,
        )

    def _unsaved_forms(self) -> dict[str, EntryForm]:
        """Return the forms that the store does not have; a new view comes with all of its forms."""
        ids = self.log.forms if self.stored.has_branched else sorted(self.stored.formed_ids & self.log.forms.keys())
        log, tokens = self.log, self.tokens.forms
        return {i: EntryForm.between(log.recorded(i), log.forms[i], tokens[i]) for i in ids}

    def _unsaved_unseen(self) -> dict[str, EntryForm | None]:
        """Return likewise the forms that are unseen, and None for those that are not there any more."""
        log, tokens = self.log, self.tokens.unseen
        ids = log.unseen if self.stored.has_branched else sorted(self.stored.unseen_ids)
        forms = {i: EntryForm.between(log.recorded(i), log.unseen[i], tokens[i]) for i in ids if i in log.unseen}
        return {i: forms.get(i) for i in ids}

    @property
    def has_unsaved_plan(self) -> bool:
        """True if the store has not seen the plan in force."""
        return self.plan.version != self.stored.head.plan_version

    @property
    def is_stored(self) -> bool:
        """True if the store has everything."""
        head, stored = self.stored.head, self.stored
        if (len(self.log), self.plan.version) != (head.last_seq, head.plan_version):
            return False
        return not (stored.is_new_branch or stored.unsaved_plans)

    def mark_saved(self, head: SessionHead) -> None:
        """Note that the store has everything."""
        artifact_ids = frozenset(record.artifact_id for record in self.plan.artifacts)
        self.stored = StoreState(head, artifact_ids=artifact_ids)

    def mark_outdated(self) -> None:
        """Note that another process has written to the store: the next call must read it first."""
        self.stored = replace(self.stored, head=UNKNOWN_HEAD)

    def mark_lost(self) -> None:
        """Note that the store has lost the session: it gets all of it again."""
        self.stored = replace(self.stored, head=SessionHead(), has_branched=True, artifact_ids=frozenset())

    @property
    def is_deleted(self) -> bool:
        """True once the session was deleted: whatever is still under way for it writes nothing any more."""
        return self._deletion.happened

    def mark_deleted(self) -> None:
        """Note, for all forks too, that the session was deleted."""
        self._deletion.happened = True

    def mark_queued(self, version: int | None) -> None:
        """Remember the plan version for which a job queue was asked for a summary; None to ask again."""
        self.queued_version = version


def _newest_question(messages: Sequence[Message]) -> str:
    """Return the id of the newest message of the user; "" without one."""
    return next((message.id for message in reversed(messages) if message.role == "user"), "")
