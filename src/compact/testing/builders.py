"""Histories as plain Chat Completions dicts, and fakes in place of a token counter and an event sink."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from compact.core.engine.events import CompactionEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message

Wire: TypeAlias = dict[str, Any]
E_ = TypeVar("E_", bound=CompactionEvent)


def system(text: str) -> Wire:
    """Return a system message.

    Args:
        text: What it says.

    Example:
        >>> from compact.testing import system
        >>> system("Be brief.")
        {'role': 'system', 'content': 'Be brief.'}
    """
    return {"role": "system", "content": text}


def user(text: str, *, protected: bool = False) -> Wire:
    """Return a user message, pinned if asked.

    Args:
        text: What it says.
        protected: True marks it so that no compaction touches it.

    Example:
        >>> from compact.testing import user
        >>> user("Never touch the migrations.", protected=True)["meta"]
        {'protected': True}
    """
    return {"role": "user", "content": text, **({"meta": {"protected": True}} if protected else {})}


def assistant(text: str) -> Wire:
    """Return a reply without calls.

    Args:
        text: What it says.

    Example:
        >>> from compact.testing import assistant
        >>> assistant("Done.")
        {'role': 'assistant', 'content': 'Done.'}
    """
    return {"role": "assistant", "content": text}


def tool_exchange(call_id: str, result: str, *, tool: str = "read_file", **arguments: Any) -> list[Wire]:
    """Return a call and its result.

    Args:
        call_id: The id that connects both.
        result: What the tool returned.
        tool: The name of the tool.
        arguments: The arguments of the call.

    Example:
        >>> from compact.testing import tool_exchange
        >>> call, result = tool_exchange("c1", "42 lines", path="src/parser.py")
        >>> result
        {'role': 'tool', 'tool_call_id': 'c1', 'content': '42 lines'}
    """
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def dialogue(pairs: int, *, words: int = 1) -> list[Wire]:
    """Return pairs of user and assistant messages, each with so many words.

    Args:
        pairs: How many questions with their answers.
        words: The words of each message.

    Example:
        >>> from compact.testing import dialogue
        >>> [message["content"] for message in dialogue(2)]
        ['question-1', 'answer-1', 'question-2', 'answer-2']
    """
    history: list[Wire] = []
    for number in range(1, pairs + 1):
        filler = " word" * (words - 1)
        history += [user(f"question-{number}{filler}"), assistant(f"answer-{number}{filler}")]
    return history


def tool_run(exchanges: int, *, words: int = 50, tool: str = "read_file") -> list[Wire]:
    """Return one request and a long run of tool calls.

    Args:
        exchanges: How many calls with their results.
        words: The words of each result.
        tool: The name of the tool.

    Example:
        >>> from compact.testing import tool_run
        >>> history = tool_run(60, words=200)
        >>> len(history), len(history[2]["content"].split())
        (121, 200)
    """
    history = [user("do the whole thing")]
    for number in range(1, exchanges + 1):
        result = f"result-{number}" + " word" * (words - 1)
        history += tool_exchange(f"call-{number}", result, tool=tool, path=f"src/file_{number}.py")
    return history


def as_log(history: Iterable[object]) -> tuple[Message, ...]:
    """Return a history as entries of a log, with the ids `m1`, `m2`, … by their place.

    Args:
        history: Chat Completions messages.

    Raises:
        InvalidHistory: An item cannot be read as a message.

    Example:
        >>> from compact.testing import as_log, dialogue
        >>> [(message.id, message.text) for message in as_log(dialogue(1))]
        [('m1', 'question-1'), ('m2', 'answer-1')]
    """
    return tuple(
        replace(read_entry(item, f"messages[{number - 1}]"), id=f"m{number}") for number, item in enumerate(history, 1)
    )


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """A token counter for which a token is a word: sizes in tests can be read off the text.

    Messages cost nothing but their words.

    Args:
        name: Its name in events and notices.
        is_exact: Whether it says that it counts exactly.

    Example:
        >>> from compact import CompactManager
        >>> from compact.testing import WordTokenizer
        >>> tokenizer = WordTokenizer()
        >>> manager = CompactManager(tokenizer=tokenizer)
        >>> tokenizer.count_text("four words are four")
        4
    """

    name: str = "words"
    is_exact: bool = True

    def count_text(self, text: str) -> int:
        """Count the words between white space.

        Args:
            text: The text.

        Example:
            >>> tokenizer.count_text("two words")
            2
        """
        return len(text.split())

    def count_message(self, message: Message) -> int:
        """Count the words of content and arguments.

        Args:
            message: An entry of the log.

        Example:
            >>> from compact import Message
            >>> tokenizer.count_message(Message("user", "two words"))
            2
        """
        return self.count_text(message.text) + sum(self.count_text(call.arguments) for call in message.tool_calls)

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Count the words of the schemas as JSON.

        Args:
            tools: The tool schemas.

        Example:
            >>> tokenizer.count_tools([])
            0
        """
        return sum(self.count_text(json.dumps(tool)) for tool in tools)


@dataclass(slots=True)
class RecordingSink:
    """An event sink that keeps every event it is given.

    Attributes:
        events: The events so far, the oldest first.

    Example:
        >>> from compact import CompactManager
        >>> from compact.testing import RecordingSink, dialogue
        >>> sink = RecordingSink()
        >>> prompt = CompactManager(on_event=sink).preflight("chat-1", dialogue(3))
        >>> len(sink.events) > 0
        True
    """

    events: list[CompactionEvent] = field(default_factory=list[CompactionEvent])

    def __call__(self, event: CompactionEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[E_]) -> list[E_]:
        """Return the events of one kind, oldest first.

        Args:
            kind: A class of `compact.core.engine.events`.

        Example:
            >>> from compact.core.engine.events import TriggerDecisionEvent
            >>> [event.triggered for event in sink.of(TriggerDecisionEvent)]
            [False]
        """
        return [event for event in self.events if isinstance(event, kind)]
