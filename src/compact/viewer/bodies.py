"""What a request brings: read up to a limit, and only as JSON."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from starlette.requests import Request

from compact.viewer.answers import Refusal

INGEST_BYTES = 262_144
API_BYTES = 16_384


async def read_json(request: Request, *, limit_bytes: int) -> Any:
    """The body as data; one that is too large is not read to its end."""
    body = await _read(request, limit_bytes)
    try:
        return json.loads(body, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON", "send one object, in UTF-8, with finite numbers") from None


async def _read(request: Request, limit_bytes: int) -> bytes:
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > limit_bytes:
        raise _too_large(limit_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise _too_large(limit_bytes)
    return bytes(body)


def _too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit_bytes:,} bytes", "send less at a time")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    """A number such as 1e400 is read as infinite, which cannot be sent on."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not finite")
    return number
