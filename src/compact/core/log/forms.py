"""The forms of an entry: callers change what they have sent before, and some of these changes say nothing new.

Agents clear old tool results of their own, cut them short, strip old thinking, and put a clock into their first
message. Such an item is the entry that it was, in another form. Whatever says something new is another entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, cast

from compact.core.messages.entries import read_own_entry
from compact.core.messages.message import Message, ToolCall

# Chosen: a text that an agent puts in place of a result is a sentence or two, and a small part of what it stands for.
_MAX_STUB_CHARS = 400
# Chosen: nobody cuts what is shorter than a line; a text that has most of it in common says something else.
_MIN_CUT_CHARS = 60
_MAX_STUB_SHARE = 0.5
# What stubs say, however short the result was that they stand for.
_STUB = re.compile(
    r"\b(?:cleared|removed|truncated|omitted|elided|trimmed|pruned|dropped|expired|hidden|compacted|no longer|"
    r"placeholder|redacted|shortened|collapsed|offloaded)\b",
    re.IGNORECASE,
)
# What stands where a text was cut, if that does not say it in words.
_CUT = re.compile(r"…|\.\.\.|[\[<(]")
_WORD = re.compile(r"\w")
# How a call is named that its dialect has no id for: other calls have the same name.
_NUMBERED = re.compile(r"#\d+$")
# Chosen: how much longer or shorter a date may be than another.
_MAX_CLOCK_CHARS = 64
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TIME = re.compile(
    r"\b(?=[\dJFMASONDTW])(?:"
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?"  # ISO 8601
    r"|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[aApP]\.?[mM]\b\.?)?"
    r"|1[5-9]\d{8}(?:\.\d+)?\b|1[5-9]\d{11}\b"  # seconds or milliseconds since 1970
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\b(?=,?\s(?:{_MONTH}))"
    rf"|(?:{_MONTH})[a-z]*\.?\s(?:\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}})?|\d{{4}}\b)"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b"
    r")"
)


@lru_cache(maxsize=64)
def without_times(text: str) -> str:
    """Return a text with a mark in place of each date and time in it."""
    return _TIME.sub("\0", text)


def identity_of(item: object) -> tuple[object, ...] | None:
    """Return what a result or a message with tool calls is known by, whatever it says; None for all others."""
    if isinstance(item, Message):
        calls, result = tuple(call.id for call in item.tool_calls), item.tool_call_id
        role = item.role
    elif isinstance(item, Mapping):
        fields = cast(Mapping[str, Any], item)
        role, result, own = fields.get("role"), fields.get("tool_call_id"), fields.get("tool_calls")
        listed = cast(list[Any], own) if isinstance(own, list) else []
        calls = tuple(str(cast(Mapping[str, Any], call).get("id", "")) for call in listed if isinstance(call, Mapping))
    else:
        return None
    if role == "tool" and result:
        return role, result
    return (role, calls) if role == "assistant" and any(calls) else None


def fingerprint(entry: object) -> str:
    """Return a text that is the same for equal items."""
    if isinstance(entry, Message):
        return repr((entry.role, entry.content, entry.tool_calls, entry.tool_call_id, entry.name, entry.meta))
    try:
        return json.dumps(entry, sort_keys=True, default=repr)
    except TypeError:  # keys of several types, which cannot be sorted
        return repr(entry)


def what_is_said(item: object) -> str:
    """Return a text that is the same for items that say the same."""
    return fingerprint(plain(item))


def plain(item: object) -> object:
    """Return what an item is known by wherever it stands: all but its `meta` and marks of a cache."""
    if isinstance(item, Message):
        return replace(item, meta={})
    said = unmarked(item)
    if isinstance(said, dict):
        cast(dict[str, Any], said).pop("meta", None)
    return cast(object, said)


def unmarked(item: object) -> object:
    """Return an item without marks of a cache; a text that is alone in a list of parts is the text itself."""
    order = _order_without_marks(item)
    said = _without_marks(item)
    if isinstance(said, dict):
        fields = cast(dict[str, Any], said)
        if order is not None:
            native = {**fields["native"], "order": order}
            fields["native"] = {key: value for key, value in native.items() if value}
        if isinstance(native := fields.get("native"), dict):
            # A message is the same as an object of an SDK and as a dict.
            beside = {key: value for key, value in cast(dict[str, Any], native).items() if key != "as"}
            fields["native"] = beside
            if not any(beside.values()):
                del fields["native"]
        if isinstance(parts := fields.get("content"), list) and len(only := cast(list[Any], parts)) == 1:
            fields["content"] = only[0]["text"] if _is_text(only[0]) else only
    return cast(object, said)


def _order_without_marks(item: object) -> str | None:
    """Return the order of what a dialect has put together in an item, without its marks of a cache; None without any.

    It is "" if it is the usual one: first what is beside (b) the content, then its parts (p), then calls (c).
    """
    fields = cast(dict[str, Any], item) if isinstance(item, dict) else {}
    native = cast(dict[str, Any], fields.get("native")) if isinstance(fields.get("native"), dict) else {}
    beside = native.get("beside")
    if not isinstance(beside, list) or not any(map(_is_cache_point, cast(list[Any], beside))):
        return None
    is_kept = iter([not _is_cache_point(block) for block in cast(list[Any], beside)])
    order = "".join(kind for kind in str(native.get("order", "")) if kind != "b" or next(is_kept, True))
    return "" if list(order) == sorted(order, key="bpc".find) else order


def _without_marks(item: object) -> object:
    """Return data without marks of a provider's cache, wherever they are, and without parts that are nothing else."""
    if isinstance(item, dict):
        fields = cast(dict[str, Any], item)
        return {key: _without_marks(value) for key, value in fields.items() if key != "cache_control"}
    if isinstance(item, list | tuple):
        parts = (_without_marks(part) for part in cast(Sequence[Any], item) if not _is_cache_point(part))
        return [part for part in parts if part != {}]
    return item


