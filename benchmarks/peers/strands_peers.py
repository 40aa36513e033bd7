"""Strands: `SlidingWindowConversationManager` and `SummarizingConversationManager`, with their defaults."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt
from compact.measuring.recordings import Wire, content_text
from peers.conversion import StandIn, arguments_of, pinned, spoken


class _Managed:
    """An agent as far as a conversation manager sees it: a list of messages, managed after turns and on refusals."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        self._history, self._limits, self._stand_in = history, limits, StandIn(history)
        self._places: dict[int, list[int]] = {}
        self._held: list[Any] = []
        self._taken = 0
        self.messages: list[Any] = []
        self._manager = self._build()

    def _build(self) -> Any:
        return SlidingWindowConversationManager()

    def __call__(self, end: int) -> PolicyPrompt:
        history = self._history
        if history.messages[end - 1]["role"] == "user" and self.messages:
            self._extend(end - 1)
            self._manager.apply_management(self)
        self._extend(end)
        size = self._size(end)
        while size > self._limits.window_tokens:
            try:
                self._manager.reduce_context(self, ContextWindowOverflowException("too long"))
            except ContextWindowOverflowException:
                break
            before, size = size, self._size(end)
            # Our choice, in its favour: its own loop would go on, and each further summary would be charged.
            if size >= before:
                break
        return PolicyPrompt([*pinned(history, end), *self._wires()], *self._stand_in.take())

    def _size(self, end: int) -> int:
        history = self._history
        return history.fixed_tokens + sum(map(history.sizes, [*pinned(history, end), *self._wires()]))

    def _extend(self, end: int) -> None:
        """Append what is new; results that follow each other are one message."""
        for place in spoken(self._history, self._taken, end):
            wire = self._history.messages[place]
            last = self._places.get(id(self.messages[-1])) if self.messages else None
            if wire["role"] == "tool" and last and self._history.messages[last[0]]["role"] == "tool":
                self.messages[-1]["content"] += _blocks(wire)
                last.append(place)
                continue
            role = "user" if wire["role"] == "tool" else wire["role"]
            self.messages.append({"role": role, "content": _blocks(wire)})
            self._held.append(self.messages[-1])
            self._places[id(self.messages[-1])] = [place]
        self._taken = max(self._taken, end)

    def _wires(self) -> list[Wire]:
        return [wire for message in self.messages for wire in self._wires_of(message)]

    def _wires_of(self, message: Any) -> list[Wire]:
        places = self._places.get(id(message))
        if places is None:
            return [{"role": message["role"], "content": "\n".join(b.get("text", "") for b in message["content"])}]
        return [self._wire(place, message) for place in places]

    def _wire(self, place: int, message: Any) -> Wire:
        """The message as it was; a result with its new text, if the manager cut it."""
        wire = self._history.messages[place]
        if wire["role"] != "tool":
            return wire
        blocks = (block["toolResult"] for block in message["content"] if "toolResult" in block)
        result = next(block for block in blocks if block["toolUseId"] == wire["tool_call_id"])
        text = "\n".join(part.get("text", "") for part in result["content"])
        return wire if text == content_text(wire) else {**wire, "content": text}


def _blocks(wire: Wire) -> list[Any]:
    text = content_text(wire)
    if wire["role"] == "tool":
        result = {"toolUseId": wire["tool_call_id"], "content": [{"text": text}], "status": "success"}
        return [{"toolResult": result}]
    blocks: list[Any] = [{"text": text}] if text or not wire.get("tool_calls") else []
    for call in wire.get("tool_calls") or ():
        name = call["function"]["name"]
        blocks.append({"toolUse": {"toolUseId": call["id"], "name": name, "input": arguments_of(call)}})
    return blocks


class _Summarized(_Managed):
    """The same with summaries, which its manager only makes when a prompt was refused."""

    def _build(self) -> Any:
        return SummarizingConversationManager(summarization_agent=_Writer(self))  # type: ignore[arg-type]

    def summarize(self, messages: list[Any]) -> str:
        """A summary of some of the messages, by code."""
        return self._stand_in.write([wire for message in messages for wire in self._wires_of(message)])


class _Writer:
    """What the manager asks for a summary instead of an agent."""

    def __init__(self, managed: _Summarized) -> None:
        self._managed = managed
        self.system_prompt, self.messages, self.tool_registry, self.tool_names = "", [], None, ["none"]

    def __call__(self, prompt: str) -> Any:
        text = self._managed.summarize(self.messages)
        return SimpleNamespace(message={"role": "assistant", "content": [{"text": text}]})


POLICIES = (
    Policy(
        "strands SlidingWindowConversationManager", "newest 40 messages; more goes when a prompt is refused", _Managed
    ),
    Policy("strands SummarizingConversationManager", "summarises 30 % when a prompt is refused", _Summarized),
)
