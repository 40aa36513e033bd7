"""The kinds of requests that hold a conversation: how to recognise one, and where its parts are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from pydantic_core import PydanticSerializationError, to_json

from compact.adapters.support.limits import output_limit
from compact.adapters.support.requests import OutgoingRequest
from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import is_cache_point

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One kind of request: its dialect, the end of its path, and the keys of what is in its body.

    A path may name the model: that is the group `model` of its pattern.
    """

    dialect: str
    path_end: re.Pattern[str]
    items_key: str
    # Of several names the one that is set; some APIs take a field in two spellings.
    instructions_keys: tuple[str, ...] = ()
    # If one of these keys is set the provider keeps the history, and the messages are only the new ones.
    history_keys: tuple[str, ...] = ()
    # The object that the tools are in, and the one with the limits; empty if these are beside the messages.
    tools_parents: tuple[str, ...] = ()
    limits_parents: tuple[str, ...] = ()
    # Without this key a body is of another model's own form.
    mark_key: str = ""
    # What model tables call the host, put before the model's name; and the limit that is the window.
    host: str = ""
    window_key: str = ""

    def items(self, body: Mapping[str, Any]) -> list[Any] | None:
        """Return the conversation; None if there is none that can be read."""
        items = body.get(self.items_key) if not self.mark_key or self.mark_key in body else None
        if isinstance(items, str) and self.dialect == "responses":
            return [{"role": "user", "content": items}]
        return cast("list[Any]", items) if isinstance(items, list) else None

    def instructions(self, body: Mapping[str, Any]) -> str:
        """Return what is sent beside the conversation as instructions."""
        found = _first(body, self.instructions_keys)
        return content_text(found.get("parts") if is_mapping(found) and "parts" in found else found)

    def tools(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the tool schemas."""
        parent = _first(body, self.tools_parents) if self.tools_parents else body
        tools: object = parent.get("tools") if is_mapping(parent) else None
        return [tool for tool in tools if is_mapping(tool)] if is_list(tools) else []

    def output_tokens(self, body: Mapping[str, Any]) -> int:
        """Return the tokens that the request sets aside for its answer."""
        return output_limit(self._limits(body))

    def window_tokens(self, body: Mapping[str, Any]) -> int:
        """Return the window that the request itself asks for; 0 if it does not."""
        window = self._limits(body).get(self.window_key) if self.window_key else 0
        return window if isinstance(window, int) and window > 0 else 0

    def model(self, body: Mapping[str, Any], path: str) -> str:
        """Return the name of the model, as model tables know it."""
        found = self.path_end.search(path)
        in_path = found.groupdict().get("model") if found else ""
        name = str(body.get("model") or unquote(in_path or ""))
        return f"{self.host}/{name}" if self.host and name else name

    def history_kept_by(self, body: Mapping[str, Any]) -> str:
        """Return the key by which the provider keeps the history; empty if the whole conversation is in the request."""
        return next((name for name in self.history_keys if body.get(name)), "")

    def outgoing(self, body: Mapping[str, Any], model: str) -> OutgoingRequest:
        """Return what is in a request, for a manager."""
        return OutgoingRequest(
            items=self.items(body) or (),
            tools=self.tools(body),
            instructions=self.instructions(body),
            output_tokens=self.output_tokens(body),
            model=model,
            dialect=self.dialect,
        )

    def _limits(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        found = _first(body, self.limits_parents) if self.limits_parents else body
        return found if is_mapping(found) else {}


def _first(body: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((body[name] for name in names if body.get(name)), None)


# Azure has the name of a deployment in the path. Servers put these under prefixes of their own (/openai/v1, /api/v1).
CHAT_COMPLETIONS = Endpoint("chat", re.compile(r"(?:/deployments/(?P<model>[^/]+))?/chat/completions$"), "messages")
RESPONSES = Endpoint(
    "responses",
    re.compile(r"/responses$"),
    "input",
    ("instructions",),
    ("previous_response_id", "conversation"),
)
ANTHROPIC_MESSAGES = Endpoint("anthropic", re.compile(r"/v1/messages$"), "messages", ("system",))
# Vertex and Bedrock pass the body of an Anthropic request on; the model is in the path.
ANTHROPIC_AT_VERTEX = Endpoint(
    "anthropic",
    re.compile(r"/publishers/anthropic/models/(?!count-tokens)(?P<model>[^/:%]+)(?::|%3A)(?:stream)?[rR]awPredict$"),
    "messages",
    ("system",),
)
ANTHROPIC_AT_BEDROCK = Endpoint(
    "anthropic",
    re.compile(r"/model/(?P<model>[^/]+)/invoke(?:-with-response-stream)?$"),
    "messages",
    ("system",),
    mark_key="anthropic_version",
)
GEMINI = Endpoint(
    "gemini",
    re.compile(
        r"(?:^|/)(?:models|tunedModels|endpoints)/(?P<model>[^/:%]+)(?::|%3A)(?:g|streamG)enerateContent$",
    ),
    "contents",
    ("systemInstruction", "system_instruction"),
    ("cachedContent", "cached_content"),
    limits_parents=("generationConfig", "generation_config"),
)
CONVERSE = Endpoint(
    "converse",
    re.compile(r"/model/(?P<model>[^/]+)/converse(?:-stream)?$"),
    "messages",
    ("system",),
    tools_parents=("toolConfig",),
    limits_parents=("inferenceConfig",),
)
OLLAMA_CHAT = Endpoint(
    "ollama",
    re.compile(r"/api/chat$"),
    "messages",
    limits_parents=("options",),
    host="ollama",
    window_key="num_ctx",
)
_ENDPOINTS = (
    CHAT_COMPLETIONS,
    RESPONSES,
    ANTHROPIC_MESSAGES,
    ANTHROPIC_AT_VERTEX,
    ANTHROPIC_AT_BEDROCK,
    GEMINI,
    CONVERSE,
    OLLAMA_CHAT,
)


def find_endpoint(method: str, path: str) -> Endpoint | None:
    """Return the endpoint that a request is for; None for all that hold no conversation."""
    if method != "POST":
        return None
    return next((endpoint for endpoint in _ENDPOINTS if endpoint.path_end.search(path)), None)


def write_body(body: Body) -> bytes:
    """Return a request as JSON; a lone surrogate, which UTF-8 does not have, is escaped as it came."""
    try:
        return to_json(body, inf_nan_mode="constants")
    except PydanticSerializationError:
        return json.dumps(body, separators=(",", ":")).encode()


def content_text(content: object) -> str:
    """Return the text of a message, whether it is wrapped or not; cache marks, which agents move, do not count."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return "" if content is None else json.dumps(content, sort_keys=True, default=repr)
    return "\n".join(_part_text(part) for part in content if not is_cache_point(part))


def _part_text(part: object) -> str:
    if not is_mapping(part):
        return str(part)
    if isinstance(part.get("text"), str):
        return part["text"]
    return json.dumps({key: value for key, value in part.items() if key != "cache_control"}, sort_keys=True)
