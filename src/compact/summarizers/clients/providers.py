"""Which client speaks to which provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compact.core.errors import ConfigError
from compact.summarizers.clients.anthropic_client import AnthropicClient
from compact.summarizers.clients.api_errors import require_package
from compact.summarizers.clients.litellm_client import LiteLlmClient
from compact.summarizers.clients.model_client import ModelClient
from compact.summarizers.clients.openai_client import OpenAIClient

# The package of each provider has its name.
_CLIENTS: Mapping[str, Callable[..., ModelClient]] = {
    "openai": OpenAIClient,
    "anthropic": AnthropicClient,
    "litellm": LiteLlmClient,
}


def connect(provider: str, model: str, *, base_url: str | None = None, api_key: str | None = None) -> ModelClient:
    """Return a client for a model; its package must be installed, but is only loaded when it is used."""
    if provider not in _CLIENTS:
        known = ", ".join(_CLIENTS)
        raise ConfigError(f"no provider {provider!r}", field="summarizer.provider", hint=f"use one of {known}")
    require_package(provider)
    return _CLIENTS[provider](model, base_url=base_url, api_key=api_key)
