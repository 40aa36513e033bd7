"""What is still to be done: to-do lists, tasks that the agent keeps, and lines that leave something open."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from compact.core.facts.ledger import Fact, FactKind
from compact.core.facts.outcomes import cut_line
from compact.core.facts.text import line_around
from compact.core.facts.tool_calls import arguments_of, fits_name
from compact.core.log.messages import Message, ToolCall

_LISTS = ("todos", "plan", "tasks", "items")
_TEXTS = ("content", "step", "title", "subject", "task", "description")
_TASK_IDS = ("taskId", "task_id", "id")
_LIST_TOOLS = ("*todo*", "*plan*", "*task*")
_TASK_TOOLS = ("taskcreate", "task_create", "create_task", "add_task")
_TASK_UPDATES = ("taskupdate", "task_update", "update_task")
_SETTLED = ("completed", "complete", "done", "cancelled", "canceled", "finished", "deleted")
_NEW_TASK_ID = re.compile(r"#(\d{1,6})\b")
_BOX = re.compile(r"^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]*)?(?:\[([ xX])\]|(✅|✔|☑))[ \t]*(\S.*)$", re.MULTILINE)
_LEFT_OPEN = re.compile(
    r"\b(?:TODO|FIXME)\b"
    r"|\b(?:[Ss]till (?:need|have|open|missing|to do)|[Rr]emaining:|[Nn]ext steps?:|[Nn]ot yet (?:done|implemented))"
)
_LONGEST_LINE_CHARS = 400


@dataclass(slots=True)
class _Item:
    """Something to do, and where it was said."""

    text: str
    status: str
    message_id: str


@dataclass(slots=True)
class _Desk:
    """What lies open as the history is read: said in passing, on the newest list, and task by task."""

    said: dict[str, _Item] = field(default_factory=dict[str, _Item])
    listed: list[_Item] = field(default_factory=list[_Item])
    tasks: dict[str, _Item] = field(default_factory=dict[str, _Item])
    new_tasks: dict[str, _Item] = field(default_factory=dict[str, _Item])

    def settle(self, text: str) -> None:
        self.said.pop(_key(text), None)

    def facts(self) -> Iterator[Fact]:
        for item in (*self.said.values(), *self.listed, *self.tasks.values(), *self.new_tasks.values()):
            if item.status not in _SETTLED:
                yield Fact(FactKind.OPEN_ITEM, cut_line(item.text), item.status.replace("_", " "), (item.message_id,))


def find_open_items(messages: Sequence[Message]) -> Iterator[Fact]:
    """What nobody has settled by now."""
    desk = _Desk()
    for message in messages:
        if message.role == "assistant":
            _read_text(desk, message)
            for call in message.tool_calls:
                _read_call(desk, call, message.id)
        elif message.role == "tool":
            _read_answer(desk, message)
    return desk.facts()


def _read_text(desk: _Desk, message: Message) -> None:
    boxed: set[int] = set()
    for box in _BOX.finditer(message.text):
        text = box[3].strip()[:_LONGEST_LINE_CHARS]
        boxed.add(box.start())
        if box[2] or box[1] in ("x", "X"):
            desk.settle(text)
        else:
            desk.said[_key(text)] = _Item(text, "", message.id)
    told = 0
    for match in _LEFT_OPEN.finditer(message.text):
        if match.start() < told:
            continue
        start, told = line_around(message.text, match.start())
        line = message.text[start:told].strip()
        # What ends in a colon only announces; the entries below it say what is to be done.
        if start not in boxed and not line.endswith(":"):
            desk.said.setdefault(_key(line), _Item(line, "", message.id))


def _read_call(desk: _Desk, call: ToolCall, message_id: str) -> None:
    arguments = arguments_of(call)
    if fits_name(call.name, _TASK_TOOLS):
        text = _first_text(arguments)
        if text:
            desk.new_tasks[call.id] = _Item(text, "pending", message_id)
    elif fits_name(call.name, _TASK_UPDATES):
        item = desk.tasks.get(next((str(arguments[name]) for name in _TASK_IDS if name in arguments), ""))
        if item and isinstance(arguments.get("status"), str):
            item.status = arguments["status"].lower()
    else:
        entries = next((found for name in _LISTS if (found := _entries(arguments.get(name)))), ())
        items = list(_items(entries, message_id, is_todo=fits_name(call.name, _LIST_TOOLS)))
        desk.listed = items or desk.listed
        for item in items:
            if item.status in _SETTLED:
                desk.settle(item.text)


def _read_answer(desk: _Desk, message: Message) -> None:
    """The number by which a new task is known from now on."""
    item = desk.new_tasks.pop(message.tool_call_id or "", None)
    if item:
        number = _NEW_TASK_ID.search(message.text, 0, _LONGEST_LINE_CHARS)
        desk.tasks[number[1] if number else item.text] = item


def _entries(value: object) -> list[object]:
    """A list; some models write it as a text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return cast(list[object], value) if isinstance(value, list) else []


def _items(entries: Iterable[object], message_id: str, *, is_todo: bool) -> Iterator[_Item]:
    """The entries of a to-do list; other lists of things with a title (what somebody ordered) have no status."""
    for entry in entries:
        if isinstance(entry, Mapping):
            named = cast(Mapping[str, object], entry)
            text, status = _first_text(named), named.get("status")
            if text and (is_todo or isinstance(status, str)):
                yield _Item(text, str(status or "").lower(), message_id)


def _first_text(named: Mapping[str, object]) -> str:
    for name in _TEXTS:
        text = named.get(name)
        if isinstance(text, str) and text.strip():
            return text.strip().split("\n", 1)[0]
    return ""


def _key(text: str) -> str:
    return " ".join(text.lower().strip(" \t-*.`").split())
