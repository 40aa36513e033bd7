"""The three kinds of requests that hold a conversation: how to recognise one, and where its parts are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from compact.adapters.support.limits import output_limit
from compact.core.json_data import is_list, is_mapping

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One kind of request: its dialect, the end of its path, and the keys of its messages and instructions."""

    dialect: str
    path_end: str
    items_key: str
    instructions_key: str = ""
    # If one of these keys is set the provider keeps the history, and the messages are only the new ones.
    history_keys: tuple[str, ...] = ()

    def items(self, body: Body) -> list[Any] | None:
        """Return the conversation; None if there is none that can be read."""
        items = body.get(self.items_key)
        if isinstance(items, str) and self.dialect == "responses":
            return [{"role": "user", "content": items}]
        return cast("list[Any]", items) if isinstance(items, list) else None

    def instructions(self, body: Body) -> str:
        """Return what is sent beside the conversation as instructions."""
        return content_text(body.get(self.instructions_key)) if self.instructions_key else ""

    def tools(self, body: Body) -> list[Mapping[str, Any]]:
        """Return the tool schemas."""
        tools = body.get("tools")
        return [tool for tool in cast("list[Any]", tools) if is_mapping(tool)] if isinstance(tools, list) else []

    def output_tokens(self, body: Body) -> int:
        """Return the tokens that the request sets aside for its answer."""
        return output_limit(body)

    def history_kept_by(self, body: Body) -> str:
        """Return the key by which the provider keeps the history; empty if the whole conversation is in the request."""
        return next((name for name in self.history_keys if body.get(name)), "")


CHAT_COMPLETIONS = Endpoint("chat", "/chat/completions", "messages")
RESPONSES = Endpoint("responses", "/responses", "input", "instructions", ("previous_response_id", "conversation"))
ANTHROPIC_MESSAGES = Endpoint("anthropic", "/v1/messages", "messages", "system")


def find_endpoint(method: str, path: str) -> Endpoint | None:
    """Return the endpoint that a request is for; None for all that hold no conversation."""
    if method != "POST":
        return None
    # Only the ending counts: servers put these under prefixes of their own (/openai/v1, /api/v1, a deployment's name).
    endpoints = (CHAT_COMPLETIONS, RESPONSES, ANTHROPIC_MESSAGES)
    return next((endpoint for endpoint in endpoints if path.endswith(endpoint.path_end)), None)


def read_body(raw: bytes) -> Body | None:
    """Return a request's JSON object, or None."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("Body", body) if isinstance(body, dict) else None


def write_body(body: Body) -> bytes:
    """Return a request as JSON; a lone surrogate, which UTF-8 does not have, is escaped as it came."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def content_text(content: object) -> str:
    """Return the text of a message, whether it is wrapped or not; cache marks, which agents move, do not count."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return "" if content is None else json.dumps(content, sort_keys=True, default=repr)
    return "\n".join(map(_part_text, content))


def _part_text(part: object) -> str:
    if not is_mapping(part):
        return str(part)
    if isinstance(part.get("text"), str):
        return part["text"]
    return json.dumps({key: value for key, value in part.items() if key != "cache_control"}, sort_keys=True)
