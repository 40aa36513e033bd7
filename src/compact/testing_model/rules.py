"""What both providers have in common when they judge a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from compact.testing_model.steps import Answer

_PIECES = re.compile(r"[^\W\d_]{1,8}|\d{1,3}|[^\w\s]|_")
MESSAGE_TOKENS = 4  # what the frame of one message costs

Fields = Mapping[str, Any]


def count_pieces(text: str) -> int:
    """Tokens by a simple rule: up to eight letters, up to three digits, or one mark."""
    return len(_PIECES.findall(text))


@dataclass(frozen=True, slots=True)
class Rules:
    """What this server takes."""

    window_tokens: int
    api_key: str | None
    models: tuple[str, ...]
    any_model: bool
    reasoning: bool
    count: Callable[[str], int]


class Rejected(Exception):
    """The provider would not take this request."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param


class Wire(Protocol):
    """How one provider reads requests and writes answers."""

    def key(self, headers: Fields) -> str:
        """The API key that came with the request."""
        ...

    def check(self, body: Fields, headers: Fields, rules: Rules) -> None:
        """Raise Rejected for what the provider does not take."""
        ...

    def texts(self, body: Fields) -> list[tuple[str, str]]:
        """Role and text of everything in the prompt, in order."""
        ...

    def limit(self, body: Fields) -> int | None:
        """The most tokens that the answer may have."""
        ...

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> Rejected:
        """The prompt and the room for its answer do not fit the window."""
        ...

    def answer(self, answer: Answer, number: int, model: str, usage: tuple[int, int]) -> dict[str, Any]:
        """A completion, with tokens in and out."""
        ...

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """An error body."""
        ...


def prompt_tokens(texts: list[tuple[str, str]], count: Callable[[str], int]) -> int:
    """What a prompt weighs on this server."""
    return sum(MESSAGE_TOKENS + count(text) for _, text in texts)


def cut_to(answer: Answer, limit: int | None, count: Callable[[str], int]) -> Answer:
    """The answer as far as the limit lets it: thoughts first, then text."""
    text = answer.text or ""
    if limit is None or answer.reasoning_tokens + count(text) <= limit:
        return answer
    thoughts = min(answer.reasoning_tokens, limit)
    return Answer(_beginning(text, limit - thoughts, count), "length", answer.refusal, thoughts)


def _beginning(text: str, tokens: int, count: Callable[[str], int]) -> str:
    fits, beyond = 0, len(text) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if count(text[:middle]) <= tokens else (fits, middle)
    return text[:fits]


def as_fields(value: object) -> Fields | None:
    """A JSON object, or None."""
    return cast("Fields", value) if isinstance(value, Mapping) else None


def as_list(value: object) -> list[Any] | None:
    """A JSON array, or None."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def is_number(value: object) -> bool:
    """A JSON number: in Python a bool is an int, in JSON it is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def words(text: str) -> frozenset[str]:
    """The names in a line of names."""
    return frozenset(text.split())
