"""Whether a request gets the recall tool, and the tool in the form of each wire."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compact.adapters.support import RecentDict
from compact.adapters.support.endpoints import (
    ANTHROPIC_AT_VERTEX,
    ANTHROPIC_MESSAGES,
    CHAT_COMPLETIONS,
    RESPONSES,
    Body,
    Endpoint,
)
from compact.adapters.support.recall import RECALL_DESCRIPTION, RECALL_NAME, RECALL_PARAMETERS
from compact.core.json_data import is_mapping
from compact.manager import CompactManager
from compact.recall.tool import TOOL_SCHEMA

_ENDPOINTS = (CHAT_COMPLETIONS, RESPONSES, ANTHROPIC_MESSAGES, ANTHROPIC_AT_VERTEX)
_TOOLS: Mapping[str, Mapping[str, Any]] = {
    "chat": TOOL_SCHEMA,
    "responses": {
        "type": "function",
        "name": RECALL_NAME,
        "description": RECALL_DESCRIPTION,
        "parameters": RECALL_PARAMETERS,
        "strict": False,
    },
    "anthropic": {"name": RECALL_NAME, "description": RECALL_DESCRIPTION, "input_schema": RECALL_PARAMETERS},
}


@dataclass(frozen=True, slots=True)
class RecallOffer:
    """A request that offers the tool: its session, and the body as it is sent."""

    manager: CompactManager
    session_id: str
    endpoint: Endpoint
    body: Body

    def next_body(self, added: list[Any], *, with_tool: bool) -> Body:
        """Return the request that asks again, with more items behind its own; the last one may not recall any more."""
        body = {**self.body, self.endpoint.items_key: [*(self.endpoint.items(self.body) or []), *added]}
        if not with_tool:
            body["tools"] = [tool for tool in body["tools"] if tool_name(tool) != RECALL_NAME]
        return body


class OfferedSessions:
    """The sessions whose requests offer the tool; safe to share between threads.

    A session begins to offer it with its first compaction, which changes the cached beginning of the prompt anyway:
    before, there is nothing to recall. From then on every request offers it, so that the beginning stays the same.
    """

    def __init__(self) -> None:
        self._sessions: RecentDict[str, None] = RecentDict()
        self._lock = threading.Lock()

    def has(self, session_id: str) -> bool:
        """Return True if an earlier request of a session offered the tool."""
        with self._lock:
            return session_id in self._sessions

    def add(self, session_id: str) -> None:
        """Note that a session offers the tool from now on."""
        with self._lock:
            self._sessions[session_id] = None


def may_offer(endpoint: Endpoint, body: Body) -> bool:
    """Return True if a request can have the tool beside its own.

    One without tools may be for a model that rejects them; several answers at once could not be joined to one, and
    neither could the streams of other wires.
    """
    tools = endpoint.tools(body)
    is_single = body.get("n") in (None, 1)
    return endpoint in _ENDPOINTS and bool(tools) and is_single and RECALL_NAME not in map(tool_name, tools)


def offered_tool(endpoint: Endpoint) -> Mapping[str, Any]:
    """Return the tool as a request to an endpoint has it."""
    return _TOOLS[endpoint.dialect]


def with_tool(endpoint: Endpoint, body: Body) -> Body:
    """Return a request with the tool behind its own."""
    return {**body, "tools": [*body["tools"], offered_tool(endpoint)]}


def tool_name(tool: object) -> str:
    """Return the name of a tool, in any of the forms; empty for a provider's own tools."""
    if not is_mapping(tool):
        return ""
    function = tool.get("function")
    return str((function if is_mapping(function) else tool).get("name") or "")
