"""What a proxy is told: where to, where to listen, who may come in, and how long and how large things may be."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

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
