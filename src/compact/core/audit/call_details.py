"""What is recorded of a model call beside its size: its model, the prices of that moment, and what its prompt held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any

from compact.core.plan.economics import Prices
from compact.core.plan.plan import StepFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    """The details of one model call; what was not recorded, or is not known, is None.

    `prices` are those of its model when it was made, and `prices_uncompacted` those of a prompt as large as it would
    have been without any compaction (`tokens_uncompacted`), if they differ. `tokens_cached` lead the prompt and went
    out with the call before, by our own estimate. The provider's own figures are `cache_read_tokens` and
    `cache_write_tokens`. `contents` are the tokens of each part of the prompt by role or tool, `failures` what failed
    on the way to it and left the prompt uncompacted.
    """

    model: str = ""
    prices: Prices | None = None
    prices_uncompacted: Prices | None = None
    tokens_uncompacted: int | None = None
    tokens_cached: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    contents: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    failures: tuple[StepFailure, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without what is not known."""
        # By hand: it is done for every prompt, and `asdict` takes longer than all else that is recorded of a call.
        plain = {
            "model": self.model,
            "prices": _plain_prices(self.prices),
            "prices_uncompacted": _plain_prices(self.prices_uncompacted),
            "tokens_uncompacted": self.tokens_uncompacted,
            "tokens_cached": self.tokens_cached,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "contents": {part: dict(tokens) for part, tokens in self.contents.items()},
            "failures": [asdict(failure) for failure in self.failures],
        }
        return {name: value for name, value in plain.items() if value not in (None, "", [], {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CallDetails:
        """Return the details that `to_dict` made plain data of; names that are not known here are left out."""
        known: dict[str, Any] = {spec.name: data[spec.name] for spec in fields(cls) if spec.name in data}
        for name in ("prices", "prices_uncompacted"):
            if known.get(name):
                known[name] = Prices(**known[name])
        known["failures"] = tuple(StepFailure(**failure) for failure in known.get("failures", ()))
        return cls(**known)


def _plain_prices(prices: Prices | None) -> dict[str, Any] | None:
    return dict(_priced(prices)) if prices else None


@lru_cache(maxsize=64)
def _priced(prices: Prices) -> Mapping[str, Any]:
    return asdict(prices)


def reported_cache(cache_read_tokens: int | None, cache_write_tokens: int | None) -> dict[str, int]:
    """Return what a provider told of its cache, as it is added to the details of a call."""
    told = {"cache_read_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens}
    return {name: tokens for name, tokens in told.items() if tokens is not None}
