"""What Chat Completions answers with 400."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.errors import InvalidHistory
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.core.messages.message import ROLES, Message
from compact.core.messages.turn_order import ends_a_turn
from compact.dialects.dialect import META, NATIVE, fields_of

_KEYS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call"},
)
_PART_TYPES = ("text", "image_url", "input_audio", "file", "refusal")
# With one of these, an assistant's message needs no content.
_IN_PLACE_OF_CONTENT = ("refusal", "audio", "function_call")
# What each kind of call must have, as text.
_CALL_FIELDS: Mapping[str, tuple[str, str]] = {"function": ("name", "arguments"), "custom": ("name", "input")}


def check_chat_completions(items: Sequence[Any], *, known_only: bool = False) -> tuple[Violation, ...]:
    """Return every rule of Chat Completions that a list breaks, by place; a `Message` of ours is written correctly.

    Others that speak this dialect have keys and parts of their own; with `known_only`, those are violations too.
    """
    if not items:
        return (Violation("no_messages", 0, "at least one message is required"),)
    shapes = [found for place, item in enumerate(items) for found in _item_violations(item, place, known_only)]
    return tuple(sorted((*_order_violations(items, shapes), *shapes), key=lambda violation: violation.place))


def check_turns(items: Sequence[Any]) -> Iterator[Violation]:
    """Yield where it is not the user who begins, or one speaks twice: models behind chat templates refuse both.

    Calls and their results stand inside a turn of the assistant.
    """
    before = ""
    for place, item in enumerate(items):
        message = read_entry(item, f"messages[{place}]")
        if message.role == "assistant" and not before:
            yield Violation("first_is_user", place, "the first to speak is the assistant")
        elif message.role == before:
            yield Violation("roles_alternate", place, f"the {before} speaks twice")
        if ends_a_turn(message):
            before = message.role
        elif message.role == "assistant":
            before = "user"  # it goes on until the assistant answers


def _order_violations(items: Sequence[Any], shapes: Sequence[Violation]) -> Iterator[Violation]:
    """Yield what is wrong between messages; nothing if there is one that cannot be read."""
    messages: list[Message] = []
    for place, item in enumerate(items):
        try:
            messages.append(read_entry(item, f"messages[{place}]"))
        except InvalidHistory as error:
            if all(known.place != place for known in shapes):
                yield Violation("not_a_message", place, str(error))
            return
    for violation in check_chat(messages):
        item = items[violation.place]
        needs_none = any(fields_of(item).get(key) for key in _IN_PLACE_OF_CONTENT)
        if violation.rule != "empty_content" or not needs_none:
            yield violation


def _item_violations(item: object, place: int, known_only: bool) -> Iterator[Violation]:
    if isinstance(item, Message):
        return
    if not isinstance(item, Mapping):
        yield Violation("not_a_message", place, f"expected an object, got {type(item).__name__}")
        return
    fields = fields_of(cast(object, item))
    for key in fields:
        if key in (META, NATIVE) or (known_only and key not in _KEYS):
            yield Violation("unknown_key", place, f"a message has no {key!r}")
    if fields.get("role") not in ROLES:
        yield Violation("unknown_role", place, f"there is no role {fields.get('role')!r}")
    yield from _content_violations(fields.get("content"), place, known_only)
    if "tool_calls" in fields:
        yield from _call_violations(fields, place)


def _content_violations(content: object, place: int, known_only: bool) -> Iterator[Violation]:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        yield Violation("wrong_content", place, f"content is a text or a list of parts, not {type(content).__name__}")
        return
    for part in cast(Sequence[object], content):
        fields = fields_of(part)
        kind = fields.get("type")
        if not isinstance(kind, str) or (known_only and kind not in _PART_TYPES):
            yield Violation("wrong_part", place, f"there is no part of the type {kind!r}")
        elif kind == "text" and not isinstance(fields.get("text"), str):
            yield Violation("wrong_part", place, "a part of the type 'text' without a text")


def _call_violations(message: Mapping[str, Any], place: int) -> Iterator[Violation]:
    calls = message["tool_calls"]
    if not isinstance(calls, list | tuple) or not calls or message.get("role") != "assistant":
        yield Violation("incomplete_call", place, "tool_calls is a list of an assistant's calls, at least one")
        return
    for call in cast(Sequence[object], calls):
        fields = fields_of(call)
        kind = str(fields.get("type"))
        needed = _CALL_FIELDS.get(kind, ())
        inner = fields_of(fields.get(kind))
        texts = [fields.get("id"), *(inner.get(key) for key in needed)]
        if not needed or not all(isinstance(text, str) for text in texts):
            yield Violation("incomplete_call", place, "one of the tool_calls lacks its id, type, name or arguments")
