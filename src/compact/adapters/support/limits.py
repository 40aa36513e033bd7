"""The tokens that a request sets aside for its answer: providers refuse a prompt that does not fit beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What APIs and frameworks call the most tokens that an answer may have.
_NAMES = (
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxTokens",
    "maxOutputTokens",
    "max_tokens_to_sample",
    "num_predict",
)


def output_limit(*settings: Mapping[str, Any] | None) -> int:
    """Return the most tokens that an answer may have, by the first settings that name it; 0 if none do."""
    for one in settings:
        limits = (one.get(name) for name in _NAMES) if one else ()
        found = next((tokens for tokens in limits if _is_limit(tokens)), 0)
        if found:
            return found
    return 0


def litellm_limit(model: object, name: str) -> int:
    """Return what LiteLLM asks for if a request names no limit; 0 for a model that does not call LiteLLM."""
    if "litellm" not in type(model).__name__.lower():
        return 0
    from compact.adapters.litellm.defaults import default_output_tokens  # only loaded where it is in use anyway

    return default_output_tokens(name)


def _is_limit(tokens: object) -> bool:
    """Return True for a number of tokens; Ollama has -1 for no limit, and in Python True is a number."""
    return isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0
