"""Prices come from the bundled list, plans say what they cost, and what cannot pay back is not done unasked."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, Message, StructuredSummary, SummaryRequest
from compact.core.engine.compaction import Compactor
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, TriggerDecisionEvent
from compact.core.plan.economics import Economics, PromptChange
from compact.pricing import ModelPricer, model_prices
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, Wire, WordTokenizer, dialogue, tool_run, user

CHANGE = PromptChange(
    tokens_before=100_000,
    tokens_after=40_000,
    cached_tokens=100_000,
    kept_tokens=5_000,
    summary_input_tokens=60_000,
    summary_output_tokens=4_000,
)


def use_compactor(manager: CompactManager, compactor: Compactor) -> None:
    """Have the configured model compacted by another compactor."""
    configured = manager._models.configured
    engine = replace(configured.engine, compactor=compactor)
    manager._models.configured = replace(configured, engine=engine)


def watched(
    *, model: str = "claude-sonnet-4-5", window: int = 10_000, **settings: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    policy = {"hard_cap_buffer": 0, **settings.pop("policy", {})}
    plugs = {"summarizer": settings.pop("writes", None)}
    config = CompactConfig(
        model=model, max_context_tokens=window, policy=policy, telemetry={"exporter": "none"}, **settings
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, **plugs), sink


def results_then_talk(talk: int = 40) -> list[Wire]:
    """A few tool results, and much behind them that would have to be written again."""
    return [*tool_run(6, words=100), *dialogue(talk, words=60)]


# -- the list --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5",
        "anthropic/claude-sonnet-4-5",
        "openrouter/anthropic/claude-sonnet-4-5",
        "anthropic:claude-sonnet-4-5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "Claude-Sonnet-4-5",
    ],
)
def test_a_model_is_found_whoever_routes_it(name: str) -> None:
    prices = model_prices(name)
    assert prices is not None
    assert prices.cache_read == pytest.approx(0.1 * prices.fresh)
    assert prices.cache_write == pytest.approx(1.25 * prices.fresh)
    assert prices.output > prices.fresh
    assert 1e-7 < prices.fresh < 1e-4  # dollars for one token


def test_a_model_without_a_price_for_writing_writes_at_the_usual_price() -> None:
    prices = model_prices("gpt-4o")
    assert prices is not None
    assert prices.cache_write == prices.fresh
    assert prices.cache_read < prices.fresh


def test_long_prompts_have_prices_of_their_own() -> None:
    short, long = (
        model_prices("gemini-2.5-pro", input_tokens=100_000),
        model_prices("gemini-2.5-pro", input_tokens=300_000),
    )
    assert short is not None
    assert long is not None
    assert long.fresh > short.fresh


@pytest.mark.parametrize("name", ["my-model", "ft:gpt-4o:mine:x:y", ""])
def test_what_is_not_known_has_no_price(name: str) -> None:
    assert model_prices(name) is None


def test_nothing_is_asked_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a price was looked up on the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    model_prices.cache_clear()
    assert model_prices("gpt-4o") is not None


# -- pricing a change ------------------------------------------------------------------------------------------------


def test_a_known_model_is_priced_in_dollars() -> None:
    economics = ModelPricer(model="claude-sonnet-4-5")(CHANGE, may_wait=True)
    assert economics.currency == "USD"
    assert economics.notes == ()
    assert economics.break_even_calls == 7
    assert economics.summary_cost == 0  # nobody said that a model writes it


def test_an_unknown_model_is_priced_by_ratios_and_says_so() -> None:
    economics = ModelPricer(model="my-model", summary_model="claude-sonnet-4-5")(CHANGE, may_wait=True)
    assert economics.currency == "input tokens"
    assert "prices of model 'my-model' are not known" in economics.notes[0]
    assert "0.1x" in economics.notes[0]
    assert economics.break_even_calls == 21  # (35,000 × 1.15 + 60,000 + 4,000 × 5) / 6,000
    assert economics.summary_cost == 80_000


def test_the_summary_is_priced_by_the_model_that_writes_it() -> None:
    dear = ModelPricer(model="claude-sonnet-4-5", summary_model="claude-sonnet-4-5")(CHANGE, may_wait=True)
    cheap = ModelPricer(model="claude-sonnet-4-5", summary_model="gpt-4o-mini")(CHANGE, may_wait=True)
    assert 0 < cheap.summary_cost < dear.summary_cost / 10
    unknown = ModelPricer(model="claude-sonnet-4-5", summary_model="my-model")(CHANGE, may_wait=True)
    assert unknown.summary_cost == dear.summary_cost
    assert "'my-model'" in unknown.notes[0]


def test_no_turn_waits_for_the_price_list_and_every_event_has_its_price(tmp_path: Path) -> None:
    """Loading it takes a good part of a second: that is done beside the turn, and what reads the event later has it."""
    code = """
