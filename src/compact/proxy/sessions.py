"""Tells conversations apart: by the name they were given, or by how they began.

Agents that begin with the same words are told apart by what the model answered first, which is hardly ever the same:
calls have ids of their own. The first conversation with an opening has the session that is named after the opening;
others that turn out to have another first answer get sessions of their own.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from compact.proxy.wires import Body, Wire, first_answer, opening_of

SESSION_HEADER = b"x-compact-session"
_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,80}")
_REMEMBERED = 10_000

# The marks of the first answer in a session's log; nothing if there is none, or no such session.
FindAnswers = Callable[[str], frozenset[str]]


class SessionNames:
    """Names the session of each request; safe to share between threads."""

    def __init__(self) -> None:
        # Whose session the one that is named after an opening is: known by its first answer.
        self._owners: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._lock = threading.Lock()

    def name(self, wire: Wire, body: Body, headers: Mapping[bytes, bytes], find_answers: FindAnswers) -> str:
        """The session that a request belongs to; no key can be told from it."""
        key = next((headers[name] for name in _KEY_HEADERS if headers.get(name)), b"")
        given = headers.get(SESSION_HEADER, b"").decode("latin-1").strip()
        if given:
            return named_session(given, key)
        items = wire.items(body) or []
        return self._by_opening(_fingerprint(wire, body, items, key), mark_of(first_answer(items)), find_answers)

    def _by_opening(self, opening: str, answer: str, find_answers: FindAnswers) -> str:
        with self._lock:
            owner = self._owners.get(opening)
        if not owner:
            owner = find_answers(opening)  # another process may have seen it; nobody waits for the store meanwhile
        with self._lock:
            owner = self._owners.get(opening) or owner
            if answer and not owner:
                owner = frozenset({answer})
            if owner:
                self._owners[opening] = owner
                self._owners.move_to_end(opening)
            while len(self._owners) > _REMEMBERED:
                self._owners.popitem(last=False)
        if not owner or answer in owner:
            return opening
        return f"{opening}-{answer[:8] or 'again'}"


def named_session(name: str, key: bytes) -> str:
    """The session that a caller named: nobody with another key comes into it."""
    plain = name if _PLAIN_NAME.fullmatch(name) else f"named-{_digest(name.encode())[:16]}"
    return f"{plain}-{_digest(key)[:8]}" if key else plain


def mark_of(answer: str) -> str:
    """What an answer is recognised by."""
    return _digest(answer.encode("utf-8", "surrogatepass"))[:16] if answer else ""


def _fingerprint(wire: Wire, body: Body, items: Sequence[Any], key: bytes) -> str:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else ""
    parts = (wire.instructions(body), opening_of(items), str(body.get("prompt_cache_key") or ""), str(user or ""))
    lengths = "\0".join(f"{len(part)}:{part}" for part in parts)
    return f"proxy-{_digest(key + lengths.encode('utf-8', 'surrogatepass'))[:16]}"


def _digest(data: bytes) -> str:
    return sha256(b"compact proxy\0" + data).hexdigest()
