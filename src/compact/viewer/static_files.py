"""Serves the files of the page: those of this package, each with its type, and no other file."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compact.viewer.json_http import HttpError
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
    """Return the page; a token in the address is exchanged for a cookie and removed from the address."""
    settings: ViewerSettings = request.app.state.settings
    token = request.query_params.get("token")
    if token is None:
        return _file_response(request, "index.html")
    if not settings.token or not settings.is_token(token):
        raise HttpError(401, "the token is wrong", "open the address that `compact view` printed")
    response = RedirectResponse("/", status_code=303)
    set_cookie(response, settings)
    return response


async def static(request: Request) -> Response:
    """Return a file of the page."""
    return _file_response(request, request.path_params["name"])


def set_cookie(response: Response, settings: ViewerSettings) -> None:
    """Set the cookie that stands for the token; scripts cannot read it, and other sites cannot send it."""
    response.set_cookie(settings.cookie_name, settings.cookie_value, httponly=True, samesite="strict", path="/")


def _file_response(request: Request, name: str) -> Response:
    found = _all_files().get(name)
    if found is None:
        raise HttpError(404, "there is no such file", "the page is at /")
    content = found.read_bytes()
    # Requested each time and only sent if it changed: a new version shows at once.
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


@cache
def _all_files() -> dict[str, Traversable]:
    """Return every file of the page by its path: what is not in here cannot be requested."""
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
