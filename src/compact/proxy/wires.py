"""The three requests that hold a conversation: how to know one, and where in it everything stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """One kind of request: the end of its path, its dialect, and the names of its list and of its instructions."""

    dialect: str
    ending: str
    items_key: str
    instructions_key: str = ""
    # With one of these the provider has the history, and the list is only what is new.
    kept_elsewhere: tuple[str, ...] = ()

    def items(self, body: Body) -> list[Any] | None:
        """The conversation; None if there is none that we could read."""
        items = body.get(self.items_key)
        if isinstance(items, str) and self.dialect == "responses":
            return [{"role": "user", "content": items}]
        return cast("list[Any]", items) if isinstance(items, list) else None

    def instructions(self, body: Body) -> str:
        """What is said beside the conversation."""
        return text_of(body.get(self.instructions_key)) if self.instructions_key else ""

    def tools(self, body: Body) -> list[Mapping[str, Any]]:
        """The tool schemas."""
        tools = body.get("tools")
        return [tool for tool in cast("list[Any]", tools) if isinstance(tool, dict)] if isinstance(tools, list) else []

    def output_tokens(self, body: Body) -> int:
        """What the request sets aside for its answer."""
        asked = (body.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens"))
        return next((tokens for tokens in asked if isinstance(tokens, int)), 0)

    def history_is_elsewhere(self, body: Body) -> str:
        """The name of what says so; empty if the whole conversation is in the request."""
        return next((name for name in self.kept_elsewhere if body.get(name)), "")


CHAT = Wire("chat", "/chat/completions", "messages")
RESPONSES = Wire("responses", "/responses", "input", "instructions", ("previous_response_id", "conversation"))
ANTHROPIC = Wire("anthropic", "/v1/messages", "messages", "system")


def wire_of(method: str, path: str) -> Wire | None:
    """The wire that a request speaks; None for everything that is none of our business."""
    if method != "POST":
        return None
    # Only the ending counts: servers put these under prefixes of their own (/openai/v1, /api/v1, a deployment's name).
    return next((wire for wire in (CHAT, RESPONSES, ANTHROPIC) if path.endswith(wire.ending)), None)


def read_body(raw: bytes) -> Body | None:
    """A request's JSON object, or None."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("Body", body) if isinstance(body, dict) else None


def write_body(body: Body) -> bytes:
    """A request as JSON; a lone surrogate, which UTF-8 does not have, is escaped as it came."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def has_meta(items: Sequence[Any]) -> bool:
    """True if an item has a `meta` of ours, which providers reject."""
    return any(isinstance(item, dict) and "meta" in item for item in items)


def without_meta(items: Sequence[Any]) -> list[Any]:
    """The items as a provider takes them."""
    return [
        {key: value for key, value in item.items() if key != "meta"} if isinstance(item, dict) else item
        for item in items
    ]


def text_of(content: object) -> str:
    """The text of a message, however it is wrapped: agents move cache marks about, and that is not a new text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, sort_keys=True, default=repr)
    return "\n".join(map(_part_text, cast("list[Any]", content)))


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return str(part)
    fields = cast("Body", part)
    if isinstance(fields.get("text"), str):
        return fields["text"]
    return json.dumps({key: value for key, value in fields.items() if key != "cache_control"}, sort_keys=True)


def opening_of(items: Sequence[Any]) -> str:
    """The system messages that a conversation begins with, and its first user message."""
    said: list[str] = []
    for item in items:
        role = item.get("role") if isinstance(item, dict) else None
        if role in ("system", "developer", "user"):
            said.append(f"{role}: {text_of(item.get('content'))}")
        if role == "user":
            break
    return "\n\n".join(said)


def first_answer(items: Sequence[Any]) -> str:
    """What the model said first: the id of a call, or a text; empty if it has not said anything yet.

    Thoughts do not count, because agents may leave them out later.
    """
    for item in items:
        if not isinstance(item, dict) or item.get("type") == "reasoning":
            continue
        if item.get("role") == "assistant":
            return first_call(cast("Body", item)) or _spoken(item.get("content"))
        if "role" not in item:  # an item of the Responses API that is no message
            return str(item.get("call_id") or item.get("id") or "")
    return ""


def first_call(item: Body) -> str:
    """The id of the first tool call in an assistant's message."""
    calls = item.get("tool_calls") or item.get("content")
    for call in cast("list[Any]", calls) if isinstance(calls, list) else []:
        if isinstance(call, dict) and call.get("id") and call.get("type") in (None, "function", "custom", "tool_use"):
            return str(call["id"])
    return ""


def _spoken(content: object) -> str:
    if not isinstance(content, list):
        return text_of(content).strip()
    parts = cast("list[Any]", content)
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and "text" in part).strip()
