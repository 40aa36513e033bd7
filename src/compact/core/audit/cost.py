"""What calls, compactions and sessions cost, and what compaction saved: computed in one place, from what was recorded.

A call is priced by the prices that were recorded with it. What a provider reported goes before our estimates, and every
figure says which of the two it is. A price that is not known is None, and never nothing. Only prompts are counted: what
the model answers costs the same with and without compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compact.core.audit.call_details import CallDetails
from compact.core.audit.records import ModelCall, PlanVersion
from compact.core.plan.economics import USD, Economics, Prices, PromptChange, price_change
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan, CompactionRun
from compact.core.plurals import quantity
from compact.core.short_repr import short_repr
from compact.core.summary.writing import SummaryWriting

FindPrices = Callable[[str, int], "Prices | None"]


def no_list(model: str, input_tokens: int) -> Prices | None:
    """Know no price but those that were recorded."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What one prompt cost, and what it would have cost without any compaction.

    `is_reported` says that the provider counted `input_tokens`, and `is_cache_reported` that it counted
    `cached_tokens`; otherwise they are estimates. `is_price_recorded` is False if the price is that of a later call or
    of today's list. `fits_uncompacted` is False if the prompt would not have fitted its window without compaction.
    """

    number: int
    plan_version: int
    model: str
    input_tokens: int
    is_reported: bool
    cached_tokens: int
    is_cache_reported: bool
    uncompacted_tokens: int
    fits_uncompacted: bool
    cost: float | None
    cost_uncompacted: float | None
    is_price_recorded: bool = True

    @property
    def saved(self) -> float | None:
        """What compaction saved in this call; below zero if the call was dearer for it."""
        if self.cost is None or self.cost_uncompacted is None:
            return None
        return self.cost_uncompacted - self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "model": self.model,
            "usd": self.cost,
            "usd_uncompacted": self.cost_uncompacted,
            "usd_saved": self.saved,
            "input_tokens": self.input_tokens,
            "is_reported": self.is_reported,
            "cached_tokens": self.cached_tokens,
            "is_cache_reported": self.is_cache_reported,
            "uncompacted_tokens": self.uncompacted_tokens,
            "fits_uncompacted": self.fits_uncompacted,
            "is_price_recorded": self.is_price_recorded,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryBill:
    """What writing one summary cost; `is_estimate` if its summariser does not tell its tokens."""

    version: int
    writing: SummaryWriting
    input_tokens: int
    output_tokens: int
    is_estimate: bool
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **self.writing.to_dict(),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "is_estimate": self.is_estimate,
            "usd": self.cost,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCost:
    """What one compaction costs and saves.

    `economics` is None if nothing is known of it. `calls_under` went out under its plan, the one that compacted
    included: each saved `economics.saving_per_call`. `net` is what came of it so far, its price taken off; below zero
    as long as it has not paid for itself. Both stop with the next plan. `is_price_recorded` is False for a price that
    was not at hand when it was put in force.
    """

    version: int
    economics: Economics | None
    calls_under: int
    summary: SummaryBill | None
    is_price_recorded: bool = True

    @property
    def is_money(self) -> bool:
        """True if its price is known in dollars."""
        return self.economics is not None and self.economics.currency == USD

    @property
    def net(self) -> float | None:
        """What it saved so far, less its price; None if no price is known."""
        if self.economics is None or not self.is_money:
            return None
        return self.calls_under * self.economics.saving_per_call - self.economics.upfront_cost

    @property
    def has_paid_back(self) -> bool:
        """True if it has saved what it cost."""
        return self.economics is not None and self.economics.pays_back_within(self.calls_under)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; sums of money are None where no price is known."""
        economics, is_money = self.economics, self.is_money
        return {
            "freed_tokens": economics.tokens_freed if economics else None,
            "kept_prefix_tokens": economics.prefix_kept_tokens if economics else None,
            "broken_prefix_tokens": economics.prefix_broken_tokens if economics else None,
            "usd_rewrite": economics.rewrite_cost if economics and is_money else None,
            "usd_summary": economics.summary_cost if economics and is_money else None,
            "usd_saved_per_call": economics.saving_per_call if economics and is_money else None,
            "break_even_calls": economics.break_even_calls if economics else None,
            "calls_under": self.calls_under,
            "usd_net": self.net,
            "has_paid_back": self.has_paid_back,
            "is_price_recorded": self.is_price_recorded,
            "summary": self.summary.to_dict() if self.summary else None,
            "lines": [str(economics), *economics.notes] if economics else [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCost:
    """What a session cost and saved: the sums of its calls, and its summaries.

    Sums are over the calls whose price is known; `unpriced_calls` says how many are not in them.
    """

    calls: tuple[CallCost, ...] = ()
    compactions: tuple[CompactionCost, ...] = ()
    __repr__ = short_repr

    @property
    def models(self) -> tuple[str, ...]:
        """The models of its calls, in the order of their first call."""
        return tuple(dict.fromkeys(call.model for call in self.calls if call.model))

    @property
    def unpriced_calls(self) -> int:
        """The calls whose price is not known."""
        return sum(call.cost is None for call in self.calls)

    @property
    def prompts(self) -> float | None:
        """What the prompts cost."""
        return _sum(call.cost for call in self.calls)

    @property
    def uncompacted(self) -> float | None:
        """What the prompts would have cost without any compaction."""
        return _sum(call.cost_uncompacted for call in self.calls if call.cost is not None)

    @property
    def bills(self) -> tuple[SummaryBill, ...]:
        """What each summary cost that a model wrote."""
        return tuple(entry.summary for entry in self.compactions if entry.summary)

    @property
    def summaries(self) -> float | None:
        """What the summaries cost; 0.0 if code wrote them all, None if the price of one is not known."""
        costs = [bill.cost for bill in self.bills]
        return None if any(cost is None for cost in costs) else float(sum(cost or 0.0 for cost in costs))

    @property
    def total(self) -> float | None:
        """What prompts and summaries cost together, as far as it is known."""
        return None if self.prompts is None else self.prompts + (self.summaries or 0.0)

    @property
    def saved(self) -> float | None:
        """What compaction saved so far, the summaries paid; below zero if it has not paid for itself yet."""
        if self.prompts is None or self.uncompacted is None:
            return None
        return self.uncompacted - self.prompts - (self.summaries or 0.0)

    @property
    def cached_share(self) -> float | None:
        """The share of all input tokens that was served from the provider's cache."""
        tokens = sum(call.input_tokens for call in self.calls)
        return sum(call.cached_tokens for call in self.calls) / tokens if tokens else None

    @property
    def cache_reported_calls(self) -> int:
        """The calls whose provider told what its cache had; of the others it is an estimate."""
        return sum(call.is_cache_reported for call in self.calls)

    @property
    def too_large_calls(self) -> int:
        """The calls that would not have fitted their window without compaction."""
        return sum(not call.fits_uncompacted for call in self.calls)

    @property
    def tokens_sent(self) -> int:
        """The input tokens of all calls."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def tokens_uncompacted(self) -> int:
        """The same without any compaction."""
        return sum(call.uncompacted_tokens for call in self.calls)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said beside the sums: what is not in them, and what in them is an estimate."""
        return tuple(_notes(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as plain data; the calls and compactions have their own."""
        bills = self.bills
        return {
            "models": list(self.models),
            "usd": self.total,
            "usd_prompts": self.prompts,
            "usd_summaries": self.summaries,
            "usd_uncompacted": self.uncompacted,
            "usd_saved": self.saved,
            "unpriced_calls": self.unpriced_calls,
            "cached_share": self.cached_share,
            "cache_reported_calls": self.cache_reported_calls,
            "too_large_calls": self.too_large_calls,
            "tokens_sent": self.tokens_sent,
            "tokens_uncompacted": self.tokens_uncompacted,
            "summarizer_calls": sum(bill.writing.calls for bill in bills),
            "summarizer_input_tokens": sum(bill.input_tokens for bill in bills),
            "summarizer_output_tokens": sum(bill.output_tokens for bill in bills),
            "notes": list(self.notes),
        }


def _notes(cost: SessionCost) -> Iterable[str]:
    calls = len(cost.calls)
    unknown = dict.fromkeys(call.model for call in cost.calls if call.cost is None)
    for model in unknown:
        count = sum(call.cost is None and call.model == model for call in cost.calls)
        whose = f"the price of {model} is not known" if model else "the model was not recorded"
        yield f"{whose}: {count:,} of {quantity(calls, 'call')} not in the sums"
    if cost.summaries is None:
        yield "the price of a summary is not known: the sums are without it"
    later = sum(call.cost is not None and not call.is_price_recorded for call in cost.calls)
    if later:
        yield f"{later:,} of {quantity(calls, 'call')} had no price when made: the first price known since is used"
    estimated = calls - cost.cache_reported_calls
    if estimated and cost.prompts is not None:
        whose = (
            "no provider told"
            if estimated == calls
            else f"of {estimated:,} of {quantity(calls, 'call')} no provider told"
        )
        yield f"{whose} what its cache served: it is taken to have served what the call before had sent"
    if cost.too_large_calls:
        prompts = f"{cost.too_large_calls:,} of {quantity(calls, 'prompt')}"
        yield f"without compaction {prompts} would not have fitted the window"


def cost_of(
    calls: Sequence[ModelCall], plans: Sequence[PlanVersion], *, find_prices: FindPrices = no_list
) -> SessionCost:
    """Return what a session cost; `find_prices` is asked only for a model whose price was never recorded."""
    details = [CallDetails.from_dict(call.details) for call in calls]
    known = _RecordedPrices(details, find_prices)
    return SessionCost(
        calls=tuple(_call_costs(calls, details, known)), compactions=tuple(_compaction_costs(calls, plans, known))
    )


class _RecordedPrices:
    """The prices of each model, for calls that went out before the list was at hand."""

    def __init__(self, details: Iterable[CallDetails], find_prices: FindPrices) -> None:
        self._find_prices = find_prices
        self._by_model: dict[str, Prices] = {}
        for one in details:
            if one.prices:
                self._by_model.setdefault(one.model, one.prices)

    def later(self, model: str, input_tokens: int) -> Prices | None:
        """Return the first price that was recorded of a model, or that of the list; None for no model."""
        if not model:
            return None
        return self._by_model.get(model) or self._find_prices(model, input_tokens)


# -- calls --------------------------------------------------------------------------------------------------------


def _call_costs(
    calls: Sequence[ModelCall], details: Sequence[CallDetails], known: _RecordedPrices
) -> Iterable[CallCost]:
    before: dict[str, tuple[ModelCall, CallDetails]] = {}
    for call, detail in zip(calls, details, strict=True):
        yield _call_cost(call, detail, before.get(detail.model), known)
        before[detail.model] = call, detail


def _call_cost(
    call: ModelCall, detail: CallDetails, before: tuple[ModelCall, CallDetails] | None, known: _RecordedPrices
) -> CallCost:
    """Return the cost of a call; `before` is the call before it of the same model, whose cache may serve it."""
    input_tokens = call.tokens_estimated if call.tokens_reported is None else call.tokens_reported
    scale = input_tokens / call.tokens_estimated if call.tokens_estimated else 1.0
    uncompacted = call.tokens_estimated if detail.tokens_uncompacted is None else detail.tokens_uncompacted
    cached = _Cached.of(call, detail, before, input_tokens=input_tokens, scale=scale)
    prices = detail.prices or known.later(detail.model, input_tokens)
    prices_uncompacted = detail.prices_uncompacted or prices
    whole = round(uncompacted * scale)
    # A prompt that nothing was taken from is the same without compaction.
    uncompacted_cache = cached if whole == input_tokens else cached.without_compaction(call, before, whole, scale)
    return CallCost(
        number=call.number,
        plan_version=call.plan_version,
        model=detail.model,
        input_tokens=input_tokens,
        is_reported=call.tokens_reported is not None,
        cached_tokens=cached.read,
        is_cache_reported=cached.is_reported,
        uncompacted_tokens=whole,
        fits_uncompacted=not call.limits or whole <= call.limits["window"],
        cost=cached.cost(prices, input_tokens) if prices else None,
        cost_uncompacted=uncompacted_cache.cost(prices_uncompacted, whole) if prices_uncompacted else None,
        is_price_recorded=detail.prices is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cached:
    """What of a prompt the provider's cache served, and which share of the rest it wrote into it.

    `served` is the share of what it could have served: 1 unless it told otherwise.
    """

    read: int
    written_share: float
    served: float
    is_reported: bool

    @classmethod
    def of(
        cls,
        call: ModelCall,
        detail: CallDetails,
        before: tuple[ModelCall, CallDetails] | None,
        *,
        input_tokens: int,
        scale: float,
    ) -> _Cached:
        """Return what the provider told; of what it did not tell, what the call before of the same model left."""
        possible = min(detail.tokens_cached or 0, before[0].tokens_estimated) if before else 0
        expected = min(round(possible * scale), input_tokens)
        if detail.cache_read_tokens is None:
            return cls(read=expected, written_share=1.0, served=1.0, is_reported=False)
        read = min(detail.cache_read_tokens, input_tokens)
        rest = input_tokens - read
        written = min(detail.cache_write_tokens or 0, rest)
        return cls(
            read=read,
            written_share=written / rest if rest else 0.0,
            served=min(1.0, read / expected) if expected else 1.0,
            is_reported=True,
        )

    def without_compaction(
        self, call: ModelCall, before: tuple[ModelCall, CallDetails] | None, whole: int, scale: float
    ) -> _Cached:
        """Return what the same cache would have served of the whole history: the call before, without what was added.

        Where the past was edited since, no more is taken to be the same than really was.
        """
        possible = 0
        if before is not None and before[0].branch == call.branch:
            last, detail = before
            whole_before = last.tokens_estimated if detail.tokens_uncompacted is None else detail.tokens_uncompacted
            possible = whole_before - last.parts.get(PromptPart.INJECTED, 0)
        return replace(self, read=min(max(round(possible * scale * self.served), self.read), whole))

    def cost(self, prices: Prices, input_tokens: int) -> float:
        """Return what a prompt of so many tokens costs."""
        rest = input_tokens - self.read
        fresh = rest * (1.0 - self.written_share)
        return prices.cache_read * self.read + prices.cache_write * (rest - fresh) + prices.fresh * fresh


# -- compactions --------------------------------------------------------------------------------------------------


def _compaction_costs(
    calls: Sequence[ModelCall], plans: Sequence[PlanVersion], known: _RecordedPrices
) -> Iterable[CompactionCost]:
    under: dict[int, int] = {}
    for call in calls:
        under[call.plan_version] = under.get(call.plan_version, 0) + 1
    paid: set[tuple[int, SummaryWriting]] = set()
    before: CompactionPlan | None = None
    for entry in plans:
        plan = entry.plan
        if plan.run is not None and plan.origin is None:
            yield _compaction_cost(plan, before, under.get(plan.version, 0), known, paid)
        before = plan


def _compaction_cost(
    plan: CompactionPlan,
    before: CompactionPlan | None,
    calls_under: int,
    known: _RecordedPrices,
    paid: set[tuple[int, SummaryWriting]],
) -> CompactionCost:
    run = plan.run or CompactionRun()
    economics, is_recorded = run.economics, True
    if run.change and (economics is None or economics.currency != USD):
        prices = run.prices or known.later(run.model, run.change.tokens_before)
        if prices:
            economics, is_recorded = _price(run, run.change, prices, known), run.prices is not None
    return CompactionCost(
        version=plan.version,
        economics=economics,
        calls_under=calls_under,
        summary=_summary_bill(plan, before, run, known, paid),
        is_price_recorded=is_recorded,
    )


def _price(run: CompactionRun, change: PromptChange, prices: Prices, known: _RecordedPrices) -> Economics:
    """Return the price of a compaction that had none; a summary is never free for want of its own model's price."""
    read, notes = change.summary_input_tokens, tuple[str, ...]()
    summary = run.summary_prices or known.later(run.summary_model, read)
    if summary is None and run.summary_model and read:
        summary = prices
        notes = (f"the prices of the summary's model {run.summary_model!r} are not known: priced like the rest",)
    return price_change(change, prices, prices_after=run.prices_after, summary_prices=summary, notes=notes)


def _summary_bill(
    plan: CompactionPlan,
    before: CompactionPlan | None,
    run: CompactionRun,
    known: _RecordedPrices,
    paid: set[tuple[int, SummaryWriting]],
) -> SummaryBill | None:
    """Return the bill of a summary that is new in a plan and asked a model; one that comes back is paid already."""
    record, earlier = plan.summary, before.summary if before else None
    writing = record.summary.writing if record and record.summary else None
    if record is None or writing is None or not run.summary_model or (earlier and earlier.version == record.version):
        return None
    key = record.version, writing
    if key in paid:
        return None
    paid.add(key)
    change = run.change
    read, put_out = writing.input_tokens, writing.output_tokens
    if not writing.is_counted and change:
        read, put_out = change.summary_input_tokens, change.summary_output_tokens
    prices = run.summary_prices or known.later(run.summary_model, read)
    cost = prices.fresh * read + prices.output * put_out if prices else None
    return SummaryBill(
        version=plan.version,
        writing=writing,
        input_tokens=read,
        output_tokens=put_out,
        is_estimate=not writing.is_counted,
        cost=0.0 if not read and not put_out and writing.is_counted else cost,
    )


def dollars(amount: float | None) -> str:
    """Return a sum of money for people: cents, or four digits of what is less than one; a price may not be known."""
    if amount is None:
        return "not known"
    if amount == 0:
        return "$0"
    digits = 2 if abs(amount) >= 0.01 else 4
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{digits}f}"


def by_number(cost: SessionCost) -> Mapping[int, CallCost]:
    """Return the cost of each call by its number."""
    return {call.number: call for call in cost.calls}


def by_version(cost: SessionCost) -> Mapping[int, CompactionCost]:
    """Return the cost of each compaction by its plan version."""
    return {entry.version: entry for entry in cost.compactions}


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; None if nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
