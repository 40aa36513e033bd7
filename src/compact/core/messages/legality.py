"""What a provider accepts, and the nearest legal prompt when a history is not.

Each wire dialect has one pair of functions, `check` and `repair`; these are the ones of Chat Completions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compact.core.messages.groups import group_messages
from compact.core.messages.message import Message, Slot

MISSING_RESULT = "[no result was recorded for this call]"
EMPTY_CONTENT = "[empty message]"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a prompt breaks, and where."""

    rule: str
    place: int
    detail: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that made a history legal."""

    rule: str
    message_id: str
    detail: str


def check_chat(messages: Sequence[Message]) -> tuple[Violation, ...]:
    """Return everything Chat Completions would answer with 400."""
    return tuple(_violations(messages))


def _violations(messages: Sequence[Message]) -> Iterator[Violation]:
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                yield Violation("result_without_call", place, f"no open call has the id {message.tool_call_id!r}")
            open_calls.pop(message.tool_call_id or "", None)
        else:
            yield from _unanswered(open_calls)
            open_calls = {call.id: place for call in message.tool_calls}
            if len(open_calls) != len(message.tool_calls):
                yield Violation("duplicate_call_id", place, "two calls of one message share an id")
        if message.is_empty:
            yield Violation("empty_content", place, f"a {message.role} message without content")
    yield from _unanswered(open_calls)


def _unanswered(open_calls: dict[str, int]) -> Iterator[Violation]:
    for call_id, place in open_calls.items():
        yield Violation("call_without_result", place, f"the call {call_id!r} has no result")


def repair_chat(slots: Sequence[Slot]) -> tuple[tuple[Slot, ...], tuple[Repair, ...]]:
    """Bring every result behind its call, put a placeholder where one is missing, turn orphans into plain text.

    Nothing is lost: what cannot stay what it was stays as text.
    """
    if not check_chat([slot.message for slot in slots]):
        return tuple(slots), ()
    repairs: list[Repair] = []
    out: list[Slot] = []
    for group in group_messages([slot.message for slot in slots]):
        head, results = slots[group.indices[0]], [slots[i] for i in group.indices[1:]]
        if head.message.role == "tool":
            out.append(_orphan_as_text(head, repairs))
            continue
        if group.indices[-1] - group.indices[0] != len(results):
            repairs.append(Repair("moved_result", head.message.id, "results were moved behind their call"))
        caller, results = _with_unique_calls(head, results, repairs)
        out.extend(_with_content(slot, repairs) for slot in (caller, *results))
        out.extend(_placeholders(caller.message, results, repairs))
    return tuple(out), tuple(repairs)


def _orphan_as_text(slot: Slot, repairs: list[Repair]) -> Slot:
    message = slot.message
    repairs.append(
        Repair("result_without_call", message.id, f"the call {message.tool_call_id!r} is not in the history")
    )
    text = f"[result of a tool call that is not in the history]\n{message.text or EMPTY_CONTENT}"
    return replace(slot, message=replace(message, role="assistant", content=text, tool_call_id=None, name=None))


def _with_content(slot: Slot, repairs: list[Repair]) -> Slot:
    if not slot.message.is_empty:
        return slot
    repairs.append(Repair("empty_content", slot.message.id, f"a {slot.message.role} message had no content"))
    return replace(slot, message=replace(slot.message, content=EMPTY_CONTENT))


def _with_unique_calls(caller: Slot, results: list[Slot], repairs: list[Repair]) -> tuple[Slot, list[Slot]]:
    """Give a call that repeats another one's id, and the result that answers it, an id of their own."""
    calls = caller.message.tool_calls
    if len({call.id for call in calls}) == len(calls):
        return caller, results
    repairs.append(Repair("duplicate_call_id", caller.message.id, "calls that share an id were numbered"))
    renamed = _numbered([call.id for call in calls])
    answered = _numbered([slot.message.tool_call_id or "" for slot in results])
    own_calls = tuple(replace(call, id=new) for call, new in zip(calls, renamed, strict=True))
    own_results = [
        replace(slot, message=replace(slot.message, tool_call_id=new))
        for slot, new in zip(results, answered, strict=True)
    ]
    return replace(caller, message=replace(caller.message, tool_calls=own_calls)), own_results


def _numbered(ids: Sequence[str]) -> list[str]:
    """Return the ids, the second and later uses of each made unique."""
    taken = set(ids)
    seen: set[str] = set()
    unique: list[str] = []
    for name in ids:
        candidate, number = name, 2
        while candidate in seen or (candidate != name and candidate in taken):
            candidate, number = f"{name}-{number}", number + 1
        seen.add(candidate)
        unique.append(candidate)
    return unique


def _placeholders(caller: Message, results: Sequence[Slot], repairs: list[Repair]) -> Iterator[Slot]:
    answered = {slot.message.tool_call_id for slot in results}
    for call in caller.tool_calls:
        if call.id not in answered:
            repairs.append(Repair("call_without_result", caller.id, f"the call {call.id!r} has no result"))
            yield Slot(Message(role="tool", content=MISSING_RESULT, tool_call_id=call.id), ())