import json, sys, threading
import compact.pricing
held = threading.Event()
load = compact.pricing._snapshot
def slow():
    assert held.wait(30)
    return load()
compact.pricing._snapshot = slow
from compact import CompactConfig, CompactManager
from compact.testing import dialogue
events = []
config = CompactConfig(max_context_tokens=2000, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"},
    storage={"adapter": "fs", "path": "archive"})
manager = CompactManager(config, on_event=events.append)
manager.preflight("s", dialogue(40, words=60))
done = next(event for event in events if event.name == "compact.completed")
print("genai_prices" in sys.modules, done.economics["currency"], done.economics["notes"][0].split(":")[0])
held.set()
assert manager.flush(30)
(line,) = [line for line in open("archive/s/events.jsonl") if '"compact.completed"' in line]
print(json.loads(line)["economics"]["currency"], done.economics["currency"], done.to_dict()["economics"]["currency"])
print(manager.plan("s", dialogue(60, words=60)).economics.currency)
"""
    lines = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=tmp_path).splitlines()
    assert lines == ["False input tokens the price list is not loaded", "USD USD USD", "USD"]


# -- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_says_what_it_costs_and_when_it_has_paid() -> None:
    manager, _ = watched()
    history = dialogue(40, words=60)
    manager.preflight("s", history)
    result = manager.plan("s", history, now=True)
    economics = result.economics
    assert economics is not None
    assert economics.currency == "USD"
    assert economics.tokens_freed == result.tokens_freed
    assert economics.prefix_kept_tokens + economics.prefix_broken_tokens == 4_803  # all of it has been sent
    assert economics.summary_cost == 0
    assert economics.break_even_calls is not None
    assert economics.saving_per_call == pytest.approx(result.tokens_freed * 3e-7)


def test_what_stands_before_the_first_change_is_kept() -> None:
    """Only the results are stubbed: the request and the first call before them stay in the cache."""
    manager, _ = watched(strategies={"enabled": ["deduplicate", "clear", "externalize", "drop"]})
    history = tool_run(20, words=100)
    manager.preflight("s", history)
    result = manager.plan("s", history, target_tokens=1_900)
    assert set(result.proposals) == {"clear"}
    assert result.economics is not None
    first_call = WordTokenizer().count_text('{"path": "src/file_1.py"}')
    assert result.economics.prefix_kept_tokens == 3 + WordTokenizer().count_text("do the whole thing") + first_call


def test_messages_that_are_new_are_written_in_any_case() -> None:
    manager, _ = watched()
    history = dialogue(40, words=60)
    manager.preflight("s", history)
    seen = manager.plan("s", history, now=True).economics
    more = [*history, *dialogue(2, words=60)]
    grown = manager.plan("s", more, now=True).economics
    assert seen is not None
    assert grown is not None
    assert grown.prefix_kept_tokens + grown.prefix_broken_tokens == 4_803  # the 240 new tokens are no part of it


def test_a_plan_that_frees_nothing_has_no_price() -> None:
    manager, _ = watched()
    assert manager.plan("s", [user("hello")], now=True).economics is None
    assert manager.plan("s", dialogue(2)).economics is None


def test_a_summariser_of_ones_own_is_priced_like_the_model() -> None:
    manager, _ = watched(writes=extractive_summary)
    history = dialogue(40, words=60)
    economics = manager.plan("s", history, now=True).economics
    assert economics is not None
    assert economics.summary_cost > 0


def test_prices_can_be_set() -> None:
    pricing = {"input_per_mtok": 2.0, "cache_read_per_mtok": 0.5, "cache_write_per_mtok": 2.5}
    manager, _ = watched(model="my-model", pricing=pricing)
    result = manager.plan("s", dialogue(40, words=60), now=True)
    assert result.economics is not None
    assert (result.economics.currency, result.economics.notes) == ("USD", ())
    assert result.economics.saving_per_call == pytest.approx(result.tokens_freed * 0.5e-6)


def test_a_compaction_tells_what_it_cost() -> None:
    manager, sink = watched(window=2_000)
    manager.plan("s", dialogue(2))
    model_prices("claude-sonnet-4-5")  # the list is loaded
    manager.preflight("s", dialogue(40, words=60))
    (done,) = sink.of(CompactionCompletedEvent)
    assert done.economics["tokens_freed"] == done.tokens_before - done.tokens_after
    assert done.economics["currency"] == "USD"
    assert done.economics["saving_per_call"] > 0


# -- what nothing forces ---------------------------------------------------------------------------------------------

CAPPED = {"part_caps": {"tool_results": 0.05}}


def test_a_cap_whose_eviction_cannot_pay_back_waits() -> None:
    manager, sink = watched(policy=CAPPED)
    history = results_then_talk()
    assert manager.preflight("s", history) == history
    (decision,) = sink.of(TriggerDecisionEvent)
    assert not decision.triggered
    assert "tool_results is over its cap of 500; not compacted: it would cost $" in decision.reason
    assert decision.reason.endswith("calls, more than the 20 expected")
    assert manager.current_plan("s").version == 0
    status = manager.status("s").decision
    assert status is not None
    assert status.reason == decision.reason


def test_the_same_eviction_is_done_if_enough_calls_are_expected() -> None:
    manager, sink = watched(policy={**CAPPED, "expected_calls": 10_000})
    assert manager.preflight("s", results_then_talk()) != results_then_talk()
    assert dict(sink.of(CompactionCompletedEvent)[0].proposals) == {"clear": 2}


def test_an_eviction_at_the_end_pays_and_is_done() -> None:
    """Little stands behind the results: little has to be written again."""
    manager, sink = watched(policy=CAPPED)
    manager.preflight("s", tool_run(30, words=100))
    assert sink.of(CompactionCompletedEvent)


def test_a_plan_shows_what_was_not_worth_it() -> None:
    manager, _ = watched(policy=CAPPED)
    result = manager.plan("s", results_then_talk())
    assert (result.plan.records, result.tokens_freed) == ((), 0)
    assert "not compacted: it would cost" in result.reason
    assert result.economics is not None
    assert (result.economics.break_even_calls or 0) > 20


def test_what_was_not_worth_it_is_looked_at_again_once_the_prompt_has_grown() -> None:
    asked: list[PromptChange] = []
    manager, sink = watched(policy=CAPPED)
    pricing = manager._engine.compactor.pricing

    def counting(change: PromptChange, *, may_wait: bool) -> Economics:
        asked.append(change)
        return pricing.price(change, may_wait=may_wait)

    compactor = replace(manager._engine.compactor, pricing=replace(pricing, price=counting))
    use_compactor(manager, compactor)
    history = results_then_talk()
    for extra in range(3):
        manager.preflight("s", [*history, *dialogue(extra, words=5)])
    assert len(asked) == 1
    assert "not compacted: it would cost" in sink.of(TriggerDecisionEvent)[-1].reason
    manager.preflight("s", [*history, *dialogue(10, words=60)])
    assert len(asked) == 2


def test_the_trigger_does_not_ask_for_the_price() -> None:
    manager, sink = watched(window=3_000, policy=CAPPED)
    manager.preflight("s", results_then_talk())
    assert sink.of(CompactionCompletedEvent)
    assert "trigger is" in sink.of(TriggerDecisionEvent)[0].reason


def test_a_cadence_for_providers_without_a_cache_is_priced_without_one() -> None:
    """Whoever compacts at every call says that no cache is lost: what is free pays at once."""
    manager, sink = watched(window=100_000, policy={"cadence": "every_call"})
    manager.preflight("s", results_then_talk())
    (done,) = sink.of(CompactionCompletedEvent)
    assert done.economics["break_even_calls"] == 0
    assert "priced as a provider without a cache" in done.economics["notes"]


def test_a_price_that_cannot_be_told_stops_nothing() -> None:
    def broken(change: PromptChange, *, may_wait: bool) -> Economics:
        raise RuntimeError("no prices today")

    manager, sink = watched(policy=CAPPED)
    compactor = manager._engine.compactor
    compactor = replace(compactor, pricing=replace(compactor.pricing, price=broken))
    use_compactor(manager, compactor)
    manager.preflight("s", results_then_talk())
    assert sink.of(CompactionCompletedEvent)[0].economics == {}
    assert {event.fallback for event in sink.of(CompactionErrorEvent)} == {"continued without a price"}


def test_declining_works_in_an_event_loop() -> None:
    manager, sink = watched(policy=CAPPED)
    history = [Message(m["role"], m["content"] or "-") for m in dialogue(3)]
    assert asyncio.run(manager.apreflight("s", results_then_talk())) == results_then_talk()
    assert "not compacted" in sink.of(TriggerDecisionEvent)[0].reason
    assert asyncio.run(manager.apreflight("t", history)) == history


def test_the_summary_that_stands_is_not_paid_twice() -> None:
    """A second compaction reads the old summary and what is new, not the whole span again."""
    asked: list[SummaryRequest] = []

    def counting(request: SummaryRequest) -> StructuredSummary:
        asked.append(request)
        return extractive_summary(request)

    manager, sink = watched(writes=counting)
    model_prices("claude-sonnet-4-5")
    history = dialogue(40, words=60)
    manager.manual_compact("s", history)
    manager.manual_compact("s", [*history, *dialogue(15, words=60)])
    first, second = sink.of(CompactionCompletedEvent)
    assert len(asked) == 2
    assert 0 < second.economics["summary_cost"] < first.economics["summary_cost"]


# -- whole sessions --------------------------------------------------------------------------------------------------


def test_the_benchmark_replays_sessions_with_a_cache(tmp_path: Path) -> None:
    """A window that slides at every call writes everything again; a batch does so once in a while."""
    session = {"id": "one", "messages": [{"role": "system", "content": "be careful"}, *tool_run(60, words=100)]}
    with gzip.open(tmp_path / "recorded.jsonl.gz", "wt") as file:
        file.write(json.dumps(session) + "\n")
    script = Path(__file__).parents[1] / "benchmarks" / "cost.py"
    words = [sys.executable, str(script), "--trigger", "4000", "--json"]
    data = json.loads(subprocess.check_output(words, env={**os.environ, "COMPACT_DATA": str(tmp_path)}, text=True))
    cost = {name: row["read_0.1x"][0] for name, row in data["rows"].items()}
    assert data["sessions"] == 1
    assert cost["no compaction"] == 1
    assert cost["Compact, default"] < 1 < cost["window sliding at every call"]
    assert data["rows"]["Compact, default"]["largest_prompt"] < data["rows"]["no compaction"]["largest_prompt"]
