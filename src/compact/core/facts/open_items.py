"""What an agent has noted to do: to-do lists, tasks by number, ticked boxes, and lines that leave something open.

The one reader of them: the ledger takes what is open from it, the check of a summary what is settled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from compact.core.facts.ledger import Fact, FactKind
from compact.core.facts.text import PUNCTUATION, cut_line, ends_of, first_line, line_around, normalized
from compact.core.facts.tool_calls import arguments_of, fits_name
from compact.core.messages.message import Message, ToolCall

# How the tools of agents that are in use name these things.
_LIST_ARGUMENTS = ("todos", "plan", "tasks", "items")
_TEXT_FIELDS = ("content", "step", "title", "subject", "task", "description")
_TASK_ID_FIELDS = ("taskId", "task_id", "id")
_LIST_TOOLS = ("*todo*", "*plan*", "*task*")
_CREATE_TOOLS = ("taskcreate", "task_create", "create_task", "add_task")
_UPDATE_TOOLS = ("taskupdate", "task_update", "update_task")
_SETTLED_STATUSES = ("completed", "complete", "done", "cancelled", "canceled", "finished", "deleted")
_NEW_TASK_ID = re.compile(r"#(\d{1,6})\b")
_BOX = re.compile(r"^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]*)?(?:\[([ xX])\]|(✅|✔|☑))[ \t]*(\S.*)$", re.MULTILINE)
# Without one of these a text has no box.
_BOX_SIGNS = "[✅✔☑"
_LEFT_OPEN = re.compile(
    r"\b(?:TODO|FIXME)\b"
    r"|\b(?:[Ss]till (?:need|have|open|missing|to do)|[Rr]emaining:|[Nn]ext steps?:|[Nn]ot yet (?:done|implemented))"
)
# Without one of these nothing is left open; looked for first, because that is quick.
_OPEN_WORDS = ("TODO", "FIXME", "till ", "emaining:", "ext step", "ot yet ")
# Chosen: nobody notes a longer thing to do; what is longer is a text of its own.
_MAX_ITEM_CHARS = 400
# What may stand around the same item in one place and not in another.
_LIST_MARKS = PUNCTUATION + "\t-*`"


@dataclass(frozen=True, slots=True)
class TodoItem:
    """Something to do, its newest status, and the message in which it was noted."""

    text: str
    status: str
    message_id: str

    @property
    def is_settled(self) -> bool:
        """True if it is done, or given up."""
        return self.status in _SETTLED_STATUSES


@dataclass(frozen=True, slots=True)
class _Box:
    """A line with a box: something to do, or ticked."""

    text: str
    is_ticked: bool


@dataclass(frozen=True, slots=True)
class _OpenLine:
    """A line that leaves something open."""

    text: str


@dataclass(frozen=True, slots=True)
class _NewTask:
    """A call that creates a task; the result says under which number."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class _TaskNumber:
    """What the result of a call may say about a task that it created."""

    call_id: str
    number: str


@dataclass(frozen=True, slots=True)
class _TaskStatus:
    """A call that changes the status of a task."""

    number: str
    status: str


@dataclass(frozen=True, slots=True)
class _List:
    """A call that writes a to-do list: the text of each item, and its status."""

    items: tuple[tuple[str, str], ...]


_Note: TypeAlias = _Box | _OpenLine | _NewTask | _TaskNumber | _TaskStatus | _List


@dataclass(slots=True)
class TodoList:
    """The state of everything noted in a history: in the agent's text, on its newest list, and as single tasks."""

    _noted: dict[str, TodoItem] = field(default_factory=dict[str, TodoItem])
    _listed: list[TodoItem] = field(default_factory=list[TodoItem])
    _tasks: dict[str, TodoItem] = field(default_factory=dict[str, TodoItem])
    _unnumbered: dict[str, TodoItem] = field(default_factory=dict[str, TodoItem])
    _newest: dict[str, TodoItem] = field(default_factory=dict[str, TodoItem])

    @classmethod
    def of(cls, messages: Iterable[Message]) -> TodoList:
        """Return the state at the end of a history."""
        todos = cls()
        for message in messages:
            todos.add(message)
        return todos

    def add(self, message: Message) -> None:
        """Bring the state up to what the next message says."""
        for note in message.read_once(_read_notes):
            self._take(note, message.id)

    def copy(self) -> TodoList:
        """Return one in the same state that goes on by itself."""
        return TodoList(
            dict(self._noted), list(self._listed), dict(self._tasks), dict(self._unnumbered), dict(self._newest)
        )

    def open_items(self) -> Iterator[TodoItem]:
        """Yield what is not settled by now; of lists, only the newest one counts."""
        for item in (*self._noted.values(), *self._listed, *self._tasks.values(), *self._unnumbered.values()):
            if not item.is_settled:
                yield item

    def items(self) -> Sequence[TodoItem]:
        """Return every item of any list, task or box, each with the newest that was said of it."""
        return tuple(self._newest.values())

    def _note(self, item: TodoItem) -> TodoItem:
        self._newest[_key(item.text)] = item
        return item

    def _take(self, note: _Note, message_id: str) -> None:
        """Bring the state up to what a message says."""
        match note:
            case _Box(text, is_ticked):
                item = self._note(TodoItem(text, "done" if is_ticked else "", message_id))
                if is_ticked:
                    self._noted.pop(_key(text), None)
                else:
                    self._noted[_key(text)] = item
            case _OpenLine(line):
                self._noted.setdefault(_key(line), TodoItem(line, "", message_id))
            case _NewTask(call_id, text):
                self._unnumbered[call_id] = self._note(TodoItem(text, "pending", message_id))
            case _TaskNumber(call_id, number):
                created = self._unnumbered.pop(call_id, None)
                if created:
                    self._tasks[number or created.text] = created
            case _TaskStatus(number, status):
                known = self._tasks.get(number)
                if known:
                    self._tasks[number] = self._note(replace(known, status=status))
            case _List(items):
                self._read_list([TodoItem(text, status, message_id) for text, status in items])

    def _read_list(self, items: list[TodoItem]) -> None:
        self._listed = items
        for item in items:
            self._note(item)
            if item.is_settled:
                self._noted.pop(_key(item.text), None)


