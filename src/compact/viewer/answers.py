"""Answers in JSON: any text survives, and an error says what to do."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from compact.core.errors import CompactError


class Refusal(CompactError):
    """A request that is answered with an error: its status, what is wrong, and what to do."""

    code = "viewer"

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Answer(Response):
    """Data as JSON; lone surrogates, which UTF-8 does not have, are escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        return dumps(content).encode()


def dumps(content: object) -> str:
    """JSON on one line."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":"), allow_nan=False, default=str)
    return text


def refused(status: int, message: str, hint: str = "") -> Answer:
    """An error as the page reads it."""
    return Answer({"error": message, "hint": hint}, status_code=status)
