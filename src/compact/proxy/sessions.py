"""Which session a request belongs to: by the name it was given, or by how its conversation began.

Unlike the adapters, the proxy must recognise a conversation after a restart and in another process, so a session is
named after the opening of its conversation. Conversations that begin with the same words are told apart by what the
model answered first, which is hardly ever the same: tool calls have ids of their own, or else arguments. The first
conversation with an opening has the session that is named after it; others with another first answer get sessions of
their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from compact.adapters.support import SESSION_HEADER, RecentDict
from compact.adapters.support.endpoints import Body, Endpoint, content_text
from compact.core.json_data import is_list, is_mapping
from compact.core.log.forms import without_times

SESSION_HEADER_KEY = SESSION_HEADER.lower().encode()
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,80}")
# Who sends a key may send any: of eight characters one that ends the same would be found in minutes.
_KEY_CHARS = 16
# Sessions of those who have a key, and those named after an opening: who has no key could name them, too.
_OF_ANOTHER = re.compile(r"proxy-.*|.*-[0-9a-f]{16}", re.DOTALL)

# Returns the fingerprints of the first answer in a session's log; none if there is no answer, or no such session.
FindAnswers = Callable[[str], Awaitable[frozenset[str]]]


class SessionNames:
    """Names the session of each request, for the tasks of one event loop."""

    def __init__(self) -> None:
        # The first answer of the conversation that has the session which is named after an opening.
        self._first_answers: RecentDict[str, frozenset[str]] = RecentDict()

    async def name(
        self, endpoint: Endpoint, body: Body, *, key: bytes, given: bytes = b"", find_answers: FindAnswers
    ) -> str:
        """Return the session that a request belongs to, by the name it was `given` or by how it begins.

        No API key can be found out from it.
        """
        name = given.decode("latin-1").strip()
        if name:
            return _session_of_name(name, key)
        items = endpoint.items(body) or []
        opening = _opening_fingerprint(endpoint, body, items, key)
        return await self._by_opening(opening, answer_fingerprint(first_answer(items)), find_answers)

    async def _by_opening(self, opening: str, answer: str, find_answers: FindAnswers) -> str:
        known = self._first_answers.get(opening)
        if not known:
            stored = await find_answers(opening)  # another process may have seen it
            # Another request may have been named while the store was read.
            known = self._first_answers.get(opening) or stored
        if answer and not known:
            known = frozenset({answer})
        if known:
            self._first_answers[opening] = known
        if not known or answer in known:
            return opening
        return f"{opening}-{answer[:8] or 'again'}"


def _session_of_name(name: str, key: bytes) -> str:
    """Return the session that a caller named; with another API key the same name is another session."""
    is_safe = _SAFE_NAME.fullmatch(name) and (key or not _OF_ANOTHER.fullmatch(name))
    safe = name if is_safe else f"named-{_digest(name.encode())[:16]}"
    return f"{safe}-{_digest(key)[:_KEY_CHARS]}" if key else safe


def answer_fingerprint(answer: str) -> str:
    """Return what an answer is recognised by."""
    return _digest(answer.encode("utf-8", "surrogatepass"))[:16] if answer else ""


def _opening_fingerprint(endpoint: Endpoint, body: Body, items: Sequence[Any], key: bytes) -> str:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if is_mapping(metadata) else ""
    # Agents have clocks in there: a conversation is the same one a minute later.
    began = (without_times(endpoint.instructions(body)), without_times(_opening(items)))
    parts = (*began, str(body.get("prompt_cache_key") or ""), str(user or ""))
    lengths = "\0".join(f"{len(part)}:{part}" for part in parts)
    return f"proxy-{_digest(key + lengths.encode('utf-8', 'surrogatepass'))[:16]}"


def _digest(data: bytes) -> str:
    return sha256(b"compact proxy\0" + data).hexdigest()


def _opening(items: Sequence[Any]) -> str:
    """Return the system messages that a conversation begins with, and its first user message."""
    texts: list[str] = []
    for item in items:
        role = _role(item)
        if role in ("system", "developer", "user"):
            texts.append(f"{role}: {content_text(_content(item))}")
        if role == "user":
            break
    return "\n\n".join(texts)


def _role(item: object) -> str:
    """Return who says an item; Gemini's user need not be named, and has its model for an assistant."""
    if not is_mapping(item):
        return ""
    role = str(item.get("role") or ("user" if "parts" in item else ""))
    return "assistant" if role == "model" else role


def _content(item: Mapping[str, Any]) -> Any:
    return item.get("parts") if "parts" in item else item.get("content")


def first_answer(items: Sequence[Any]) -> str:
    """Return what the model answered first: a call, by its id or else by its arguments, or a text.

    Empty if it has not answered yet. Reasoning does not count, because agents may leave it out later.
    """
    for item in items:
        if not is_mapping(item) or item.get("type") == "reasoning":
            continue
        if _role(item) == "assistant":
            return _first_call(item) or _answer_text(_content(item))
        if "role" not in item and "parts" not in item:  # an item of the Responses API that is no message
            return str(item.get("call_id") or item.get("id") or "")
    return ""


def call_text(name: str, arguments: object) -> str:
    """Return what a call is recognised by if it has no id: its tool, and its arguments as an object or as JSON."""
    try:
        fields: object = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError:
        fields = arguments
    return f"{name} {json.dumps(fields or {}, sort_keys=True)}"


def _first_call(item: Mapping[str, Any]) -> str:
    calls: object = item.get("tool_calls") or _content(item)
    for call in calls if is_list(calls) else ():
        if not is_mapping(call) or call.get("type") not in (None, "function", "custom", "tool_use"):
            continue
        # Under the names of Chat Completions and Ollama, of Converse, and of Gemini; Anthropic's are beside the type.
        named = (call.get(name) for name in ("function", "toolUse", "functionCall", "function_call"))
        function = next((found for found in named if is_mapping(found)), call)
        own_id = call.get("id") or function.get("toolUseId") or function.get("id")
        # Ollama, whose arguments are an object, has ids that do not come back with every client.
        if own_id and not is_mapping(function.get("arguments")):
            return str(own_id)
        if function.get("name"):
            return call_text(str(function["name"]), function.get("args") or function.get("arguments"))
    return ""


def _answer_text(content: object) -> str:
    if not is_list(content):
        return content_text(content).strip()
    said = (part for part in content if is_mapping(part) and "text" in part and not part.get("thought"))
    return "\n".join(part["text"] for part in said).strip()
