"""Cuts tool-call arguments down to chosen parts of the texts in them; what comes out is valid JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from compact.core.facts.tool_calls import arguments_of
from compact.core.log.messages import ToolCall

Ranges: TypeAlias = Sequence[tuple[int, int]]
# Shorter texts (paths, names, patterns) say what a call is about: they are never cut.
_SHORT_CHARS = 80


def keep_in_arguments(calls: Sequence[ToolCall], ranges: Ranges) -> tuple[ToolCall, ...]:
    """The calls with only these ranges of their texts, counted through all texts one after the other."""
    place, cut = 0, list[ToolCall]()
    for call in calls:
        arguments = arguments_of(call)
        kept, place = _kept(arguments, ranges, place) if arguments else _kept(call.arguments, ranges, place)
        if kept in (arguments, call.arguments):
            cut.append(call)
        else:
            named = kept if arguments else {"shortened": kept}
            cut.append(replace(call, arguments=json.dumps(named, ensure_ascii=False)))
    return tuple(cut)


def _kept(value: Any, ranges: Ranges, place: int) -> tuple[Any, int]:
    """A value cut to the ranges, and the place of the next one; the order is that of `argument_texts`."""
    match value:
        case None | bool():
            return value, place
        case str():
            return _kept_text(value, ranges, place), place + len(value) + 1
        case Mapping():
            named: dict[str, Any] = {}
            for name, inner in cast(Mapping[str, Any], value).items():
                named[name], place = _kept(inner, ranges, place)
            return named, place
        case list():
            listed: list[Any] = []
            for inner in cast(list[Any], value):
                kept, place = _kept(inner, ranges, place)
                listed.append(kept)
            return listed, place
        case _:
            return value, place + len(str(value)) + 1


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
