"""Compaction in the shape of Microsoft Agent Framework's own strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.adapters.agent_framework_messages import Mirror, Plain
from compact.adapters.agent_framework_requests import DIALECT, tool_schemas

# isort: split
from agent_framework import Message

from compact.adapters.failing_open import tell_failure
from compact.adapters.which_session import SessionFinder
from compact.manager import CompactManager

# How the framework marks what a strategy leaves out, and how we mark what we put in.
_EXCLUDED, _REASON, _OURS = "_excluded", "_exclude_reason", "_compact_made"
_BY_US = "compacted"


class CompactStrategy:
    """For `Agent(compaction_strategy=…)` and every other place that takes a strategy.

    A strategy sees messages only: pass the `tools` and `instructions` that go out beside them, so that they are
    counted. What leaves the prompt is flagged as excluded, never removed from the list. Without a `session_id` a
    conversation is known by its history, for as long as the process lives.
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: str | None = None,
        tools: Sequence[Any] = (),
        instructions: str = "",
        strict: bool = False,
    ) -> None:
        self._manager, self._strict = manager, strict
        self._session_id = session_id
        self._tools, self._instructions = tool_schemas(tools), instructions
        self._finder = SessionFinder("agent-framework")

    async def __call__(self, messages: list[Message]) -> bool:
        """Flag what goes, put in what stands for it; True if that changed anything."""
        history = [message for message in messages if not message.additional_properties.get(_OURS)]
        shown = [message for message in history if not _is_excluded_by_others(message)]
        mirror = Mirror(shown)
        session_id = self._session_id or self._finder.find(mirror.items)
        try:
            items: list[Plain] = await self._manager.apreflight(
                session_id, mirror.items, tools=self._tools, instructions=self._instructions, dialect=DIALECT
            )
        except Exception as error:
            if self._strict:
                raise
            tell_failure(self._manager, session_id, error)
            return False
        before = [message for message in messages if not message.additional_properties.get(_EXCLUDED)]
        prompt = mirror.back(items)
        messages[:] = _flagged(history, shown, prompt)
        return len(before) != len(prompt) or any(a is not b for a, b in zip(before, prompt, strict=True))


def _is_excluded_by_others(message: Message) -> bool:
    properties = message.additional_properties
    return bool(properties.get(_EXCLUDED)) and properties.get(_REASON) != _BY_US


def _flagged(history: Sequence[Message], shown: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """The whole history, in which the messages that are not excluded are the prompt, in its order."""
    own = {id(message) for message in shown}
    kept = {id(message) for message in prompt}
    for message in shown:
        properties = message.additional_properties
        if id(message) not in kept:
            properties.update({_EXCLUDED: True, _REASON: _BY_US})
        elif properties.get(_REASON) == _BY_US:
            del properties[_REASON], properties[_EXCLUDED]
    out: list[Message] = []
    waiting = list(history)
    for message in prompt:
        if id(message) in own:
            place = next((n for n, other in enumerate(waiting) if other is message), None)
            if place is not None:  # what stood before it and is left out stays before it
                out += [other for other in waiting[:place] if id(other) not in kept]
                waiting = [other for n, other in enumerate(waiting) if n > place or (n < place and id(other) in kept)]
        else:
            message.additional_properties[_OURS] = True
        out.append(message)
    return out + [other for other in waiting if id(other) not in kept]
