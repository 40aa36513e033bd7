"""Context windows from the genai-prices snapshot, for models that our own table does not know."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def snapshot_window_tokens(model: str) -> int | None:
    """Return the model's context window in the bundled snapshot; None if model, window or package is unknown."""
    try:
        # Imported here because loading the snapshot takes most of a second.
        snapshot: Any = import_module("genai_prices.data_snapshot").get_snapshot()
        _, found = snapshot.find_provider_model(model, None, None, None)
    except (ImportError, LookupError):
        return None
    window = found.context_window
    return window if isinstance(window, int) and window > 0 else None
