"""A transcript as the manager sees it: each message with its id, its tokens, and the tool it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.cli.settings import quiet

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.engine.events import CompactionEvent
    from compact.core.log.messages import Message
    from compact.manager import CompactManager

SESSION = "transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A transcript that was taken in and counted, but not compacted."""

    manager: CompactManager
    messages: Sequence[Message]
    tokens: Sequence[int]
    tools: Sequence[str]
    events: Sequence[CompactionEvent]

    def label(self, place: int) -> str:
        """The role of a message, and the tools it calls or answers for."""
        role, tool = self.messages[place].role, self.tools[place]
        return f"{role} {tool}" if tool else role


def measure(config: CompactConfig, raw: Sequence[Any]) -> Measured:
    """Take a transcript in without compacting it, and count every message."""
    from compact.manager import CompactManager
    from compact.tokens import get_tokenizer

    events: list[CompactionEvent] = []
    # Switched off, preflight only reads: the history gets its ids, and comes back unchanged.
    manager = CompactManager(quiet(config, enabled=False), on_event=events.append)
    manager.preflight(SESSION, raw)
    messages = manager.history(SESSION)
    count = get_tokenizer(config.model, config.tokenizer).count_message
    return Measured(
        manager=manager,
        messages=messages,
        tokens=[count(message) for message in messages],
        tools=_tools(messages),
        events=events,
    )


def _tools(messages: Sequence[Message]) -> list[str]:
    from compact.core.log.groups import calls_answered, group_messages

    answered = calls_answered(messages, group_messages(messages))
    names: list[str] = []
    for place, message in enumerate(messages):
        called = list(dict.fromkeys(call.name for call in message.tool_calls))
        names.append(answered[place].name if place in answered else ", ".join(called))
    return names
