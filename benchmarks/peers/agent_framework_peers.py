"""Microsoft Agent Framework: its compaction strategies, applied as its agents do, with our counter of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_framework import Content, ContextWindowCompactionStrategy, Message, TruncationStrategy, apply_compaction

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import Wire, content_text
from peers.conversion import mark, run, unmark

# What its truncation aims at, of the trigger; the strategy has no default. Chosen: as ours.
TARGET_SHARE = 0.5 / 0.85


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


class Counter:
    """Counts the text of a message as we do."""

    def __init__(self, history: SessionHistory) -> None:
        self._count = history.sizes.tokenizer.count_text

    def count_tokens(self, text: str) -> int:
        """The tokens of a text."""
        return self._count(text)


class _Applied:
    """Applies a strategy at every call; what it excluded stays marked in the list."""

    def __init__(self, history: SessionHistory, strategy: Any, tokenizer: Counter) -> None:
        self._history, self._strategy, self._tokenizer = history, strategy, tokenizer
        self._messages: list[Message] = []
        self._taken = 0

    def __call__(self, end: int) -> PolicyPrompt:
        new = [to_framework(self._history.messages[place], place) for place in range(self._taken, end)]
        self._messages += new
        self._taken = end
        kept = run(apply_compaction(self._messages, strategy=self._strategy, tokenizer=self._tokenizer))
        return PolicyPrompt([self._wire(message) for message in kept])

    def _wire(self, message: Message) -> Wire:
        place = unmark(message.message_id)
        return {"role": "assistant", "content": message.text} if place is None else self._history.messages[place]


def _applied(build: Callable[[PolicyLimits, Counter, int], Any]) -> Callable[[SessionHistory, PolicyLimits], Prepare]:
    def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
        tokenizer = Counter(history)
        return _Applied(history, build(limits, tokenizer, history.fixed_tokens), tokenizer)

    return start


def _truncation(limits: PolicyLimits, tokenizer: Counter, fixed: int) -> Any:
    room = limits.trigger_tokens - fixed
    return TruncationStrategy(max_n=room, compact_to=int(TARGET_SHARE * room), tokenizer=tokenizer)


def _window(limits: PolicyLimits, tokenizer: Counter, fixed: int) -> Any:
    return ContextWindowCompactionStrategy(
        max_context_window_tokens=limits.window_tokens - fixed, max_output_tokens=0, tokenizer=tokenizer
    )


POLICIES = (
    Policy("agent-framework TruncationStrategy", "oldest groups go, down to our target", _applied(_truncation)),
    Policy(
        "agent-framework ContextWindowCompactionStrategy",
        "tool results collapsed, then oldest groups go",
        _applied(_window),
    ),
)
