"""What LiteLLM asks for in a request that names no limit for its answer."""

# LiteLLM's own functions have untyped parameters.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

from functools import lru_cache
from typing import Any

import litellm
from litellm.types.utils import LlmProviders


@lru_cache(maxsize=256)
def default_output_tokens(model: str, provider: str | None = None) -> int:
    """Return the limit that LiteLLM adds for a model: Claude's API needs one, and gets all that the model can write."""
    try:
        name, provider, *_ = litellm.get_llm_provider(model, custom_llm_provider=provider)
        config: Any = litellm.ProviderConfigManager.get_provider_chat_config(name, LlmProviders(provider))
    except Exception:  # noqa: BLE001 - LiteLLM raises its own errors for names that it does not know
        return 0
    get_limit: Any = getattr(config, "get_max_tokens_for_model", None)
    return int(get_limit(name)) if get_limit else 0
