"""Microsoft Agent Framework: its compaction strategies, applied as its agents do, with our counter of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from agent_framework import (
    ChatResponse,
    Content,
    ContextWindowCompactionStrategy,
    Message,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    apply_compaction,
)

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import Wire, content_text
from peers.conversion import StandIn, TextCounter, mark, run, unmark

# What its truncation aims at, of the trigger; the strategy has no default. Chosen: as ours.
TARGET_SHARE = 0.5 / 0.85
# How a line begins that shows a message to the model of summaries.
_SHOWN = re.compile(r"^\d+\. \[(\w+)\] ", re.MULTILINE)

# From the limits, our counter, the tokens of tool schemas and the client of summaries, a strategy.
_Build = Callable[[PolicyLimits, TextCounter, int, "_Client"], Any]


def to_framework(wire: Wire, place: int) -> Message:
    """A message as the framework has it."""
    text = content_text(wire)
    if wire["role"] == "tool":
        contents = [Content.from_function_result(wire["tool_call_id"], result=text)]
        return Message("tool", contents, message_id=mark(place))
    contents = [Content.from_text(text)] if text else []
    contents += [
        Content.from_function_call(call["id"], call["function"]["name"], arguments=call["function"]["arguments"])
        for call in wire.get("tool_calls") or ()
    ]
    return Message(wire["role"], contents, message_id=mark(place))


class _Applied:
    """Applies a strategy at every call; what it excluded stays marked in the list."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits, build: _Build) -> None:
        self._history, self._stand_in, self._tokenizer = history, StandIn(history), TextCounter(history)
        self._strategy = build(limits, self._tokenizer, history.fixed_tokens, _Client(self._stand_in))
        self._messages: list[Message] = []
        self._taken = 0

    def __call__(self, end: int) -> PolicyPrompt:
        new = [to_framework(self._history.messages[place], place) for place in range(self._taken, end)]
        self._messages += new
        self._taken = end
        kept = run(apply_compaction(self._messages, strategy=self._strategy, tokenizer=self._tokenizer))
        return PolicyPrompt([self._wire(message) for message in kept], *self._stand_in.take())

    def _wire(self, message: Message) -> Wire:
        place = unmark(message.message_id)
        return {"role": "assistant", "content": message.text} if place is None else self._history.messages[place]


class _Client:
    """The client that its summaries are asked of: code writes them, of what the request shows."""

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self.additional_properties: dict[str, Any] = {}

    async def get_response(self, messages: Sequence[Message], **options: Any) -> ChatResponse:
        """Answer a request for a summary."""
        text = self._stand_in.write(read_lines(messages[-1].text))
        return ChatResponse(messages=[Message("assistant", [Content.from_text(text)])])


def read_lines(shown: str) -> list[Wire]:
    """The messages that a request for a summary shows: numbered, with their roles, calls and results as text."""
    found = _SHOWN.split(shown)[1:]
    roles = ("user" if role == "user" else "assistant" for role in found[::2])
    return [{"role": role, "content": text.strip()} for role, text in zip(roles, found[1::2], strict=True)]


def _applied(build: _Build) -> Callable[[SessionHistory, PolicyLimits], Prepare]:
    return lambda history, limits: _Applied(history, limits, build)


def _truncation(limits: PolicyLimits, tokenizer: TextCounter, fixed: int, client: _Client) -> Any:
    room = limits.trigger_tokens - fixed
    return TruncationStrategy(max_n=room, compact_to=int(TARGET_SHARE * room), tokenizer=tokenizer)


def _window(limits: PolicyLimits, tokenizer: TextCounter, fixed: int, client: _Client) -> Any:
    return ContextWindowCompactionStrategy(
        max_context_window_tokens=limits.window_tokens - fixed, max_output_tokens=0, tokenizer=tokenizer
    )


def _composed(limits: PolicyLimits, tokenizer: TextCounter, fixed: int, client: _Client) -> Any:
    strategies = [ToolResultCompactionStrategy(), SummarizationStrategy(client=client, tokenizer=tokenizer)]  # type: ignore[arg-type]
    return TokenBudgetComposedStrategy(
        token_budget=limits.trigger_tokens - fixed, tokenizer=tokenizer, strategies=strategies
    )


POLICIES = (
    Policy("agent-framework TruncationStrategy", "oldest groups go, down to our target", _applied(_truncation)),
    Policy(
        "agent-framework ContextWindowCompactionStrategy",
        "tool results collapsed, then oldest groups go",
        _applied(_window),
    ),
    Policy(
        "agent-framework TokenBudgetComposedStrategy",
        "tool results collapsed, then a summary and the newest 4 messages, then oldest groups go",
        _applied(_composed),
    ),
)
