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


def test_what_is_sent_beside_the_messages_is_added_up() -> None:
    budget = TokenBudget(max_context_tokens=128_000, system_tokens=700, tool_schema_tokens=50, formatting_overhead=4)
    assert budget.fixed_tokens == 754


def test_usage_that_reaches_the_trigger_is_compacted() -> None:
    budget = TokenBudget(max_context_tokens=128_000)
    assert [budget.is_triggered(tokens) for tokens in (108_799, 108_800, 108_801)] == [False, True, True]
    assert budget.usage_pct(32_000) == 0.25


def test_a_limit_below_the_known_window_takes_everything_down_with_it() -> None:
    """Buffer and caps of a large window would leave nothing of a small one."""
    budget = TokenBudget(max_context_tokens=128_000, part_caps={"dialogue": 64_000})
    small = budget.lowered(32_000)
    assert (small.max_context_tokens, small.input_tokens, small.safety_buffer) == (32_000, 32_000, 1_500)
    assert small.part_caps == {"dialogue": 16_000}
    assert budget.lowered(10_000).safety_buffer == 1_000
    above = budget.lowered(200_000)
    assert (above.max_context_tokens, above.input_tokens) == (128_000, 128_000)
    assert above.part_caps == {"dialogue": 64_000}


def test_a_limit_of_the_input_leaves_the_window_to_the_answer() -> None:
    budget = TokenBudget(max_context_tokens=128_000, output_reserve=90_000, part_caps={"dialogue": 64_000})
    lowered = budget.lowered(30_000, limits_input=True)
    assert (lowered.max_context_tokens, lowered.input_tokens) == (128_000, 30_000)
    assert lowered.part_caps == {"dialogue": 64_000}
    assert lowered.ceiling_tokens == 28_500


def test_a_low_trigger_takes_the_other_thresholds_with_it() -> None:
    budget = TokenBudget(max_context_tokens=100_000, trigger_pct=0.425)
    assert (budget.target_tokens, budget.prefetch_tokens, budget.trigger_tokens) == (25_000, 35_000, 42_500)
    middle = TokenBudget(max_context_tokens=100_000, trigger_pct=0.6)
    assert middle.target_tokens <= middle.prefetch_tokens < middle.trigger_tokens
    equal = TokenBudget(max_context_tokens=100_000, trigger_pct=0.7, prefetch_pct=0.7)
    assert (equal.prefetch_tokens, equal.trigger_tokens) == (57_647, 70_000)


def test_shares_are_shares_of_the_largest_input() -> None:
    """The provider refuses more, whatever the window."""
    budget = TokenBudget(max_context_tokens=400_000, largest_input_tokens=272_000)
    assert (budget.target_tokens, budget.prefetch_tokens, budget.trigger_tokens) == (136_000, 190_400, 231_200)
    assert budget.ceiling_tokens == 270_500
    assert budget.trigger_reason == "85% of the largest input, 272,000"


def test_an_answer_needs_room_in_the_window_only() -> None:
    budget = TokenBudget(max_context_tokens=400_000, largest_input_tokens=272_000, output_reserve=128_000)
    assert budget.ceiling_tokens == 270_500
    longer = TokenBudget(max_context_tokens=400_000, largest_input_tokens=272_000, output_reserve=150_000)
    assert longer.ceiling_tokens == 248_500


def test_a_limit_beside_the_share_takes_the_other_thresholds_with_it() -> None:
    budget = TokenBudget(max_context_tokens=1_000_000, trigger_limit_tokens=170_000)
    assert (budget.target_tokens, budget.prefetch_tokens, budget.trigger_tokens) == (100_000, 140_000, 170_000)
    assert budget.trigger_reason == "policy.trigger_tokens"
    above = TokenBudget(max_context_tokens=128_000, trigger_limit_tokens=170_000)
    assert (above.trigger_tokens, above.trigger_reason) == (108_800, "")


