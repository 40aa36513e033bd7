"""Cut tool-call arguments down to chosen parts of the texts in them; what comes out is valid JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from compact.core.facts.text import change_json_leaves
from compact.core.facts.tool_calls import argument_texts, arguments_of
from compact.core.log.messages import ToolCall

Ranges: TypeAlias = Sequence[tuple[int, int]]
# Shorter texts (paths, names, patterns) say what a call is about: they are never cut.
_SHORT_CHARS = 80


def keep_in_arguments(calls: Sequence[ToolCall], ranges: Ranges) -> tuple[ToolCall, ...]:
    """Return the calls with only these ranges of their texts, counted through the texts of all calls, one to a line."""
    place, cut = 0, list[ToolCall]()
    for call in calls:
        cut.append(_cut(call, ranges, place))
        place += sum(len(text) + 1 for text in argument_texts(call))
    return tuple(cut)


def _cut(call: ToolCall, ranges: Ranges, place: int) -> ToolCall:
    """Return a call whose texts begin at a place, cut to the ranges."""
    arguments: object = arguments_of(call) or call.arguments
    kept = change_json_leaves(
        arguments, lambda leaf, start: _kept_text(leaf, ranges, place + start) if isinstance(leaf, str) else leaf
    )
    if kept == arguments:
        return call
    named = {"shortened": kept} if isinstance(kept, str) else kept
    return replace(call, arguments=json.dumps(named, ensure_ascii=False))


def _kept_text(text: str, ranges: Ranges, place: int) -> str:
    if len(text) <= _SHORT_CHARS:
        return text
    pieces: list[str] = []
    end_before = 0
    for start, end in ranges:
        start, end = max(0, start - place), min(len(text), end - place)
        if start >= end:
            continue
        pieces.extend(("…",) if start > end_before else ())
        pieces.append(text[start:end])
        end_before = end
    return "\n".join([*pieces, *(("…",) if end_before < len(text) else ())])
