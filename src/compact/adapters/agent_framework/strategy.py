"""Compaction in the shape of Microsoft Agent Framework's own strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import Message

from compact.adapters.agent_framework.messages import message_data
from compact.adapters.agent_framework.requests import outgoing, tool_schemas
from compact.adapters.support import OutgoingRequest, RequestPreparer, SessionFinder, checked_manager, same_objects
from compact.manager import CompactManager

# How the framework marks what a strategy leaves out, and how we mark what we put in.
_EXCLUDED, _REASON, _MADE_BY_US = "_excluded", "_exclude_reason", "_compact_made"
_COMPACTED = "compacted"


class CompactStrategy:
    """Compaction for `Agent(compaction_strategy=…)` and every other place that takes a strategy.

    A strategy sees messages only: pass what goes out beside them. What leaves the prompt is flagged as excluded, never
    removed from the list. Without a `session_id` a session is known by its history, for as long as the process lives.

    Args:
        manager: Keeps the sessions.
        session_id: Names the conversation.
        tools: The tools of the agent, so that their schemas are counted.
        instructions: The instructions of the agent, so that they are counted.
        output_tokens: The tokens that the answer may have (`max_tokens`).
        model: The model of the agent, if the manager has another.
        strict: Raise what goes wrong; by default the messages stay as they are then, and an event says why.

    Example:
        >>> import asyncio
        >>> from agent_framework import Message
        >>> from compact import CompactManager
        >>> from compact.adapters.agent_framework import CompactStrategy
        >>> strategy = CompactStrategy(CompactManager(), session_id="chat-1", instructions="Be brief.")
        >>> asyncio.run(strategy([Message("user", ["Hello"])]))  # True if something was excluded
        False
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: str | None = None,
        tools: Sequence[Any] = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
        strict: bool = False,
    ) -> None:
        self._session_id = session_id
        self._tools, self._instructions = tool_schemas(tools), instructions
        self._output_tokens, self._model = output_tokens, model
        self._finder = SessionFinder("agent-framework", is_busy=checked_manager(manager).is_busy)
        self._preparer: RequestPreparer[list[Message]] = RequestPreparer(
            manager, "agent_framework", session_of=self._session_of, read=self._read, strict=strict
        )

    async def __call__(self, messages: list[Message]) -> bool:
        """Flag what goes, and insert what stands for it; return True if that changed anything."""
        history = [message for message in messages if not message.additional_properties.get(_MADE_BY_US)]
        included = [message for message in history if not _is_excluded_by_others(message)]
        prepared = await self._preparer.aprepare(included)
        if prepared.items is None:
            return False
        before = [message for message in messages if not message.additional_properties.get(_EXCLUDED)]
        messages[:] = _flagged(history, included, prepared.items)
        return not same_objects(before, prepared.items)

    def _session_of(self, messages: list[Message]) -> str:
        return self._session_id or self._finder.find([message_data(message) for message in messages])

    def _read(self, messages: list[Message], session_id: str) -> OutgoingRequest:
        return outgoing(
            messages,
            tools=self._tools,
            instructions=self._instructions,
            output_tokens=self._output_tokens,
            model=self._model,
        )


def _is_excluded_by_others(message: Message) -> bool:
    properties = message.additional_properties
    return bool(properties.get(_EXCLUDED)) and properties.get(_REASON) != _COMPACTED


def _flagged(history: Sequence[Message], included: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """Return the whole history with the prompt in it: the messages that are not excluded, in their order."""
    own = {id(message) for message in included}
    kept = {id(message) for message in prompt}
    for message in included:
        properties = message.additional_properties
        if id(message) not in kept:
            properties.update({_EXCLUDED: True, _REASON: _COMPACTED})
        elif properties.get(_REASON) == _COMPACTED:
            del properties[_REASON], properties[_EXCLUDED]
    flagged: list[Message] = []
    waiting = list(history)
    for message in prompt:
        if id(message) in own:
            place = next((n for n, other in enumerate(waiting) if other is message), None)
            if place is not None:  # what stood before it and is left out stays before it
                flagged += [other for other in waiting[:place] if id(other) not in kept]
                waiting = [other for n, other in enumerate(waiting) if n > place or (n < place and id(other) in kept)]
        else:
            message.additional_properties[_MADE_BY_US] = True
        flagged.append(message)
    return flagged + [other for other in waiting if id(other) not in kept]