def _is_cache_point(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    fields = cast(dict[str, Any], part)
    return "cachePoint" in fields or _is_cache_point(fields.get("block"))


def _is_text(part: object) -> bool:
    fields = cast(dict[str, Any], part) if isinstance(part, dict) else {}
    return set(fields) == {"type", "text"} and fields["type"] == "text"


def is_reduced(before: Message, after: Message, *, may_be_other: bool = False) -> bool:
    """Return True if a caller has only taken away from an entry: it is cleared, cut short, or has fewer parts.

    With `may_be_other` a short text may be another result, and has to say that something was taken away.
    """
    if (before.role, before.name, before.meta) != (after.role, after.name, after.meta):
        return False
    if identity_of(before) != identity_of(after):
        return False
    if identity_of(before) is None:
        return before.text == after.text and _parts(after) <= _parts(before)
    ids = [before.tool_call_id or "", *(call.id for call in before.tool_calls)]
    has_ids = not (may_be_other or any(map(_NUMBERED.search, ids)))
    return _is_less(before.text, after.text, may_be_stub=before.role == "tool", has_ids=has_ids) and all(
        old.name == new.name and _is_less(old.arguments, new.arguments, may_be_stub=True, has_ids=has_ids)
        for old, new in zip(before.tool_calls, after.tool_calls, strict=True)
    )


def _parts(message: Message) -> int:
    return len(message.content) if isinstance(message.content, tuple) else message.content is not None


def _is_less(before: str, after: str, *, may_be_stub: bool, has_ids: bool) -> bool:
    """Return True if a text is a part of another, or if that is allowed, a stub for it.

    Where no id tells what it belongs to, it has to say something of the other, or that something was taken away.
    """
    if after in before:
        return has_ids or bool(after) or not before
    if not may_be_stub:
        return False
    # Agents that cut a text say so at its end, or where the middle is missing.
    start = _common_start(before, after)
    end = _common_start(before[start:][::-1], after[start:][::-1])
    kept, put_in = start + end, after[start : len(after) - end]
    added = len(put_in)
    if added > _MAX_STUB_CHARS:
        return False
    if not has_ids and _WORD.search(put_in) and not _CUT.search(put_in):
        return bool(_STUB.search(after))
    is_cut, is_short = kept >= added, len(after) <= _MAX_STUB_SHARE * len(before)
    is_long = len(before) >= _MIN_CUT_CHARS
    return (is_long and is_cut and len(after) < len(before)) or (has_ids and is_short) or bool(_STUB.search(after))


def differs_in_time(before: Message, after: Message) -> bool:
    """Return True if two messages are the same but for dates and times."""
    if (before.role, before.name, before.meta) != (after.role, after.name, after.meta):
        return False
    if identity_of(before) is not None or identity_of(after) is not None:
        return False
    if abs(len(before.text) - len(after.text)) > _MAX_CLOCK_CHARS or type(before.content) is not type(after.content):
        return False
    return without_times(before.text) == without_times(after.text)


def _common_start(first: str, second: str) -> int:
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class EntryForm:
    """How a caller's form of an entry differs from the entry, as JSON: what stands between its start and its end.

    `tokens` are those of the form.
    """

    start: int
    end: int
    text: str
    tokens: int

    @classmethod
    def between(cls, entry: Message, form: Message, tokens: int) -> EntryForm:
        """Return how a form differs from its entry."""
        before, after = _dump(entry), _dump(form)
        start = _common_start(before, after)
        end = _common_start(before[start:][::-1], after[start:][::-1])
        return cls(start, end, after[start : len(after) - end], tokens)

    def applied(self, entry: Message) -> Message:
        """Return an entry in this form."""
        before = _dump(entry)
        data = json.loads(before[: self.start] + self.text + before[len(before) - self.end :])
        if isinstance(entry.original, Message):
            calls = tuple(ToolCall(**call) for call in data.pop("tool_calls"))
            form = Message(**data, tool_calls=calls, id=entry.id)
            return replace(form, original=replace(form, id=entry.original.id), line=entry.line)
        return replace(read_own_entry(data, entry.id, message_id=entry.id), line=entry.line)

    def to_list(self) -> list[Any]:
        """Return plain data; `EntryForm(*data)` gives back an equal form."""
        return [self.start, self.end, self.text, self.tokens]


def _dump(message: Message) -> str:
    original = message.original
    if isinstance(original, Mapping):
        return json.dumps(original, separators=(",", ":"), default=str)
    fields = ("role", "content", "tool_call_id", "name", "meta")
    data = {name: getattr(message, name) for name in fields} | {"tool_calls": list(map(asdict, message.tool_calls))}
    return json.dumps(data, separators=(",", ":"), default=str)
