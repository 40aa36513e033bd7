"""Which client speaks to which provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compact.core.errors import ConfigError
from compact.summarizers.anthropic_client import AnthropicClient
from compact.summarizers.litellm_client import LiteLlmClient
from compact.summarizers.model_client import ModelClient
from compact.summarizers.openai_client import OpenAIClient
from compact.summarizers.packages import require

_CLIENTS: Mapping[str, Callable[..., ModelClient]] = {
    "openai": OpenAIClient,
    "anthropic": AnthropicClient,
    "litellm": LiteLlmClient,
}


def connect(provider: str, model: str, *, base_url: str | None = None, api_key: str | None = None) -> ModelClient:
    """A client for a model; its package must be there, but is only loaded when it is used."""
    if provider not in _CLIENTS:
        known = ", ".join(_CLIENTS)
        raise ConfigError(f"no provider {provider!r}", field="summarizer.provider", hint=f"use one of {known}")
    require(provider, extra=provider)
    return _CLIENTS[provider](model, base_url=base_url, api_key=api_key)
