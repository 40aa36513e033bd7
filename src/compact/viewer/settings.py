"""The address of the viewer, and the secrets that protect it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from functools import cache

from compact.core.errors import ConfigError
from compact.core.plurals import quantity

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 5175
_WILDCARDS = ("0.0.0.0", "::", "")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# Chosen: 16 characters of `secrets.token_urlsafe` have 96 bits.
_LEAST_TOKEN_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerSettings:
    """Host and port to listen on, and the token that requests need; any host but loopback needs one."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    token: str = field(default="", repr=False)
    is_read_only: bool = False
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def __post_init__(self) -> None:
        made = 'one that `python -c "import secrets; print(secrets.token_urlsafe())"` makes'
        hint = f"set COMPACT_VIEW_TOKEN to {made}; others can read what --token has"
        if not self.token and not is_loopback(self.host):
            what = f"{self.host or 'every address'} is not loopback: anybody who reaches it could read every session"
            raise ConfigError(what, field="token", hint=hint)
        if self.token and len(self.token) < _LEAST_TOKEN_CHARS:
            what = (
                f"a token of {quantity(len(self.token), 'character')} can be guessed; use at least {_LEAST_TOKEN_CHARS}"
            )
            raise ConfigError(what, field="token", hint=hint)

    @property
    def cookie_name(self) -> str:
        """The name of the cookie; one for each port, because browsers share cookies between ports."""
        return f"compact_viewer_{self.port}"

    @property
    def cookie_value(self) -> str:
        """What a browser stores instead of the token; invalid once this process has ended."""
        return hmac.new(self._salt.encode(), self.token.encode(), hashlib.sha256).hexdigest()

    def is_token(self, value: str) -> bool:
        """Return True for the token; takes the same time for every other text."""
        return secrets.compare_digest(value.encode("utf-8", "replace"), self.token.encode())

    def is_cookie(self, value: str) -> bool:
        """Return True for the value of our cookie."""
        return secrets.compare_digest(value.encode("utf-8", "replace"), self.cookie_value.encode())

    def is_csrf(self, value: str) -> bool:
        """Return True for the value that the page got with its first request."""
        return secrets.compare_digest(value.encode("utf-8", "replace"), self.csrf.encode())

    def knows_host(self, name: str) -> bool:
        """Return True for a host name of this viewer: another site can make any other name resolve to this machine."""
        name = name.lower().rstrip(".")
        if name in _LOOPBACK_NAMES or name == self.host.lower():
            return True
        if self.host not in _WILDCARDS:
            return False
        return _is_address(name) or name in _own_names()

    def look_up_names(self) -> None:
        """Look up the names of this machine, which may take a while, before a request has to wait for it."""
        if self.host in _WILDCARDS:
            _own_names()

    @property
    def url(self) -> str:
        """The address of the page."""
        name = "127.0.0.1" if self.host in _WILDCARDS else self.host
        return f"http://[{name}]:{self.port}/" if ":" in name else f"http://{name}:{self.port}/"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _own_names() -> frozenset[str]:
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
