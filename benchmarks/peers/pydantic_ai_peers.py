"""Pydantic AI: the compaction of its harness, as an agent's run calls it before every model request.

Pydantic AI itself only compacts on the servers of two providers; `pydantic-ai-harness`, by the same authors, has the
strategies that work with every model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
)

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import Wire, content_text
from peers.conversion import StandIn, TextCounter, pinned, run, spoken

# How the harness shows a conversation to the model that summarises it.
_ELEMENT = re.compile(r'<message role="(\w+)"(?: name="([^"]*)")?[^>]*>\n(.*?)\n</message>', re.DOTALL)
_PREVIOUS = re.compile(r"<previous-summary>\n(.*?)\n</previous-summary>", re.DOTALL)

# From the tokens of the trigger, our counter and the model of summaries, a strategy.
_Build = Callable[[int, TextCounter, FunctionModel], Any]


class _Run:
    """A run as far as a strategy sees it: messages that stay as the strategy left them."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits, build: _Build) -> None:
        self._history, self._stand_in = history, StandIn(history)
        self._places: dict[int, int] = {}
        self._results: dict[str, int] = {}
        self._held: list[Any] = []
        self._tools: dict[str, str] = {}
        self._taken = 0
        self._model = FunctionModel(self._answer, model_name="stand-in")
        self._context = RunContext(deps=None, model=self._model, usage=RunUsage())
        fixed = history.fixed_tokens + sum(history.tokens[place] for place in history.pinned)
        self._strategy = build(max(1, limits.trigger_tokens - fixed), TextCounter(history), self._model)

    def __call__(self, end: int) -> PolicyPrompt:
        self._extend(end)
        self._context.run_step += 1
        request = ModelRequestContext(
            model=self._model,
            messages=list(self._context.messages),
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        sent = run(self._strategy.before_model_request(self._context, request)).messages
        wires = [wire for message in sent for wire in self._wires_of(message)]
        return PolicyPrompt([*pinned(self._history, end), *wires], *self._stand_in.take())

    def _extend(self, end: int) -> None:
        """Append what is new; results that follow each other are one request."""
        messages, new = self._context.messages, spoken(self._history, self._taken, end)
        for place in new:
            wire = self._history.messages[place]
            parts = list(self._parts_of(wire))
            self._places.update((id(part), place) for part in parts)
            if wire["role"] == "tool":
                self._results[wire["tool_call_id"]] = place
            # An identity is taken again as soon as its part is gone.
            self._held += parts
            if wire["role"] == "assistant":
                messages.append(ModelResponse(parts=parts))
            elif wire["role"] == "tool" and place > new[0] and self._history.messages[place - 1]["role"] == "tool":
                messages[-1] = ModelRequest(parts=[*messages[-1].parts, *parts])
            else:
                messages.append(ModelRequest(parts=parts))
        self._taken = end

    def _parts_of(self, wire: Wire) -> Iterator[Any]:
        text, calls = content_text(wire), wire.get("tool_calls") or ()
        match wire["role"]:
            case "assistant":
                if text or not calls:
                    yield TextPart(text)
                for call in calls:
                    name, identity = call["function"]["name"], call["id"]
                    self._tools[identity] = name
                    yield ToolCallPart(name, call["function"]["arguments"], identity)
            case "tool":
                identity = wire["tool_call_id"]
                yield ToolReturnPart(self._tools.get(identity, "tool"), text, identity)
            case _:
                yield UserPromptPart(text)

    def _wires_of(self, message: ModelMessage) -> list[Wire]:
        """The messages as they were, cleared results with their new text, and a summary as what a user says."""
        found: list[Wire] = []
        for part in message.parts:
            place = self._place_of(part)
            if isinstance(part, CompactionPart):
                found.append({"role": "user", "content": part.content or ""})
            elif place is None:
                raise ValueError(f"a part that is in no message of the session: {part!r}"[:200])
            else:
                wire = self._history.messages[place]
                if isinstance(part, ToolReturnPart) and part.content != content_text(wire):
                    wire = {**wire, "content": str(part.content)}
                if not found or found[-1] is not wire:
                    found.append(wire)
        return found

    def _place_of(self, part: Any) -> int | None:
        place = self._places.get(id(part))
        return self._results.get(part.tool_call_id) if place is None and isinstance(part, ToolReturnPart) else place

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """A summary by code of what the harness asks its model to summarise."""
        asked = "\n".join(
            str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart)
        )
        return ModelResponse(parts=[TextPart(self._stand_in.write(read_transcript(asked)))])


def read_transcript(asked: str) -> list[Wire]:
    """The messages that the harness shows to its model, the summary before them first."""
    wires: list[Wire] = [{"role": "user", "content": text} for text in _PREVIOUS.findall(asked)]
    open_calls: list[str] = []
    for number, (role, name, text) in enumerate(_ELEMENT.findall(asked)):
        match role:
            case "tool_call":
                call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}}
                open_calls.append(call["id"])
                wires.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case "tool_return" if open_calls:
                wires.append({"role": "tool", "tool_call_id": open_calls.pop(0), "content": text})
            case "assistant":
                wires.append({"role": "assistant", "content": text})
            case _:
                wires.append({"role": "user", "content": text})
    return wires


def _started(build: _Build) -> Callable[[SessionHistory, PolicyLimits], Prepare]:
    return lambda history, limits: _Run(history, limits, build)


def _tiered(trigger: int, counter: TextCounter, model: FunctionModel) -> Any:
    # The tiers that the class shows in its own example; their triggers are not asked.
    tiers = [
        ClearToolResults(max_tokens=1, tokenizer=counter),
        SummarizingCompaction(model, max_messages=1, tokenizer=counter),
    ]
    return TieredCompaction(tiers, target_tokens=trigger, tokenizer=counter)


POLICIES = (
    Policy(
        "pydantic-ai SlidingWindowCompaction",
        "from the trigger on, the first user message and the newest 40",
        _started(lambda trigger, counter, model: SlidingWindowCompaction(max_tokens=trigger, tokenizer=counter)),
    ),
    Policy(
        "pydantic-ai ClearToolResults",
        "from the trigger on, clears tool results but the newest 3",
        _started(lambda trigger, counter, model: ClearToolResults(max_tokens=trigger, tokenizer=counter)),
    ),
    Policy(
        "pydantic-ai SummarizingCompaction",
        "from the trigger on, the first user message, a summary and the newest 20",
        _started(lambda trigger, counter, model: SummarizingCompaction(model, max_tokens=trigger, tokenizer=counter)),
    ),
    Policy(
        "pydantic-ai TieredCompaction", "clears tool results, then summarises if that is not enough", _started(_tiered)
    ),
)
