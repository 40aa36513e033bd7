"""The agent of the scenario on Strands, and its fake model."""

from __future__ import annotations

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from adapters.adapter_checks import CACHED_TOKENS
from adapters.scenario import Call, Scenario, Step, Watch, look_up
from compact import CompactManager
from compact.adapters.strands import StrandsCompactionPlugin, StrandsDialect
from compact.adapters.strands.plugin import tool_schemas


def user(text: str, *, protected: bool = False) -> dict[str, Any]:
    """A message of the user's."""
    around = {"metadata": {"custom": {"protected": True}}} if protected else {}
    return {"role": "user", "content": [{"text": text}], **around}


class FakeModel(Model):
    """Answers by the script, and rejects what Bedrock would reject."""

    def __init__(self, watch: Watch, *, overflow_at: int = 0, reports: bool = True) -> None:
        self.watch, self.overflow_at, self.reports = watch, overflow_at, reports
        self.config: dict[str, Any] = {}
        self.calls = 0

    def update_config(self, **model_config: Any) -> None:
        self.config.update(model_config)

    def get_config(self) -> Any:
        return self.config

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.overflow_at:
            raise ContextWindowOverflowException("input is too long")
        assert all(set(message) == {"role", "content"} for message in messages)
        step = self.watch.ask(
            messages, StrandsDialect(), tools=tool_schemas(tool_specs or ()), instructions=system_prompt or ""
        )
        for chunk in chunks(step):
            yield chunk
        if self.reports:
            tokens = self.watch.tokens[-1]
            usage = {"inputTokens": tokens - CACHED_TOKENS, "cacheReadInputTokens": CACHED_TOKENS, "outputTokens": 5}
            yield {"metadata": {"usage": {**usage, "totalTokens": tokens + 5}, "metrics": {"latencyMs": 1}}}


def chunks(step: Step) -> list[dict[str, Any]]:
    """A step as Converse streams it."""
    if isinstance(step, Call):
        start = {"start": {"toolUse": {"name": step.name, "toolUseId": step.call_id}}}
        delta: dict[str, Any] = {"toolUse": {"input": step.arguments_json}}
        reason = "tool_use"
    else:
        start, delta, reason = {"start": {}}, {"text": step.text}, "end_turn"
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": start},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
        {"messageStop": {"stopReason": reason}},
    ]


@tool
def look_up_depot(depot: int) -> str:
    """The stock list of one depot."""
    return look_up(depot)


def opening(scenario: Scenario) -> list[Any]:
    """The conversation before the first task: a protected message."""
    reply = {"role": "assistant", "content": [{"text": "Noted."}]}
    return [user(scenario.protected, protected=True), reply]


def build(watch: Watch, manager: CompactManager, model: FakeModel | None = None, **settings: Any) -> Agent:
    """The agent of the scenario."""
    plugins = [StrandsCompactionPlugin(manager, session_id="s")]
    parts: dict[str, Any] = {"messages": opening(watch.scenario), "callback_handler": None, **settings}
    return Agent(
        model=model or FakeModel(watch),
        tools=[look_up_depot],
        system_prompt=watch.scenario.instructions,
        plugins=plugins,
        retry_strategy=None,
        **parts,
    )


def texts(messages: Any) -> list[str]:
    """The stored history as text."""
    return [json.dumps(message["content"]) for message in messages]
