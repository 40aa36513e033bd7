"""What a compaction costs and saves is what a provider with a cache would bill, call by call."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.message import Message, Slot
from compact.core.plan.economics import (
    INPUT_TOKENS,
    USUAL_RATIOS,
    Prices,
    PromptChange,
    measure_change,
    price_by_ratios,
    price_change,
    shared_slots,
)

CLAUDE = Prices(fresh=3e-6, cache_read=3e-7, cache_write=3.75e-6, output=15e-6)
Prompt = list[tuple[str, int]]


def slots_of(prompt: Prompt) -> list[Slot]:
    return [Slot(Message("user", text), (text,)) for text, _ in prompt]


def billed(calls: list[Prompt], prices: list[Prices], *, cached: Prompt) -> float:
    """What a provider asks for these calls: the beginning that the call before had too is read, the rest is written."""
    total = 0.0
    for prompt, price in zip(calls, prices, strict=True):
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, cached, strict=False)))
        total += sum(price.cache_read * tokens for _, tokens in prompt[:same])
        total += sum(price.cache_write * tokens for _, tokens in prompt[same:])
        cached = prompt
    return total


prompts = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 50)), min_size=1, max_size=12).map(
    lambda entries: [(f"{place}{name}", tokens) for place, (name, tokens) in enumerate(entries)]
)
price_lists = st.builds(
    lambda fresh, read, write: Prices(fresh=fresh, cache_read=read, cache_write=write, output=5.0),
    st.floats(0.5, 5),
    st.floats(0.01, 1),
    st.floats(1, 2),
)


@given(
    before=prompts,
    kept=st.integers(0, 12),
    rest=st.lists(st.integers(1, 50), max_size=6),
    unsent=st.integers(0, 3),
    prices=price_lists,
    after_prices=st.none() | price_lists,
    calls=st.integers(1, 30),
)
def test_the_figures_are_what_a_provider_bills(
    before: Prompt,
    kept: int,
    rest: list[int],
    unsent: int,
    prices: Prices,
    after_prices: Prices | None,
    calls: int,
) -> None:
    """Over any number of calls, the bill without compaction less the bill with it is `calls × saving − rewriting`."""
    sent = before[: max(1, len(before) - unsent)]
    after = before[:kept] + [(f"new{place}", tokens) for place, tokens in enumerate(rest)]
    change = measure_change(
        slots_of(before),
        slots_of(after),
        sent=slots_of(sent),
        tokens=[tokens for _, tokens in before],
        tokens_after=sum(tokens for _, tokens in after),
    )
    economics = price_change(change, prices, prices_after=after_prices)
    later = after_prices or prices
    news = [(f"later{number}", 7) for number in range(calls - 1)]
    without = billed([before + news[:n] for n in range(calls)], [prices] * calls, cached=sent)
    compacted = billed([after + news[:n] for n in range(calls)], [later] * calls, cached=sent)
    # What is new later costs the same with and without; only its price may differ, in a shorter prompt.
    new_without = billed([news[:n] for n in range(calls)], [prices] * calls, cached=[])
    new_compacted = billed([news[:n] for n in range(calls)], [later] * calls, cached=[])
    gain = (without - new_without) - (compacted - new_compacted)
    assert calls * economics.saving_per_call - economics.rewrite_cost == pytest.approx(gain, abs=1e-6)
    paid_back = economics.break_even_calls is not None and calls >= economics.break_even_calls
    if abs(gain) > 1e-6 and economics.saving_per_call > 0:
        assert paid_back == (gain > 0)


@given(prompts, st.integers(0, 12))
def test_two_prompts_share_what_both_begin_with(prompt: Prompt, kept: int) -> None:
    first, kept = slots_of(prompt), min(kept, len(prompt))
    edited = slots_of([*prompt[:kept], ("new", 1), *prompt[kept + 1 :]])
    of_other_entries = [Slot(slot.message, ("other",)) for slot in first[:kept]]
    for other in (first[:kept], slots_of(prompt[:kept]), edited, of_other_entries):
        assert shared_slots(first, other) == shared_slots(other, first) == kept


def test_what_takes_nothing_is_paid_back_at_once_where_the_model_costs_nothing() -> None:
    """Unless its summary costs something: that is never saved again."""
    free = Prices(fresh=0.0, cache_read=0.0, cache_write=0.0, output=0.0)
    change = PromptChange(
        tokens_before=1_000, tokens_after=500, cached_tokens=1_000, kept_tokens=0, summary_output_tokens=100
    )
    assert price_change(change, free).payback() == "pays back at once"
    assert price_change(change, free, summary_prices=CLAUDE).payback() == "never pays back"


@pytest.mark.parametrize("times", range(1, 30))
def test_what_was_saved_again_to_the_last_fraction_is_paid_back(times: int) -> None:
    change = PromptChange(
        tokens_before=1_000, tokens_after=900, cached_tokens=0, kept_tokens=0, summary_output_tokens=100 * times
    )
    alike = Prices(fresh=0.1, cache_read=0.1, cache_write=0.1, output=0.1)
    economics = price_change(change, alike, summary_prices=alike)
    assert economics.break_even_calls == times


def test_a_worked_example() -> None:
    """5,000 of 100,000 tokens stay in front, 40,000 are left: 35,000 are written at 3.75 instead of read at 0.30."""
    change = PromptChange(tokens_before=100_000, tokens_after=40_000, cached_tokens=100_000, kept_tokens=5_000)
    economics = price_change(change, CLAUDE)
    assert economics.tokens_freed == 60_000
    assert (economics.prefix_kept_tokens, economics.prefix_broken_tokens) == (5_000, 95_000)
    assert economics.rewrite_cost == pytest.approx(35_000 * (3.75e-6 - 0.3e-6))
    assert economics.saving_per_call == pytest.approx(60_000 * 0.3e-6)
    assert economics.break_even_calls == 7  # 0.12075 / 0.018 = 6.7
    assert economics.pays_back_within(7)
    assert not economics.pays_back_within(6)
    assert str(economics) == (
        "frees 60,000 tokens; breaking 95,000 cached tokens costs $0.1208, the summary costs $0.0000; "
        "each call saves $0.0180: pays back after 7 calls"
    )


def test_where_even_the_next_call_gets_cheaper_no_cost_below_zero_is_told() -> None:
    """Of 20,000 new tokens that the provider has not seen, 2,000 are left; nothing that it has cached is changed."""
    change = PromptChange(tokens_before=30_000, tokens_after=12_000, cached_tokens=10_000, kept_tokens=10_000)
    economics = price_change(change, CLAUDE)
    assert economics.rewrite_cost < 0
    assert str(economics) == (
        "frees 18,000 tokens; even the next call costs $0.0675 less, the summary costs $0.0000; "
        "each call saves $0.0054: pays back at once"
    )


def test_what_a_summary_reads_and_puts_out_is_paid_back_too() -> None:
    change = PromptChange(
        tokens_before=100_000,
        tokens_after=40_000,
        cached_tokens=100_000,
        kept_tokens=5_000,
        summary_input_tokens=50_000,
        summary_output_tokens=2_000,
    )
    cheap = Prices(fresh=1e-6, cache_read=1e-7, cache_write=1e-6, output=5e-6)
    economics = price_change(change, CLAUDE, summary_prices=cheap)
    assert economics.summary_cost == pytest.approx(0.05 + 0.01)
    assert economics.upfront_cost == pytest.approx(0.12075 + 0.06)
    assert economics.break_even_calls == 11  # (0.12075 + 0.06) / 0.018 = 10.04
    assert price_change(change, CLAUDE).summary_cost == 0


def test_without_a_cache_what_is_free_pays_at_once() -> None:
    """Every call pays for all of its prompt: rewriting costs nothing extra."""
    change = PromptChange(tokens_before=1_000, tokens_after=990, cached_tokens=1_000, kept_tokens=0)
    economics = price_change(change, CLAUDE.without_cache())
    assert (economics.rewrite_cost, economics.break_even_calls) == (0.0, 0)
    assert economics.saving_per_call == pytest.approx(10 * 3e-6)
    assert economics.payback() == "pays back at once"
    assert "breaking 1,000 cached tokens costs $0.0000" in str(economics)


def test_what_was_never_sent_costs_nothing_to_change() -> None:
    """The change lies behind everything the provider has seen: the first call is cheaper already."""
    change = PromptChange(tokens_before=1_000, tokens_after=500, cached_tokens=400, kept_tokens=400)
    economics = price_change(change, CLAUDE)
    assert economics.rewrite_cost < 0
    assert (economics.prefix_broken_tokens, economics.break_even_calls) == (0, 0)


def test_a_change_that_frees_nothing_never_pays() -> None:
    change = PromptChange(tokens_before=1_000, tokens_after=1_000, cached_tokens=1_000, kept_tokens=100)
    economics = price_by_ratios(change)
    assert economics.break_even_calls is None
    assert economics.payback() == "never pays back"
    assert not economics.pays_back_within(1_000_000)


def test_a_prompt_that_gets_below_a_price_step_saves_on_every_token() -> None:
    """Above 200,000 tokens some models cost double: getting below pays for what stays as well."""
    change = PromptChange(tokens_before=250_000, tokens_after=150_000, cached_tokens=250_000, kept_tokens=0)
    doubled = Prices(fresh=6e-6, cache_read=6e-7, cache_write=7.5e-6, output=22.5e-6)
    stepped = price_change(change, doubled, prices_after=CLAUDE)
    assert stepped.saving_per_call == pytest.approx(250_000 * 6e-7 - 150_000 * 3e-7)
    assert (stepped.break_even_calls or 0) < (price_change(change, CLAUDE).break_even_calls or 0)


def test_ratios_are_labelled_and_no_money() -> None:
    change = PromptChange(tokens_before=1_000, tokens_after=400, cached_tokens=1_000, kept_tokens=0)
    economics = price_by_ratios(change)
    assert economics.currency == INPUT_TOKENS == USUAL_RATIOS.currency
    assert economics.rewrite_cost == pytest.approx(400 * 1.15)
    assert "$" not in str(economics)
    assert "460 input tokens" in str(economics)


def test_a_history_that_nobody_sent_counts_as_cached() -> None:
    before, after = slots_of([("a", 1), ("b", 1)]), slots_of([("a", 1)])
    change = measure_change(before, after, sent=[], tokens=[10, 20], tokens_after=10, fixed_tokens=5)
    assert (change.cached_tokens, change.kept_tokens) == (35, 15)
    assert (change.tokens_before, change.tokens_after) == (35, 15)


def test_economics_are_plain_data() -> None:
    change = PromptChange(tokens_before=10, tokens_after=5, cached_tokens=10, kept_tokens=0)
    data = price_by_ratios(change).to_dict()
    assert data["tokens_freed"] == 5
    assert data["currency"] == "input tokens"
    assert set(data) >= {"rewrite_cost", "summary_cost", "saving_per_call", "break_even_calls", "notes"}
