"""What is known of one session between two calls: its log, its plan, and the prompt as it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.core.audit.records import Commit, ModelCall, SessionHead, StoredMessage, StoredSession
from compact.core.log.messages import Message, Slot, copy_plain
from compact.core.log.thread import Match, Shown, Thread
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import Calibration, TokenBudget
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer, RenderedPrompt
from compact.core.plan.turn import TurnContext
from compact.core.protocols import EntryForm

# Who owns an entry of a caller's list that we had added: nobody in the log.
_OURS = "\0"
# The newest ones, and those that keep coming back: a call may be tried again and again.
_REMEMBERED_PROMPTS = 32


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the last call compacted, and why or why not."""

    triggered: bool
    reason: str
    # Nobody asked for it and nothing forces it: only done if it pays.
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Injected:
    """A message that stands at the end of one prompt and never in the log, and its tokens."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """What stood at the end of a prompt without being in the log: from which place on, and how it looked."""

    start: int
    entries: tuple[object, ...]


class Session:
    """One session; the prompt grows with what is new, and is only made anew when the plan or the past changes."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.thread = Thread(session_id)
        self.plan = CompactionPlan(session_id)
        self.prompt = RenderedPrompt(())
        self.prompt_tokens = 0
        self.repair_tokens = 0
        self.tokens_by_role: Counter[str] = Counter()
        self.turn_number = 0
        self.calibration = Calibration()
        self.decision: Decision | None = None
        self.budget: TokenBudget | None = None
        # The state in which a compaction freed nothing: not tried again until something changed.
        self.exhausted_at: tuple[object, ...] | None = None
        # What was brought back this turn; it stands at the end of every prompt of the turn, and never in the log.
        self.turn = TurnContext()
        self.brought: list[Message] = []
        self.brought_tokens = 0
        # What injectors added to the newest prompt, and what those said that are asked once in a turn.
        self.injected: tuple[Injected, ...] = ()
        self.said_this_turn: Mapping[str, tuple[Injected, ...]] = {}
        # The ends of the newest prompts that are not in the log: callers may send them back, now or in a second try.
        self._ephemeral: tuple[Ephemeral, ...] = ()
        # The prompt that went out last, and a compaction that would not have paid: plan, prompt tokens, why.
        self.sent: tuple[Slot, ...] = ()
        self.declined: tuple[int, int, str] = (-1, 0, "")
        # How far the store has come with this session, and whether the caller edited the past since.
        self.head = SessionHead()
        self.has_branched = False
        self.overtaken: list[CompactionPlan] = []
        self._tokens: dict[str, int] = {}
        self._slot_tokens: list[int] = []
        self._shown = Shown()
        # How many messages of the line the prompt accounts for; and the prompt before it, with the same.
        self._covered, self._before = 0, (Shown(), 0)
        self._like: object = None

    @classmethod
    def resumed(cls, stored: StoredSession) -> Session:
        """A session as another process left it; nothing is counted again."""
        session = cls(stored.session_id)
        log = [entry.message for entry in stored.messages]
        session.thread = Thread.restored(stored.session_id, log, stored.view_ids)
        session._tokens = {entry.message.id: entry.tokens for entry in stored.messages}
        session._like = log[-1].original if log else None
        session.turn_number = sum(message.role == "user" for message in log)
        session.plan, session.head = stored.plan, stored.head
        call = stored.last_report
        if call and call.tokens_reported and call.plan_version == stored.head.plan_version:
            session.calibration = Calibration((call.tokens_estimated, call.tokens_reported))
        return session

    def become(self, other: Session) -> None:
        """Take over everything another copy of this session knows; only we know what we showed beside the log."""
        shown, sent = self._ephemeral, self.sent
        self.__dict__.update(other.__dict__)
        self._ephemeral, self.sent = shown, sent

    def put_in_force(self, plan: CompactionPlan) -> None:
        """Take a new version of the plan; one that the store has not seen yet is kept for it."""
        if self.plan.version not in (plan.version, self.head.plan_version):
            self.overtaken.append(self.plan)
        self.plan = plan

    def saved(self, head: SessionHead) -> None:
        """The store has everything."""
        self.head, self.has_branched, self.overtaken = head, False, []

    def unsaved(self, call: ModelCall | None) -> Commit:
        """What the store does not have yet."""
        saved = self.head.last_seq
        entries = enumerate(self.thread.log[saved:], saved + 1)
        return Commit(
            session_id=self.session_id,
            expected=self.head,
            messages=tuple(StoredMessage(seq, message, self._tokens[message.id]) for seq, message in entries),
            view_ids=tuple(self.thread.view_ids) if self.has_branched else None,
            plan=self.plan if self.plan.version != self.head.plan_version else None,
            overtaken=tuple(self.overtaken),
            call=call,
        )

    def fork(self) -> Session:
        """A copy on which a compaction can be tried out."""
        twin = Session(self.session_id)
        twin.__dict__.update(self.__dict__)
        twin.thread, twin._shown = self.thread.fork(), self._shown.copy()
        twin._tokens, twin.tokens_by_role = dict(self._tokens), Counter(self.tokens_by_role)
        twin._slot_tokens = list(self._slot_tokens)
        return twin

    @property
    def state(self) -> tuple[object, ...]:
        """What must change for another compaction to come out differently."""
        return (self.plan.version, len(self.thread.log), len(self.thread.view), self.budget)

    def tier_excess(self, caps: Mapping[str, int]) -> dict[str, int]:
        """For each tier of content above its cap, the tokens over half the cap: what an eviction should free."""
        by_role, summary = self.tokens_by_role, self.plan.summary
        summary_tokens = summary.tokens_after if summary else 0
        used = {
            "tool_results": by_role["tool"],
            "dialogue": by_role["user"] + by_role["assistant"] - summary_tokens,
            "summary": summary_tokens,
        }
        return {tier: used[tier] - cap // 2 for tier, cap in caps.items() if used.get(tier, 0) > cap}

    def tokens_of(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of log entries, as counted when they arrived."""
        return [self._tokens[message.id] for message in messages]

    @property
    def shown(self) -> Sequence[object]:
        """The newest prompt, entry by entry, as callers were given it; without what stands behind the log."""
        return self._shown.originals

    def slot_tokens(self) -> Sequence[int]:
        """The tokens of each slot of the prompt."""
        return self._slot_tokens

    def take_in(self, incoming: Sequence[object], form: EntryForm, tokenizer: ProviderAwareTokenizer) -> Match:
        """Append what is new to the log and count it, once."""
        match = self._match(incoming, form)
        for message in match.new:
            if message.id not in self._tokens:
                self._tokens[message.id] = tokenizer.count_message(message)
                self.turn_number += message.role == "user"
        self._like = incoming[-1] if incoming else self._like
        self.has_branched = self.has_branched or match.branched or match.rejoined
        if self.turn.turn_number != self.turn_number:
            self.turn, self.brought, self.brought_tokens = TurnContext(self.turn_number), [], 0
            self.said_this_turn = {}
        self.inject(())
        return match

    def _match(self, incoming: Sequence[object], form: EntryForm) -> Match:
        """Match a caller's list with the log; what stood at the end of an earlier prompt and not in the log is ours."""
        for known in self._ephemeral:
            end = known.start + len(known.entries)
            if tuple(incoming[known.start : end]) == known.entries:
                self._remember(known)
                break
        else:
            return self.thread.match(incoming, output=self._shown, read=form.read, earlier=self._earlier)

        def read(item: object, _: str) -> Message:
            # Errors name the place in the caller's own list.
            return form.read(item, f"messages[{next(n for n, own in enumerate(incoming) if own is item)}]")

        without = [*incoming[: known.start], *incoming[end:]]
        match = self.thread.match(without, output=self._shown, read=read, earlier=self._earlier)
        owners = [*match.owners[: known.start], *[_OURS] * len(known.entries), *match.owners[known.start :]]
        return replace(match, owners=owners)

    @property
    def _earlier(self) -> Shown | None:
        """The prompt before the newest one, as long as nothing has happened since."""
        shown, covered = self._before
        return shown if shown.originals and covered == len(self.thread.view) else None

    def _remember(self, known: Ephemeral) -> None:
        others = (other for other in self._ephemeral if other != known)
        self._ephemeral = (known, *others)[:_REMEMBERED_PROMPTS]

    def inject(self, added: tuple[Injected, ...]) -> None:
        """Have these stand at the end of the newest prompt, instead of what was injected before."""
        self.injected = added
        self.tokens_by_role["injected"] = self.injected_tokens
        if not added:
            del self.tokens_by_role["injected"]

    @property
    def injected_tokens(self) -> int:
        """What injected content takes in the newest prompt."""
        return sum(entry.tokens for entry in self.injected)

    def extend(self, new: Sequence[Message], renderer: PromptRenderer) -> None:
        """Put new messages behind the prompt; everything before them stays as it is."""
        self.prompt = renderer.extend(self.prompt, new)
        self._shown.originals.extend(message.original for message in new)
        self._shown.ids.extend((message.id,) for message in new)
        self._shown.owners.extend(message.id for message in new)
        self._covered = len(self.thread.view)
        for message in new:
            self._weigh_slot(message, self._tokens[message.id])

    def show(
        self,
        rendered: RenderedPrompt,
        slots: tuple[Slot, ...],
        form: EntryForm,
        count_message: Callable[[Message], int],
    ) -> None:
        """Take a prompt that was made anew: as it was rendered, and its slots after what had to be repaired."""
        as_planned = {id(slot) for slot in rendered.slots}
        self._before, self._covered = (self._shown, self._covered), len(self.thread.view)
        self.prompt, self._shown = replace(rendered, slots=slots), Shown()
        self.tokens_by_role, self._slot_tokens, self.prompt_tokens = Counter(), [], 0
        for slot in slots:
            untouched, message = self._is_untouched(slot), slot.message
            self._shown.originals.append(message.original if untouched else form.write(message, self._like))
            self._shown.ids.append(slot.ids)
            self._shown.owners.append(message.id if untouched else "")
            record = self.plan.get_action(slot.ids[0])[1] if id(slot) in as_planned else None
            # What the plan weighed when it was made is not counted again: not now, not in the next process.
            planned = record.tokens_after if record else count_message(message) if not untouched else 0
            self._weigh_slot(message, self._tokens[message.id] if untouched else planned)

    def _weigh_slot(self, message: Message, tokens: int) -> None:
        self._slot_tokens.append(tokens)
        self.tokens_by_role[message.role] += tokens
        self.prompt_tokens += tokens

    def _is_untouched(self, slot: Slot) -> bool:
        return len(slot.ids) == 1 and slot.message is self.thread.get(slot.ids[0])

    def output(self, incoming: Sequence[object], match: Match, form: EntryForm) -> list[object]:
        """The prompt as the caller wants it: its own objects wherever nothing was changed."""
        self.sent = self.prompt.slots
        ephemeral = self._written(form)
        if ephemeral:
            self._remember(Ephemeral(len(self._shown.owners), tuple(self._written(form))))
        if self._shown.owners == match.owners and self._is_shown_as_sent(incoming):
            return [*incoming, *ephemeral]
        own = dict(zip(match.owners, incoming, strict=True))
        shown = self._shown
        kept = [
            own[owner] if owner and owner in own else copy_plain(original)
            for owner, original in zip(shown.owners, shown.originals, strict=True)
        ]
        return kept + ephemeral

    def _is_shown_as_sent(self, incoming: Sequence[object]) -> bool:
        """True if the texts of ours in a caller's list are those of now: a stub may have become shorter."""
        shown = zip(self._shown.owners, incoming, self._shown.originals, strict=False)
        return all(owner or item == original for owner, item, original in shown)

    def _written(self, form: EntryForm) -> list[object]:
        """What stands behind the log in the newest prompt, in the caller's form."""
        added = [*self.brought, *(entry.message for entry in self.injected)]
        if isinstance(self._like, Message):
            added = [replace(message, original=None) for message in added]
        return [form.write(message, self._like) for message in added]
