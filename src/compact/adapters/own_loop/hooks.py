"""Hooks that put into a loop's context what is to be sent to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from compact.adapters.support import OutgoingRequest, PreparedRequest, RequestPreparer, output_limit
from compact.dialects import Dialect
from compact.manager import CompactManager

_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class ModelCallContext(Protocol):
    """What a loop knows before a model call.

    If it has `tools` and `instructions` they are counted; `max_tokens` is what the answer may have, and `model` the
    model of this call.
    """

    session_id: str
    messages: list[Any]


def before_model_call(
    manager: CompactManager, *, dialect: str | Dialect | None = None, strict: bool = False
) -> Callable[[ModelCallContext], None]:
    """Return a hook that puts what is to be sent into `ctx.messages`.

    The hook takes an object with `session_id` and `messages`. If it also has `tools`, `instructions`, `max_tokens` or
    `model`, these are counted and used.

    Args:
        manager: Keeps the sessions.
        dialect: The wire format of the messages; by default it is recognised.
        strict: Raise what goes wrong; by default the messages stay as they are then, and an event says why.

    Example:
        >>> from types import SimpleNamespace
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.own_loop import before_model_call
        >>> from compact.testing import tool_run
        >>> hook = before_model_call(CompactManager(CompactConfig(max_context_tokens=8_000)))
        >>> ctx = SimpleNamespace(session_id="chat-1", messages=tool_run(60, words=200))
        >>> hook(ctx)
        >>> len(ctx.messages) < 121  # send these
        True
    """
    preparer = _context_preparer(manager, dialect, strict)

    def hook(ctx: ModelCallContext) -> None:
        ctx.messages = preparer.prepare(ctx).items_or(ctx.messages)

    return hook


def abefore_model_call(
    manager: CompactManager, *, dialect: str | Dialect | None = None, strict: bool = False
) -> Callable[[ModelCallContext], Awaitable[None]]:
    """`before_model_call` for an event loop: the hook is awaited; same arguments.

    Example:
        >>> import asyncio
        >>> from types import SimpleNamespace
        >>> from compact import CompactManager
        >>> from compact.adapters.own_loop import abefore_model_call
        >>> hook = abefore_model_call(CompactManager())
        >>> ctx = SimpleNamespace(session_id="chat-1", messages=[{"role": "user", "content": "Hello"}])
        >>> asyncio.run(hook(ctx))
    """
    preparer = _context_preparer(manager, dialect, strict)

    async def hook(ctx: ModelCallContext) -> None:
        ctx.messages = (await preparer.aprepare(ctx)).items_or(ctx.messages)

    return hook


def on_model_error(
    manager: CompactManager, *, dialect: str | Dialect | None = None
) -> Callable[[ModelCallContext, Exception], bool]:
    """Return a hook for an error of a model call: it puts smaller messages into `ctx.messages` if they were too long.

    The hook takes the context of the call and the error, and returns True if the call should be made once more. Any
    other error, and a history that cannot be made smaller, is False: raise the error then. Do not ask twice for one
    call.

    Args:
        manager: Keeps the sessions.
        dialect: The wire format of the messages; by default it is recognised.

    Example:
        >>> from types import SimpleNamespace
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.own_loop import before_model_call, on_model_error
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=128_000))
        >>> ctx = SimpleNamespace(session_id="chat-1", messages=tool_run(60, words=200))
        >>> before_model_call(manager)(ctx)
        >>> refusal = ValueError("prompt is too long: 16000 tokens > 8192 maximum")  # the provider's own
        >>> on_model_error(manager)(ctx, refusal), len(ctx.messages) < 121  # send these, once
        (True, True)
    """
    preparer = _context_preparer(manager, dialect, strict=False)

    def hook(ctx: ModelCallContext, error: Exception) -> bool:
        refused = PreparedRequest(ctx.session_id, list(ctx.messages))
        again = preparer.prepare_again(ctx, refused, error)
        ctx.messages = ctx.messages if again is None else again.items_or(ctx.messages)
        return again is not None

    return hook


def aon_model_error(
    manager: CompactManager, *, dialect: str | Dialect | None = None
) -> Callable[[ModelCallContext, Exception], Awaitable[bool]]:
    """`on_model_error` for an event loop: the hook is awaited; same arguments.

    Example:
        >>> import asyncio
        >>> from types import SimpleNamespace
        >>> from compact import CompactManager
        >>> from compact.adapters.own_loop import aon_model_error
        >>> hook = aon_model_error(CompactManager())
        >>> ctx = SimpleNamespace(session_id="chat-1", messages=[{"role": "user", "content": "Hello"}])
        >>> asyncio.run(hook(ctx, ValueError("the server is overloaded")))
        False
    """
    preparer = _context_preparer(manager, dialect, strict=False)

    async def hook(ctx: ModelCallContext, error: Exception) -> bool:
        refused = PreparedRequest(ctx.session_id, list(ctx.messages))
        again = await preparer.aprepare_again(ctx, refused, error)
        ctx.messages = ctx.messages if again is None else again.items_or(ctx.messages)
        return again is not None

    return hook


def prepare_step(
    manager: CompactManager,
    session_id: str,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    instructions: str = "",
    output_tokens: int = 0,
    model: str = "",
    dialect: str | Dialect | None = None,
    strict: bool = False,
) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, list[Any]]]]:
    """Return a hook for the start of each step, which takes `{"messages": […]}` and returns those to send.

    Below the trigger they are what came in.

    Args:
        manager: Keeps the sessions.
        session_id: Names the conversation.
        tools: The tool schemas that are sent beside the messages, so that they are counted.
        instructions: The instructions that are sent beside the messages, so that they are counted.
        output_tokens: The tokens that the request sets aside for its answer.
        model: The model that the request is for, if it is not the configured one.
        dialect: The wire format of the messages; by default it is recognised.
        strict: Raise what goes wrong; by default the messages stay as they are then, and an event says why.

    Example:
        >>> import asyncio
        >>> from compact import CompactManager
        >>> from compact.adapters.own_loop import prepare_step
        >>> step = prepare_step(CompactManager(), "chat-1")
        >>> asyncio.run(step({"messages": [{"role": "user", "content": "Hello"}]}))
        {'messages': [{'role': 'user', 'content': 'Hello'}]}
    """

    def read(options: Mapping[str, Any], _: str) -> OutgoingRequest:
        return _outgoing(
            options["messages"],
            tools=tools,
            instructions=instructions,
            output_tokens=output_tokens,
            model=model,
            dialect=dialect,
        )

    preparer = RequestPreparer(manager, "own_loop", session_of=lambda _: session_id, read=read, strict=strict)

    async def step(options: Mapping[str, Any]) -> dict[str, list[Any]]:
        return {"messages": (await preparer.aprepare(options)).items_or(options["messages"])}

    return step


def _context_preparer(
    manager: CompactManager, dialect: str | Dialect | None, strict: bool
) -> RequestPreparer[ModelCallContext]:
    def read(ctx: ModelCallContext, _: str) -> OutgoingRequest:
        return _outgoing(
            ctx.messages,
            tools=getattr(ctx, "tools", None) or (),
            instructions=getattr(ctx, "instructions", None) or "",
            output_tokens=output_limit({name: getattr(ctx, name, None) for name in _LIMITS}),
            model=str(getattr(ctx, "model", None) or ""),
            dialect=dialect,
        )

    return RequestPreparer(manager, "own_loop", session_of=lambda ctx: ctx.session_id, read=read, strict=strict)


def _outgoing(messages: Sequence[Any], **beside: Any) -> OutgoingRequest:
    return OutgoingRequest(items=list(messages), **beside)
