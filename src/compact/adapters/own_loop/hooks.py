"""Own loops: two hooks for those who call a model themselves.

    hook = before_model_call(manager)          # hook(ctx): ctx.session_id, ctx.messages, and ctx.tools if there are any
    step = prepare_step(manager, "chat-1")     # await step({"messages": history}) -> {"messages": what to send}

Either may be given the full history every time, or its own last answer with what is new behind it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from compact.adapters.failing_open import tell_failure, without_marks
from compact.adapters.plain_items import as_plain, own_objects
from compact.dialects import Dialect
from compact.manager import CompactManager

__all__ = ["abefore_model_call", "before_model_call", "prepare_step"]


class ModelCallContext(Protocol):
    """What a loop knows before a model call; `tools` and `instructions` are counted if it has them."""

    session_id: str
    messages: list[Any]


def before_model_call(
    manager: CompactManager, *, dialect: str | Dialect | None = None, strict: bool = False
) -> Callable[[ModelCallContext], None]:
    """A hook that puts what is to be sent into `ctx.messages`. A failure leaves them as they are, unless `strict`."""

    def hook(ctx: ModelCallContext) -> None:
        plain = as_plain(ctx.messages)
        try:
            sent = manager.preflight(ctx.session_id, plain, **_beside(ctx), dialect=dialect)
        except Exception as error:
            if strict:
                raise
            tell_failure(manager, ctx.session_id, error)
            sent = without_marks(plain)
        ctx.messages = own_objects(sent, plain, ctx.messages)

    return hook


def abefore_model_call(
    manager: CompactManager, *, dialect: str | Dialect | None = None, strict: bool = False
) -> Callable[[ModelCallContext], Awaitable[None]]:
    """`before_model_call` for event loops."""

    async def hook(ctx: ModelCallContext) -> None:
        beside = _beside(ctx)
        step = prepare_step(manager, ctx.session_id, dialect=dialect, strict=strict, **beside)
        ctx.messages = (await step({"messages": ctx.messages}))["messages"]

    return hook


def prepare_step(
    manager: CompactManager,
    session_id: str,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    instructions: str = "",
    dialect: str | Dialect | None = None,
    strict: bool = False,
) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, list[Any]]]]:
    """A hook for the start of each step: takes `{"messages": […]}`, and answers with those to send.

    Below the trigger they are what came in. A failure leaves them as they are, unless `strict`.
    """

    async def step(options: Mapping[str, Any]) -> dict[str, list[Any]]:
        messages: Sequence[Any] = options["messages"]
        plain = as_plain(messages)
        try:
            sent = await manager.apreflight(session_id, plain, tools=tools, instructions=instructions, dialect=dialect)
        except Exception as error:
            if strict:
                raise
            tell_failure(manager, session_id, error)
            sent = without_marks(plain)
        return {"messages": own_objects(sent, plain, messages)}

    return step


def _beside(ctx: ModelCallContext) -> dict[str, Any]:
    """What is sent beside the messages, as far as a loop says so."""
    return {"tools": getattr(ctx, "tools", None) or (), "instructions": getattr(ctx, "instructions", None) or ""}
