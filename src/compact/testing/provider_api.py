"""The socket for the APIs that the scripted model speaks, and what they have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

from compact.testing.model_script import ScriptedAnswer

# Chosen: close to what tokenizers make of English and of code, and easy to reckon with.
_PIECES = re.compile(r"[^\W\d_]{1,8}|\d{1,3}|[^\w\s]|_")
# Chosen: about what the framing of one message costs at OpenAI.
MESSAGE_TOKENS = 4

Fields: TypeAlias = Mapping[str, Any]


def count_pieces(text: str) -> int:
    """Count tokens by a simple rule: up to eight letters, up to three digits, or one mark."""
    return len(_PIECES.findall(text))


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a scripted server takes: its window, its key, its models."""

    window_tokens: int
    api_key: str | None
    models: tuple[str, ...]
    any_model: bool
    reasoning: bool
    count: Callable[[str], int]


class RequestRejected(Exception):
    """A request that the provider would not take."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param


@dataclass(frozen=True, slots=True)
class PromptText:
    """One text of a prompt, and the role it is said in (`tools` for schemas)."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens that an answer reports."""

    prompt_tokens: int
    output_tokens: int


class ProviderApi(Protocol):
    """How one provider reads requests and writes answers."""

    def key(self, headers: Fields) -> str:
        """Return the API key that came with the request."""
        ...

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the provider does not take."""
        ...

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the texts of the prompt, in order."""
        ...

    def limit(self, body: Fields) -> int | None:
        """Return the most tokens that the answer may have."""
        ...

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error for a prompt that does not fit the window with the room for its answer."""
        ...

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the body of a completion."""
        ...

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return the body of an error."""
        ...


def count_prompt(texts: list[PromptText], count: Callable[[str], int]) -> int:
    """Return the tokens of a prompt, as the server counts them."""
    return sum(MESSAGE_TOKENS + count(each.text) for each in texts)


def cut_to(answer: ScriptedAnswer, limit: int | None, count: Callable[[str], int]) -> ScriptedAnswer:
    """Return the answer as far as the limit allows: thoughts first, then text."""
    text = answer.text or ""
    if limit is None or answer.reasoning_tokens + count(text) <= limit:
        return answer
    thoughts = min(answer.reasoning_tokens, limit)
    return replace(answer, text=_beginning(text, limit - thoughts, count), finish="length", reasoning_tokens=thoughts)


def _beginning(text: str, tokens: int, count: Callable[[str], int]) -> str:
    fits, beyond = 0, len(text) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if count(text[:middle]) <= tokens else (fits, middle)
    return text[:fits]


def as_fields(value: object) -> Fields | None:
    """Return a JSON object, or None."""
    return cast("Fields", value) if isinstance(value, Mapping) else None


def as_list(value: object) -> list[Any] | None:
    """Return a JSON array, or None."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def is_number(value: object) -> bool:
    """Return True for a JSON number: in Python a bool is an int, in JSON it is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def names(text: str) -> frozenset[str]:
    """Return the names in a line of names."""
    return frozenset(text.split())
