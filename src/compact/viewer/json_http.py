"""Request bodies and responses in JSON, and the error that a request is answered with."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, NoReturn

from starlette.requests import Request
from starlette.responses import Response

from compact.core.errors import CompactError

# Chosen: what Ariadne takes in one request, and far more than the page ever sends.
INGEST_BYTES = 262_144
API_BYTES = 16_384
# Chosen: what a slow network needs for a quarter of a megabyte.
_BODY_SECONDS = 20.0


class HttpError(CompactError):
    """A request that is answered with an error: its status, what is wrong, and what to do."""

    code = "viewer"

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


# -- responses ----------------------------------------------------------------------------------------------------


class JsonResponse(Response):
    """Data as JSON; lone surrogates, which UTF-8 does not have, are escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes to send."""
        return to_json(content).encode()


def to_json(content: object) -> str:
    """Return JSON on one line."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":"), allow_nan=False, default=str)
    return text


def error_response(status: int, message: str, hint: str = "") -> JsonResponse:
    """Return an error in the form that the page reads."""
    return JsonResponse({"error": message, "hint": hint}, status_code=status)


# -- request bodies -----------------------------------------------------------------------------------------------


async def read_json(request: Request, *, limit_bytes: int) -> Any:
    """Return the body as data; a body that is too large is not read to its end."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await _read_body(request, limit_bytes)
    except TimeoutError:
        raise HttpError(408, f"the body did not arrive in {_BODY_SECONDS:.0f} seconds", "send it again") from None
    try:
        return json.loads(body, parse_constant=_reject_constant, parse_float=_finite_float)
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is not JSON", "send one object, in UTF-8, with finite numbers") from None


async def _read_body(request: Request, limit_bytes: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit_bytes:
        raise _too_large(limit_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise _too_large(limit_bytes)
    return bytes(body)


def _too_large(limit_bytes: int) -> HttpError:
    return HttpError(413, f"the body is larger than {limit_bytes:,} bytes", "send less at a time")


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    """Return a number; one such as 1e400 is read as infinite, which JSON cannot express."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not finite")
    return number
