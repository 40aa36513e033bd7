"""Own loops: hooks to call before each model call, for those who call a model themselves.

    hook = before_model_call(manager)          # hook(ctx): ctx.session_id, ctx.messages, and ctx.tools if there are any
    step = prepare_step(manager, "chat-1")     # await step({"messages": history}) -> {"messages": what to send}
    retry = on_model_error(manager)            # retry(ctx, error): True if they were too long, and are shorter now

Either may be given the full history every time, or its own last answer with new messages behind it.

hooks    the hooks, for plain functions and for event loops
"""

from compact.adapters.own_loop.hooks import (
    abefore_model_call,
    aon_model_error,
    before_model_call,
    on_model_error,
    prepare_step,
)

__all__ = ["abefore_model_call", "aon_model_error", "before_model_call", "on_model_error", "prepare_step"]
