"""The socket for wire dialects and frameworks: how a caller's items become entries of the log, and prompts items again.

An entry is a Chat Completions message, a plain dict: that is the form the log has, whatever an agent speaks. What only
its own dialect understands (signatures, ids, block types) travels in the entry under `native`, so that an item can be
made from its entries alone, in this process or in another. `meta` is what a caller marks an item with (protection,
labels); it is never sent to a provider.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import contains, is_
from typing import Any, Protocol, TypeAlias, cast

from compact.core.errors import InvalidHistory
from compact.core.messages.entries import read_own_entry, write_entry
from compact.core.messages.legality import EMPTY_CONTENT, Violation
from compact.core.messages.message import Message

Entry: TypeAlias = dict[str, Any]
NATIVE = "native"
META = "meta"
CACHE_MARK = "cache_control"
# A mark is on a message, on a part of it, or on a part of the result that a part is.
_MARKED_DEPTH = 2
# All that a text without anything else has, in any dialect.
_PLAIN_TEXT = frozenset({"type", "text", CACHE_MARK})
# Under this name the meta of an entry says that it is the summary of a session.
_SUMMARY = "compact_summary"
# What holds a result of Bedrock Converse.
_RESULT = "toolResult"
# Calls and results as they stand in parts, by the type of a part or by its only key.
_CALLS_AS_PARTS = frozenset(
    {"tool_use", "tool_result", "tool-call", "tool-result", "toolUse", "toolResult", "functionCall", "functionResponse"}
)
_ONE_KIND = "pass one kind of messages in a session, or name another dialect: preflight(..., dialect=...)"
# Under this name an entry says as what kind of object it came.
_AS, _MESSAGE = "as", "message"
_BYTES = "$bytes"  # the key under which bytes stand in JSON


@dataclass(frozen=True, slots=True)
class Block:
    """Items of a list and the entries they come to: one item may hold several entries, one entry several items."""

    items: tuple[Any, ...]
    entries: tuple[Entry, ...]


class Dialect(Protocol):
    """How one wire form, or the messages of one framework, are read and written."""

    @property
    def name(self) -> str:
        """``chat``, ``responses``, ``anthropic``, …"""
        ...

    def recognises(self, item: object) -> bool | None:
        """Return True for an item that only this dialect has, None for one that others have too, False for others'."""
        ...

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Cut items into the smallest blocks that make sense; the first is number `place` of the caller's list.

        Every item is in one block, in order. Raises InvalidHistory, naming the place. What is a Chat Completions
        message as it stands is its own entry. No item is changed.
        """
        ...

    def write(self, entries: Sequence[Entry]) -> Iterable[Block]:
        """Write entries that are not what was read any more: changed, parted from their block, or made by us.

        Each entry is in one block, in order. `is_summary(entry)` tells which one is the summary of the session.
        """
        ...

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Make a whole prompt legal where blocks meet: merged, moved to another role, in as few new items as can be."""
        ...

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything in a whole prompt that the provider would reject."""
        ...


def mark_summary(entry: Entry) -> Entry:
    """Return the entry marked as the summary of its session, for a dialect to write.

    Which entry that is follows from the plan; the mark is taken off again before anybody else sees the entry.
    """
    return {**entry, META: {_SUMMARY: True}}


def is_summary(entry: Entry) -> bool:
    """Return True for the summary of the session; a message that only looks like one is not marked."""
    return fields_of(entry.get(META)).get(_SUMMARY) is True


def native_of(entry: Entry) -> Mapping[str, Any]:
    """Return what only the dialect of an entry understands."""
    return entry.get(NATIVE) or {}


def fields_of(value: object) -> Mapping[str, Any]:
    """Return the fields of a mapping; none for anything else."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def without(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a copy of an item without some of its keys."""
    return {key: value for key, value in item.items() if key not in keys}


def has_own_marks(items: Sequence[Any]) -> bool:
    """Return True if an item of a list has our `meta`."""
    try:
        return any(map(contains, items, repeat(META)))  # most lists have only dicts, and this is quick
    except TypeError:
        return any(isinstance(item, Mapping) and META in item for item in items)


def is_cache_point(part: object) -> bool:
    """Return True for the mark of Bedrock Converse, which is a block of its own."""
    return isinstance(part, dict) and len(cast(dict[str, Any], part)) == 1 and "cachePoint" in part


def with_words(block: Block, empty: Mapping[str, Any]) -> Block:
    """Return a block without texts that say nothing, which providers reject.

    `empty` is what an item without any parts has instead of them.
    """
    items = tuple(_item_with_words(item, empty) for item in block.items)
    return block if all(map(is_, items, block.items)) else Block(items, block.entries)


def _item_with_words(item: Any, empty: Mapping[str, Any]) -> Any:
    [(key, placeholder)] = empty.items()
    content: object = fields_of(item).get(key)
    if content == [] or (isinstance(content, str) and not content.strip()):
        return {**item, key: placeholder}
    parts = cast(list[Any], content) if isinstance(content, list) else []
    said = parts_with_words(parts)
    return item if are_same(said, parts) else {**item, key: said}


def parts_with_words(parts: Sequence[Any]) -> list[Any]:
    """Return parts without texts that say nothing, in results too; if there is nothing else, the first says so."""
    said = [_result_with_words(part) for part in parts if not _says_nothing(part)]
    if len(said) == len(parts) or not all(map(is_cache_point, said)):
        return said
    first = next(part for part in parts if _says_nothing(part))
    return [{**first, "text": EMPTY_CONTENT}, *said]


