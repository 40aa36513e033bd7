"""What a session cost and saved, from what was recorded: each figure worked out by hand beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compact.core.audit.call_details import CallDetails
from compact.core.audit.cost import CallCost, SessionCost, cost_of, dollars
from compact.core.audit.records import ModelCall, PlanVersion
from compact.core.plan.economics import USUAL_RATIOS, Economics, Prices, PromptChange, price_change
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan, CompactionRun, SpanReference, SummarizationRecord
from compact.core.summary.summary import StructuredSummary
from compact.core.summary.writing import SummaryWriting

DEAR = Prices(fresh=10.0, cache_read=1.0, cache_write=12.0, output=50.0)
CHEAP = Prices(fresh=2.0, cache_read=1.0, cache_write=2.0, output=8.0)


def call(
    number: int, tokens: int, *, reported: int | None = None, branch: int = 0, injected: int = 0, **details: Any
) -> ModelCall:
    known: dict[str, Any] = {"model": "dear", "prices": DEAR, "tokens_uncompacted": tokens, **details}
    return ModelCall(
        turn_number=1,
        plan_version=known.pop("plan_version", 0),
        summary_version=0,
        last_seq=number,
        messages=1,
        evicted=0,
        tokens_estimated=tokens,
        tokens_reported=reported,
        parts={PromptPart.INJECTED: injected} if injected else {},
        limits={"window": 1_000},
        branch=branch,
        number=number,
        details=CallDetails(**known).to_dict(),
    )


def costs(*calls: ModelCall, **more: Any) -> tuple[CallCost, ...]:
    return cost_of(calls, (), **more).calls


def test_without_a_report_the_cache_serves_what_the_call_before_had_sent() -> None:
    first, second = costs(call(1, 100, tokens_cached=0), call(2, 160, tokens_cached=100))
    assert first.cost == 100 * 12
    assert second.cost == 100 * 1 + 60 * 12
    assert (second.cached_tokens, second.is_cache_reported, second.saved) == (100, False, 0)


def test_what_the_provider_counted_goes_before_every_estimate() -> None:
    told = {"tokens_cached": 100, "cache_read_tokens": 80, "cache_write_tokens": 60}
    second = costs(call(1, 100), call(2, 160, reported=200, **told))[1]
    assert (second.input_tokens, second.is_reported, second.cached_tokens) == (200, True, 80)
    assert second.is_cache_reported
    assert second.cost == 80 * 1 + 60 * 12 + 60 * 10


def test_a_provider_that_caches_nothing_would_not_have_cached_without_compaction_either() -> None:
    told = {"cache_read_tokens": 0, "tokens_cached": 50, "tokens_uncompacted": 400}
    second = costs(call(1, 100, tokens_uncompacted=390), call(2, 100, reported=100, **told))[1]
    assert second.cost == 100 * 10
    assert second.cost_uncompacted == 400 * 10


def test_without_compaction_the_whole_history_is_read_from_the_cache() -> None:
    second = costs(call(1, 100, tokens_uncompacted=390), call(2, 120, tokens_cached=100, tokens_uncompacted=410))[1]
    assert second.cost == 100 * 1 + 20 * 12
    assert second.cost_uncompacted == 390 * 1 + 20 * 12
    assert second.saved == 290


def test_an_uncompacted_prompt_that_is_larger_than_the_window_is_said_to_be() -> None:
    small, large = costs(call(1, 100, tokens_uncompacted=1_000), call(2, 100, tokens_uncompacted=1_001))
    assert small.fits_uncompacted
    assert not large.fits_uncompacted
    notes = cost_of((call(2, 9), call(3, 9, tokens_uncompacted=2_000)), ()).notes
    assert any("1 of 2 prompts would not have fitted" in note for note in notes)


def test_our_own_figures_are_scaled_as_the_whole_prompt_is() -> None:
    """The provider counts a quarter more than we do: so does its cache, and so would it have without compaction."""
    before = call(1, 100, tokens_uncompacted=390)
    second = costs(before, call(2, 160, reported=200, tokens_cached=100, tokens_uncompacted=410))[1]
    assert second.cached_tokens == 125
    assert second.uncompacted_tokens == round(410 * 1.25)
    assert second.cost_uncompacted == round(390 * 1.25) * 1 + (512 - 488) * 12


def test_a_cache_that_served_a_part_would_have_served_the_same_part_of_the_whole_history() -> None:
    told = {"tokens_cached": 100, "cache_read_tokens": 50, "cache_write_tokens": 70}
    second = costs(call(1, 100, tokens_uncompacted=390), call(2, 120, reported=120, tokens_uncompacted=410, **told))[1]
    assert second.cost == 50 * 1 + 70 * 12
    assert second.cost_uncompacted == 195 * 1 + 215 * 12


def test_what_was_injected_into_the_call_before_is_not_in_the_cache_of_this_one() -> None:
    before = call(1, 100, tokens_uncompacted=390, injected=30)
    second = costs(before, call(2, 120, tokens_cached=70, tokens_uncompacted=410))[1]
    assert second.cost_uncompacted == 360 * 1 + 50 * 12


def test_a_call_of_which_we_estimated_nothing_costs_what_the_provider_counted() -> None:
    only = costs(call(1, 0, reported=40))[0]
    assert (only.input_tokens, only.cost) == (40, 40 * 12)


def test_a_model_does_not_read_the_cache_of_another() -> None:
    calls = (
        call(1, 100),
        call(2, 120, model="cheap", prices=CHEAP, tokens_cached=100),
        call(3, 150, tokens_cached=120),
    )
    first, second, third = costs(*calls)
    assert second.cached_tokens == 0
    assert second.cost == 120 * 2
    assert third.cached_tokens == 100, "what its own last call had sent"
    assert first.model == third.model == "dear"
    assert cost_of(calls, ()).models == ("dear", "cheap")


def test_each_call_has_the_prices_of_its_own_moment() -> None:
    """The same model became cheaper: what was paid before stays as it was."""
    first, second = costs(call(1, 100, prices=DEAR), call(2, 100, prices=CHEAP))
    assert (first.cost, second.cost) == (1_200, 200)


def test_a_longer_prompt_may_have_prices_of_its_own() -> None:
    only = costs(call(1, 100, tokens_uncompacted=300, prices_uncompacted=replace(DEAR, cache_write=24.0)))[0]
    assert (only.cost, only.cost_uncompacted) == (1_200, 7_200)


def test_a_call_before_the_list_was_there_has_the_first_price_that_was_recorded() -> None:
    asked: list[str] = []

    def find(model: str, tokens: int) -> Prices | None:
        asked.append(model)
        return CHEAP if model == "listed" else None

    early, recorded = costs(call(1, 100, prices=None), call(2, 100, prices=DEAR), find_prices=find)
    assert (early.cost, early.is_price_recorded, recorded.is_price_recorded) == (1_200, False, True)
    assert asked == [], "a price that was recorded is never looked up again"
    listed = costs(call(1, 100, prices=None, model="listed"), find_prices=find)[0]
    assert (listed.cost, listed.is_price_recorded) == (200, False)


@pytest.mark.parametrize("model", ["unheard-of", ""])
def test_a_price_that_is_not_known_is_not_nothing(model: str) -> None:
    session = cost_of((call(1, 100), call(2, 150, model=model, prices=None)), ())
    assert session.calls[1].cost is None
    assert session.calls[1].saved is None
    assert session.prompts == 1_200, "the sum is over what is known"
    assert session.unpriced_calls == 1
    assert any((model or "was not recorded") in note and "1 of 2 calls" in note for note in session.notes)
    nothing = cost_of((call(1, 100, model=model, prices=None),), ())
    assert (nothing.prompts, nothing.total, nothing.saved, dollars(nothing.total)) == (None, None, None, "not known")


def test_calls_of_older_versions_have_no_price_and_say_so() -> None:
    old = replace(call(1, 100), details={})
    session = cost_of((old,), (), find_prices=lambda model, tokens: DEAR)
    assert session.total is None
    assert session.tokens_sent == 100
    assert "the model was not recorded" in session.notes[0]


def test_what_a_call_saved_is_not_known_where_its_own_price_is_not() -> None:
    half = costs(call(1, 100, model="", prices=None, prices_uncompacted=DEAR))[0]
    assert (half.cost, half.cost_uncompacted, half.saved) == (None, 1_200, None)


def test_calls_that_are_special_are_counted() -> None:
    unknown = {"model": "unheard-of", "prices": None}
    plain, large = call(1, 100), call(2, 100, tokens_uncompacted=2_000)
    session = cost_of((plain, large, call(3, 100, reported=100, cache_read_tokens=40), call(4, 100, **unknown)), ())
    assert (session.unpriced_calls, session.too_large_calls, session.cache_reported_calls) == (1, 1, 1)
    assert cost_of((large, large, plain), ()).too_large_calls == 2
    assert cost_of((plain, call(2, 100, **unknown), call(3, 100, **unknown)), ()).unpriced_calls == 2


def test_the_share_of_the_cache_is_of_all_input_tokens() -> None:
    session = cost_of((call(1, 100), call(2, 300, tokens_cached=100)), ())
    assert session.cached_share == 0.25
    assert SessionCost().cached_share is None


def test_each_model_without_a_price_is_named_with_its_own_calls() -> None:
    models = ("dear", "one", "two", "two", "")
    calls = [call(n, 10, model=model, prices=DEAR if model == "dear" else None) for n, model in enumerate(models)]
    assert cost_of(calls, ()).notes[:3] == (
        "the price of one is not known: 1 of 5 calls not in the sums",
        "the price of two is not known: 2 of 5 calls not in the sums",
        "the model was not recorded: 1 of 5 calls not in the sums",
    )


def test_a_price_of_later_is_said_to_be_one() -> None:
    calls = (call(1, 10), call(2, 10, prices=None), call(3, 10, model="unheard-of", prices=None))
    later = [note for note in cost_of(calls, ()).notes if "had no price when made" in note]
    assert later == ["1 of 3 calls had no price when made: the first price known since is used"]
    assert not any("had no price" in note for note in cost_of((call(1, 10), calls[2]), ()).notes)


def test_a_cache_that_is_estimated_is_said_to_be() -> None:
    estimated, told = call(1, 10), call(2, 10, reported=10, cache_read_tokens=5)

    def cache_notes(*calls: ModelCall) -> list[str]:
        return [note.partition(" what its cache served")[0] for note in cost_of(calls, ()).notes if "cache" in note]

    assert cache_notes(estimated) == ["no provider told"]
    assert cache_notes(estimated, told, told) == ["of 1 of 3 calls no provider told"]
    assert cache_notes(told) == []
    assert cache_notes(call(1, 10, model="", prices=None)) == [], "nothing is priced by it"


# -- compactions ---------------------------------------------------------------------------------------------------

CHANGE = PromptChange(tokens_before=100, tokens_after=40, cached_tokens=90, kept_tokens=10)


def plan(version: int, *, writing: SummaryWriting | None = None, summary_version: int = 1, **run: Any) -> PlanVersion:
    usual: dict[str, Any] = {"model": "dear", "change": CHANGE, "economics": price_change(CHANGE, DEAR), "prices": DEAR}
    summary = SummarizationRecord(
        span=SpanReference(("m1",)),
        strategy="summarize",
        reason="",
        version=summary_version,
        summary=StructuredSummary(writing=writing),
    )
    made = CompactionRun(**{**usual, **run})
    return PlanVersion(CompactionPlan("s", version, (summary,) if writing else (), run=made), 0.0)


def economics(entry: PlanVersion) -> Economics:
    assert entry.plan.run
    assert entry.plan.run.economics
    return entry.plan.run.economics


def session_of(plans: list[PlanVersion], *calls: ModelCall) -> SessionCost:
    return cost_of(calls, plans)


def test_a_compaction_saves_with_each_call_under_it() -> None:
    entry = plan(1)
    price = economics(entry)
    found = session_of([entry], call(1, 50), *(call(n, 50, plan_version=1) for n in range(2, 6))).compactions[0]
    assert found.calls_under == 4
    assert found.net == pytest.approx(4 * price.saving_per_call - price.upfront_cost)
    assert found.has_paid_back == (price.break_even_calls is not None and price.break_even_calls <= 4)


def test_it_has_paid_for_itself_exactly_when_its_net_is_not_below_zero() -> None:
    entry = plan(1)
    even = economics(entry).break_even_calls
    assert even
    assert even > 1
    for under in (even - 1, even):
        found = session_of([entry], *(call(n, 50, plan_version=1) for n in range(under))).compactions[0]
        assert found.net is not None
        assert (found.net >= 0) == found.has_paid_back == (under >= even)


def test_a_compaction_under_which_no_call_went_out_has_only_cost() -> None:
    found = session_of([plan(1)], call(1, 50)).compactions[0]
    assert found.calls_under == 0
    assert found.net == -economics(plan(1)).upfront_cost
    assert found.is_price_recorded


def test_only_plans_that_compacted_are_priced() -> None:
    """One that another process wrote without a word about its run is not, nor one that brings an older one back."""
    without_run = PlanVersion(CompactionPlan("s", 2), 0.0)
    restored = replace(plan(3), plan=replace(plan(3).plan, origin=1))
    assert [found.version for found in session_of([plan(1), without_run, restored]).compactions] == [1]


RATIOS = price_change(CHANGE, USUAL_RATIOS, notes=("no money",))


def test_a_compaction_without_a_price_of_its_own_has_the_first_that_is_known() -> None:
    """The list was not at hand when it was put in force: it was priced by ratios, or not at all."""
    for told in (None, RATIOS):
        found = session_of([plan(1, economics=told, prices=None)], call(1, 100, plan_version=1)).compactions[0]
        assert found.economics == price_change(CHANGE, DEAR)
        assert not found.is_price_recorded
    unknown = session_of([plan(1, economics=RATIOS, prices=None, model="unheard-of")]).compactions[0]
    assert (unknown.economics, unknown.is_money, unknown.net) == (RATIOS, False, None)
    assert unknown.is_price_recorded


def test_a_compaction_that_only_its_sum_is_missing_of_has_the_prices_of_its_moment() -> None:
    """Of both its prompts: the model is cheaper in the smaller one."""
    found = session_of([plan(1, economics=RATIOS, prices_after=CHEAP)]).compactions[0]
    assert found.economics == price_change(CHANGE, DEAR, prices_after=CHEAP)
    assert found.is_price_recorded


def test_a_summary_is_not_free_because_the_price_of_its_model_is_not_known() -> None:
    change = replace(CHANGE, summary_input_tokens=30, summary_output_tokens=5)
    run: dict[str, Any] = {"change": change, "economics": None, "prices": None}
    calls = (call(1, 100), call(2, 100, model="cheap", prices=CHEAP))

    def priced(entry: PlanVersion) -> Economics:
        found = session_of([entry], *calls).compactions[0].economics
        assert found
        return found

    own, known, unknown = (
        priced(plan(1, summary_model="unheard-of", summary_prices=CHEAP, **run)),
        priced(plan(1, summary_model="cheap", **run)),
        priced(plan(1, summary_model="unheard-of", **run)),
    )
    assert (own.summary_cost, known.summary_cost, unknown.summary_cost) == (100, 100, 30 * 10 + 5 * 50)
    assert own.notes == known.notes == ()
    assert unknown.notes == ("the prices of the summary's model 'unheard-of' are not known: priced like the rest",)
    by_code = priced(plan(1, summary_model="unheard-of", **{**run, "change": CHANGE}))
    assert (by_code.summary_cost, by_code.notes) == (0.0, ())
    assert priced(plan(1, **run)).summary_cost == 0.0, "no model was asked"


def test_a_compaction_of_which_nothing_is_known_is_plain_data_without_sums() -> None:
    found = session_of([plan(1, economics=None, change=None)]).compactions[0]
    assert (found.is_money, found.net, found.has_paid_back) == (False, None, False)
    assert found.to_dict() == {
        "freed_tokens": None,
        "kept_prefix_tokens": None,
        "broken_prefix_tokens": None,
        "usd_rewrite": None,
        "usd_summary": None,
        "usd_saved_per_call": None,
        "break_even_calls": None,
        "calls_under": 0,
        "usd_net": None,
        "has_paid_back": False,
        "is_price_recorded": True,
        "summary": None,
        "lines": [],
    }


def test_plain_data_of_a_compaction_has_sums_only_in_money() -> None:
    entry = plan(1, writing=WRITING, **BILLED)
    found, price = session_of([entry]).compactions[0].to_dict(), economics(entry)
    assert (found["freed_tokens"], found["kept_prefix_tokens"], found["broken_prefix_tokens"]) == (60, 10, 80)
    assert (found["usd_rewrite"], found["usd_summary"]) == (price.rewrite_cost, price.summary_cost)
    assert found["usd_saved_per_call"] == price.saving_per_call == 60
    assert found["break_even_calls"] == price.break_even_calls
    assert found["summary"]["usd"] == 100
    assert found["lines"] == [str(price)]
    ratios = session_of([plan(1, economics=RATIOS, prices=None, model="unheard-of")]).compactions[0].to_dict()
    assert [ratios[f"usd_{name}"] for name in ("rewrite", "summary", "saved_per_call", "net")] == [None] * 4
    assert (ratios["freed_tokens"], ratios["break_even_calls"]) == (60, RATIOS.break_even_calls)
    assert ratios["lines"] == [str(RATIOS), "no money"]


WRITING = SummaryWriting(summarizer="cheap", calls=2, input_tokens=30, output_tokens=5, seconds=1.25)
BILLED = {"summary_model": "cheap", "summary_prices": CHEAP}


def test_the_summariser_has_a_bill_of_its_own() -> None:
    session = session_of([plan(1, writing=WRITING, **BILLED)], call(1, 100))
    assert session.summaries == 30 * 2 + 5 * 8
    assert session.total == 1_200 + 100
    assert session.saved == -100


def test_a_summary_is_paid_once() -> None:
    again = [plan(1, writing=WRITING, **BILLED), plan(2, writing=WRITING, **BILLED)]
    assert len(session_of(again).bills) == 1, "a plan that only clears keeps the summary of the plan before"
    undone = PlanVersion(CompactionPlan("s", 2, origin=0), 0.0)
    assert len(session_of([again[0], undone, plan(3, writing=WRITING, **BILLED)]).bills) == 1, "one that comes back"
    newer = replace(WRITING, input_tokens=40)
    assert session_of([again[0], plan(2, writing=newer, summary_version=2, **BILLED)]).summaries == 100 + 120


def test_a_summary_by_code_costs_nothing_and_one_of_unknown_price_is_not_known() -> None:
    assert session_of([plan(1, writing=SummaryWriting())]).summaries == 0.0
    unknown = session_of([plan(1, writing=WRITING, summary_model="unheard-of")], call(1, 100))
    assert unknown.summaries is None
    assert "the price of a summary is not known: the sums are without it" in unknown.notes


@pytest.mark.parametrize(
    ("took", "cost"),
    [
        ({}, 0.0),
        ({"input_tokens": 3}, None),
        ({"output_tokens": 3}, None),
        ({"is_counted": False}, None),
    ],
)
def test_only_a_summary_that_took_nothing_is_free_at_an_unknown_price(took: dict[str, Any], cost: float | None) -> None:
    """As one that had been written of the very same before."""
    writing = SummaryWriting(summarizer="unheard-of", **took)
    (bill,) = session_of([plan(1, writing=writing, summary_model="unheard-of", change=None, economics=None)]).bills
    assert bill.cost == cost
    assert bill.is_estimate == (not writing.is_counted)


def test_a_summary_whose_tokens_nobody_counted_is_billed_by_what_was_planned() -> None:
    change = replace(CHANGE, summary_input_tokens=20, summary_output_tokens=2)
    uncounted = replace(WRITING, is_counted=False)
    (bill,) = session_of([plan(1, writing=uncounted, change=change, **BILLED)]).bills
    assert (bill.input_tokens, bill.output_tokens, bill.cost) == (20, 2, 20 * 2 + 2 * 8)
    assert bill.is_estimate


def test_a_run_survives_the_store() -> None:
    for entry in (plan(1, writing=WRITING, seconds=0.5, **BILLED), plan(2, economics=None, change=None)):
        again = CompactionPlan.from_dict(entry.plan.to_dict())
        assert again.run == entry.plan.run
        for before, after in zip(entry.plan.summarizations, again.summarizations, strict=True):
            assert before.summary
            assert after.summary
            assert after.summary.writing == before.summary.writing


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "not known"), (0.0, "$0"), (1234.5, "$1,234.50"), (0.01, "$0.01"), (0.004, "$0.0040"), (-0.02, "-$0.02")],
)
def test_money_for_people(amount: float | None, text: str) -> None:
    assert dollars(amount) == text
