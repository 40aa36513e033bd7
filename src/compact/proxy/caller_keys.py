"""Who sends a request: its API key, which is never kept, and the sessions that one key has in memory.

A key that begins one conversation after the other must not push those of others out of memory: from a limit on, its own
least recently used sessions leave memory. The store has them, and they are read again if they go on.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from urllib.parse import parse_qs

from compact.adapters.support import RecentDict

_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_SECRET = secrets.token_bytes(32)
# A request to AWS has a signature of its own in place of a key; what stays is whose key signed it.
_SIGNATURE = re.compile(rb"AWS4-[A-Z0-9-]+ .*?Credential=([^/,\s]+)/", re.DOTALL)


def caller_key(headers: Mapping[bytes, bytes], query: bytes = b"") -> bytes:
    """Return the API key of a request, from a header or from Google's `?key=`; empty if it has none."""
    found = next((headers[name] for name in _KEY_HEADERS if headers.get(name)), b"")
    if signed := _SIGNATURE.match(found):
        return b"aws:" + signed[1]
    return found or parse_qs(query.decode("latin-1")).get("key", [""])[0].encode()


def hashed_key(key: bytes) -> bytes:
    """Return what a key is known by longer than its request lasts: a hash that only this process can make."""
    return blake2b(key, key=_SECRET, digest_size=16).digest()


class SessionsOfKeys:
    """Which sessions each key has in memory; no key is kept."""

    def __init__(self, most_per_key: int) -> None:
        self._most = most_per_key
        self._sessions: RecentDict[bytes, OrderedDict[str, None]] = RecentDict()

    def use(self, key: bytes, session_id: str) -> list[str]:
        """Note that a key uses a session; return those of its sessions that are to leave memory for it."""
        hashed = hashed_key(key)
        own = self._sessions.get(hashed)
        own = OrderedDict[str, None]() if own is None else own
        self._sessions[hashed] = own
        own[session_id] = None
        own.move_to_end(session_id)
        return [own.popitem(last=False)[0] for _ in range(len(own) - self._most)]
