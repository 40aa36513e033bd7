"""What a proxy is told: where to, where to listen, who may come in, and how long and how large things may be."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from compact.core.errors import ConfigError

PORT = 5176


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """The provider's URL, and everything that has a default.

    `timeout_seconds` is how long the provider may be silent; by default as long as it likes, because agents have
    time limits of their own. Conversations in bodies above `max_body_bytes` are passed on without a look.
    """

    upstream: str
    host: str = "127.0.0.1"
    port: int = PORT
    token: str = ""
    timeout_seconds: float | None = None
    max_body_bytes: int = 64_000_000

    def __post_init__(self) -> None:
        if self.token and not (self.token.isascii() and self.token.isprintable() and self.token == self.token.strip()):
            raise ConfigError("the token cannot be sent in a header", field="token", hint="use plain ASCII letters")
        if not self.token and not is_loopback(self.host):
            raise ConfigError(
                f"whoever reaches {self.host} could use this proxy, and read what it remembers through its answers",
                field="token",
                hint="set COMPACT_PROXY_TOKEN and have agents send it as X-Compact-Token, or listen on 127.0.0.1",
            )

    @property
    def timeout_text(self) -> str:
        """The time limit, for people."""
        return f"{self.timeout_seconds:g} seconds" if self.timeout_seconds else "the time to connect"


def is_loopback(host: str) -> bool:
    """True if only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_by_a_page(headers: Mapping[bytes, bytes], host: str) -> bool:
    """True for what a page in somebody's browser sends: it may not use this machine's proxy, nor a name for it.

    Agents are no browsers; they name an address of this machine. A page of another site says so, or has given its own
    name an address of ours.
    """
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        return True
    places = [f"//{headers.get(b'host', b'').decode('latin-1')}"]
    if b"origin" in headers:
        places.append(headers[b"origin"].decode("latin-1"))
    return not all(_is_here(place, host) for place in places)


def _is_here(place: str, host: str) -> bool:
    try:
        name = urlsplit(place).hostname or ""
    except ValueError:
        return False
    return name == host.strip("[]").lower() or is_loopback(name)
