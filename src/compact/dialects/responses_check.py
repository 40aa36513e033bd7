"""What the Responses API answers with 400."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.messages.legality import Violation
from compact.dialects.dialect import as_json_data
from compact.dialects.responses_items import Item, call_id_of, is_call, is_output, is_reference

_ROLES = ("user", "assistant", "system", "developer")
_KEYS: Mapping[str, frozenset[str]] = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "function_call": frozenset(
        {"type", "call_id", "name", "arguments", "id", "status", "namespace", "caller", "async"}
    ),
    "function_call_output": frozenset({"type", "call_id", "output", "id", "status", "name", "namespace", "caller"}),
    "custom_tool_call": frozenset({"type", "call_id", "name", "input", "id", "namespace", "caller", "async", "status"}),
    "custom_tool_call_output": frozenset({"type", "call_id", "output", "id", "caller", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
}
# What Chat Completions has and this dialect has not, and what is ours.
_FOREIGN_KEYS = frozenset({"meta", "native", "tool_calls", "tool_call_id"})
_ASSISTANT_PARTS = frozenset({"output_text", "refusal"})
_INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_TEXT_PARTS = frozenset({"input_text", "output_text"})


def check_responses(items: Sequence[Any]) -> tuple[Violation, ...]:
    """Return every rule of the Responses API that a list breaks."""
    converted: list[object] = [as_json_data(item) for item in items]
    wrong = [found for place, item in enumerate(converted) for found in _item_violations(item, place)]
    known = [cast(Item, item) if isinstance(item, dict) else {} for item in converted]
    return (*wrong, *_pair_violations(known), *_reasoning_violations(known), *_repeated_ids(known))


def _item_violations(item: object, place: int) -> Iterator[Violation]:
    if not isinstance(item, dict):
        yield Violation("not_an_item", place, f"expected an object, got {type(item).__name__}")
        return
    fields = cast(Item, item)
    kind = fields.get("type", "message" if "role" in fields else None)
    if not isinstance(kind, str):
        yield Violation("not_an_item", place, "an item has a type or a role")
        return
    for key in fields.keys() - _KEYS.get(kind, fields.keys() - _FOREIGN_KEYS):
        yield Violation("unknown_key", place, f"a {kind} has no {key!r}")
    match kind:
        case "message":
            yield from _message_violations(fields, place)
        case "function_call" | "custom_tool_call":
            payload = "arguments" if kind == "function_call" else "input"
            if not fields.get("name") or not fields.get("call_id") or not isinstance(fields.get(payload), str):
                yield Violation("incomplete_call", place, f"a {kind} needs a call_id, a name and {payload} as text")
        case "function_call_output" | "custom_tool_call_output":
            yield from _output_violations(fields, place)
        case "reasoning" if not isinstance(fields.get("summary"), list):
            yield Violation("incomplete_reasoning", place, "a reasoning item needs its summary")
        case _:
            pass


def _message_violations(item: Item, place: int) -> Iterator[Violation]:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        yield Violation("unknown_role", place, f"there is no role {role!r}")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield Violation("empty_content", place, f"a {role} message without content")
        return
    allowed = _ASSISTANT_PARTS if role == "assistant" else _INPUT_PARTS
    yield from _part_violations(cast(list[Any], content), allowed, place)


def _output_violations(item: Item, place: int) -> Iterator[Violation]:
    output = item.get("output")
    if isinstance(output, list):
        yield from _part_violations(cast(list[Any], output), _INPUT_PARTS, place)
    elif not isinstance(output, str):
        yield Violation("empty_content", place, "the output of a call is a text or a list of parts")


def _part_violations(parts: Sequence[Any], allowed: frozenset[str], place: int) -> Iterator[Violation]:
    for part in parts:
        fields = cast(Item, part) if isinstance(part, dict) else {}
        kind = fields.get("type")
        if not isinstance(kind, str) or kind not in allowed:
            yield Violation(
                "wrong_part", place, f"a part of the type {kind!r} where {', '.join(sorted(allowed))} may be"
            )
        elif kind in _TEXT_PARTS and not isinstance(fields.get("text"), str):
            yield Violation("wrong_part", place, f"an {kind} part without text")


def _pair_violations(items: Sequence[Item]) -> Iterator[Violation]:
    """Yield what is wrong with calls and results: they are paired by call_id, the call first, one result for each."""
    called: dict[str, tuple[int, str]] = {}
    answered: set[str] = set()
    # What a reference stands for is not in the list: it may be a call, or a result. It is one thing only.
    references: list[int] = []
    for place, item in enumerate(items):
        references += [place] if is_reference(item) else []
        call_id, kind = call_id_of(item), str(item.get("type"))
        if is_call(item) or kind == "program":
            if call_id in called:
                yield Violation("duplicate_call_id", place, f"the call id {call_id!r} was used before")
            called[call_id] = (place, kind)
        elif is_output(item):
            caller = called.get(call_id)
            if call_id in answered:
                yield Violation("duplicate_result", place, f"the call {call_id!r} has two results")
            elif caller is None and references:
                references.pop(0)
            elif caller is None:
                yield Violation("result_without_call", place, f"no call before it has the id {call_id!r}")
            elif caller and kind != f"{caller[1]}_output":
                yield Violation("wrong_result", place, f"a {kind} for a {caller[1]}")
            answered.add(call_id)
    unanswered = [(call_id, place) for call_id, (place, _) in called.items() if call_id not in answered]
    yield from _without_results(unanswered, references)


def _without_results(calls: Sequence[tuple[str, int]], references: list[int]) -> Iterator[Violation]:
    """Yield calls for whose result no reference can stand: one behind the call, and each for one of them."""
    for call_id, place in calls:
        behind = next((other for other in references if other > place), None)
        if behind is None:
            yield Violation("call_without_result", place, f"the call {call_id!r} has no result")
        else:
            references.remove(behind)


def _reasoning_violations(items: Sequence[Item]) -> Iterator[Violation]:
    """Yield reasoning that is not followed by what it led to, which the model made too."""
    for place, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[place + 1] if place + 1 < len(items) else {}
        is_message = after.get("type", "message") == "message"
        is_made = after.get("role") == "assistant" if is_message else not is_output(after)
        if not after or not is_made:
            yield Violation("reasoning_alone", place, "a reasoning item without the item that it belongs to")


def _repeated_ids(items: Sequence[Item]) -> Iterator[Violation]:
    seen: set[str] = set()
    for place, item in enumerate(items):
        own = item.get("id")
        if isinstance(own, str) and item.get("type") != "local_shell_call_output":
            if own in seen:
                yield Violation("duplicate_id", place, f"the id {own!r} was used before")
            seen.add(own)
