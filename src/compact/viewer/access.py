"""Access control: which requests are answered, and the security headers of every response.

A request must name a host that is ours, come from our own page or from a program, carry the token if there is one,
and, if it changes something, the header that only our page can set.
"""

from __future__ import annotations

import logging
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compact.viewer.json_http import JsonResponse, error_response
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
_SAFE_METHODS = ("GET", "HEAD")
# Paths that need no token: they hold no data, or exchange the token for a cookie.
_OPEN_PATHS = ("/healthz", "/api/login")
_DATA_PATHS = ("/api/", "/events", "/ingest", "/metrics")


class AccessMiddleware:
    """Middleware that rejects what is not allowed, and gives every response its headers."""

    def __init__(self, app: ASGIApp, settings: ViewerSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        # Ids may contain anything, slashes too: the segments of a path stay encoded until a handler decodes one.
        raw: bytes = scope.get("raw_path") or b""
        path = raw.split(b"?")[0].decode("ascii", "replace") or scope["path"]
        scope = {**scope, "path": path}
        try:
            await (self._rejection(scope, path) or self._app)(scope, receive, send_with_headers)
        except ClientDisconnect:
            return
        except Exception as error:  # the boundary to the browser: a bug is answered and logged
            _LOG.exception("a request failed: %s", path[:200])
            if has_started:
                raise
            failed = error_response(500, f"{type(error).__name__} in the viewer", "this is a bug: please report it")
            await failed(scope, receive, send_with_headers)

    def _rejection(self, scope: Scope, path: str) -> JsonResponse | None:
        """Return the error for a request that is not allowed, or None."""
        headers = Headers(scope=scope)
        return (
            self._reject_host(headers)
            or _reject_other_site(headers, scope["method"], path)
            or self._reject_without_token(headers, path)
            or self._reject_without_csrf(headers, scope["method"], path)
        )

    def _reject_host(self, headers: Headers) -> JsonResponse | None:
        """Reject a foreign host name: by DNS rebinding another site could read this one under its own name."""
        name = _host_name(headers.get("host", ""))
        if name and self._settings.knows_host(name):
            return None
        return error_response(403, f"this viewer does not answer to the host {name!r}", f"open {self._settings.url}")

    def _reject_without_token(self, headers: Headers, path: str) -> JsonResponse | None:
        if not self._settings.token or path in _OPEN_PATHS or not path.startswith(_DATA_PATHS):
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._settings.is_token(token.strip()):
            return None
        if self._settings.is_cookie(_cookie(headers, self._settings.cookie_name)):
            return None
        hint = "open the address that `compact view` printed, or send `Authorization: Bearer TOKEN`"
        return error_response(401, "this address needs a token", hint)

    def _reject_without_csrf(self, headers: Headers, method: str, path: str) -> JsonResponse | None:
        """Reject a change without our header: a form of another site can send a request, but no such header."""
        if method in _SAFE_METHODS or not path.startswith("/api/"):
            return None
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return error_response(415, "the body must be JSON", "send Content-Type: application/json")
        if path not in _OPEN_PATHS and not self._settings.is_csrf(headers.get(CSRF_HEADER, "")):
            return error_response(403, "the request does not come from this viewer's page", "reload the page")
        return None


def _reject_other_site(headers: Headers, method: str, path: str) -> JsonResponse | None:
    """Reject requests of other sites; a browser names the site, a program names none and is allowed."""
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin")
    is_ours = site in ("", "same-origin", "none")
    if origin is not None and _origin_host(origin) != headers.get("host", "").lower():
        is_ours = False
    is_navigation = (
        method in _SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate" and not path.startswith(_DATA_PATHS)
    )
    if is_ours or is_navigation:
        return None
    return error_response(403, "the request comes from another site", "only this viewer's own page may send it")


def _origin_host(origin: str) -> str:
    """Return the host and port of an origin; an empty text for what is no origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    """Return the host without its port; an empty text for what is no host."""
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
