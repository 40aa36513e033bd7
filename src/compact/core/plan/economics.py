"""What a compaction costs, what it saves, and after how many calls it has paid for itself: arithmetic, nothing else.

A provider keeps the last prompt in its cache. The next call reads what still stands at its beginning at a discount, and
writes the rest at full price or more. So as long as nothing is changed every call reads the old prompt and writes what
is new; a compaction has one call write everything behind the first change, and every call after it reads less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, Protocol

from compact.core.messages.message import Slot

USD = "USD"
INPUT_TOKENS = "input tokens"
# Sums of fractions of a cent: what is smaller than this share of them is noise.
_NOISE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one token costs: fresh, read from the provider's cache, written into it, and put out by the model."""

    fresh: float
    cache_read: float
    cache_write: float
    output: float
    currency: str = USD

    def without_cache(self) -> Prices:
        """Return the same prices at a provider that keeps nothing: every call pays for all of its prompt."""
        return Prices(
            fresh=self.fresh,
            cache_read=self.fresh,
            cache_write=self.fresh,
            output=self.output,
            currency=self.currency,
        )


# What the large providers have in common, for models whose price is not known. Not money: shares of a fresh token.
USUAL_RATIOS = Prices(fresh=1.0, cache_read=0.1, cache_write=1.25, output=5.0, currency=INPUT_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange:
    """A prompt before and after a compaction, in tokens.

    `cached_tokens` lead the old prompt and went out with the call before; `kept_tokens` lead both prompts. What a new
    summary reads and puts out is counted apart: another model may write it.
    """

    tokens_before: int
    tokens_after: int
    cached_tokens: int
    kept_tokens: int
    summary_input_tokens: int = 0
    summary_output_tokens: int = 0

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt gets."""
        return self.tokens_before - self.tokens_after

    @property
    def reused_tokens(self) -> int:
        """What the call after the change still reads from the cache."""
        return min(self.kept_tokens, self.cached_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Economics:
    """The price of one compaction: what it costs, what it saves, and after how many calls it has paid for itself.

    `manager.plan(session_id, messages).economics` is one, and `plan.run.economics` is that of a plan that was put in
    force. `print(economics)` says it in a sentence.

    Attributes:
        tokens_freed: How much smaller the prompt gets.
        prefix_kept_tokens: What the next call still reads from the provider's cache.
        prefix_broken_tokens: What it would have read from the cache, and has to write again.
        rewrite_cost: What writing that again costs more than reading it would have; below zero if even the first call
            gets cheaper.
        summary_cost: What writing the summary costs.
        saving_per_call: What each later call saves.
        break_even_calls: The calls until it is paid back, the one that compacts included: 0 pays at once, None never.
        currency: `USD`, or `input tokens` where no price is known: shares of a fresh input token.
        notes: What had to be assumed.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> config = CompactConfig(max_context_tokens=8_000, pricing={"input_per_mtok": 2})
        >>> economics = CompactManager(config).plan("chat-1", tool_run(60, words=200)).economics
        >>> economics.tokens_freed > 0, economics.break_even_calls, economics.currency
        (True, 0, 'USD')
    """

    tokens_freed: int
    prefix_kept_tokens: int
    prefix_broken_tokens: int
    rewrite_cost: float
    summary_cost: float
    saving_per_call: float
    break_even_calls: int | None
    currency: str
    notes: tuple[str, ...] = ()

    @property
    def upfront_cost(self) -> float:
        """What must be saved again."""
        return self.rewrite_cost + self.summary_cost

    def pays_back_within(self, calls: int) -> bool:
        """Return True if it has paid for itself after so many calls.

        Args:
            calls: The calls, the one that compacts included.

        Example:
            >>> economics.pays_back_within(10)
            True
        """
        return self.break_even_calls is not None and self.break_even_calls <= calls

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for events and exports.

        Example:
            >>> economics.to_dict()["break_even_calls"]
            0
        """
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}

    def __str__(self) -> str:
        change = f"breaking {self.prefix_broken_tokens:,} cached tokens costs {self.amount(self.rewrite_cost)}"
        if self.rewrite_cost < 0:  # What is new is shorter now, and costs less than the cache that is lost.
            change = f"even the next call costs {self.amount(self.saving_per_call - self.rewrite_cost)} less"
        return (
            f"frees {self.tokens_freed:,} tokens; {change}, the summary costs {self.amount(self.summary_cost)}; "
            f"each call saves {self.amount(self.saving_per_call)}: {self.payback()}"
        )

    def amount(self, value: float) -> str:
        """Return a sum for people: four digits of a dollar, or tokens.

        Args:
            value: The sum, in `currency`.

        Example:
            >>> economics.amount(0.25)
            '$0.2500'
        """
        if self.currency != USD:
            return f"{value:,.0f} {self.currency}"
        return f"{'-' if round(value, 4) < 0 else ''}${abs(value):,.4f}"

    def payback(self) -> str:
        """Return in words when it has paid for itself.

        Example:
            >>> economics.payback()
            'pays back at once'
        """
        if self.break_even_calls is None:
            return "never pays back"
        if self.break_even_calls == 0:
            return "pays back at once"
        return f"pays back after {self.break_even_calls:,} call{'' if self.break_even_calls == 1 else 's'}"


