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
    """One request as it arrived at a `ScriptedModel`, with its key masked.

    `model.requests` has all of them; a function in a script gets the one that it answers.

    Attributes:
        number: 1 for the first request.
        api: Whose API it came by.
        path: The path of its URL.
        body: The body, parsed.
        headers: Its headers, names in lower case.
        prompt: Every text of the prompt, message by message.
        asked: The text of the last user message.
        prompt_tokens: The tokens that the server counted.

    Example:
        >>> from compact.testing import ReceivedRequest, ScriptedModel, say
        >>> def repeat(request: ReceivedRequest):
        ...     return say(f"You asked: {request.asked}")
        >>> with ScriptedModel(repeat) as model:
        ...     pass  # requests to model.base_url are answered by the function
    """

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
    """A call of a tool, by a model; `call_tool` makes an answer with one.

    Attributes:
        name: The tool.
        arguments: The arguments.
        call_id: The id that the result names.

    Example:
        >>> from compact.testing import ScriptedAnswer, ScriptedCall
        >>> two = ScriptedAnswer(None, calls=(ScriptedCall("ls", {}, "c1"), ScriptedCall("pwd", {}, "c2")))
    """

    name: str
    arguments: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A completion; the server still cuts it where the request's limit or the window ends.

    Args:
        text: What the model says; None says nothing.
        finish: Why it ends: `stop`, `length`, `refusal` or `filter`.
        refusal: The text of a refusal, in the field made for it.
        reasoning_tokens: The tokens of thoughts before the text.
        calls: The tools that it calls.

    Example:
        >>> from compact.testing import ScriptedAnswer
        >>> ScriptedAnswer("half an ans", finish="length").finish
        'length'
    """

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
    """Answer with a text.

    Args:
        text: What the model says.

    Example:
        >>> from compact.testing import ScriptedModel, say
        >>> with ScriptedModel(say("first"), say("every time after that")) as model:
        ...     url = model.base_url
    """
    return ScriptedAnswer(text)


def say_json(value: Any) -> ScriptedAnswer:
    """Answer with a value as JSON.

    Args:
        value: What JSON can hold.

    Example:
        >>> from compact.testing import say_json
        >>> say_json({"done": True}).text
        '{"done": true}'
    """
    return ScriptedAnswer(json.dumps(value, ensure_ascii=False))


def call_tool(name: str, call_id: str, /, **arguments: Any) -> ScriptedAnswer:
    """Answer with a call of a tool.

    Args:
        name: The tool.
        call_id: The id that the result names.
        arguments: The arguments of the call.

    Example:
        >>> from compact.testing import call_tool
        >>> call_tool("read_file", "c1", path="a.py").calls[0].arguments
        {'path': 'a.py'}
    """
    return ScriptedAnswer(None, calls=(ScriptedCall(name, arguments, call_id),))


def refuse(text: str = REFUSAL, *, by: Literal["field", "filter", "text"] = "field") -> ScriptedAnswer:
    """Refuse: in the field made for it, by a content filter (no text at all), or in plain words only.

    Args:
        text: The words of the refusal.
        by: `field`, `filter` or `text`.

    Example:
        >>> from compact.testing import refuse
        >>> refuse().finish, refuse(by="filter").text, refuse(by="text").finish
        ('refusal', None, 'stop')
    """
    if by == "text":
        return ScriptedAnswer(text)
    if by == "field":
        return ScriptedAnswer(None, finish="refusal", refusal=text)
    return ScriptedAnswer(None, finish="filter")


def fail(
    status: int, message: str | None = None, *, code: str | None = None, retry_after: float | None = None
) -> Failure:
    """Answer with an HTTP error in the provider's own shape.

    Args:
        status: The status code: 429, 500, 503, …
        message: What the error says.
        code: The provider's word for it.
        retry_after: Seconds for the Retry-After header.

    Example:
        >>> from compact.testing import ScriptedModel, fail, say
        >>> with ScriptedModel(fail(429, retry_after=0.1), say("now it works")) as model:
        ...     url = model.base_url
    """
    return Failure(
        status, message or f"The server answers {status} because the script says so.", code, None, retry_after
    )


def slow(seconds: float, then: Step) -> Slow:
    """Wait so many seconds, then do another step.

    Args:
        seconds: How long.
        then: The step.

    Example:
        >>> from compact.testing import say, slow
        >>> step = slow(0.5, say("at last"))
    """
    return Slow(seconds, then)


def held(release: threading.Event, then: Step) -> Held:
    """Wait until an event is set, then do another step.

    Args:
        release: The event that your test sets.
        then: The step.

    Example:
        >>> from threading import Event
        >>> from compact.testing import held, say
        >>> release = Event()
        >>> step = held(release, say("after release.set()"))
    """
    return Held(release, then)


def cut(text: str = "This answer breaks off in the middle of") -> Cut:
    """Close the connection before the answer is complete.

    Args:
        text: What is sent of it.

    Example:
        >>> from compact.testing import cut
        >>> step = cut("The connection breaks after")
    """
    return Cut(text)


def empty(*, null: bool = False) -> ScriptedAnswer:
    """Answer without text: an empty string, or null.

    Args:
        null: True for null.

    Example:
        >>> from compact.testing import empty
        >>> empty().text, empty(null=True).text
        ('', None)
    """
    return ScriptedAnswer(None if null else "")


def truncated(text: str) -> ScriptedAnswer:
    """Answer with a text that hit the limit.

    Args:
        text: What there is of it.

    Example:
        >>> from compact.testing import truncated
        >>> truncated("The summary is").finish
        'length'
    """
    return ScriptedAnswer(text, finish="length")


def think(reasoning_tokens: int, text: str) -> ScriptedAnswer:
    """Answer as a thinking model: a limit below its thoughts leaves no text at all.

    Args:
        reasoning_tokens: The tokens of its thoughts.
        text: What it says then.

    Example:
        >>> from compact.testing import think
        >>> think(2_000, "42").reasoning_tokens
        2000
    """
    return ScriptedAnswer(text, reasoning_tokens=reasoning_tokens)


def overlong(tokens: int, *, word: str = "word") -> ScriptedAnswer:
    """Answer with so many words.

    Args:
        tokens: How many.
        word: The word.

    Example:
        >>> from compact.testing import overlong
        >>> overlong(3).text
        'word word word'
    """
    return ScriptedAnswer(" ".join([word] * tokens))


def malformed() -> Raw:
    """Answer with a body that is announced as JSON, and is none.

    Example:
        >>> from compact.testing import malformed
        >>> step = malformed()
    """
    return Raw(b'{"id": "broken", "choices": [{"message": {"role": "assistant", "content": "half an ans')


def wrong_type() -> Raw:
    """Answer with a page for people, as a proxy in between would send it.

    Example:
        >>> from compact.testing import wrong_type
        >>> wrong_type().content_type
        'text/html'
    """
    return Raw(b"<html><body><h1>Please sign in</h1></body></html>", "text/html")


def echo() -> Echo:
    """Answer with what was asked.

    Example:
        >>> from compact.testing import echo
        >>> step = echo()
    """
    return Echo()
