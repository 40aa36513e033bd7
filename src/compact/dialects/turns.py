"""An assistant's turn, taken apart into one entry and put together again: its parts, its calls, its opaque blocks.

Opaque are thinking, reasoning and the work of built-in tools. They are kept in `native`, beside the content: no stub
replaces them, because providers want them back as they were. They are counted all the same: see `tokens/framing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from compact.core.messages.legality import EMPTY_CONTENT as EMPTY_CONTENT
from compact.dialects.dialect import NATIVE, Entry

# Under these names `native` has the opaque blocks, and the order of everything; stores and token counters read them.
OPAQUE = "beside"
ORDER = "order"
# And the text around calls, where a dialect tells a model of them in words.
AROUND_CALLS = "around_calls"
# Where a conversation must begin with the user, this stands there when what is left of one does not.
OPENING = "[the beginning of the conversation is not shown]"
# And this at the end, where it is the user's turn to speak and all that was said last has been summarised.
CLOSING = "[what came after this is in the summary]"
# The key under which arguments that are no JSON object are sent: providers want an object.
_NOT_AN_OBJECT = "shortened"

PieceKind: TypeAlias = Literal["p", "c", "b"]
PART: PieceKind = "p"
CALL: PieceKind = "c"
OPAQUE_BLOCK: PieceKind = "b"


@dataclass(frozen=True, slots=True)
class TurnPiece:
    """One piece of a turn: a part of its content, a call, or an opaque block."""

    kind: PieceKind
    value: Any


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of an entry: its id, the tool's name, and its arguments as JSON text."""

    id: str
    name: str
    arguments: str


def assistant_entry(pieces: Sequence[TurnPiece], native: Mapping[str, Any]) -> Entry:
    """Return the entry that pieces make; `native` is whatever else must be kept."""
    parts, calls, opaque = ([piece.value for piece in pieces if piece.kind == kind] for kind in "pcb")
    order = "".join(piece.kind for piece in pieces)
    own = dict(native)
    if opaque:
        own[OPAQUE] = opaque
    if order != OPAQUE_BLOCK * len(opaque) + PART * len(parts) + CALL * len(calls):
        own[ORDER] = order
    # Content that is not there would be taken for a message that says nothing.
    entry: Entry = {"role": "assistant", "content": parts or (None if calls else "")}
    if calls:
        entry["tool_calls"] = calls
    return {**entry, NATIVE: own} if own else entry


def arrange(order: str, parts: Sequence[Any], calls: Sequence[Any], opaque: Sequence[Any]) -> list[Any]:
    """Return parts (`p`), calls (`c`) and opaque blocks (`b`) in their order.

    Content that was replaced stands where the first part stood, or before the calls if there was none.
    """
    if not order:
        return [*opaque, *parts, *calls]
    if PART not in order:
        order = order.replace(CALL, PART + CALL, 1) if CALL in order else order + PART
    is_replaced = order.count(PART) != len(parts)
    left: dict[str, Iterator[Sequence[Any]]] = {
        PART: iter([parts] if is_replaced else [[part] for part in parts]),
        CALL: iter([[call] for call in calls]),
        OPAQUE_BLOCK: iter([[block] for block in opaque]),
    }
    arranged: list[Any] = []
    for kind in order:
        arranged += next(left[kind], ())
    return [*arranged, *(one for kind in (PART, CALL, OPAQUE_BLOCK) for rest in left[kind] for one in rest)]


def write_call(call: FunctionCall) -> dict[str, Any]:
    """Return a call as Chat Completions writes it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def read_calls(entry: Entry) -> Iterator[FunctionCall]:
    """Yield the calls of an entry."""
    for call in entry.get("tool_calls") or ():
        inner = call.get("function") or call["custom"]
        yield FunctionCall(call["id"], inner["name"], inner.get("arguments", inner.get("input", "")))


def write_json(value: object) -> str:
    """Return a value as JSON text that gives it back."""
    return json.dumps(value, ensure_ascii=False)


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None if it is none."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def read_object(text: str) -> dict[str, Any]:
    """Return the object that arguments are; what is none, because it was shortened, is put into one."""
    found = parse_object(text)
    if found is not None:
        return found
    try:
        return {_NOT_AN_OBJECT: json.loads(text)}
    except (ValueError, RecursionError):
        return {_NOT_AN_OBJECT: text}
