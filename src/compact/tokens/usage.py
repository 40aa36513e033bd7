"""Reads the input tokens out of whatever a provider calls its usage report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

# Anthropic reports what it read from and wrote to its cache beside the input tokens, not in them.
_ADDED = ("cache_read_input_tokens", "cache_creation_input_tokens")
_TOTALS = ("input_tokens", "prompt_tokens", "prompt_token_count")


def reported_input_tokens(usage: object) -> int:
    """Return a plain number, or the sum of a usage object's or mapping's input tokens."""
    if isinstance(usage, int):
        return usage
    total = next((value for name in _TOTALS if (value := _field(usage, name)) is not None), None)
    if total is None:
        raise ValueError(f"no input tokens in {usage!r}; pass a number, or a usage report with one of {_TOTALS}")
    return total + sum(_field(usage, name) or 0 for name in _ADDED)


def _field(usage: object, name: str) -> int | None:
    if isinstance(usage, Mapping):
        return cast(Mapping[str, Any], usage).get(name)
    return getattr(usage, name, None)
