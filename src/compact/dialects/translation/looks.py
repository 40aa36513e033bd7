"""When two items are the same: marks for a provider's cache move, a plain text may be in a list, and we add texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

from compact.core.messages.legality import EMPTY_CONTENT
from compact.core.messages.message import Message, copy_plain
from compact.dialects.dialect import META, as_json_data, fields_of, is_of, message_entry, without, without_cache_marks
from compact.dialects.translation.added import PARTS, without_added

_TEXT_FIELDS = frozenset({"type", "text"})


def is_same(known: Any, item: Any) -> bool:
    """Return True if items are the same but for marks for a provider's cache."""
    return known == item or _without_marks_or_list(known) == _without_marks_or_list(item)


def is_same_but_added(known: Any, item: Any) -> bool:
    """Return True if items are the same but for marks for a provider's cache and for what we have added."""
    return is_same(known, item) or is_same(without_added(known), without_added(item))


def _without_marks_or_list(item: Any) -> Any:
    """Return an item without marks for a cache; a plain text that was put into a list to be marked is plain again."""
    plain = without_cache_marks(item)
    content = fields_of(plain).get("content")
    if isinstance(content, list) and len(parts := cast(list[Any], content)) == 1:
        part = fields_of(parts[0])
        if part.get("type") == "text" and len(part) == 2 and "text" in part:
            return {**plain, "content": part["text"]}
    return plain


def digest_of(item: Any) -> bytes:
    """Return what tells an item from others.

    Marks for a provider's cache and what we have added do not, nor what stands for an item that says nothing.
    """
    look = look_of([_as_filled(_without_marks_or_list(without_added(_as_dict(item))))])
    return blake2b(look.encode(errors="surrogatepass"), digest_size=16).digest()


def may_look_otherwise(item: Any) -> bool:
    """Return True for an item of Chat Completions that may come back with other looks: its marks move, or it is filled.

    An empty text is an answer there, and is not filled.
    """
    if without_cache_marks(item) is not item:
        return True
    content = fields_of(item).get("content")
    return (not content or content == EMPTY_CONTENT) and content != "" and says_nothing(item)


def says_nothing(item: Any) -> bool:
    """Return True for an item that says nothing, or that it says nothing."""
    return _as_filled(item) is not item


def _as_filled(item: Any) -> Any:
    """Return an item that says nothing as it is after we have said so in it, in whatever dialect."""
    fields = fields_of(item)
    key = next((key for key in PARTS if key in fields), None)
    if key is None or fields.get("tool_calls") or not _is_silence(fields[key]):
        return item
    return {**fields, key: EMPTY_CONTENT}


def _is_silence(content: object) -> bool:
    if isinstance(content, str):
        return not content.strip() or content == EMPTY_CONTENT
    if not isinstance(content, list):
        return content is None
    parts = [fields_of(part) for part in cast(list[Any], content)]
    return all(set(part) <= _TEXT_FIELDS and "text" in part and _is_silence(part["text"]) for part in parts)


def look_without_marks(items: Sequence[Any]) -> str:
    return look_of([without_cache_marks(_as_dict(item)) for item in items])


def _as_dict(item: Any) -> Any:
    """Return a message of ours, or a content of Gemini's SDK, as a dict: a chat of that SDK makes one of the other."""
    if isinstance(item, Message):
        return message_entry(item)
    return as_json_data(item) if is_of(item, "google") else item


def look_of(items: Sequence[Any]) -> str:
    """Return a text that is the same for items that look the same."""
    return json.dumps(items, sort_keys=True, default=repr)


def seen_items(items: Sequence[Any], *, is_settled: bool) -> tuple[Any, ...]:
    """Return how items look: copies of all that somebody may change, which objects are even in a settled list."""
    return tuple(item if is_settled and is_settled_item(item) else copy_plain(item) for item in items)


def is_settled_item(item: object) -> bool:
    return isinstance(item, dict | Message)


def item_has_meta(item: object) -> bool:
    return isinstance(item, dict) and META in item


def without_meta(item: Any) -> Any:
    return without(item, META) if item_has_meta(item) else item
