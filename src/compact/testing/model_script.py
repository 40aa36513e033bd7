"""The steps of a script: what the scripted model does with one request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Finish: TypeAlias = Literal["stop", "length", "refusal", "filter"]
REFUSAL = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it arrived: which one it was, its body, its headers with the key masked."""

    number: int
    api: Literal["openai", "anthropic", "gemini", "bedrock"]
    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    prompt: str = ""  # every text of the prompt, message by message
    asked: str = ""  # the text of the last user message
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a tool, by a model."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A completion; the server still cuts it where the request's limit or the window ends."""

    text: str | None = ""
    finish: Finish = "stop"
    refusal: str | None = None
    reasoning_tokens: int = 0
    calls: tuple[ScriptedCall, ...] = ()


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
    """Another step, as soon as the test sets `release`."""

    release: threading.Event
    then: Step


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer in the middle of which the connection breaks."""

    text: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A body that no provider should send."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Echo:
    """The last user message as the answer."""


Step: TypeAlias = "ScriptedAnswer | Failure | Slow | Held | Cut | Raw | Echo"
Script: TypeAlias = "Step | Callable[[ReceivedRequest], Step]"


def say(text: str) -> ScriptedAnswer:
    """Answer with a text."""
    return ScriptedAnswer(text)


def say_json(value: Any) -> ScriptedAnswer:
    """Answer with a value as JSON."""
    return ScriptedAnswer(json.dumps(value, ensure_ascii=False))


def call_tool(name: str, call_id: str, /, **arguments: Any) -> ScriptedAnswer:
    """Answer with a call of a tool."""
    return ScriptedAnswer(None, calls=(ScriptedCall(name, arguments, call_id),))


def refuse(text: str = REFUSAL, *, by: Literal["field", "filter", "text"] = "field") -> ScriptedAnswer:
    """Refuse: in the field made for it, by a content filter (no text at all), or in plain words only."""
    if by == "text":
        return ScriptedAnswer(text)
    if by == "field":
        return ScriptedAnswer(None, finish="refusal", refusal=text)
    return ScriptedAnswer(None, finish="filter")


def fail(
    status: int, message: str | None = None, *, code: str | None = None, retry_after: float | None = None
) -> Failure:
    """Answer with an HTTP error; `retry_after` in seconds goes into the Retry-After header."""
    return Failure(
        status, message or f"The server answers {status} because the script says so.", code, None, retry_after
    )


def slow(seconds: float, then: Step) -> Slow:
    """Wait so many seconds, then do another step."""
    return Slow(seconds, then)


def held(release: threading.Event, then: Step) -> Held:
    """Wait until `release` is set, then do another step."""
    return Held(release, then)


def cut(text: str = "This answer breaks off in the middle of") -> Cut:
    """Close the connection before the answer is complete."""
    return Cut(text)


def empty(*, null: bool = False) -> ScriptedAnswer:
    """Answer without text: an empty string, or null."""
    return ScriptedAnswer(None if null else "")


def truncated(text: str) -> ScriptedAnswer:
    """Answer with a text that hit the limit."""
    return ScriptedAnswer(text, finish="length")


def think(reasoning_tokens: int, text: str) -> ScriptedAnswer:
    """Answer as a thinking model: a limit below its thoughts leaves no text at all."""
    return ScriptedAnswer(text, reasoning_tokens=reasoning_tokens)


def overlong(tokens: int, *, word: str = "word") -> ScriptedAnswer:
    """Answer with so many words."""
    return ScriptedAnswer(" ".join([word] * tokens))


def malformed() -> Raw:
    """Answer with a body that is announced as JSON, and is none."""
    return Raw(b'{"id": "broken", "choices": [{"message": {"role": "assistant", "content": "half an ans')


def wrong_type() -> Raw:
    """Answer with a page for people, as a proxy in between would send it."""
    return Raw(b"<html><body><h1>Please sign in</h1></body></html>", "text/html")


def echo() -> Echo:
    """Answer with what was asked."""
    return Echo()
