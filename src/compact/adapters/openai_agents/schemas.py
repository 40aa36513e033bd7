"""What an agent of the OpenAI Agents SDK sends beside messages: model, schemas of tools, handoffs and the output."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

from agents import Agent, AgentOutputSchema, AgentOutputSchemaBase, FunctionTool, Handoff
from agents.models import get_default_model

from compact.adapters.support import litellm_limit


def tool_schemas(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Return all schemas of an agent as they are counted, except those that MCP servers must first be asked for."""
    return [*map(_tool, agent.tools), *map(_handoff, agent.handoffs), *_output(agent.output_type)]


def model_name(agent: Agent[Any]) -> str:
    """Return the name of an agent's model; of a model that does not tell its name, nothing."""
    if agent.model is None:
        return get_default_model()
    return agent.model if isinstance(agent.model, str) else str(getattr(agent.model, "model", None) or "")


def output_tokens(agent: Agent[Any]) -> int:
    """Return the most tokens that an agent's answer may have; 0 if it has no limit."""
    return agent.model_settings.max_tokens or litellm_limit(agent.model, model_name(agent))


# Chosen: more output types than an application has; making the schema of one takes longer than the rest of a call.
@lru_cache(maxsize=128)
def _output(kind: Any) -> tuple[dict[str, Any], ...]:
    if kind is None or kind is str:
        return ()
    schema = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
    if schema.is_plain_text():
        return ()
    return ({"type": "json_schema", "name": schema.name(), "parameters": schema.json_schema()},)


def _tool(tool: Any) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        return _function(tool.name, tool.description, tool.params_json_schema)
    fields: dict[str, Any] = dataclasses.asdict(tool) if _has_only_settings(tool) else {}
    return {"type": str(getattr(tool, "name", type(tool).__name__)), **fields}


def _has_only_settings(tool: Any) -> bool:
    """Return True for built-in tools that are settings and nothing else; others hold functions, which are not sent."""
    if not dataclasses.is_dataclass(tool):
        return False
    values = (getattr(tool, spec.name) for spec in dataclasses.fields(tool))
    return all(value is None or isinstance(value, str | int | float | list | dict) for value in values)


def _handoff(target: Any) -> dict[str, Any]:
    if isinstance(target, Handoff):
        return _function(target.tool_name, target.tool_description, target.input_json_schema)
    name = Handoff.default_tool_name(target)
    return _function(name, Handoff.default_tool_description(target), {})


def _function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a function in the form of the Responses API."""
    return {"type": "function", "name": name, "description": description, "parameters": parameters}
