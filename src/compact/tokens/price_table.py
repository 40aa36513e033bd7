"""Context windows from the genai-prices snapshot: of models that our own table does not know, and of hosts."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from compact.tokens.names import ModelName

# What a host is called in names of models, and in the list. Each serves open models with a window of its own.
_HOSTS = {
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "cerebras": "cerebras",
    "fireworks": "fireworks",
    "fireworks_ai": "fireworks",
    "groq": "groq",
    "novita": "novita",
    "openrouter": "openrouter",
    "together": "together",
    "together_ai": "together",
}


def snapshot_window_tokens(model: str, provider: str | None = None) -> int | None:
    """Return the model's context window in the bundled snapshot; None if model, window or package is unknown."""
    try:
        # Imported here because loading the snapshot takes most of a second.
        snapshot: Any = import_module("genai_prices.data_snapshot").get_snapshot()
        _, found = snapshot.find_provider_model(model, None, provider, None)
    except (ImportError, LookupError):
        return None
    window = found.context_window
    return window if isinstance(window, int) and window > 0 else None


def host_window_tokens(name: ModelName) -> int | None:
    """Return the window with which the host that a name tells serves an open model; None if that is not known."""
    routed = [(index, _HOSTS[part]) for index, part in enumerate(name.parts[:-1]) if part in _HOSTS]
    # Only OpenRouter marks what is free so.
    routed = routed or ([(-1, "openrouter")] if name.tag == "free" else [])
    routed = routed or ([(-1, "aws")] if "bedrock" in name.routes else [])
    if not routed:
        return None
    index, provider = routed[0]
    names = ("/".join(name.parts[index + 1 :]), name.parts[-1])
    return next((found for each in names if (found := snapshot_window_tokens(each, provider))), None)
