"""The proxy's settings: the provider, where to listen, the token, and limits of time and size."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from compact.core.errors import ConfigError
from compact.core.plurals import quantity

PORT = 5176  # chosen: free on most machines
# Chosen: more conversations than one key has at a time, and a fraction of those that a manager keeps in memory.
MAX_SESSIONS_PER_KEY = 200
# Chosen, as for the viewer: 16 characters of `secrets.token_urlsafe` have 96 bits.
_LEAST_TOKEN_CHARS = 16
_NEW_TOKEN = '`python -c "import secrets; print(secrets.token_urlsafe())"` makes one'


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """The provider's URL, and everything that has a default.

    `timeout_seconds` is how long the provider may send nothing; by default there is no limit, because agents have time
    limits of their own. Requests above `max_body_bytes`, unpacked, are passed on without compaction. An API key has
    `max_sessions_per_key` sessions in memory at most. With `recall` the proxy offers the recall tool to models whose
    prompts it compacted, and answers its calls itself.
    """

    upstream: str
    host: str = "127.0.0.1"
    port: int = PORT
    token: str = ""
    timeout_seconds: float | None = None
    max_body_bytes: int = 64_000_000
    max_sessions_per_key: int = MAX_SESSIONS_PER_KEY
    recall: bool = True

    def __post_init__(self) -> None:
        if self.token and not (self.token.isascii() and self.token.isprintable() and self.token == self.token.strip()):
            raise ConfigError("the token cannot be sent in a header", field="token", hint="use plain ASCII letters")
        if self.token and len(self.token) < _LEAST_TOKEN_CHARS:
            what = f"a token of {quantity(len(self.token), 'character')} can be guessed"
            raise ConfigError(f"{what}; use at least {_LEAST_TOKEN_CHARS}", field="token", hint=_NEW_TOKEN)
        if not self.token and not is_loopback(self.host):
            raise ConfigError(
                f"without a token, whoever reaches {self.host} could use this proxy and read stored conversations",
                field="token",
                hint="set COMPACT_PROXY_TOKEN and have agents send it as X-Compact-Token, or listen on 127.0.0.1; "
                + _NEW_TOKEN,
            )

    @property
    def timeout_text(self) -> str:
        """The time limit in words."""
        return f"{self.timeout_seconds:g} seconds" if self.timeout_seconds else "the time to connect"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_from_web_page(headers: Mapping[bytes, bytes], host: str) -> bool:
    """Return True for a request that a web page in somebody's browser sends, which may not use this machine's proxy.

    A page of another site has its own site in `Sec-Fetch-Site` or `Origin`; one that points its own name at our address
    (DNS rebinding) has that name in `Host`. An agent names an address of this machine.
    """
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        return True
    addresses = [f"//{headers.get(b'host', b'').decode('latin-1')}"]
    if b"origin" in headers:
        addresses.append(headers[b"origin"].decode("latin-1"))
    return not all(_is_this_machine(address, host) for address in addresses)


def _is_this_machine(address: str, host: str) -> bool:
    try:
        name = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return name == host.strip("[]").lower() or is_loopback(name)
