"""Random sessions, and each figure of the pages worked out again from the rows of the database alone.

Failing summaries, undo, branches, two models, externalised content, usage with and without the cache.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compact.cli.main import main
from compact.core.errors import SummarizerUnavailable
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import StructuredSummary
from compact.pricing import model_prices
from compact.stores.packing import read_ids, unpacked
from compact.testing import user
from viewer import seeding
from viewer.serving import Running, part, running, until

S = "random"
PRECEDENCE = ("clear", "summarize", "externalize", "drop")
MODELS = ("claude-sonnet-4-5", "gpt-4o", "my-own-model")


def write_session(url: str, seed: int) -> None:
    chance = random.Random(seed)

    def tell(request: SummaryRequest) -> StructuredSummary:
        if chance.random() < 0.4:
            raise SummarizerUnavailable("the model answered 500")
        return StructuredSummary(ledger=request.ledger, narrative="Much was read.")

    history, start = seeding.work(30, words=chance.choice((60, 120)), results=2), 1
    while start < len(history):
        model = chance.choice(MODELS[:2] if seed % 2 else MODELS)
        enabled = chance.choice((["clear", "summarize", "drop"], ["externalize", "summarize", "drop"]))
        settings = {
            "model": model,
            "strategies": {"enabled": enabled, "externalize": {"min_tokens": 150}},
            "summarizer": {"prefetch": "never", "on_failure": chance.choice(("prune", "keep"))},
        }
        with seeding.manager_on(url, window_tokens=6_000, settings=settings, summarizer=tell) as manager:
            for end in range(start, min(len(history), start + chance.randrange(10, 40)), 3):
                manager.preflight(S, history[:end], instructions="Be brief. " * 9)
                counted = manager.model_calls(S)[-1].tokens_estimated
                match chance.randrange(4):
                    case 0:
                        manager.observe_usage(S, round(1.1 * counted))
                    case 1:
                        read = chance.randrange(counted)
                        manager.observe_usage(S, {"input_tokens": counted - read, "cache_read_input_tokens": read})
                    case _:
                        pass
                start = end + 1
            if manager.current_plan(S).version and chance.random() < 0.4:
                manager.undo(S)
        if chance.random() < 0.3:
            history[start - 1 : start] = [user(f"Forget that, look at docs/api.md ({start}).")]
            history = [*history[: max(6, start - 12)], *history[start - 1 :]]
            start = max(7, start - 11)


class Rows:
    """The rows of one session, read without a line of the library but for what unpacks texts."""

    def __init__(self, file: Path) -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.row_factory = sqlite3.Row

            def read(query: str) -> list[dict[str, Any]]:
                rows = [dict(row) for row in connection.execute(query)]
                return [{name: unpacked(v) if isinstance(v, bytes) else v for name, v in row.items()} for row in rows]

            self.calls = read("SELECT * FROM compact_model_calls ORDER BY number")
            self.plans = [json.loads(row["body"]) for row in read("SELECT * FROM compact_plans ORDER BY version")]
            self.messages = read("SELECT seq, message_id, body, tokens FROM compact_messages ORDER BY seq")
            self.branches = {row["branch"]: row for row in read("SELECT * FROM compact_branches")}
        for call in self.calls:
            for name in ("parts", "limits", "details"):
                call[name] = json.loads(call[name])

    def view(self, call: dict[str, Any]) -> list[str]:
        branch = self.branches.get(call["branch"])
        ids = json.loads(branch["view_ids"]) if branch else []
        start = branch["after_seq"] if branch else 0
        return ids + [row["message_id"] for row in self.messages if start < row["seq"] <= call["last_seq"]]

    def actions(self, version: int) -> dict[str, str]:
        plan = next((plan for plan in self.plans if plan["version"] == version), {"records": []})
        found: dict[str, str] = {}
        for rank in PRECEDENCE:
            for record in plan["records"]:
                if record["action"] == rank:
                    found.update(dict.fromkeys(read_ids(record["span"]), rank))
        return found

    def prices(self, call: dict[str, Any]) -> dict[str, float] | None:
        model = call["details"]["model"]
        own = [c["details"].get("prices") for c in self.calls if c["details"]["model"] == model]
        return call["details"].get("prices") or next(filter(None, own), None)


@pytest.fixture(scope="module", params=range(4))
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    assert model_prices(MODELS[0])  # at hand from the first call on
    folder = tmp_path_factory.mktemp("truth")
    url = f"sqlite:///{folder / 'state.db'}"
    write_session(url, request.param)
    with running(url) as viewer:
        yield viewer, Rows(folder / "state.db"), url


def page(viewer: Running, *more: object) -> Any:
    return viewer.get("/".join(("/api/sessions", part(S), *map(str, more))))


def test_the_sessions_have_what_they_are_to_have(session: Any) -> None:
    _, rows, _ = session
    assert len(rows.calls) > 20
    assert len(rows.plans) > 2
    assert len({call["details"]["model"] for call in rows.calls}) > 1


def test_every_call_costs_what_its_row_says(session: Any) -> None:
    viewer, rows, _ = session
    shown = page(viewer)["calls"]
    assert len(shown) == len(rows.calls)
    last_tokens: dict[str, int] = {}
    for call, told in zip(rows.calls, shown, strict=True):
        details, model = call["details"], call["details"]["model"]
        tokens = call["tokens_reported"] or call["tokens_estimated"]
        cached = details.get("cache_read_tokens")
        if cached is None:
            possible = min(details.get("tokens_cached", 0), last_tokens.get(model, 0))
            cached = min(round(possible * tokens / call["tokens_estimated"]), tokens)
        last_tokens[model] = call["tokens_estimated"]
        assert told["cost"]["input_tokens"] == tokens
        assert abs(told["cost"]["cached_tokens"] - cached) <= 1, "but for rounding"
        cached = told["cost"]["cached_tokens"]
        assert told["cost"]["is_cache_reported"] == ("cache_read_tokens" in details)
        prices = rows.prices(call)
        if prices is None:
            assert told["cost"]["usd"] is told["cost"]["usd_saved"] is None
            continue
        # What a provider did not say that it wrote was read afresh.
        rest = prices["fresh"] if "cache_read_tokens" in details else prices["cache_write"]
        assert told["cost"]["usd"] == pytest.approx(cached * prices["cache_read"] + (tokens - cached) * rest)
        if not rows.actions(call["plan_version"]):
            assert told["cost"]["usd_saved"] == pytest.approx(0)


def test_every_call_would_have_cost_what_all_of_its_history_costs(session: Any) -> None:
    """All of it at the price of its tokens: what the call before had is served from the cache, the rest is written."""
    viewer, rows, _ = session
    before: dict[str, dict[str, Any]] = {}
    compacted = 0
    for call, told in zip(rows.calls, page(viewer)["calls"], strict=True):
        details, prices = call["details"], rows.prices(call)
        last = before.get(details["model"])
        before[details["model"]] = call
        if prices is None:
            continue
        scale = (call["tokens_reported"] or call["tokens_estimated"]) / call["tokens_estimated"]
        whole = round(details["tokens_uncompacted"] * scale)
        assert told["cost"]["uncompacted_tokens"] == whole
        prices = details.get("prices_uncompacted") or prices
        dearest = whole * max(prices["fresh"], prices["cache_write"])
        assert whole * prices["cache_read"] <= told["cost"]["usd_uncompacted"] * (1 + 1e-9) <= dearest * (1 + 2e-9)
        if "cache_read_tokens" in details or last is None or last["branch"] != call["branch"]:
            continue
        known = last["details"]["tokens_uncompacted"] - last["parts"].get("injected", 0)
        served = min(max(round(known * scale), told["cost"]["cached_tokens"]), whole)
        if whole != told["cost"]["input_tokens"]:
            compacted += 1
            cost = served * prices["cache_read"] + (whole - served) * prices["cache_write"]
            assert told["cost"]["usd_uncompacted"] == pytest.approx(cost)
    assert compacted > 5


def test_a_prompt_without_compaction_would_have_all_of_its_view(session: Any) -> None:
    _, rows, _ = session
    weight = {row["message_id"]: row["tokens"] for row in rows.messages}
    for call in rows.calls:
        whole = sum(weight[message_id] for message_id in rows.view(call))
        beside = sum(call["parts"].get(name, 0) for name in ("tools", "overhead", "injected"))
        assert call["details"]["tokens_uncompacted"] >= whole + beside
        assert call["details"]["tokens_uncompacted"] - whole - beside < 80, "instructions and repairs, and nothing else"


def test_the_sums_are_the_sums(session: Any) -> None:
    viewer, _, _ = session
    shown = page(viewer)
    cost, calls = shown["cost"], [call["cost"] for call in shown["calls"]]
    priced = [call for call in calls if call["usd"] is not None]
    assert cost["unpriced_calls"] == len(calls) - len(priced)
    assert cost["usd_prompts"] == pytest.approx(sum(call["usd"] for call in priced))
    assert cost["usd_uncompacted"] == pytest.approx(sum(call["usd_uncompacted"] for call in priced))
    bills = [plan["cost"]["summary"] for plan in shown["plans"] if plan["cost"] and plan["cost"]["summary"]]
    if cost["usd_summaries"] is not None:
        assert cost["usd_summaries"] == pytest.approx(sum(bill["usd"] for bill in bills))
    assert cost["usd"] == pytest.approx(cost["usd_prompts"] + (cost["usd_summaries"] or 0))
    assert cost["usd_saved"] == pytest.approx(cost["usd_uncompacted"] - cost["usd"])
    assert cost["cached_share"] == pytest.approx(
        sum(call["cached_tokens"] for call in calls) / sum(call["input_tokens"] for call in calls)
    )
    until(lambda: viewer.get("/api/sessions")["sessions"][0]["cost"])
    listed = viewer.get("/api/sessions")["sessions"][0]
    assert (listed["cost"]["usd"], listed["cost"]["usd_saved"]) == (cost["usd"], cost["usd_saved"])
    assert listed["compactions"] == sum(plan["restored_from"] is None for plan in shown["plans"])


def test_a_compaction_is_told_as_it_went(session: Any) -> None:
    viewer, rows, _ = session
    under = Counter(call["plan_version"] for call in rows.calls)
    told_before = set[int]()
    for plan, told in zip(rows.plans, page(viewer)["plans"], strict=True):
        run = plan["run"]
        failures = run["failures"] if run else []
        assert [one["message"] for one in told["failures"]] == [one["message"] for one in failures]
        shown = page(viewer, "plans", plan["version"])
        assert shown["failures"] == told["failures"]
        assert shown["seconds"] == (run["seconds"] if run else None)
        assert shown["cost"] == told["cost"]
        summary = next((record for record in plan["records"] if record["action"] == "summarize"), None)
        writing = summary and summary["summary"]["writing"]
        assert (shown["summary"] or {}).get("is_fallback", False) == bool(writing and writing["instead_of"])
        if run is None:
            assert told["cost"] is None
            continue
        if writing and writing["instead_of"] and summary["version"] not in told_before:
            assert "summary" in {one["what"] for one in failures}, "whose place code took had failed"
        told_before.add(summary["version"] if summary else 0)
        assert told["cost"]["calls_under"] == under[plan["version"]]
        price = run["economics"]
        if price["currency"] == "USD":
            assert told["cost"]["usd_rewrite"] == price["rewrite_cost"]
            assert told["cost"]["break_even_calls"] == price["break_even_calls"]
            upfront = price["rewrite_cost"] + price["summary_cost"]
            assert told["cost"]["usd_net"] == pytest.approx(under[plan["version"]] * price["saving_per_call"] - upfront)


def test_what_is_left_out_is_not_there(session: Any) -> None:
    viewer, rows, _ = session
    for call, told in zip(rows.calls, page(viewer)["calls"], strict=True):
        actions = rows.actions(call["plan_version"])
        gone = [i for i in rows.view(call) if actions.get(i) in ("summarize", "drop")]
        assert told["evicted"] == len(gone)


def test_what_fills_a_prompt_is_the_sum_of_its_messages(session: Any) -> None:
    viewer, _, _ = session
    for told in page(viewer)["calls"][::5]:
        shown = viewer.get(f"/api/sessions/{S}/calls/{told['number']}", limit=1000)
        sums = Counter[tuple[str, str]]()
        for slot in shown["slots"]:
            sums[slot["part"], slot["source"]] += slot["tokens"]
        for name in ("pinned", "dialogue", "tool_results", "stubs"):
            own = {source: tokens for (of, source), tokens in sums.items() if of == name and tokens}
            assert shown["contents"].get(name, {}) == told["contents"].get(name, {}) == own
            assert sum(own.values()) == told["parts"].get(name, 0)
            for source in own:
                only = viewer.get(f"/api/sessions/{S}/calls/{told['number']}", part=name, source=source, limit=1000)
                assert sum(slot["tokens"] for slot in only["slots"]) == own[source]
                assert only["messages_total"] == shown["messages_total"]


def test_the_terminal_says_the_same(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    viewer, _, url = session
    shown = page(viewer)
    assert main(["show", S, "--store", url, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["cost"] == shown["cost"]
    assert [call["cost"] for call in data["calls"]] == [call["cost"] for call in shown["calls"]]
    assert [plan["cost"] for plan in data["plans"]] == [plan["cost"] for plan in shown["plans"]]
    assert [plan["failures"] for plan in data["plans"]] == [plan["failures"] for plan in shown["plans"]]
    assert data["status"]["max_context_tokens"] == shown["limits"]["window"] == 6_000
