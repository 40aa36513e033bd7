"""Build what prices compactions."""

from __future__ import annotations

from compact.config import CompactConfig
from compact.core.plan.economics import USUAL_RATIOS, Prices
from compact.core.summary.summarizer import Summarizer
from compact.pricing import ModelPricer


def build_pricer(config: CompactConfig, summarizer: Summarizer | None = None) -> ModelPricer:
    """Build what prices compactions; a summary that code writes is free."""
    is_free = summarizer is None and not config.summarizer.uses_model
    return ModelPricer(
        model=config.model,
        own=own_prices(config),
        summary_model=None if is_free else config.summarizer.model or config.model,
        # Compacting at every call makes sense only where there is no cache to lose.
        has_cache=config.policy.cadence != "every_call",
    )


def own_prices(config: CompactConfig) -> Prices | None:
    """Return the prices that are set; cached tokens without one cost what fresh ones do."""
    pricing = config.pricing
    fresh = pricing.input_per_mtok
    if fresh is None:
        return None
    read, write = pricing.cache_read_per_mtok, pricing.cache_write_per_mtok
    output = pricing.output_per_mtok
    return Prices(
        fresh=fresh / 1_000_000,
        cache_read=(fresh if read is None else read) / 1_000_000,
        cache_write=(fresh if write is None else write) / 1_000_000,
        output=(fresh * USUAL_RATIOS.output if output is None else output) / 1_000_000,
    )
