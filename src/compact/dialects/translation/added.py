"""What we have added behind the log, in items that come back: known by its label, and nobody's words.

A dialect may put it into one item with what the user said; items are compared without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import filterfalse, pairwise
from typing import Any, cast

from compact.core.plan.turn import is_added_text
from compact.dialects.dialect import Entry, as_json_data, fields_of, is_of

# Where the dialects have the parts of an item.
PARTS = ("content", "parts")


def without_added(item: Any) -> Any:
    """Return an item of the user's without what we have added to it; a content of Gemini's SDK as a dict then."""
    fields = fields_of(as_json_data(item) if is_of(item, "google") else item)
    key = next((key for key in PARTS if isinstance(fields.get(key), list)), None)
    if fields.get("role") != "user" or key is None:
        return item
    end = _first_added(fields[key])
    return item if end is None else {**fields, key: fields[key][:end]}


def has_added(item: Any) -> bool:
    return without_added(item) is not item


def apart_from_added(entry: Entry) -> Iterator[Entry]:
    """Yield what a user said, and what we have added behind it: a dialect puts both into one item.

    What was added is a text with a label, and perhaps an attachment behind it.
    """
    parts = parts_of(entry) if entry.get("role") == "user" else []
    first = _first_added(parts)
    if first is None:
        yield entry
        return
    yield {**entry, "content": _plain_content(parts[:first])}
    yield from added_entries(parts)


def added_entries(parts: Sequence[Any]) -> Iterator[Entry]:
    """Yield an entry for each label in some parts, with what follows it."""
    labels = [n for n, part in enumerate(parts) if _is_label(part)]
    for start, end in pairwise([*labels, len(parts)]):
        yield {"role": "user", "content": _plain_content(list(parts[start:end]))}


def _first_added(parts: Sequence[Any]) -> int | None:
    """Return the place of the first part that we have added to a message; None if there is none.

    Behind it are others of ours and attachments, but no text of the user's.
    """
    first = next((n for n, part in enumerate(parts) if _is_label(part)), 0)
    is_ours = all(_is_label(part) or "text" not in fields_of(part) for part in parts[first:])
    return first if first and is_ours else None


def _is_label(part: object) -> bool:
    return is_added_text(str(fields_of(part).get("text", "")))


def is_added_entry(entry: Entry) -> bool:
    """Return True for an entry that we have added behind the log."""
    parts = parts_of(entry)
    return entry.get("role") == "user" and bool(parts) and _is_label(parts[0])


def without_added_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return entries without those that we have added behind the log."""
    return tuple(filterfalse(is_added_entry, entries))


def parts_of(entry: Entry) -> list[Any]:
    content = entry.get("content")
    return cast(list[Any], content) if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _plain_content(parts: list[Any]) -> object:
    """Return parts of a message; one plain text as that."""
    only = fields_of(parts[0])
    return only["text"] if len(parts) == 1 and set(only) == {"type", "text"} else parts
