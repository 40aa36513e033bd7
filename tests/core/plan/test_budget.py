"""Thresholds, reserves and calibration by what the provider reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compact.core.plan.budget import Calibration, TokenBudget
from compact.core.plan.turn import TurnContext

sizes = st.integers(100, 200_000)


def test_the_defaults_in_tokens() -> None:
    budget = TokenBudget(max_context_tokens=128_000)
    assert (budget.target_tokens, budget.prefetch_tokens, budget.trigger_tokens) == (64_000, 89_600, 108_800)
    assert budget.ceiling_tokens == 126_500


def test_reserves_lower_the_ceiling_and_with_it_the_trigger() -> None:
    budget = TokenBudget(
        max_context_tokens=128_000, output_reserve=40_000, injection_reserve=2_000, rehydration_reserve=1_000
    )
    assert budget.available_tokens == 86_500
    assert budget.ceiling_tokens == budget.trigger_tokens == 83_500
    assert (budget.target_tokens, budget.prefetch_tokens) == (49_118, 68_765)


def test_a_low_trigger_takes_the_other_thresholds_with_it() -> None:
    budget = TokenBudget(max_context_tokens=100_000, trigger_pct=0.425)
    assert (budget.target_tokens, budget.prefetch_tokens, budget.trigger_tokens) == (25_000, 35_000, 42_500)
    middle = TokenBudget(max_context_tokens=100_000, trigger_pct=0.6)
    assert middle.target_tokens <= middle.prefetch_tokens < middle.trigger_tokens


@given(sizes, sizes, sizes)
def test_the_upper_bound_is_never_below_our_own_estimate(estimated: int, reported: int, later: int) -> None:
    calibration = Calibration().observe(estimated_tokens=estimated, reported_tokens=reported)
    assert calibration.upper_bound(later) >= later
    assert calibration.upper_bound(estimated) == max(estimated, reported)


@given(sizes, sizes, sizes)
def test_what_fits_by_its_estimate_fits_by_its_upper_bound(estimated: int, reported: int, limit: int) -> None:
    calibration = Calibration().observe(estimated_tokens=estimated, reported_tokens=reported)
    fitting = calibration.largest_estimate(limit)
    assert fitting <= limit
    assert calibration.upper_bound(fitting) <= limit + 1


def test_usage_is_forgotten_after_a_compaction() -> None:
    calibration = Calibration().observe(estimated_tokens=50_000, reported_tokens=120_000).after_compaction()
    assert calibration.upper_bound(30_000) == 30_000


def test_two_reports_tell_a_constant_from_a_factor() -> None:
    """A hidden system prompt of 70k must not make each compaction look more urgent than the one before."""
    before = Calibration().observe(estimated_tokens=50_000, reported_tokens=120_000)
    after = before.after_compaction().observe(estimated_tokens=20_000, reported_tokens=90_000)
    assert after.slope == 1.0
    assert after.upper_bound(30_000) == 100_000


def test_a_turn_in_which_something_was_brought_back_is_not_compacted_hard() -> None:
    turn = TurnContext(3)
    assert not turn.should_skip_aggressive_compaction()
    assert turn.with_rehydrated("a1").should_skip_aggressive_compaction()
