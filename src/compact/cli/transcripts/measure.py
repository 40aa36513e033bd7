"""Counts the tokens of a transcript, message by message, without compacting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compact.cli import screen
from compact.cli.settings import in_memory
from compact.cli.transcripts.requests import FileTranscript

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.engine.events import CompactionEvent
    from compact.core.engine.status import SessionStatus
    from compact.core.messages.message import Message
    from compact.manager import CompactManager

SESSION = "transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTranscript:
    """A transcript as the manager reads it: each message with its tokens and its tools."""

    manager: CompactManager
    messages: Sequence[Message]
    tokens: Sequence[int]
    tools: Sequence[str]
    events: Sequence[CompactionEvent]

    def label(self, place: int) -> str:
        """Return the role of a message, with the tools that it calls or answers."""
        role, tool = self.messages[place].role, self.tools[place]
        return f"{role} {tool}" if tool else role


def measure(config: CompactConfig, transcript: FileTranscript) -> MeasuredTranscript:
    """Read a transcript into a session without compacting it, and count every message."""
    from compact.manager import CompactManager
    from compact.tokens import get_tokenizer

    events: list[CompactionEvent] = []
    # With the policy switched off, preflight only reads: the history gets its ids and comes back unchanged.
    manager = CompactManager(in_memory(config, enabled=False), on_event=events.append)
    manager.preflight(SESSION, transcript.messages, **transcript.options)
    messages = manager.history(SESSION)
    count = get_tokenizer(config.model, config.tokenizer).count_message
    return MeasuredTranscript(
        manager=manager,
        messages=messages,
        tokens=[count(message) for message in messages],
        tools=_tool_names(messages),
        events=events,
    )


def nothing_to_do(status: SessionStatus, *, messages: int, tokens: int, is_manual: bool, reason: str) -> str:
    """Return one line about a transcript that is not compacted; `reason` is that of the decision."""
    size, trigger = (
        f"{screen.quantity(messages, 'message')}, {screen.quantity(tokens, 'token')}",
        status.thresholds["trigger"],
    )
    if is_manual:
        return f"nothing to compact: {size}"
    if status.used_tokens < trigger:
        return f"{size}, below the trigger of {trigger:,} tokens: nothing to do; --now compacts anyway"
    return f"nothing to compact: {size}; {reason}"


def _tool_names(messages: Sequence[Message]) -> list[str]:
    """Return for each message the tools that it calls, or the tool whose result it is."""
    from compact.core.messages.groups import calls_answered, group_messages

    answered = calls_answered(messages, group_messages(messages))
    names: list[str] = []
    for place, message in enumerate(messages):
        called = list(dict.fromkeys(call.name for call in message.tool_calls))
        names.append(answered[place].name if place in answered else ", ".join(called))
    return names