def _no_prices(input_tokens: int) -> Prices | None:
    """Know no price."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrices:
    """Which model is called, which one writes summaries ("" is code), and what a token of a prompt of a size costs.

    None is a price that is not known, or not at hand yet: nothing here ever waits.
    """

    model: str = ""
    of: Callable[[int], Prices | None] = _no_prices
    summary_model: str = ""
    of_summary: Callable[[int], Prices | None] = _no_prices


class Pricer(Protocol):
    """Puts a price on a change."""

    def __call__(self, change: PromptChange, *, may_wait: bool) -> Economics:
        """Return what the change costs; if it may not wait and prices are not at hand, by the usual ratios."""
        ...


def price_by_ratios(change: PromptChange, *, may_wait: bool = False) -> Economics:
    """Return what a change costs in shares of a fresh token; its summary as if the model itself wrote it."""
    return price_change(change, USUAL_RATIOS, summary_prices=USUAL_RATIOS)


def price_change(
    change: PromptChange,
    prices: Prices,
    *,
    prices_after: Prices | None = None,
    summary_prices: Prices | None = None,
    notes: tuple[str, ...] = (),
) -> Economics:
    """Compare the calls to come with and without the change.

    Some models cost more per token in a long prompt, so a smaller one may have `prices_after` of its own. Without
    `summary_prices` a summary is free.
    """
    after = prices_after or prices
    saving = prices.cache_read * change.tokens_before - after.cache_read * change.tokens_after
    unchanged = _call(prices, cached=change.cached_tokens, total=change.tokens_before)
    changed = _call(after, cached=change.reused_tokens, total=change.tokens_after)
    summary = 0.0
    if summary_prices:
        summary = summary_prices.fresh * change.summary_input_tokens
        summary += summary_prices.output * change.summary_output_tokens
    rewrite = changed - unchanged + saving
    noise = _NOISE * (changed + unchanged + summary)
    return Economics(
        tokens_freed=change.tokens_freed,
        prefix_kept_tokens=change.reused_tokens,
        prefix_broken_tokens=change.cached_tokens - change.reused_tokens,
        rewrite_cost=rewrite if abs(rewrite) > noise else 0.0,
        summary_cost=summary,
        saving_per_call=saving,
        break_even_calls=_break_even(rewrite + summary, saving, noise),
        currency=prices.currency,
        notes=notes,
    )


def _call(prices: Prices, *, cached: int, total: int) -> float:
    return prices.cache_read * cached + prices.cache_write * (total - cached)


def _break_even(upfront: float, saving: float, noise: float) -> int | None:
    if upfront <= noise:
        return 0
    if saving <= noise:
        return None
    return ceil((upfront - noise) / saving)


def measure_change(
    before: Sequence[Slot],
    after: Sequence[Slot],
    *,
    sent: Sequence[Slot],
    tokens: Sequence[int],
    tokens_after: int,
    fixed_tokens: int = 0,
    summary_input_tokens: int = 0,
    summary_output_tokens: int = 0,
) -> PromptChange:
    """Return the change from one list of slots to another; `sent` are the slots of the call before.

    `tokens` are those of the slots `before`, `tokens_after` the sum of those `after`; `fixed_tokens` (instructions,
    tool schemas) stand before both. Of a history that was never sent through here all counts as cached: it comes from
    somewhere, and a price that is too high does less harm than one that is too low.
    """
    cached = shared_slots(before, sent) if sent else len(before)
    return PromptChange(
        tokens_before=fixed_tokens + sum(tokens),
        tokens_after=fixed_tokens + tokens_after,
        cached_tokens=fixed_tokens + sum(tokens[:cached]),
        kept_tokens=fixed_tokens + sum(tokens[: shared_slots(before, after)]),
        summary_input_tokens=summary_input_tokens,
        summary_output_tokens=summary_output_tokens,
    )


def shared_slots(first: Sequence[Slot], second: Sequence[Slot]) -> int:
    """Return how many slots two prompts have in common from their beginning."""
    shorter = min(len(first), len(second))
    # As at nearly every call: the slots are the very same objects.
    if first[:shorter] == second[:shorter]:
        return shorter
    same = 0
    for one, other in zip(first, second, strict=False):
        if one.message is not other.message and one.message != other.message:
            break
        same += 1
    return same
