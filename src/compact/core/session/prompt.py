"""The prompt of a session as it stands: its slots, what each weighs, and the items the caller was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from compact.core.log.known_list import KnownList
from compact.core.log.log import Log
from compact.core.messages.entries import write_entry
from compact.core.messages.message import Message, Slot
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import SAID_PARTS, PromptPart, contents_in_order, ledger_share, part_of, source_of
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer, RenderedPrompt


class CurrentPrompt:
    """Grows with what is new; made anew only when the plan or the past changes."""

    def __init__(self) -> None:
        self.rendered = RenderedPrompt(())
        self.items = KnownList()
        self.tokens = 0
        self.tokens_by_part: Counter[PromptPart] = Counter()
        self.slot_tokens: list[int] = []
        self.slot_parts: list[PromptPart] = []
        # The tokens of each part by role or tool, and the tool of each call, by which its result is known.
        self.tokens_by_source: Counter[tuple[PromptPart, str]] = Counter()
        self._tools: dict[str, str] = {}
        # What the messages of the log's view take as they came, whatever the plan does to them.
        self.view_tokens = 0
        # How many messages of the log's view it accounts for.
        self.covered = 0
        # Where the summary stands; the plan knows it, its text does not tell: another message may look the same.
        self.summary_place: int | None = None

    @classmethod
    def built(
        cls,
        log: Log,
        plan: CompactionPlan,
        rendered: RenderedPrompt,
        slots: tuple[Slot, ...],
        *,
        covered: int,
        view_tokens: int,
        tools: dict[str, str],
        rules: KeepRules,
        message_tokens: Callable[[str], int],
        count_message: Callable[[Message], int],
        like: object,
    ) -> CurrentPrompt:
        """Return the prompt of a plan for a line of the log: as it was rendered, with its slots after repairs.

        It accounts for `covered` messages, which take `view_tokens` as they came; `tools` names the tool of each call.
        """
        prompt = cls()
        prompt.rendered, prompt.covered = replace(rendered, slots=slots), covered
        prompt.view_tokens, prompt._tools = view_tokens, tools
        as_planned = {id(slot) for slot in rendered.slots}
        for slot in slots:
            message = slot.message
            is_unchanged = bool(slot.ids) and message is log.get(slot.ids[0])
            record = plan.get_action(slot.ids[0])[1] if slot.ids and id(slot) in as_planned else None
            if is_unchanged:
                prompt.items.add(message.original, slot.ids, message.id)
                tokens = message_tokens(message.id)
            else:
                prompt.items.add(write_entry(message, like), slot.ids, "")
                # What the plan weighed when it was made is not counted again: not now, not in the next process.
                tokens = record.tokens_after if record else count_message(message)
                if id(slot) not in as_planned:  # a repair, which the whole history would need too
                    prompt.view_tokens += tokens - sum(map(message_tokens, slot.ids))
            is_line = not slot.ids and id(slot) in as_planned
            part = PromptPart.STUBS if is_line else part_of(message, record, rules)
            if part is PromptPart.SUMMARY:
                prompt.summary_place = len(prompt.slot_parts)
            prompt._add_slot(message, tokens, part)
        prompt._split_summary(plan)
        return prompt

    def extend(self, new: Sequence[Message], tokens: Sequence[int], renderer: PromptRenderer, rules: KeepRules) -> None:
        """Put new messages behind the prompt; everything before them stays byte for byte."""
        if not new:
            return
        self.rendered = renderer.extend(self.rendered, new)
        self.items.add_entries(new)
        self.covered += len(new)
        self.view_tokens += sum(tokens)
        self._tools.update((call.id, call.name) for message in new for call in message.tool_calls)
        for message, count in zip(new, tokens, strict=True):
            self._add_slot(message, count, part_of(message, None, rules))

    def take_forms(self, forms: Mapping[str, tuple[Message, int]]) -> bool:
        """Show entries in other forms, each with its tokens; return False if the prompt must be made anew for them."""
        slots = list(self.rendered.slots)
        places = {owner: place for place, owner in enumerate(self.items.owners)}
        if any(i not in places or form.is_empty for i, (form, _) in forms.items()):
            return False
        for message_id, (form, tokens) in forms.items():
            place = places[message_id]
            more = tokens - self.slot_tokens[place]
            slots[place] = Slot(form, (message_id,))
            self.items.originals[place] = form.original
            self.slot_tokens[place] = tokens
            self.tokens_by_source[self.slot_parts[place], self.source_of(form)] += more
            self.tokens_by_part[self.slot_parts[place]] += more
            self.tokens += more
            self.view_tokens += more
        self.rendered = replace(self.rendered, slots=tuple(slots))
        return True

    def copy(self) -> CurrentPrompt:
        """Return a prompt of its own with the same content."""
        twin = CurrentPrompt()
        twin.rendered, twin.items = self.rendered, self.items.copy()
        twin.tokens, twin.covered = self.tokens, self.covered
        twin.tokens_by_part = Counter(self.tokens_by_part)
        twin.tokens_by_source, twin._tools = Counter(self.tokens_by_source), dict(self._tools)
        twin.slot_tokens, twin.slot_parts = list(self.slot_tokens), list(self.slot_parts)
        twin.summary_place, twin.view_tokens = self.summary_place, self.view_tokens
        return twin

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The places of the prompt, each with the log entries it stands for."""
        return self.rendered.slots

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model sees of the log."""
        return self.rendered.messages

    def __len__(self) -> int:
        return len(self.rendered)

    def source_of(self, message: Message) -> str:
        """Return who a message of the prompt is from: its role, or for a result its tool."""
        return source_of(message, self._tools)

    @property
    def contents(self) -> dict[str, dict[str, int]]:
        """The tokens of what people, the agent and tools said, by part and by role or tool."""
        said = {key: tokens for key, tokens in self.tokens_by_source.items() if key[0] in SAID_PARTS}
        return contents_in_order(said)

    def leading_tokens(self, slots: int) -> int:
        """Return the tokens of so many slots at the beginning; counted from the end, which is nearer at most calls."""
        return self.tokens - sum(self.slot_tokens[slots:])

    def _add_slot(self, message: Message, tokens: int, part: PromptPart) -> None:
        self.tokens_by_source[part, self.source_of(message)] += tokens
        self.slot_tokens.append(tokens)
        self.slot_parts.append(part)
        self.tokens_by_part[part] += tokens
        self.tokens += tokens

    def _split_summary(self, plan: CompactionPlan) -> None:
        """Count the ledger apart from the rest of the summary it stands in."""
        if plan.summary:
            ledger = round(self.tokens_by_part[PromptPart.SUMMARY] * ledger_share(plan.summary))
            self.tokens_by_part[PromptPart.LEDGER] += ledger
            self.tokens_by_part[PromptPart.SUMMARY] -= ledger
