"""The connection to the provider: sends and receives bytes; adds nothing, decodes nothing, follows no redirect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from compact.core.errors import ConfigError
from compact.proxy.headers import Headers

# Chosen: a provider that takes longer to accept a connection is down.
CONNECT_SECONDS = 30.0
# Chosen: shorter than servers usually keep an idle connection open, so that none is used that is just being closed.
_KEEPALIVE_SECONDS = 4.0

Response = httpx2.Response
UpstreamError = httpx2.TransportError
UpstreamTimeout = httpx2.TimeoutException


class Upstream:
    """One provider, by its URL; with or without `/v1` at the end."""

    def __init__(self, url: str, *, timeout_seconds: float | None = None) -> None:
        self._base = _parse_url(url)
        self.host = self._base.netloc
        self._prefix = self._base.raw_path.split(b"?")[0].rstrip(b"/")
        self._server = self._base.copy_with(raw_path=b"/")
        limits = httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds or CONNECT_SECONDS))
        self._timeouts = limits.as_dict()
        self._client = httpx2.AsyncClient(
            timeout=limits,
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_SECONDS),
            # Proxies of the environment are used for https only: those for http want the target in another form.
            mounts={"http://": None},
            # No cookie is kept: the agent sends its own.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def __str__(self) -> str:
        return str(self._base)

    async def send(self, method: str, target: bytes, headers: Headers, body: AsyncIterator[bytes]) -> Response:
        """Send a request as it is, and return when the response begins."""
        # The path and query are not part of the URL here: that would be normalised, and written to logs.
        request = httpx2.Request(
            method,
            self._server,
            headers=headers,
            stream=_Stream(body),
            extensions={"target": self._target(target), "timeout": self._timeouts},
        )
        return await self._client.send(request, stream=True)

    def url(self, target: bytes) -> str:
        """Return the URL that a request is sent to."""
        return f"{self._base.scheme}://{self.host.decode('ascii')}{self._target(target).decode('latin-1')}"

    def _target(self, target: bytes) -> bytes:
        prefix = self._prefix
        if prefix.endswith(b"/v1") and target.startswith(b"/v1/"):
            prefix = prefix.removesuffix(b"/v1")
        return prefix + target

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts


def _parse_url(url: str) -> httpx2.URL:
    try:
        base = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigError(f"{url!r} is not a URL: {error}", field="upstream", hint=_HINT) from None
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigError(f"{url!r} is not the URL of an HTTP server", field="upstream", hint=_HINT)
    if base.userinfo or base.query or base.fragment:
        hint = "leave keys and parameters out: those that the agent sends are passed on"
        raise ConfigError("the URL of the upstream has more than a server and a path", field="upstream", hint=hint)
    return base


_HINT = "for example https://api.openai.com or https://api.anthropic.com"
