"""Exports of OpenAI's platform: stored completions, stored responses, and the items and samples of evals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.chat_messages import add_chat_message
from compact.transcripts.forms.response_items import ITEM_TYPES, add_item
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, list_of, mapping_of, text_field

NAME = "OpenAI export"


def recognises(head: Sequence[object]) -> bool:
    """Return True for objects of the platform, in a list of theirs or one on each line."""
    values = [one for value in head for one in _objects(value)]
    return bool(values) and all(map(_is_known, values))


def _objects(value: object) -> Sequence[Any]:
    """Return the objects of a list of the API, or the one that stands alone."""
    fields = mapping_of(value)
    if fields.get("object") == "list":
        data = list_of(fields.get("data"))
        return [{"object": "response", "input": data}] if data and all(_is_item(one) for one in data) else data
    return [value]


def _is_item(value: object) -> bool:
    return is_mapping(value) and value.get("type") in ITEM_TYPES


def _is_known(value: object) -> bool:
    fields = mapping_of(value)
    if fields.get("object") in ("chat.completion", "response"):
        return True
    return "item" in fields and ("sample" in fields or len(fields) == 1)


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return a session for each completion, response or sample."""
    return [_session(mapping_of(one), place) for place, value in items for one in _objects(value)]


def _session(value: Fields, place: str) -> AgentLog:
    item, sample = mapping_of(value.get("item")), mapping_of(value.get("sample"))
    own = {**item, **sample, **value}
    log = LogBuilder(NAME, session_id=text_field(value, "id"), model=text_field(own, "model"))
    log.instructions = text_field(own, "instructions")
    asked = own.get("messages", own.get("input"))
    for one in asked if is_list(asked) else [{"role": "user", "content": asked}] if asked else ():
        _add(log, mapping_of(one), place)
    for choice in list_of(own.get("choices"))[:1]:
        add_chat_message(log, mapping_of(mapping_of(choice).get("message")), place=place)
    for one in list_of(own.get("output", own.get("outputs"))):
        _add(log, mapping_of(one), place)
    return log.build()


def _add(log: LogBuilder, one: Fields, place: str) -> None:
    if one.get("type") in ITEM_TYPES:
        add_item(log, one, place=place)
    else:
        add_chat_message(log, one, place=place)