def _result_with_words(part: Any) -> Any:
    fields = fields_of(part)
    result = fields if fields.get("type") == "tool_result" else fields_of(fields.get(_RESULT))
    parts = cast(list[Any], result["content"]) if isinstance(result.get("content"), list) else []
    said = parts_with_words(parts)
    if are_same(said, parts):
        return part
    filled = {**result, "content": said}
    return filled if result is fields else {**fields, _RESULT: filled}


def are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return True if two sequences have the very same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _says_nothing(part: object) -> bool:
    """Return True for an empty text; one with a signature, or with anything else, is not for us to drop."""
    fields = fields_of(part)
    is_plain = all(key in _PLAIN_TEXT or value is None for key, value in fields.items())
    return is_plain and isinstance(text := fields.get("text"), str) and not text.strip()


def without_cache_marks(item: Any, depth: int = _MARKED_DEPTH) -> Any:
    """Return an item without `cache_control` or `cachePoint`, which callers move to another message with every call.

    It says what a provider may keep in its cache, and nothing about the conversation.
    """
    if not isinstance(item, dict):
        return item
    fields = cast(dict[str, Any], item)
    content = fields.get("content")
    if depth and isinstance(content, list):
        parts = cast(list[Any], content)
        plain = [without_cache_marks(part, depth - 1) for part in parts if not is_cache_point(part)]
        content = parts if len(parts) == len(plain) and all(map(is_, parts, plain)) else plain
    if content is fields.get("content") and CACHE_MARK not in fields:
        return fields
    return {key: content if key == "content" else value for key, value in fields.items() if key != CACHE_MARK}


def foreign(item: object, place: int, dialect: str, *, hint: str = "") -> InvalidHistory:
    """Return the error for an item that a dialect does not know."""
    keys = ", ".join(map(str, fields_of(item)))
    shape = f"keys {keys}" if keys else type(item).__name__
    return InvalidHistory(
        f"not a message in the dialect {dialect!r}: {shape}",
        place=f"messages[{place}]",
        hint=f"{_ONE_KIND}; {hint}" if hint else _ONE_KIND,
    )


def message_entry(message: Message) -> Entry:
    """Return a message of ours as an entry, which is written as such a message again."""
    entry = cast(Entry, write_entry(replace(message, original=None), None))
    own = {"id": message.id} if message.id else {}
    marks = {META: dict(message.meta)} if message.meta else {}
    return {**entry, **own, **marks, NATIVE: {_AS: _MESSAGE}}


def entry_message(entry: Entry) -> Message | None:
    """Return the message of ours that an entry was made of, or is one's that has changed since; None for all others."""
    if native_of(entry).get(_AS) != _MESSAGE:
        return None
    return replace(read_own_entry(without(entry, NATIVE), "entry"), original=None)


def check_calls(content: object, place: int, dialect: str) -> None:
    """Raise InvalidHistory for a part that is a call, or a result, as other dialects write it: nobody would see it."""
    for part in cast(Sequence[object], content) if isinstance(content, list | tuple) else ():
        fields = fields_of(part)
        kind = fields.get("type")
        found = next((key for key in _CALLS_AS_PARTS if key in fields), "") if kind is None else kind
        if found in _CALLS_AS_PARTS:
            raise InvalidHistory(
                f"a part {found!r} is not in the dialect {dialect!r}", place=f"messages[{place}]", hint=_ONE_KIND
            )


def as_json_data(value: Any) -> Any:
    """Return a value with dicts in place of the objects of an SDK; the value itself if there are none in it."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        converted = {key: as_json_data(inner) for key, inner in fields.items()}
        return fields if all(converted[key] is inner for key, inner in fields.items()) else converted
    if isinstance(value, list | tuple):
        listed = cast(Sequence[Any], value)
        inner = [as_json_data(one) for one in listed]
        is_same = isinstance(listed, list) and all(a is b for a, b in zip(inner, listed, strict=True))
        return listed if is_same else inner
    if hasattr(value, "model_dump"):
        if not is_of(value, "openai", "anthropic"):
            return value.model_dump(mode="json", exclude_none=True)
        # What these SDKs do with their own objects when they send them.
        left_out = getattr(value, "__api_exclude__", None)
        return value.model_dump(mode="json", exclude_unset=True, exclude=left_out)
    return value


def is_of(value: object, *packages: str) -> bool:
    """Return True for an object of a class that one of these packages has, or that is made from one of theirs."""
    return any(base.__module__.partition(".")[0] in packages for base in type(value).__mro__)


def to_json(value: Any) -> Any:
    """Return data in which bytes are written as base64, so that a store can keep it."""
    if isinstance(value, bytes | bytearray):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in cast(Mapping[str, Any], value).items()}
    return [to_json(item) for item in cast(Sequence[Any], value)] if isinstance(value, list | tuple) else value


def from_json(value: Any) -> Any:
    """Return the data that `to_json` was given."""
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        if set(fields) == {_BYTES}:
            return base64.b64decode(fields[_BYTES])
        return {key: from_json(item) for key, item in fields.items()}
    return [from_json(item) for item in cast(Sequence[Any], value)] if isinstance(value, list | tuple) else value
