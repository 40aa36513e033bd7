"""Which headers travel: all of them, in their order and as often as they came, but for those of one hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from compact.proxy.sessions import SESSION_HEADER

Headers: TypeAlias = list[tuple[bytes, bytes]]

TOKEN_HEADER = b"x-compact-token"
_OURS = frozenset({SESSION_HEADER, TOKEN_HEADER})
_ONE_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"}
    | {b"te", b"trailer", b"upgrade"}
)


def by_name(headers: Headers) -> dict[bytes, bytes]:
    """Headers to look things up in; of several with one name the last."""
    return {name.lower(): value for name, value in headers}


def for_upstream(headers: Headers, host: bytes, *, new_length: int | None = None) -> Headers:
    """A request's headers as the provider gets them; a body that we made has a new length, and is not in chunks."""
    sent = [(name, host if name.lower() == b"host" else value) for name, value in _travelling(headers)]
    # Whoever asked to be told to go on was told so by us.
    sent = [(name, value) for name, value in sent if name.lower() not in (*_OURS, b"expect")]
    if new_length is None:
        return sent
    length = (b"Content-Length", str(new_length).encode())
    framing = (b"content-length", b"transfer-encoding")
    renewed = [(name, length[1]) if name.lower() == framing[0] else (name, value) for name, value in sent]
    renewed = [(name, value) for name, value in renewed if name.lower() != framing[1]]
    return renewed if any(name.lower() == framing[0] for name, _ in renewed) else [*renewed, length]


def for_client(headers: Headers) -> Headers:
    """An answer's headers as the agent gets them; how the body is cut into chunks is the server's business."""
    return [(name, value) for name, value in _travelling(headers) if name.lower() != b"transfer-encoding"]


def _travelling(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    named = {
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    }
    # An answer's length would be lost by a peer that names it; a request could smuggle another one in that way.
    stays = _ONE_HOP | (named - {b"close", b"content-length", b"transfer-encoding", b"host"})
    return ((name, value) for name, value in headers if name.lower() not in stays)
