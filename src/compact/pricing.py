"""What a model's tokens cost, from the bundled genai-prices list: offline, and never in the way of a turn.

Loading the list takes a good part of a second. A plan waits for it, and so does a compaction that is only done if it
pays. Nothing else does: the first call that asks for a price has the list loaded in a thread, and goes on without it.
The event of a compaction has the price as soon as the list is there; exporters, which have a thread of their own, wait
for that. What is recorded before has no price of its own; whoever reads it takes that of the calls after it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from compact.core.plan.economics import (
    USD,
    USUAL_RATIOS,
    Economics,
    ModelPrices,
    Prices,
    PromptChange,
    price_change,
)

_MILLION = 1_000_000
# The router of a model is not part of its name in the list: openrouter/, azure:, us.anthropic. … -v1:0
_ROUTE = re.compile(r"^(?:[a-z_-]+:)?(?:(?:us|eu|apac|jp|au|global)\.)?(?:(?:anthropic|openai|google|meta|amazon)\.)?")
_REVISION = re.compile(r"-v\d+(?::\d+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPricer:
    """Prices compactions for one model.

    `own` are prices that were set, which go before the list's. `summary_model` writes the summaries; without one
    they cost nothing. A provider that `has_cache` set to False reads every prompt afresh.
    """

    model: str
    own: Prices | None = None
    summary_model: str | None = None
    has_cache: bool = True

    def __call__(self, change: PromptChange, *, may_wait: bool) -> Economics:
        """Return what the change costs, in dollars if the model's prices are known and at hand."""
        notes: list[str] = []
        is_at_hand = may_wait or is_loaded()
        if not is_at_hand:
            start_loading()
        before = self._prices(change.tokens_before, is_at_hand, notes)
        after = self._prices(change.tokens_after, is_at_hand, [])
        if not self.has_cache:
            before, after = before.without_cache(), after.without_cache()
            notes.append("priced as a provider without a cache")
        summary = self._summary_prices(change, before, is_at_hand, notes)
        return price_change(change, before, prices_after=after, summary_prices=summary, notes=tuple(notes))

    @property
    def at_hand(self) -> ModelPrices:
        """The prices of this moment, for what is recorded: asked for, the list is loaded, and not waited for."""
        return ModelPrices(
            model=self.model, of=self._found, summary_model=self.summary_model or "", of_summary=self._found_summary
        )

    def _found(self, input_tokens: int) -> Prices | None:
        found = self.own or prices_at_hand(self.model, input_tokens=input_tokens)
        return found if found is None or self.has_cache else found.without_cache()

    def _found_summary(self, input_tokens: int) -> Prices | None:
        if not self.summary_model:
            return None
        if self.summary_model == self.model:
            return self._found(input_tokens)
        return prices_at_hand(self.summary_model, input_tokens=input_tokens)

    def _prices(self, input_tokens: int, is_at_hand: bool, notes: list[str]) -> Prices:
        if self.own:
            return self.own
        found = model_prices(self.model, input_tokens=input_tokens) if is_at_hand else None
        if found:
            return found
        why = f"the prices of model {self.model!r} are not known" if is_at_hand else "the price list is not loaded"
        read, write = USUAL_RATIOS.cache_read, USUAL_RATIOS.cache_write
        notes.append(f"{why}: no money, but the usual ratios (cache read {read}x, write {write}x of an input token)")
        return USUAL_RATIOS

    def _summary_prices(
        self, change: PromptChange, prices: Prices, is_at_hand: bool, notes: list[str]
    ) -> Prices | None:
        """Return the prices of the model that writes summaries; sums in two currencies cannot be added."""
        if self.summary_model is None or not change.summary_input_tokens:
            return None
        if self.summary_model == self.model or prices.currency != USD:
            return prices
        found = model_prices(self.summary_model, input_tokens=change.summary_input_tokens) if is_at_hand else None
        if found is None:
            notes.append(
                f"the prices of the summary's model {self.summary_model!r} are not known: priced like the rest"
            )
        return found or prices


_loaded = threading.Event()
_loading = threading.Lock()


def is_loaded() -> bool:
    """Return True if prices can be had without waiting."""
    return _loaded.is_set()


def start_loading() -> None:
    """Have the list loaded in a thread, once in a process."""
    # The lock is never released: it says that loading has begun.
    if not _loaded.is_set() and _loading.acquire(blocking=False):
        threading.Thread(target=_snapshot, name="compact-prices", daemon=True).start()


def prices_at_hand(model: str, *, input_tokens: int = 0) -> Prices | None:
    """Return what a model costs, without waiting; None while the list is not loaded, which begins now."""
    if is_loaded():
        return model_prices(model, input_tokens=input_tokens)
    start_loading()
    return None


def _snapshot() -> Any:
    """Return the bundled list; None if it is not installed."""
    try:
        snapshot: Any = import_module("genai_prices.data_snapshot").get_snapshot()
    except ImportError:
        snapshot = None
    _loaded.set()
    return snapshot


@lru_cache(maxsize=256)
def model_prices(model: str, *, input_tokens: int = 0) -> Prices | None:
    """Return what a model costs in a prompt of so many tokens, by the bundled list; None if that is not known.

    A model that has no price for cached tokens reads and writes them like fresh ones.
    """
    listed = _listed(model)
    if listed is None:
        return None
    fresh, output = _at(listed.input_mtok, input_tokens), _at(listed.output_mtok, input_tokens)
    if fresh is None:
        return None
    read, write = _at(listed.cache_read_mtok, input_tokens), _at(listed.cache_write_mtok, input_tokens)
    return Prices(
        fresh=fresh,
        cache_read=fresh if read is None else read,
        cache_write=fresh if write is None else write,
        output=output or 0.0,
    )


def listed_prices(model: str, input_tokens: int) -> Prices | None:
    """Return what a model costs by the list of today: for what was recorded without a price."""
    return model_prices(model, input_tokens=input_tokens)


@lru_cache(maxsize=64)
def _listed(model: str) -> Any:
    """Return the entry of the list that is in force now, under the first of the model's names that it knows."""
    snapshot = _snapshot()
    if snapshot is None:
        return None
    for name in _names(model):
        try:
            _, found = snapshot.find_provider_model(name, None, None, None)
        except LookupError:
            continue
        return found.get_prices(datetime.now(UTC))
    return None


def _names(model: str) -> Iterator[str]:
    """Yield the model as it is written, then without who routes it; a fine-tune does not cost what its base does."""
    yield model
    name = model.strip().lower().rsplit("/", 1)[-1]
    if not name.startswith("ft:"):
        bare = _ROUTE.sub("", name)
        yield bare
        yield _REVISION.sub("", bare)


def _at(price: Any, input_tokens: int) -> float | None:
    """Return the price of one token in a prompt of this size; long prompts have prices of their own."""
    if price is None:
        return None
    above = [step.price for step in getattr(price, "tiers", ()) if input_tokens > step.start]
    per_million = above[-1] if above else getattr(price, "base", price)
    return float(per_million) / _MILLION
