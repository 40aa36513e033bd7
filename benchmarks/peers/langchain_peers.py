"""LangChain: `trim_messages`, `ClearToolUsesEdit` and `SummarizationMiddleware`, with our counter of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import Wire, content_text
from peers.conversion import StandIn, arguments_of, mark, pinned, spoken, unmark


def to_langchain(wire: Wire, place: int) -> BaseMessage:
    """A message as LangChain has it."""
    text, identity = content_text(wire), mark(place)
    match wire["role"]:
        case "assistant":
            calls = [
                {"id": call["id"], "name": call["function"]["name"], "args": arguments_of(call)}
                for call in wire.get("tool_calls") or ()
            ]
            return AIMessage(text, id=identity, tool_calls=calls)
        case "tool":
            return ToolMessage(text, id=identity, tool_call_id=wire["tool_call_id"])
        case "system" | "developer":
            return SystemMessage(text, id=identity)
        case _:
            return HumanMessage(text, id=identity)


def to_wire(message: BaseMessage, history: SessionHistory) -> Wire:
    """The message as it was; with its new content, if that was changed."""
    place = unmark(message.id)
    if place is None:
        return {"role": "user", "content": str(message.content)}
    wire = history.messages[place]
    return wire if content_text(wire) == message.content else {**wire, "content": str(message.content)}


def counter(history: SessionHistory) -> Callable[[Sequence[BaseMessage]], int]:
    """Counts messages as we do."""
    return lambda messages: sum(history.sizes(to_wire(message, history)) for message in messages)


def start_trim(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """At every call, `trim_messages` to the trigger."""
    converted = [to_langchain(wire, place) for place, wire in enumerate(history.messages)]

    def prepare(end: int) -> PolicyPrompt:
        kept = trim_messages(
            converted[:end],
            max_tokens=limits.trigger_tokens - history.fixed_tokens,
            token_counter=counter(history),
            strategy="last",
            include_system=True,
            start_on=("human", "ai"),
        )
        return PolicyPrompt([to_wire(message, history) for message in kept])

    return prepare


def start_clear(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """At every call, `ClearToolUsesEdit` with its defaults and our trigger."""
    converted = [to_langchain(wire, place) for place, wire in enumerate(history.messages)]
    edit = ClearToolUsesEdit(trigger=limits.trigger_tokens - history.fixed_tokens)

    def prepare(end: int) -> PolicyPrompt:
        messages = converted[:end]
        edit.apply(messages, count_tokens=counter(history))
        return PolicyPrompt([to_wire(message, history) for message in messages])

    return prepare


class _Summarization:
    """`SummarizationMiddleware` with its defaults and our trigger; the state of the agent is its list of messages."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        self._history, self._stand_in = history, StandIn(history)
        self._state: list[Any] = []
        self._taken = 0
        fixed = history.fixed_tokens + sum(history.tokens[place] for place in history.pinned)
        self._middleware = SummarizationMiddleware(
            FakeListChatModel(responses=["not asked"]),
            trigger=("tokens", max(1, limits.trigger_tokens - fixed)),
            token_counter=counter(history),
            summarizer=self._summarize,
        )

    def _summarize(self, messages: Sequence[BaseMessage]) -> str:
        return self._stand_in.write([to_wire(message, self._history) for message in messages])

    def __call__(self, end: int) -> PolicyPrompt:
        history = self._history
        self._state += [to_langchain(history.messages[place], place) for place in spoken(history, self._taken, end)]
        self._taken = end
        update = self._middleware.before_model({"messages": self._state}, None)  # type: ignore[arg-type]
        if update:
            self._state = update["messages"][1:]
        sent = [to_wire(message, history) for message in self._state]
        return PolicyPrompt([*pinned(history, end), *sent], *self._stand_in.take())


POLICIES = (
    Policy("langchain trim_messages", "newest messages, at every call", start_trim),
    Policy("langchain ClearToolUsesEdit", "clears tool results but the newest 3, at every call", start_clear),
    Policy("langchain SummarizationMiddleware", "a summary and the newest 20 messages", _Summarization),
)
