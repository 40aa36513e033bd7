"""What Ollama answers with 400, and what its templates would take for something else: a result that answers no call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.core.plurals import quantity

ROLES = ("system", "user", "assistant", "tool")
_KEYS = frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"})


def check_ollama(items: Sequence[Any], *, known_only: bool = False) -> tuple[Violation, ...]:
    """Return every rule that a list breaks; with `known_only`, keys that Ollama does not read are violations, too."""
    if not items:
        return (Violation("no_messages", 0, "at least one message is required"),)
    shapes = [found for place, item in enumerate(items) for found in _message_violations(item, place, known_only)]
    return tuple(shapes) or tuple(_order_violations(items))


def _message_violations(item: object, place: int, known_only: bool) -> Iterator[Violation]:
    if not is_mapping(item):
        yield Violation("not_a_message", place, f"expected an object, got {type(item).__name__}")
        return
    for key in item:
        if key in ("meta", "native") or (known_only and key not in _KEYS):
            yield Violation("unknown_key", place, f"a message has no {key!r}")
    if item.get("role") not in ROLES:
        yield Violation("unknown_role", place, f"there is no role {item.get('role')!r}")
    if not isinstance(item.get("content", ""), str | None):
        yield Violation("wrong_content", place, f"content is a text, not {type(item['content']).__name__}")
    images: object = item.get("images") or []
    if not is_list(images) or not all(isinstance(image, str) for image in images):
        yield Violation("wrong_images", place, "images is a list of base64 texts")
    yield from _call_violations(item, place)


def _call_violations(item: Mapping[str, Any], place: int) -> Iterator[Violation]:
    calls: object = item.get("tool_calls") or []
    if not is_list(calls) or (calls and item.get("role") != "assistant"):
        yield Violation("incomplete_call", place, "tool_calls is a list of an assistant's calls")
        return
    for call in calls:
        function = call.get("function") if is_mapping(call) else None
        if not is_mapping(function) or not function.get("name"):
            yield Violation("incomplete_call", place, "a call without the name of its function")
        elif not is_mapping(function.get("arguments", {})):
            yield Violation("incomplete_call", place, "the arguments of a call are an object, not a text")


def _order_violations(items: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    """Yield calls without results, and results without calls."""
    is_open = 0
    for place, item in enumerate(items):
        if item["role"] == "tool":
            if not is_open:
                yield Violation("result_without_call", place, "a result comes behind the message that called the tool")
            is_open = max(0, is_open - 1)
            continue
        if is_open:
            yield Violation("call_without_result", place, f"{quantity(is_open, 'call')} before this has no result")
        is_open = len(item.get("tool_calls") or ())
    if is_open:
        yield Violation("call_without_result", len(items) - 1, f"{quantity(is_open, 'call')} at the end has no result")
