"""Conversion that several adapters need: messages as plain data and back, tool schemas, instructions as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import META, has_own_marks, without


def without_meta(items: Sequence[Any]) -> list[Any]:
    """Return a caller's items without our `meta`, which every provider rejects; items that have none as they are."""
    if not has_own_marks(items):
        return list(items)
    return [without(item, META) if is_mapping(item) and META in item else item for item in items]


def same_objects(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return True if two lists hold the same objects in the same order."""
    return len(one) == len(other) and all(map(is_, one, other))


def function_schema(name: str, description: str | None, parameters: Any) -> dict[str, Any]:
    """Return the schema of a tool in the Chat Completions form, in which tools are counted."""
    return {
        "type": "function",
        "function": {"name": name, "description": description or "", "parameters": parameters or {}},
    }


def instruction_text(instructions: Any) -> str:
    """Return instructions as plain text: a text, a block with a text, an object with parts, or a list of these."""
    if instructions is None or isinstance(instructions, str):
        return instructions or ""
    if is_list(instructions):
        return "\n".join(filter(None, map(instruction_text, instructions)))
    if is_mapping(instructions):
        return str(instructions.get("text") or "")
    parts = getattr(instructions, "parts", None)
    return instruction_text(parts) if parts else str(getattr(instructions, "text", None) or "")


def call_positions(blocks: Sequence[Any], calls: Sequence[Any]) -> dict[str, list[int]]:
    """Return where the calls of an assistant's message stand among its blocks; nothing if they are at its end."""
    positions = [place for place, block in enumerate(blocks) if any(block is call for call in calls)]
    at_the_end = list(range(len(blocks) - len(calls), len(blocks)))
    return {} if positions == at_the_end else {"calls_at": positions}


def insert_calls(blocks: Sequence[Any], calls: Sequence[Any], native: Mapping[str, Any]) -> list[Any]:
    """Return blocks with calls where `call_positions` found them; at the end if they do not fit there any more."""
    positions: Sequence[int] = native.get("calls_at", ())
    joined = list(blocks)
    if len(positions) != len(calls) or max(positions, default=0) >= len(blocks) + len(calls):
        return joined + list(calls)
    for position, call in zip(positions, calls, strict=True):
        joined.insert(position, call)
    return joined
