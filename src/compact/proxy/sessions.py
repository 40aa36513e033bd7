"""Which session a request belongs to: by the name it was given, or by how its conversation began.

Unlike the adapters, the proxy must recognise a conversation after a restart and in another process, so a session is
named after the opening of its conversation. Conversations that begin with the same words are told apart by what the
model answered first, which is hardly ever the same: tool calls have ids of their own. The first conversation with an
opening has the session that is named after it; others with another first answer get sessions of their own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from compact.adapters.support import SESSION_HEADER, RecentDict
from compact.adapters.support.endpoints import Body, Endpoint, content_text
from compact.core.json_data import is_list, is_mapping

SESSION_HEADER_KEY = SESSION_HEADER.lower().encode()
_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,80}")

# Returns the fingerprints of the first answer in a session's log; none if there is no answer, or no such session.
FindAnswers = Callable[[str], frozenset[str]]


class SessionNames:
    """Names the session of each request; safe to share between threads."""

    def __init__(self) -> None:
        # The first answer of the conversation that has the session which is named after an opening.
        self._first_answers: RecentDict[str, frozenset[str]] = RecentDict()
        self._lock = threading.Lock()

    def name(self, endpoint: Endpoint, body: Body, headers: Mapping[bytes, bytes], find_answers: FindAnswers) -> str:
        """Return the session that a request belongs to; no API key can be found out from it."""
        key = next((headers[name] for name in _KEY_HEADERS if headers.get(name)), b"")
        given = headers.get(SESSION_HEADER_KEY, b"").decode("latin-1").strip()
        if given:
            return _session_of_name(given, key)
        items = endpoint.items(body) or []
        opening = _opening_fingerprint(endpoint, body, items, key)
        return self._by_opening(opening, answer_fingerprint(first_answer(items)), find_answers)

    def _by_opening(self, opening: str, answer: str, find_answers: FindAnswers) -> str:
        with self._lock:
            known = self._first_answers.get(opening)
        if not known:
            known = find_answers(opening)  # another process may have seen it; no lock is held while the store is read
        with self._lock:
            known = self._first_answers.get(opening) or known
            if answer and not known:
                known = frozenset({answer})
            if known:
                self._first_answers[opening] = known
        if not known or answer in known:
            return opening
        return f"{opening}-{answer[:8] or 'again'}"


def _session_of_name(name: str, key: bytes) -> str:
    """Return the session that a caller named; with another API key the same name is another session."""
    safe = name if _SAFE_NAME.fullmatch(name) else f"named-{_digest(name.encode())[:16]}"
    return f"{safe}-{_digest(key)[:8]}" if key else safe


def answer_fingerprint(answer: str) -> str:
    """Return what an answer is recognised by."""
    return _digest(answer.encode("utf-8", "surrogatepass"))[:16] if answer else ""


def _opening_fingerprint(endpoint: Endpoint, body: Body, items: Sequence[Any], key: bytes) -> str:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if is_mapping(metadata) else ""
    parts = (endpoint.instructions(body), _opening(items), str(body.get("prompt_cache_key") or ""), str(user or ""))
    lengths = "\0".join(f"{len(part)}:{part}" for part in parts)
    return f"proxy-{_digest(key + lengths.encode('utf-8', 'surrogatepass'))[:16]}"


def _digest(data: bytes) -> str:
    return sha256(b"compact proxy\0" + data).hexdigest()


def _opening(items: Sequence[Any]) -> str:
    """Return the system messages that a conversation begins with, and its first user message."""
    texts: list[str] = []
    for item in items:
        role = item.get("role") if is_mapping(item) else None
        if role in ("system", "developer", "user"):
            texts.append(f"{role}: {content_text(item.get('content'))}")
        if role == "user":
            break
    return "\n\n".join(texts)


def first_answer(items: Sequence[Any]) -> str:
    """Return what the model answered first: the id of a call, or a text; empty if it has not answered yet.

    Reasoning does not count, because agents may leave it out later.
    """
    for item in items:
        if not is_mapping(item) or item.get("type") == "reasoning":
            continue
        if item.get("role") == "assistant":
            return _first_call_id(item) or _answer_text(item.get("content"))
        if "role" not in item:  # an item of the Responses API that is no message
            return str(item.get("call_id") or item.get("id") or "")
    return ""


def _first_call_id(item: Mapping[str, Any]) -> str:
    calls: object = item.get("tool_calls") or item.get("content")
    for call in calls if is_list(calls) else ():
        if is_mapping(call) and call.get("id") and call.get("type") in (None, "function", "custom", "tool_use"):
            return str(call["id"])
    return ""


def _answer_text(content: object) -> str:
    if not is_list(content):
        return content_text(content).strip()
    return "\n".join(part["text"] for part in content if is_mapping(part) and "text" in part).strip()