def test_a_target_in_tokens_stands_for_the_share() -> None:
    budget = TokenBudget(max_context_tokens=1_000_000, trigger_limit_tokens=500_000, target_limit_tokens=300_000)
    assert budget.target_tokens == 300_000
    small = TokenBudget(max_context_tokens=128_000, target_limit_tokens=300_000)
    assert small.target_tokens == small.prefetch_tokens < small.trigger_tokens


def test_the_reason_names_what_moved_the_trigger() -> None:
    small = TokenBudget(max_context_tokens=2_000)
    assert small.trigger_reason == "the buffer of 1,500 leaves no more; 85% of 2,000 would be 1,700"
    reserved = TokenBudget(max_context_tokens=128_000, output_reserve=64_000)
    assert reserved.trigger_reason == "what is reserved leaves no more; 85% of 128,000 would be 108,800"
    assert TokenBudget(max_context_tokens=128_000).trigger_reason == ""
    assert TokenBudget(max_context_tokens=128_000, trigger_limit_tokens=108_800).trigger_reason == ""
    assert TokenBudget(max_context_tokens=10_000).is_buffer_large is False
    assert TokenBudget(max_context_tokens=9_990).is_buffer_large


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


def test_the_slope_is_that_between_two_reports() -> None:
    """Another vocabulary counts each further token twice; of one report it is the whole ratio, within limits."""
    before = Calibration().observe(estimated_tokens=50_000, reported_tokens=120_000)
    after = before.after_compaction().observe(estimated_tokens=20_000, reported_tokens=60_000)
    assert after.slope == 2.0
    assert (after.upper_bound(30_000), after.largest_estimate(80_000)) == (80_000, 30_000)
    again = before.after_compaction().observe(estimated_tokens=50_000, reported_tokens=100_000)
    assert again.slope == 2.0
    ratios = [Calibration().observe(estimated_tokens=10_000, reported_tokens=n) for n in (5_000, 20_000, 90_000)]
    assert [calibration.slope for calibration in ratios] == [1.0, 2.0, 4.0]
    assert Calibration().slope == 1.0


def test_a_report_on_nothing_says_nothing() -> None:
    assert Calibration().observe(estimated_tokens=0, reported_tokens=5) == Calibration()
    assert Calibration().observe(estimated_tokens=1, reported_tokens=5).anchor == (1, 5)


def test_a_turn_in_which_something_was_brought_back_is_not_compacted_hard() -> None:
    turn = TurnContext(3)
    assert not turn.should_skip_aggressive_compaction()
    assert turn.with_rehydrated("a1").should_skip_aggressive_compaction()


def test_usage_of_a_whole_run_is_not_believed() -> None:
    """It may well fit the window: what tells is that more than half of the room would be unseen."""
    budget = TokenBudget(max_context_tokens=128_000)
    assert budget.believes(reported_tokens=30_000, estimated_tokens=5_000)
    assert not budget.believes(reported_tokens=100_000, estimated_tokens=5_000)
    assert budget.believes(reported_tokens=120_000, estimated_tokens=90_000)
    assert not budget.believes(reported_tokens=900_000, estimated_tokens=90_000)


def test_a_report_is_believed_up_to_each_limit() -> None:
    """Half of the room, 63,250 tokens, may be unseen; or up to four times the estimate; or twice, above the window."""
    budget = TokenBudget(max_context_tokens=128_000)
    assert budget.believes(reported_tokens=60_000, estimated_tokens=5_000)
    assert budget.believes(reported_tokens=68_250, estimated_tokens=5_000)
    assert not budget.believes(reported_tokens=68_251, estimated_tokens=5_000)
    assert budget.believes(reported_tokens=120_000, estimated_tokens=30_000)
    assert not budget.believes(reported_tokens=120_001, estimated_tokens=30_000)
    assert budget.believes(reported_tokens=128_000, estimated_tokens=60_000)
    assert not budget.believes(reported_tokens=128_001, estimated_tokens=60_000)
    assert budget.believes(reported_tokens=180_000, estimated_tokens=90_000)
    assert not budget.believes(reported_tokens=180_001, estimated_tokens=90_000)
