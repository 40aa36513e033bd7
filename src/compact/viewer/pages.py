"""The page itself: files of this package, each with its type, and no other file."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compact.viewer.answers import Refusal
from compact.viewer.settings import ViewerSettings

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "json": "application/json",
}


async def index(request: Request) -> Response:
    """The page; a token in its address becomes a cookie, and is out of the address with the next request."""
    settings: ViewerSettings = request.app.state.settings
    given = request.query_params.get("token")
    if given is None:
        return _file(request, "index.html")
    if not settings.token or not settings.is_token(given):
        raise Refusal(401, "this is not the token", "open the address that `compact view` printed")
    response = RedirectResponse("/", status_code=303)
    give_cookie(response, settings)
    return response


async def static(request: Request) -> Response:
    """A file that belongs to the page."""
    return _file(request, request.path_params["name"])


def give_cookie(response: Response, settings: ViewerSettings) -> None:
    """Let a browser in; scripts do not see it, and other sites cannot send it."""
    response.set_cookie(settings.cookie_name, settings.cookie_value, httponly=True, samesite="strict", path="/")


def _file(request: Request, name: str) -> Response:
    found = _all_files().get(name)
    if found is None:
        raise Refusal(404, "there is no such file", "the page is at /")
    content = found.read_bytes()
    # Asked for again each time, and only sent if it is another one: a new version shows at once.
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


@cache
def _all_files() -> dict[str, Traversable]:
    """Every file there is, by its path: what is not listed here cannot be asked for."""
    found: dict[str, Traversable] = {}
    folders = [("", files("compact.viewer").joinpath("static"))]
    while folders:
        prefix, folder = folders.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.rpartition(".")[2] in _TYPES:
                found[prefix + entry.name] = entry
    return found
