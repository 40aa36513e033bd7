"""What an assistant's turn is made of, in its order: parts of its content, calls, and what stays beside them.

Thinking, reasoning and the work of built-in tools stay beside the content, in `native`: no stub replaces them, because
providers want them back as they were. They are counted all the same: see `tokens/framing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.log.legality import EMPTY_CONTENT as EMPTY_CONTENT
from compact.dialects.dialect import NATIVE, Entry

BESIDE = "beside"
ORDER = "order"
# Where a conversation must begin with the user, this stands there when what is left of one does not.
OPENING = "[the beginning of the conversation is not shown]"
# And this at the end, where it is the user's turn to speak and all that was said last has been summarised.
CLOSING = "[what came after this is in the summary]"
_SUMMARY_START = "<COMPACT-SUMMARY v"
# The model may have been shown no more than this: whatever comes back is valid JSON, and an object.
_CUT_ARGUMENTS = "shortened"


def as_plain(value: Any) -> Any:
    """The same value with dicts in place of the objects of an SDK; itself if there are none."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        plain = {key: as_plain(inner) for key, inner in fields.items()}
        return fields if all(plain[key] is inner for key, inner in fields.items()) else plain
    if isinstance(value, list | tuple):
        listed = cast(Sequence[Any], value)
        inner = [as_plain(one) for one in listed]
        is_same = isinstance(value, list) and all(a is b for a, b in zip(inner, listed, strict=True))
        return value if is_same else inner
    if hasattr(value, "model_dump"):
        # What SDKs do with their own objects when they send them.
        left_out = getattr(value, "__api_exclude__", None)
        return value.model_dump(mode="json", exclude_unset=True, exclude=left_out)
    return value


def lay_out(order: str, parts: Sequence[Any], calls: Sequence[Any], beside: Sequence[Any]) -> list[Any]:
    """Parts (`p`), calls (`c`) and what is beside them (`b`) in their order.

    Content that was replaced stands where the first part stood, or before the calls if there was none.
    """
    if not order:
        return [*beside, *parts, *calls]
    if "p" not in order:
        order = order.replace("c", "pc", 1) if "c" in order else f"{order}p"
    replaced = order.count("p") != len(parts)
    left = {"p": iter([parts] if replaced else [[part] for part in parts])}
    left |= {"c": iter([call] for call in calls), "b": iter([one] for one in beside)}
    laid = [one for kind in order for one in next(left[kind], ())]
    return [*laid, *(one for kind in "pcb" for rest in left[kind] for one in rest)]


def assistant_entry(pieces: Sequence[tuple[str, Any]], native: Mapping[str, Any]) -> Entry:
    """An entry made of pieces: parts, calls and what stays beside them; `native` is whatever else must be kept."""
    parts, calls, beside = ([piece for kind, piece in pieces if kind == wanted] for wanted in "pcb")
    order = "".join(kind for kind, _ in pieces)
    own = dict(native)
    if beside:
        own[BESIDE] = beside
    if order != "b" * len(beside) + "p" * len(parts) + "c" * len(calls):
        own[ORDER] = order
    # Content that is not there would be taken for a message that says nothing.
    entry: Entry = {"role": "assistant", "content": parts or (None if calls else "")}
    if calls:
        entry["tool_calls"] = calls
    return {**entry, NATIVE: own} if own else entry


def call_of(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call as Chat Completions writes it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls_of(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Id, name and arguments of each call of an entry."""
    for call in entry.get("tool_calls") or ():
        said = call.get("function") or call["custom"]
        yield call["id"], said["name"], said.get("arguments", said.get("input", ""))


def write_json(value: object) -> str:
    """A value as JSON text that gives it back."""
    return json.dumps(value, ensure_ascii=False)


def read_object(text: str) -> dict[str, Any]:
    """The object that arguments are; what is none becomes one."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = text
    return cast(dict[str, Any], value) if isinstance(value, dict) else {_CUT_ARGUMENTS: value}


def native_of(entry: Entry) -> Mapping[str, Any]:
    """What only the dialect of an entry understands."""
    return entry.get(NATIVE) or {}


def is_summary(entry: Entry) -> bool:
    """True for the one entry that stands for what was summarised: it is ours, so that it has nothing native."""
    content = entry.get("content")
    is_plain = entry.get("role") == "assistant" and NATIVE not in entry and not entry.get("tool_calls")
    return is_plain and isinstance(content, str) and content.startswith(_SUMMARY_START)
