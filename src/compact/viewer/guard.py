"""At the door: which name was called, who calls, from which page, and what the answer may do in a browser."""

from __future__ import annotations

import logging
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compact.viewer.answers import Answer, refused
from compact.viewer.settings import ViewerSettings

_LOG = logging.getLogger("compact.viewer")
CSRF_HEADER = "x-compact-csrf"
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = ("GET", "HEAD")
# What holds no data: the page itself, whether we are alive, and where a token is exchanged.
_OPEN = ("/healthz", "/api/login")
_WITH_DATA = ("/api/", "/events", "/ingest", "/metrics")


class Guard:
    """Lets in who may come in, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, settings: ViewerSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        has_begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        # Ids may hold anything, slashes too: segments stay as they were sent until somebody asks for one.
        raw: bytes = scope.get("raw_path") or b""
        path = raw.split(b"?")[0].decode("ascii", "replace") or scope["path"]
        scope = {**scope, "path": path}
        try:
            await (self._refusal(scope, path) or self._app)(scope, receive, send_guarded)
        except ClientDisconnect:
            return
        except Exception as error:
            _LOG.exception("a request failed: %s", path[:200])
            if has_begun:
                raise
            failed = refused(500, f"{type(error).__name__} in the viewer", "this should not happen: please report it")
            await failed(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, path: str) -> Answer | None:
        headers = Headers(scope=scope)
        return (
            self._wrong_host(headers)
            or _wrong_site(headers, scope["method"], path)
            or self._no_token(headers, path)
            or self._no_csrf(headers, scope["method"], path)
        )

    def _wrong_host(self, headers: Headers) -> Answer | None:
        """A name that leads here by somebody else's DNS would make that page one of ours."""
        name = _host_name(headers.get("host", ""))
        if name and self._settings.knows_host(name):
            return None
        return refused(403, f"this viewer is not called {name!r}", f"open {self._settings.url}")

    def _no_token(self, headers: Headers, path: str) -> Answer | None:
        if not self._settings.token or path in _OPEN or not path.startswith(_WITH_DATA):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._settings.is_token(given.strip()):
            return None
        if self._settings.is_cookie(_cookie(headers, self._settings.cookie_name)):
            return None
        hint = "open the address that `compact view` printed, or send `Authorization: Bearer TOKEN`"
        return refused(401, "a token is needed here", hint)

    def _no_csrf(self, headers: Headers, method: str, path: str) -> Answer | None:
        """A form of another page can send a request, but no header of ours, and no JSON."""
        if method in _SAFE or not path.startswith("/api/"):
            return None
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return refused(415, "only JSON is taken here", "send Content-Type: application/json")
        if path not in _OPEN and not self._settings.is_csrf(headers.get(CSRF_HEADER, "")):
            return refused(403, "the request does not come from this viewer's page", "reload the page")
        return None


def _wrong_site(headers: Headers, method: str, path: str) -> Answer | None:
    """A browser says which page asks; programs say nothing, and may."""
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin")
    is_ours = site in ("", "same-origin", "none")
    if origin is not None and _place(origin) != headers.get("host", "").lower():
        is_ours = False
    is_visit = method in _SAFE and headers.get("sec-fetch-mode") == "navigate" and not path.startswith(_WITH_DATA)
    if is_ours or is_visit:
        return None
    return refused(403, "another page asks for this", "only this viewer's own page may")


def _place(origin: str) -> str:
    """The name and port of an origin; nothing for one that is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    """The name without its port."""
    try:
        return urlsplit(f"//{host}").hostname or "" if host.isascii() and not set(host) & set("@/\\?# ") else ""
    except ValueError:
        return ""


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
