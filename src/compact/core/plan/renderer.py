"""Log and plan in, prompt out: the same log and plan give the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from compact.core.messages.message import Message, Slot
from compact.core.messages.structure import HistoryStructure
from compact.core.messages.turn_order import LEFT_OUT, TurnOrder
from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    SummarizationRecord,
)
from compact.core.plan.stubs import render_cleared, render_externalized
from compact.core.short_repr import short_repr
from compact.core.summary.summary import StructuredSummary, render_summary_text

COMPACTION_RENDER_FORMAT_VERSION = "v1.0"


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt in slots, each saying which log entries it stands for.

    `manager.prompt(session_id)` returns the newest, and `PromptRenderer` makes one of a log and a plan.

    Attributes:
        slots: The prompt; each slot has a `message` and the `ids` of the entries it stands for.
        hidden: The entries that were dropped: nothing stands for them.
        format_version: The version of the form that stubs and summaries have.
        actions: How many entries each action was applied to.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000))
        >>> messages = manager.preflight("chat-1", tool_run(60, words=200))
        >>> prompt = manager.prompt("chat-1")
        >>> len(prompt) == len(prompt.messages) < 121
        True
        >>> sum(prompt.actions.values())  # every entry of the log is accounted for
        121
    """

    slots: tuple[Slot, ...]
    hidden: tuple[str, ...] = ()
    format_version: str = COMPACTION_RENDER_FORMAT_VERSION
    actions: Counter[CompactionAction] = field(default_factory=Counter[CompactionAction])
    __repr__ = short_repr

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model sees."""
        return tuple(slot.message for slot in self.slots)

    def __len__(self) -> int:
        return len(self.slots)


class PromptRenderer:
    """Turns a history and a plan into slots: pinned, then the one summary, then the rest in the order of the log.

    The same history and plan give the same bytes.

    Example:
        >>> from compact import CompactionPlan, PromptRenderer
        >>> from compact.testing import as_log, dialogue
        >>> log = as_log(dialogue(2))
        >>> prompt = PromptRenderer().render(log, CompactionPlan("chat-1"))
        >>> prompt.messages == log  # an empty plan shows all of it
        True
    """

    format_version = COMPACTION_RENDER_FORMAT_VERSION

    def render(
        self, messages: Sequence[Message], plan: CompactionPlan, outside: Iterable[int] | None = None
    ) -> RenderedPrompt:
        """Apply the plan to every message; nothing is left unaccounted for.

        Args:
            messages: The log, each entry with an id of its own.
            plan: What is done to them.
            outside: The places of those that the summary does not stand for, if they are known: of a long history few.

        Returns:
            The prompt.

        Example:
            >>> from compact import SpanReference
            >>> from compact.core.plan.plan import DropRecord
            >>> drop = DropRecord(span=SpanReference(("m1", "m2")), strategy="mine", reason="an example")
            >>> prompt = PromptRenderer().render(log, CompactionPlan("chat-1").adding(drop))
            >>> prompt.hidden
            ('m1', 'm2')
        """
        lead: list[Slot] = []
        rest: list[Slot] = []
        hidden: list[str] = []
        actions: Counter[CompactionAction] = Counter()
        leading = frozenset(plan.pinned)
        if outside is None:
            inside = plan.summarized_ids()
            outside = [place for place, message in enumerate(messages) if message.id not in inside]
        for number, place in enumerate(outside):
            message = messages[place]
            record = plan.get_action(message.id)[1]
            is_summarized = isinstance(record, SummarizationRecord)
            if is_summarized or number < place:
                actions.setdefault(CompactionAction.SUMMARIZE, 0)  # what came first is named first; counted below
            if is_summarized:
                continue
            actions[record.action if record else CompactionAction.INCLUDE] += 1
            if isinstance(record, DropRecord):
                hidden.append(message.id)
            else:
                slot = Slot(_shown(message, record), (message.id,))
                (lead if message.id in leading else rest).append(slot)
        if summarized := len(messages) - actions.total():
            actions[CompactionAction.SUMMARIZE] = summarized
        summary = () if plan.summary is None else (Slot(summary_message(plan.summary), plan.summary.span.message_ids),)
        slots = (*lead, *summary, *rest)
        if summary or hidden or plan.lines:
            slots = in_turns(slots, messages, plan)
        return RenderedPrompt(slots, tuple(hidden), self.format_version, actions)

    def extend(self, prompt: RenderedPrompt, messages: Iterable[Message]) -> RenderedPrompt:
        """Return the same prompt with new messages behind it: what was there stays byte for byte.

        Args:
            prompt: The prompt so far.
            messages: The new entries of the log.

        Example:
            >>> from compact import Message
            >>> longer = PromptRenderer().extend(prompt, [Message("user", "And now?", id="m5")])
            >>> len(longer), longer.slots[:4] == prompt.slots
            (5, True)
        """
        added = tuple(Slot(message, (message.id,)) for message in messages)
        actions = prompt.actions + Counter({CompactionAction.INCLUDE: len(added)})
        return replace(prompt, slots=prompt.slots + added, actions=actions)


def _shown(message: Message, record: ClearRecord | ExternalizationRecord | None) -> Message:
    """Return what of a message is in the prompt, or the message itself."""
    match record:
        case None:
            return message
        case ClearRecord():
            return render_cleared(message, record)
        case ExternalizationRecord():
            return render_externalized(message, record)


def in_turns(slots: tuple[Slot, ...], messages: Sequence[Message], plan: CompactionPlan) -> tuple[Slot, ...]:
    """Return the slots with a line wherever the plan has left out a whole turn between two of the same speaker."""
    lines = plan.lines
    if lines is None:
        lines = _lines_in(slots, TurnOrder(messages), plan)
    filled: list[Slot] = []
    for slot in slots:
        if slot.message.id in lines:
            filled.append(Slot(Message(lines[slot.message.id], LEFT_OUT), ()))
        filled.append(slot)
    return tuple(filled)


def with_lines(
    plan: CompactionPlan, messages: Sequence[Message], structure: HistoryStructure | None = None
) -> CompactionPlan:
    """Return a plan that knows its lines between turns: it is rendered without what it leaves out from then on.

    `structure` is that of the messages, if it is known.
    """
    structure = structure or HistoryStructure(messages)
    prompt = PromptRenderer().render(messages, replace(plan, lines={}), plan.places_outside(structure))
    has_gaps = plan.summary is not None or bool(prompt.hidden)
    lines = _lines_in(prompt.slots, structure.turn_order, plan) if has_gaps else {}
    return replace(plan, lines=lines)


def _lines_in(slots: Iterable[Slot], turn_order: TurnOrder, plan: CompactionPlan) -> dict[str, str]:
    """Return before which messages a prompt needs lines, and whose turn it was."""
    prompt = [slot.message for slot in slots]
    found = turn_order.lines_for(prompt, only_first=not plan.shows_gaps)
    return {prompt[place].id: line.role for place, line in found}


def summary_message(record: SummarizationRecord) -> Message:
    """Return the one message that stands for the summarised span; recognised by its id, never by its text."""
    summary = record.summary or StructuredSummary(narrative="(not written yet)")
    text = render_summary_text(summary, version=record.version, messages=len(record.span))
    return Message(role="assistant", content=text, id=summary_id(record.version))


def summary_id(version: int) -> str:
    """Return the id of the summary message of a version."""
    return f"compact-summary-v{version}"
