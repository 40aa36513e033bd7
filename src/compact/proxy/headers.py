"""Which headers are passed on: all, in their order and as often as they came, except those of one connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from compact.proxy.sessions import SESSION_HEADER_KEY

Headers: TypeAlias = list[tuple[bytes, bytes]]

TOKEN_HEADER = b"x-compact-token"
_OURS = frozenset({SESSION_HEADER_KEY, TOKEN_HEADER})
# Those that RFC 9110, section 7.6.1, keeps from being forwarded.
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"}
    | {b"te", b"trailer", b"upgrade"}
)


def by_name(headers: Headers) -> dict[bytes, bytes]:
    """Return headers by their names in lower case; of several with one name the last."""
    return {name.lower(): value for name, value in headers}


def for_upstream(headers: Headers, host: bytes, *, new_length: int | None = None) -> Headers:
    """Return a request's headers as the provider gets them; a new body has a new length, and is not in chunks.

    Nor is it packed: every provider takes a plain body, and not every one takes what an agent may pack it with.
    """
    sent = [(name, host if name.lower() == b"host" else value) for name, value in _end_to_end(headers)]
    # A client that asked whether to continue (Expect: 100-continue) was answered by our server.
    sent = [(name, value) for name, value in sent if name.lower() not in (*_OURS, b"expect")]
    if new_length is None:
        return _with_one_length(sent)
    length = (b"Content-Length", str(new_length).encode())
    renewed = [(name, length[1]) if name.lower() == b"content-length" else (name, value) for name, value in sent]
    renewed = [pair for pair in renewed if pair[0].lower() not in (b"transfer-encoding", b"content-encoding")]
    return renewed if any(name.lower() == b"content-length" for name, _ in renewed) else [*renewed, length]


def _with_one_length(headers: Headers) -> Headers:
    """Return a request's headers without its length, if its body comes in chunks (RFC 9112, section 6.3).

    Of two, one server believes the one and the next server the other, and what is between is a request of its own.
    """
    is_chunked = any(name.lower() == b"transfer-encoding" for name, _ in headers)
    return [pair for pair in headers if not is_chunked or pair[0].lower() != b"content-length"]


def unpacked(headers: Headers) -> Headers:
    """Return a request's headers such that the response comes unpacked, to be read."""
    return [
        *((name, value) for name, value in headers if name.lower() != b"accept-encoding"),
        (b"Accept-Encoding", b"identity"),
    ]


def without_body_headers(headers: Headers) -> Headers:
    """Return a response's headers without those about the bytes of its body, for one whose body is another."""
    return [(name, value) for name, value in headers if name.lower() not in (b"content-length", b"content-encoding")]


def for_client(headers: Headers) -> Headers:
    """Return a response's headers as the agent gets them; our server decides how the body is cut into chunks."""
    return [(name, value) for name, value in _end_to_end(headers) if name.lower() != b"transfer-encoding"]


def _end_to_end(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    named = {
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    }
    # Of the headers that `Connection` names, these are passed on all the same: a response would lose its length, and a
    # request could smuggle in another one.
    removed = _HOP_BY_HOP | (named - {b"close", b"content-length", b"transfer-encoding", b"host"})
    return ((name, value) for name, value in headers if name.lower() not in removed)
