"""Own loops: hooks to call before each model call, for those who call a model themselves.

    hook = before_model_call(manager)          # hook(ctx): ctx.session_id, ctx.messages, and ctx.tools if there are any
    step = prepare_step(manager, "chat-1")     # await step({"messages": history}) -> {"messages": what to send}

Either may be given the full history every time, or its own last answer with new messages behind it.

hooks    the three hooks, for plain functions and for event loops
"""

from compact.adapters.own_loop.hooks import abefore_model_call, before_model_call, prepare_step

__all__ = ["abefore_model_call", "before_model_call", "prepare_step"]
