"""When two items are the same: marks for a provider's cache move, a plain text may be in a list, and we add texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

from compact.core.log.messages import Message, copy_plain
from compact.dialects.dialect import META, fields_of, without, without_cache_marks
from compact.dialects.translation.added import without_added


def is_same(known: Any, item: Any) -> bool:
    """Return True if items are the same but for marks for a provider's cache."""
    return known == item or _without_marks_or_list(known) == _without_marks_or_list(item)


def is_same_but_added(known: Any, item: Any) -> bool:
    """Return True if items are the same but for marks for a provider's cache and for what we have added."""
    return is_same(known, item) or is_same(known, without_added(item))


def have_marks_moved(seen: Sequence[Any], there: Sequence[Any]) -> bool:
    """Return True if marks for a provider's cache are elsewhere in some items than they were."""
    both = ((without_added(one), without_added(other)) for one, other in zip(seen, there, strict=True))
    return any(one != other and (_has_marks(one) or _has_marks(other)) for one, other in both)


def _has_marks(item: Any) -> bool:
    return without_cache_marks(item) != item


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
    """Return what tells an item from others; marks for a provider's cache and what we have added do not."""
    return blake2b(
        look_of([_without_marks_or_list(without_added(item))]).encode(errors="surrogatepass"), digest_size=16
    ).digest()


def look_without_marks(items: Sequence[Any]) -> str:
    return look_of([without_cache_marks(item) for item in items])


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
