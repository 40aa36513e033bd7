"""Histories as plain Chat Completions dicts, and fakes in place of a token counter and an event sink."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from compact.core.engine.events import CompactionEvent
from compact.core.log.entries import read_entry
from compact.core.log.messages import Message

Wire: TypeAlias = dict[str, Any]
E_ = TypeVar("E_", bound=CompactionEvent)


def system(text: str) -> Wire:
    """Return a system message."""
    return {"role": "system", "content": text}


def user(text: str, *, protected: bool = False) -> Wire:
    """Return a user message, pinned if asked."""
    return {"role": "user", "content": text, **({"meta": {"protected": True}} if protected else {})}


def assistant(text: str) -> Wire:
    """Return a reply without calls."""
    return {"role": "assistant", "content": text}


def tool_exchange(call_id: str, result: str, *, tool: str = "read_file", **arguments: Any) -> list[Wire]:
    """Return a call and its result."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def dialogue(pairs: int, *, words: int = 1) -> list[Wire]:
    """Return pairs of user and assistant messages, each with so many words."""
    history: list[Wire] = []
    for number in range(1, pairs + 1):
        filler = " word" * (words - 1)
        history += [user(f"question-{number}{filler}"), assistant(f"answer-{number}{filler}")]
    return history


def tool_run(exchanges: int, *, words: int = 50, tool: str = "read_file") -> list[Wire]:
    """Return one request and a long run of tool calls, each result with so many words."""
    history = [user("do the whole thing")]
    for number in range(1, exchanges + 1):
        result = f"result-{number}" + " word" * (words - 1)
        history += tool_exchange(f"call-{number}", result, tool=tool, path=f"src/file_{number}.py")
    return history


def as_log(history: Iterable[object]) -> tuple[Message, ...]:
    """Return a history as entries of a log, with the ids `m1`, `m2`, … by their place."""
    return tuple(
        replace(read_entry(item, f"messages[{number - 1}]"), id=f"m{number}") for number, item in enumerate(history, 1)
    )


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """A token counter for which a token is a word: sizes in tests can be read off the text.

    Messages cost nothing but their words.
    """

    name: str = "words"
    is_exact: bool = True

    def count_text(self, text: str) -> int:
        """Count the words between white space."""
        return len(text.split())

    def count_message(self, message: Message) -> int:
        """Count the words of content and arguments."""
        return self.count_text(message.text) + sum(self.count_text(call.arguments) for call in message.tool_calls)

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Count the words of the schemas as JSON."""
        return sum(self.count_text(json.dumps(tool)) for tool in tools)


@dataclass(slots=True)
class RecordingSink:
    """An event sink that keeps every event it is given."""

    events: list[CompactionEvent] = field(default_factory=list[CompactionEvent])

    def __call__(self, event: CompactionEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[E_]) -> list[E_]:
        """Return the events of one kind, oldest first."""
        return [event for event in self.events if isinstance(event, kind)]
