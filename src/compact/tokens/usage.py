"""Reads the input tokens out of whatever a provider calls its usage report, and what its cache had of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

# Anthropic reports what it read from and wrote to its cache beside the input tokens, not in them.
_ADDED = ("cache_read_input_tokens", "cache_creation_input_tokens")
_TOTALS = ("input_tokens", "prompt_tokens", "prompt_token_count")
# Where a report says what was read from the cache: a field of its own, or one of the details of the input.
_CACHE_READ = ("cache_read_input_tokens", "cached_content_token_count", "cache_read_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cache_write_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_READ_IN_DETAILS = ("cached_tokens", "cache_read")
_WRITE_IN_DETAILS = ("cache_write_tokens", "cache_creation")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """What a provider counted for a prompt; None is what it did not tell."""

    input_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


def reported_usage(usage: object) -> ReportedUsage:
    """Return what a report tells: a plain number tells the input tokens alone."""
    if isinstance(usage, ReportedUsage):
        return usage
    total = reported_input_tokens(usage)
    if isinstance(usage, int):
        return ReportedUsage(input_tokens=total)
    details = next((found for name in _DETAILS if (found := _value(usage, name)) is not None), None)
    return ReportedUsage(
        input_tokens=total,
        cache_read_tokens=_first(usage, _CACHE_READ, details, _READ_IN_DETAILS),
        cache_write_tokens=_first(usage, _CACHE_WRITE, details, _WRITE_IN_DETAILS),
    )


def reported_input_tokens(usage: object) -> int:
    """Return a plain number, or the sum of a usage object's or mapping's input tokens."""
    if isinstance(usage, int):
        return usage
    total = next((value for name in _TOTALS if (value := _field(usage, name)) is not None), None)
    if total is None:
        raise ValueError(f"no input tokens in {usage!r}; pass a number, or a usage report with one of {_TOTALS}")
    return total + sum(_field(usage, name) or 0 for name in _ADDED)


def _first(usage: object, names: tuple[str, ...], details: object, inside: tuple[str, ...]) -> int | None:
    """Return the first of the fields that a report has, or of those in its details."""
    found = next((value for name in names if (value := _field(usage, name)) is not None), None)
    if found is None and details is not None:
        found = next((value for name in inside if (value := _field(details, name)) is not None), None)
    return found


def _field(usage: object, name: str) -> int | None:
    value = _value(usage, name)
    return value if isinstance(value, int) else None


def _value(usage: object, name: str) -> Any:
    if isinstance(usage, Mapping):
        return cast(Mapping[str, Any], usage).get(name)
    return getattr(usage, name, None)
