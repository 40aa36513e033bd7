"""LiteLLM: a callback that compacts every `acompletion` (and the Router's), and a `completion` that does the same.

    import litellm
    from compact import CompactConfig, CompactManager
    from compact.adapters.litellm import CompactionLogger

    compacting = CompactionLogger(CompactManager(CompactConfig(model="gpt-4o")))
    litellm.callbacks.append(compacting)
    await litellm.acompletion(model="gpt-4o", messages=history, litellm_session_id="chat-1")
    compacting.completion(model="gpt-4o", messages=history, litellm_session_id="chat-1")  # LiteLLM has no sync hook

The hook is `CustomLogger.async_pre_call_deployment_hook`. Only the request is compacted: the list that is passed in
stays as it is.

callback    the callback, with its own `completion` and `prepare`
defaults    what LiteLLM asks for in a request that names no limit
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=1.80,<2"
with needs_package("litellm", SUPPORTED_VERSIONS, extra="litellm"):
    from compact.adapters.litellm.callback import CompactionLogger

__all__ = ["SUPPORTED_VERSIONS", "CompactionLogger"]
