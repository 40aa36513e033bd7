"""One entry of a conversation, whatever dialect it came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from compact.core.short_repr import short_repr

Part: TypeAlias = Mapping[str, Any]
Content: TypeAlias = str | tuple[Part, ...] | None

T = TypeVar("T")

ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made.

    Attributes:
        id: The id that its result names.
        name: The tool.
        arguments: The JSON text exactly as the model wrote it.

    Example:
        >>> from compact import Message, ToolCall
        >>> message = Message("assistant", None, (ToolCall("c1", "read_file", '{"path": "a.py"}'),))
        >>> message.tool_calls[0].name
        'read_file'
    """

    id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A role, its content, the tool calls it makes or the call it answers: one entry of the log, in any dialect.

    `manager.history(session_id)` returns them; strategies and summarisers read them.

    Args:
        role: `system`, `developer`, `user`, `assistant` or `tool`.
        content: A text, or parts as Chat Completions has them; None if there is none.
        tool_calls: The calls that an assistant makes.
        tool_call_id: The call that a tool message answers.
        name: The name of whoever speaks, if there is one.
        id: Names the message in its log.
        meta: Our own marks (protection, labels); never sent to a provider.
        original: A copy of what the caller handed in: unknown fields survive in it.
        line: The conversation that the entry belongs to: 0, and more where a session id was used again for another one.

    Example:
        >>> from compact import Message
        >>> message = Message("user", "Never touch the migrations.", meta={"protected": True})
        >>> message.text
        'Never touch the migrations.'
    """

    role: str
    content: Content = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    original: object = field(default=None, compare=False, repr=False)
    line: int = field(default=0, compare=False, repr=False)
    # What was read in it: of no other message, so that it goes when the message does.
    _readings: dict[object, object] | None = field(default=None, init=False, compare=False, repr=False)
    __repr__ = short_repr

    def __post_init__(self) -> None:
        # Callers pass lists; a frozen entry holds tuples and its own copy of `meta`.
        if self.content is not None and not isinstance(self.content, str):
            object.__setattr__(self, "content", tuple(self.content))
        if type(self.tool_calls) is not tuple:
            object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        object.__setattr__(self, "meta", dict(self.meta))

    def read_once(self, read: Callable[[Message], T]) -> T:
        """Return what a pure function reads in this message; it is called once in the life of the message.

        What it returns is kept as long as the message is, and should be small. Where a message would be read in two
        ways, these are two functions.

        Args:
            read: The function of a message.

        Example:
            >>> def words(message):
            ...     return len(message.text.split())
            >>> message.read_once(words), message.read_once(words)
            (4, 4)
        """
        readings = self._readings
        if readings is None:
            readings = dict[object, object]()
            object.__setattr__(self, "_readings", readings)
        if read not in readings:
            readings[read] = read(self)
        return cast(T, readings[read])

    @property
    def text(self) -> str:
        """All the text in the content, parts joined by newlines."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part_texts(self.content or ()))

    @property
    def is_instruction(self) -> bool:
        """True for what a system or developer message says: agents send the same ones in all conversations."""
        return self.role in ("system", "developer")

    @property
    def is_empty(self) -> bool:
        """True if it says nothing at all; an empty string (a command without output) is an answer."""
        return not self.tool_calls and (self.content is None or self.content == ())


def part_texts(parts: Iterable[Part]) -> Iterable[str]:
    """Yield the text of each content part that has one; nested parts (a tool result's) are walked too."""
    for part in parts:
        inner = part.get("text", part.get("content"))
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, list | tuple):
            nested = cast(Iterable[object], inner)
            yield from part_texts(cast(Part, entry) for entry in nested if isinstance(entry, Mapping))


def text_chars(message: Message) -> int:
    """Return how long a message is: its text, and the arguments of its calls."""
    content = message.content  # nearly always a text; a compaction asks this of every message
    chars = len(content) if isinstance(content, str) else len(message.text)
    return chars + sum([len(call.arguments) for call in message.tool_calls]) if message.tool_calls else chars


def content_bytes(message: Message) -> int:
    """Return how many bytes of text and data a message brings: its content, images included, and its tool calls."""
    return _bytes_of(message.content) + sum(_bytes_of(call.arguments) for call in message.tool_calls)


def _bytes_of(value: object) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping):
        return sum(map(_bytes_of, cast(Mapping[Any, object], value).values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes_of, cast(Iterable[object], value)))
    return len(value) if isinstance(value, bytes) else 0


def with_id(message: Message, message_id: str, line: int) -> Message:
    """Return the message under another id and in a line: what `replace` does, for thousands in a third of the time."""
    return Message(
        message.role,
        message.content,
        message.tool_calls,
        message.tool_call_id,
        message.name,
        message_id,
        message.meta,
        message.original,
        line,
    )


class SettledItems(list[T]):
    """A caller's items that nobody changes any more: they are kept without a copy, and known again at a glance."""


def list_start(items: Sequence[T], length: int) -> list[T]:
    """Return the first items of a sequence as a list to compare with another; a list that is no longer as it is."""
    start = items if length == len(items) else items[:length]
    return start if isinstance(start, list) else list(start)


def copy_plain(value: Any) -> Any:
    """Return a copy of JSON-like data with containers of its own; many times faster than `deepcopy`."""
    if value is None or isinstance(value, _UNCHANGEABLE):
        return value
    if isinstance(value, dict):
        # Most of a message is texts: they are not asked one by one.
        return {key: i if type(i) is str else copy_plain(i) for key, i in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [copy_plain(item) for item in cast(list[Any], value)]
    return deepcopy(value)


_UNCHANGEABLE = (str, int, float, Message)


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in a prompt: the message there, and the log entries it stands for.

    There are none behind a repair, and none behind a line between turns.
    """

    message: Message
    ids: tuple[str, ...]
