"""Messages for tests of the core: from wire forms or by hand, with ids m0, m1, …"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message, ToolCall
from conversations import Wire


def numbered(history: Iterable[Wire | Message]) -> tuple[Message, ...]:
    """The messages of a history, each with its place as its id."""
    read = (item if isinstance(item, Message) else read_entry(item, "messages") for item in history)
    return tuple(replace(message, id=f"m{place}") for place, message in enumerate(read))


def call(name: str, call_id: str = "c", **arguments: Any) -> ToolCall:
    """A tool call."""
    return ToolCall(call_id, name, json.dumps(arguments))


def exchange(name: str, result: str, **arguments: Any) -> tuple[Message, Message]:
    """A tool call and its result."""
    made = call(name, **arguments)
    return Message("assistant", None, (made,)), Message("tool", result, tool_call_id=made.id)
