"""The steps of a script: what the server does with one request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Finish = Literal["stop", "length", "refusal", "filter"]
REFUSAL = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as it arrived: which one it was, its body, its headers with the key masked."""

    number: int
    api: Literal["openai", "anthropic"]
    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    prompt: str = ""  # every text of the prompt, message by message
    asked: str = ""  # the text of the last user message
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion; the server still cuts it where the request's limit or the window ends."""

    text: str | None = ""
    finish: Finish = "stop"
    refusal: str | None = None
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in the provider's own shape."""

    status: int
    message: str = "The server had an error while processing your request."
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """Another step, after so many seconds."""

    seconds: float
    then: Step


@dataclass(frozen=True, slots=True)
class Held:
    """Another step, as soon as the test lets it go."""

    release: threading.Event
    then: Step


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks in the middle of this answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that no provider should send."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Echo:
    """The last user message comes back as the answer."""


Step = Answer | Failure | Slow | Held | Cut | Raw | Echo
Script = Step | Callable[[ModelRequest], Step]


def say(text: str) -> Answer:
    """An ordinary answer."""
    return Answer(text)


def say_json(value: Any) -> Answer:
    """An answer whose text is JSON."""
    return Answer(json.dumps(value, ensure_ascii=False))


def refuse(text: str = REFUSAL, *, by: Literal["field", "filter", "text"] = "field") -> Answer:
    """A refusal: in its own field, by a content filter (no text at all), or in plain words only."""
    if by == "text":
        return Answer(text)
    return Answer(None, finish="refusal", refusal=text) if by == "field" else Answer(None, finish="filter")


def fail(
    status: int, message: str | None = None, *, code: str | None = None, retry_after: float | None = None
) -> Failure:
    """An HTTP error; `retry_after` in seconds goes into the Retry-After header."""
    return Failure(
        status, message or f"The server answers {status} because the script says so.", code, None, retry_after
    )


def slow(seconds: float, then: Step) -> Slow:
    """A step that takes its time."""
    return Slow(seconds, then)


def held(release: threading.Event, then: Step) -> Held:
    """A step that waits until `release` is set."""
    return Held(release, then)


def cut(text: str = "This answer breaks off in the middle of") -> Cut:
    """The connection is closed before the answer is complete."""
    return Cut(text)


def empty(*, null: bool = False) -> Answer:
    """An answer without text: an empty string, or null."""
    return Answer(None if null else "")


def truncated(text: str) -> Answer:
    """An answer that hit the limit."""
    return Answer(text, finish="length")


def think(reasoning_tokens: int, text: str) -> Answer:
    """A thinking model: a limit below its thoughts leaves no text at all."""
    return Answer(text, reasoning_tokens=reasoning_tokens)


def overlong(tokens: int, *, word: str = "word") -> Answer:
    """An answer of so many words."""
    return Answer(" ".join([word] * tokens))


def malformed() -> Raw:
    """A body that is announced as JSON, and is none."""
    return Raw(b'{"id": "broken", "choices": [{"message": {"role": "assistant", "content": "half an ans')


def wrong_type() -> Raw:
    """A page for people, as a proxy in between would send it."""
    return Raw(b"<html><body><h1>Please sign in</h1></body></html>", "text/html")


def echo() -> Echo:
    """The model repeats what it was asked."""
    return Echo()
