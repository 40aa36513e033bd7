"""A session knows its models and their prices: what it cost is the same whoever asks, and whenever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.audit.call_details import CallDetails
from compact.core.audit.cost import by_version
from compact.core.engine.events import CompactionCompletedEvent
from compact.pricing import model_prices
from compact.testing import RecordingSink, ScriptedModel, dialogue, say_json
from compact.tokens.usage import ReportedUsage, reported_usage

CLAUDE, GPT = "claude-sonnet-4-5", "gpt-4o"


def manager_on(url: str, model: str = CLAUDE, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    usual: dict[str, Any] = {
        "model": model,
        "tokenizer": "simple",
        "max_context_tokens": 3_000,
        "state": {"url": url},
        "storage": {"adapter": "none"},
        "telemetry": {"exporter": "none"},
        "policy": {"hard_cap_buffer": 100},
    }
    return CompactManager(CompactConfig(**{**usual, **settings}), on_event=sink), sink


def run(manager: CompactManager, session_id: str, history: list[Any], *, start: int = 1) -> None:
    for end in range(start, len(history) + 1, 2):
        manager.preflight(session_id, history[:end])


@pytest.fixture(autouse=True)
def _prices_are_at_hand() -> None:
    assert model_prices(CLAUDE)


def test_every_call_has_its_model_and_the_prices_of_its_moment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    history = dialogue(30, words=60)
    for model, end in ((CLAUDE, 40), (GPT, 60)):
        manager, _ = manager_on(url, model)
        with manager:
            run(manager, "s", history[:end], start=1 if model == CLAUDE else 41)
    with manager_on(url, "gpt-4o-mini")[0] as reader:  # what is asked with has no say in it
        details = [CallDetails.from_dict(call.details) for call in reader.model_calls("s")]
        assert [one.model for one in details] == [CLAUDE] * 20 + [GPT] * 10
        assert {one.prices for one in details[:20]} == {model_prices(CLAUDE)}
        assert {one.prices for one in details[20:]} == {model_prices(GPT)}
        cost = reader.cost("s")
    assert cost.models == (CLAUDE, GPT)
    assert cost.calls[20].cached_tokens == 0, "another provider has none of it in its cache"
    assert cost.saved
    assert cost.saved > 0


def test_the_price_of_a_compaction_stays_as_it_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price list of tomorrow does not change what yesterday cost."""
    manager, sink = manager_on(f"sqlite:///{tmp_path / 'state.db'}")
    with manager:
        run(manager, "s", dialogue(40, words=60))
        told = {e.plan_version: e.economics for e in sink.events if isinstance(e, CompactionCompletedEvent)}
        before = manager.cost("s").to_dict()
        assert len(told) > 1
        monkeypatch.setattr("compact.manager.listed_prices", lambda model, tokens: pytest.fail("the list was asked"))
        for version, cost in by_version(manager.cost("s")).items():
            assert cost.economics
            assert cost.economics.to_dict() == told[version]
            assert cost.economics.currency == "USD"
        assert manager.cost("s").to_dict() == before


def test_a_resumed_session_finds_its_cache_as_it_was(tmp_path: Path) -> None:
    """The provider does not know that another process sends the next prompt."""
    history, costs = dialogue(30, words=60), list[list[int]]()
    for name, parts in (("one", (60,)), ("three", (20, 40, 60))):
        start = 1
        for end in parts:
            manager, _ = manager_on(f"sqlite:///{tmp_path / name}.db")
            with manager:
                run(manager, "s", history[:end], start=start)
                costs.append([call.cached_tokens for call in manager.cost("s").calls])
            start = end + 1
    assert costs[0] == costs[-1]
    assert costs[0][0] == 0 < costs[0][1]


def test_what_the_provider_tells_of_its_cache_is_kept(tmp_path: Path) -> None:
    manager, _ = manager_on(f"sqlite:///{tmp_path / 'state.db'}")
    with manager:
        manager.preflight("s", dialogue(1, words=100))
        usage = {"input_tokens": 10, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 90}
        manager.observe_usage("s", {**usage, "output_tokens": 7})
        call = manager.cost("s").calls[0]
        prices = model_prices(CLAUDE)
        assert prices
        assert (call.input_tokens, call.cached_tokens, call.is_cache_reported) == (400, 300, True)
        assert call.cost == pytest.approx(300 * prices.cache_read + 90 * prices.cache_write + 10 * prices.fresh)
        manager.preflight("s", dialogue(2, words=100))
        manager.observe_usage("s", 500)
        assert not manager.cost("s").calls[1].is_cache_reported, "a plain number tells nothing of it"


def counted(tokens: int, *, read: int | None = None, written: int | None = None) -> ReportedUsage:
    return ReportedUsage(input_tokens=tokens, cache_read_tokens=read, cache_write_tokens=written)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, counted(9, read=4)),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}}, counted(9, read=0)),
        ({"prompt_token_count": 9, "cached_content_token_count": 3}, counted(9, read=3)),
        (
            {"input_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4},
            counted(9, read=3, written=4),
        ),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, counted(9)),
        (9, counted(9)),
        (counted(9, read=1), counted(9, read=1)),
    ],
)
def test_every_provider_s_word_for_its_cache_is_read(usage: object, read: ReportedUsage) -> None:
    assert reported_usage(usage) == read


def test_the_summariser_s_bill_is_what_its_provider_counted(tmp_path: Path) -> None:
    with ScriptedModel(say_json({"narrative": "The limit of refunds was looked for."})) as model:
        summarizer = {"model": "gpt-4o-mini", "provider": "openai", "base_url": model.base_url, "api_key": "k"}
        manager, _ = manager_on(
            f"sqlite:///{tmp_path / 'state.db'}", summarizer={**summarizer, "prefetch": "never", "cache": False}
        )
        with manager:
            run(manager, "s", dialogue(40, words=60))
            cost = manager.cost("s")
        prices = model_prices("gpt-4o-mini")
        assert prices
        assert cost.bills
        assert sum(bill.writing.calls for bill in cost.bills) == len(model.requests)
        assert {bill.writing.summarizer for bill in cost.bills} == {"gpt-4o-mini"}
        read = sum(bill.input_tokens for bill in cost.bills)
        put_out = sum(bill.output_tokens for bill in cost.bills)
        assert read > 0 < put_out
        assert cost.summaries == pytest.approx(read * prices.fresh + put_out * prices.output)
        assert cost.total == pytest.approx((cost.prompts or 0) + (cost.summaries or 0))
        assert json.dumps(cost.to_dict())
        for bill in cost.bills:
            own = by_version(cost)[bill.version].economics
            assert own
            assert own.summary_cost == pytest.approx(bill.cost)


def test_a_model_of_unknown_price_costs_an_unknown_amount(tmp_path: Path) -> None:
    manager, _ = manager_on(f"sqlite:///{tmp_path / 'state.db'}", "my-own-model")
    with manager:
        run(manager, "s", dialogue(30, words=60))
        cost = manager.cost("s")
    assert (cost.total, cost.saved) == (None, None)
    assert cost.unpriced_calls == len(cost.calls) > 0
    assert cost.tokens_uncompacted > cost.tokens_sent
    assert all(entry.net is None for entry in cost.compactions)