def _read_notes(message: Message) -> tuple[_Note, ...]:
    """Return what a message notes, in the order in which it counts."""
    if message.role == "tool":
        number = _NEW_TASK_ID.search(message.text, 0, _MAX_ITEM_CHARS)
        return (_TaskNumber(message.tool_call_id or "", number[1] if number else ""),)
    if message.role != "assistant":
        return ()
    text, calls = message.text, map(_read_call, message.tool_calls)
    return (*_read_boxes(text), *_read_open_lines(text), *(note for note in calls if note))


def _boxes_in(text: str) -> Iterable[re.Match[str]]:
    if not any(sign in text for sign in _BOX_SIGNS):
        return ()
    return (box for first, last in ends_of(text) for box in _BOX.finditer(text, first, last))


def _read_boxes(text: str) -> Iterator[_Box]:
    for box in _boxes_in(text):
        yield _Box(box[3].strip()[:_MAX_ITEM_CHARS], bool(box[2]) or box[1] in ("x", "X"))


def _read_open_lines(text: str) -> Iterator[_OpenLine]:
    if not any(words in text for words in _OPEN_WORDS):
        return
    boxes = {box.start() for box in _boxes_in(text)}
    line_end = 0
    for first, last in ends_of(text):
        for match in _LEFT_OPEN.finditer(text, first, last):
            if match.start() < line_end:
                continue
            start, line_end = line_around(text, match.start())
            line = text[start:line_end].strip()
            # What ends in a colon only announces; the entries below it say what is to be done.
            if start not in boxes and not line.endswith(":"):
                yield _OpenLine(line)


def _read_call(call: ToolCall) -> _Note | None:
    arguments = arguments_of(call)
    if fits_name(call.name, _CREATE_TOOLS):
        text = _item_text(arguments)
        return _NewTask(call.id, text) if text else None
    if fits_name(call.name, _UPDATE_TOOLS):
        number = next((str(arguments[name]) for name in _TASK_ID_FIELDS if name in arguments), "")
        status = arguments.get("status")
        return _TaskStatus(number, status.lower()) if isinstance(status, str) else None
    items = _list_items(call.name, arguments)
    return _List(items) if items else None


def open_item_facts(todos: TodoList) -> Iterator[Fact]:
    """Yield what nobody has settled by now, as facts."""
    for item in todos.open_items():
        yield Fact(FactKind.OPEN_ITEM, cut_line(item.text), item.status.replace("_", " "), (item.message_id,))


def _list_items(tool_name: str, arguments: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the entries of the to-do list that a call writes, each with its status.

    Other lists have things with a title, too: they count only if a tool for to-do lists or the name of the argument
    says so and, unless both do, if each entry has a status.
    """
    is_todo_tool = fits_name(tool_name, _LIST_TOOLS)
    for name in dict.fromkeys((*_LIST_ARGUMENTS, *(arguments if is_todo_tool else ()))):
        needs_status = not is_todo_tool or name not in _LIST_ARGUMENTS
        items = tuple(
            (text, str(entry.get("status") or "").lower())
            for entry in _entries(arguments.get(name))
            if (text := _item_text(entry)) and (isinstance(entry.get("status"), str) or not needs_status)
        )
        if items:
            return items
    return ()


def _entries(value: object) -> list[Mapping[str, object]]:
    """Return the objects in a list; some models write the list as a text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    entries = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Mapping[str, object], entry) for entry in entries if isinstance(entry, Mapping)]


def _item_text(entry: Mapping[str, object]) -> str:
    for name in _TEXT_FIELDS:
        text = entry.get(name)
        if isinstance(text, str) and text.strip():
            return first_line(text)
    return ""


def _key(text: str) -> str:
    return normalized(text, trim=_LIST_MARKS)
