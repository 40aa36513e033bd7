"""What the page is told of sessions, compactions, calls, messages and phrases."""

from __future__ import annotations

import time
from itertools import chain
from typing import Any

import pytest

from compact import CompactConfig, Message, UnknownSession
from compact.core.audit.report import EntityState
from compact.core.engine.events import CompactionCompletedEvent, CompactionEvent
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.parts import SENT_PARTS
from compact.core.plan.plan import CompactionPlan, SpanReference, SummarizationRecord
from compact.core.summary.summary import StructuredSummary, SummaryCheck
from compact.pricing import model_prices
from compact.tokens import SimpleTokenizer
from compact.viewer.pages.session import session_page
from compact.viewer.pages.summary import summary_data
from compact.viewer.source import DataSource
from viewer import seeding
from viewer.seeding import BUSY, EDITED, HOSTILE, INJECTED, INVENTED, LOSSY, ODD_ID, QUIET, SESSIONS, UNDONE
from viewer.serving import Running, part, running, span, until


def of(session_id: str, *more: object) -> str:
    """The address of a session, or of something in it."""
    return "/".join(["/api/sessions", part(session_id), *(part(str(piece)) for piece in more)])


# -- the list -----------------------------------------------------------------------------------------------------


def listed(viewer: Running, **query: Any) -> list[str]:
    return [row["id"] for row in viewer.get("/api/sessions", **query)["sessions"]]


def test_every_session_is_listed_with_its_line(api: Running) -> None:
    rows = {row["id"]: row for row in api.get("/api/sessions")["sessions"]}
    assert set(rows) == set(SESSIONS)
    busy = rows[BUSY]
    assert len(busy["spark"]) == 40
    assert busy["spark"][-1] == busy["last_tokens"]
    assert (busy["window_tokens"], busy["trigger_tokens"]) == (12_000, 10_200)
    assert busy["calls"] > 100
    assert busy["plan_version"] > 3
    assert rows[QUIET]["plan_version"] == 0


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"state": "never"}, {QUIET}),
        ({"state": "compacted"}, set(SESSIONS) - {QUIET}),
        ({"q": "CHECKOUT-serv"}, {BUSY}),
        ({"q": "phantom"}, set()),
        ({"q": "docs/api.md instead"}, {EDITED}),
        ({"q": "bell escape"}, {HOSTILE}),
        ({"q": "bell escape", "state": "never"}, set()),
        ({"q": "<img"}, {HOSTILE}),
        ({"state": "errors"}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_the_list_is_searched_and_filtered(api: Running, query: dict[str, str], wanted: set[str]) -> None:
    assert set(listed(api, **query)) == wanted
    assert api.get("/api/sessions", **query)["total"] == len(wanted)


def test_what_was_lost_is_found_out(api: Running) -> None:
    until(lambda: api.get("/api/sessions", state="loss")["pending"] == 0)
    assert listed(api, state="loss") == [LOSSY]
    assert [row["id"] for row in api.get("/api/sessions")["sessions"] if row["has_loss"]] == [LOSSY]


def test_the_list_is_sorted_and_comes_in_pages(api: Running) -> None:
    rows = api.get("/api/sessions", sort="messages")["sessions"]
    assert [row["messages"] for row in rows] == sorted((row["messages"] for row in rows), reverse=True)
    by_tokens = listed(api, sort="tokens")
    pages = [listed(api, sort="tokens", offset=offset, limit=4) for offset in (0, 4, 8, 12)]
    assert [len(page) for page in pages] == [4, 4, 2, 0]
    assert list(chain(*pages)) == by_tokens
    assert listed(api, sort="updated")[0] == ODD_ID


@pytest.mark.parametrize(
    "query",
    [{"state": "x"}, {"sort": "x"}, {"offset": "-1"}, {"limit": "x"}, {"offset": "9" * 30}, {"limit": "١"}],
    ids=str,
)
def test_questions_that_make_no_sense_are_refused(api: Running, query: dict[str, str]) -> None:
    answer = api.client.get("/api/sessions", params=query)
    assert answer.status_code == 400
    assert answer.json()["hint"]


def test_errors_are_known_from_the_events(own: Running) -> None:
    own.send(span(1, status="error", data={"session_id": QUIET}))
    assert listed(own, state="errors") == [QUIET]
    rows = {row["id"]: row["has_error"] for row in own.get("/api/sessions")["sessions"]}
    assert rows[QUIET]
    assert not rows[BUSY]


def test_a_session_that_is_written_to_is_live(own: Running, own_url: str) -> None:
    with seeding.manager_on(own_url) as manager:
        manager.preflight("fresh", seeding.work(1))
    row = own.get("/api/sessions")["sessions"][0]
    assert (row["id"], row["is_live"]) == ("fresh", True)


# -- one session --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_id", SESSIONS)
def test_the_timeline_adds_up(api: Running, session_id: str) -> None:
    page = api.get(of(session_id))
    assert page["id"] == session_id
    assert page["limits"] == {"window": 12_000, "trigger": 10_200, "prefetch": 8_400, "target": 6_000} | {
        "ceiling": page["limits"]["ceiling"]
    }
    assert page["calls_total"] == len(page["calls"]) > 0
    for call in page["calls"]:
        assert set(call["parts"]) == {*SENT_PARTS, "free"}
        assert sum(call["parts"].values()) == max(12_000, call["tokens"])
        assert sum(call["parts"].values()) - call["parts"]["free"] == call["tokens"]
    assert page["turns"] == page["calls"][-1]["turn"]


def test_parts_of_the_window(api: Running) -> None:
    busy, injected = (api.get(of(name))["calls"][-1]["parts"] for name in (BUSY, INJECTED))
    assert all(busy[part] for part in ("system", "tools", "pinned", "ledger", "summary", "dialogue"))
    assert injected["injected"] > 0


def test_plans_are_listed_with_the_first_call_under_them(api: Running) -> None:
    page = api.get(of(UNDONE))
    versions = {plan["version"]: plan for plan in page["plans"]}
    assert [plan["is_current"] for plan in page["plans"]] == [False] * (len(versions) - 1) + [True]
    assert versions[max(versions)]["restored_from"] == 1
    assert versions[max(versions)]["first_call"] is None
    for plan in page["plans"]:
        if plan["first_call"] is not None:
            first = next(call for call in page["calls"] if call["plan_version"] == plan["version"])
            assert first["number"] == plan["first_call"]
    assert any(plan["actions"].get("clear") for plan in page["plans"])


def test_what_was_asked_for_again_is_counted(api: Running) -> None:
    page = api.get(of(seeding.MISSED, "regrets"))
    assert page["total"] == 2
    rows = {row["source"]: (row["recalls"], row["rereads"]) for row in page["counts"]}
    assert rows == {"read_file": (0, 1), "run_tests": (1, 0)}
    assert all(row["tokens"] > 0 and row["action"] == row["by"] == "summarize" for row in page["counts"])
    assert [pair["removed"] for pair in page["newest"]] == ["m10", "m8"]
    assert api.get(of(QUIET, "regrets")) == {"total": 0, "counts": [], "newest": []}


def test_why_it_did_or_did_not_compact(api: Running) -> None:
    decision = api.get(of(QUIET))["decision"]
    assert decision["triggered"] is False
    assert "below the trigger of 10,200" in decision["reason"]


@pytest.mark.parametrize(
    "path",
    [
        of("nobody"),
        of("nobody", "messages"),
        of("nobody", "messages", "m1"),
        of("nobody", "plans", 1),
        of("nobody", "calls", 1),
        of("nobody", "why") + "?q=x",
        of("nobody", "regrets"),
        of(BUSY, "messages", "nothing"),
        of(BUSY, "plans", 99),
        of(BUSY, "calls", 99_999_999),
        of(BUSY, "plans", 1) + "?against=99",
        of(BUSY, "nothing"),
    ],
)
def test_what_is_not_there_is_told(api: Running, path: str) -> None:
    answer = api.client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    "path",
    [
        of(BUSY, "plans", "x"),
        of(BUSY, "plans", "-1"),
        of(BUSY, "calls", "1e3"),
        of(BUSY, "plans", 1) + "?only=some",
        of(BUSY, "plans", 1) + "?report=maybe",
        of(BUSY, "why") + "?q=%20",
        of(BUSY, "messages") + "?offset=x",
    ],
)
def test_what_makes_no_sense_is_told(api: Running, path: str) -> None:
    assert api.client.get(path).status_code == 400


# -- compactions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_id", [BUSY, UNDONE, INJECTED, LOSSY, INVENTED, EDITED, HOSTILE, ODD_ID])
def test_every_compaction_can_be_shown(api: Running, session_id: str) -> None:
    for plan in api.get(of(session_id))["plans"]:
        page = api.get(of(session_id, "plans", plan["version"]), report="without", limit=1000)
        assert page["version"] == plan["version"]
        assert page["rows_total"] == page["changed_total"]
        assert all(row["changed"] for row in page["rows"])
        for row in page["rows"]:
            assert (row["after"]["text"] != "") == (row["after"]["action"] in ("clear", "externalize"))
            assert bool(row["artifact_id"]) == (row["after"]["action"] == "externalize")
        whole = api.get(of(session_id, "plans", plan["version"]), report="without", only="all", limit=1000)
        assert sum(row["changed"] for row in whole["rows"]) == page["rows_total"]
        assert [row["seq"] for row in whole["rows"]] == list(range(1, whole["rows_total"] + 1))


def test_the_tokens_of_the_rows_are_those_of_the_plan(api: Running) -> None:
    page = api.get(of(BUSY, "plans", 1), only="all", limit=1000)
    freed = sum(row["before"]["tokens"] - row["after"]["tokens"] for row in page["rows"])
    freed -= page["summary"]["tokens"] if page["summary"] else 0
    line_tokens = SimpleTokenizer().count_message(Message("user", LEFT_OUT))
    lines, rest = divmod(freed - (page["tokens_before"] - page["tokens_after"]), line_tokens)
    assert (rest, 0 < lines < 5) == (0, True), "the only other thing is a line where a turn was left out"
    shown = [row for row in page["rows"] if row["after"]["action"] not in ("summarize", "drop")]
    assert page["messages_after"] == len(shown) + bool(page["summary"])
    assert page["messages_before"] == page["rows_total"]


def test_rows_come_in_pages(api: Running) -> None:
    version = api.get(of(BUSY))["plan_version"]
    whole = api.get(of(BUSY, "plans", version), only="all", limit=1000)["rows"]
    pages = [api.get(of(BUSY, "plans", version), only="all", offset=n, limit=50)["rows"] for n in range(0, 350, 50)]
    assert list(chain(*pages)) == whole


def test_tool_results_name_their_tool(api: Running) -> None:
    rows = api.get(of(BUSY, "plans", 1))["rows"]
    assert {row["tool"] for row in rows if row["role"] == "tool"} <= {"read_file", "run_tests", "grep", "write_file"}
    assert all(row["tool"] for row in rows if row["role"] == "tool")


def test_any_two_versions_can_be_compared(api: Running) -> None:
    newest = api.get(of(BUSY))["plan_version"]
    page = api.get(of(BUSY, "plans", newest), against=0)
    assert (page["against"], page["report"], page["cost"]) == (0, None, None)
    assert page["rows_total"] > api.get(of(BUSY, "plans", newest))["rows_total"]
    assert all(row["before"]["action"] == "include" for row in page["rows"])
    untouched = api.get(of(BUSY, "plans", 0))
    assert (untouched["rows_total"], untouched["summary"], untouched["report"]) == (0, None, None)


def test_a_report_can_be_asked_for_on_its_own(api: Running) -> None:
    path = of(LOSSY, "plans", 3)
    without, only, both = (api.get(path, report=how) for how in ("without", "only", "with"))
    assert without["report"] is None
    assert set(only) == {"version", "against", "report"}
    assert both == {**without, "report": only["report"]}


def test_the_loss_report_is_the_manager_s(api: Running, own_url: str) -> None:
    with seeding.manager_on(own_url) as manager:
        (report,) = manager.report(LOSSY, version=3)
    page = api.get(of(LOSSY, "plans", 3))["report"]
    assert page["items_total"] == len(report.items)
    lost = [item["text"] for item in page["items"] if item["where"] == "lost"]
    assert len(lost) == report.total(EntityState.LOST) > 0
    assert sum(states["lost"] for states in page["counts"].values()) == len(lost)
    assert page["items"][0]["ids"]


def test_a_summary_is_marked(api: Running) -> None:
    versions = [plan["version"] for plan in api.get(of(INVENTED))["plans"] if plan["actions"].get("summarize")]
    summary = api.get(of(INVENTED, "plans", versions[0]), report="without")["summary"]
    assert "".join(part["text"] for part in summary["segments"]) == summary["text"]
    # What a model made up is taken out before it is shown to another one.
    assert any("phantom.py" in text for text in summary["ungrounded"])
    assert "phantom.py" not in summary["text"]
    assert any(part["mark"] == "verified" for part in summary["segments"])


def test_the_worse_mark_wins_and_words_stay_whole() -> None:
    facts = tuple(Fact(FactKind.MENTION, text) for text in ("src/a.py", "a.py", "cart"))
    check = SummaryCheck(3, appended=("see src/a.py",), ungrounded=("lines 5",))
    summary = StructuredSummary(
        ledger=Ledger(facts), narrative="cartons: cart; see src/a.py lines 5 and a.py", check=check
    )
    record = SummarizationRecord(span=SpanReference(("m1",)), strategy="x", reason="", summary=summary)
    shown = summary_data(CompactionPlan("s", 1, (record,)))
    assert shown is not None
    told = shown["segments"][[part["text"] for part in shown["segments"]].index("see src/a.py") :]
    assert [(part["text"], part["mark"]) for part in told if part["mark"] != "plain"] == [
        ("see src/a.py", "appended"),
        ("lines 5", "ungrounded"),
        ("a.py", "verified"),
    ]
    assert "".join(part["text"] for part in shown["segments"]) == shown["text"]
    assert any("cartons" in part["text"] for part in shown["segments"] if part["mark"] == "plain")


def test_the_price_is_what_was_told_when_it_happened(tmp_path: Any) -> None:
    """Worked out from the store alone, it is the price that the event had."""
    url, events = f"sqlite:///{tmp_path / 'state.db'}", list[CompactionEvent]()
    with seeding.manager_on(url, on_event=events.append) as manager:
        seeding.run_agent(manager, "priced", seeding.work(24), instructions="Be brief. " * 50)
    told = {event.plan_version: event for event in events if isinstance(event, CompactionCompletedEvent)}
    assert len(told) > 2
    with running(url) as viewer:
        for version, event in told.items():
            page = viewer.get(of("priced", "plans", version))["cost"]
            assert page["freed_tokens"] == event.economics["tokens_freed"]
            assert page["broken_prefix_tokens"] == event.economics["prefix_broken_tokens"]
            assert page["usd_rewrite"] == pytest.approx(event.economics["rewrite_cost"])
            assert page["break_even_calls"] == event.economics["break_even_calls"]
            assert "pays back" in page["lines"][0]
            assert page["usd_net"] == pytest.approx(
                page["calls_under"] * event.economics["saving_per_call"] - event.economics["rewrite_cost"]
            )


def test_a_session_is_priced_as_what_it_is_whatever_the_viewer_is_set_to(tmp_path: Any) -> None:
    """The viewer is set to gpt-4o; one session ran with Claude, one with a model that nobody knows."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    for model in ("claude-sonnet-4-5", "my-own-model"):
        with seeding.manager_on(url, settings={"model": model}) as manager:
            seeding.run_agent(manager, model, seeding.work(24))
    with running(url) as viewer:
        claude, unknown = (viewer.get(of(model))["cost"] for model in ("claude-sonnet-4-5", "my-own-model"))
        assert claude["models"] == ["claude-sonnet-4-5"]
        assert claude["usd"] > 0 < claude["usd_saved"]
        assert (unknown["usd"], unknown["usd_saved"]) == (None, None)
        assert "the price of my-own-model is not known" in unknown["notes"][0]
        call = viewer.get(of("claude-sonnet-4-5"))["calls"][-1]
        prices = model_prices("claude-sonnet-4-5")
        assert prices
        rest = call["cost"]["input_tokens"] - call["cost"]["cached_tokens"]
        expected = call["cost"]["cached_tokens"] * prices.cache_read + rest * prices.cache_write
        assert call["cost"]["usd"] == pytest.approx(expected)
        assert viewer.get(of("claude-sonnet-4-5", "calls", call["number"]))["cost"] == call["cost"]
        until(lambda: all(row["cost"] for row in viewer.get("/api/sessions")["sessions"]))
        listed = viewer.get("/api/sessions")
        rows = {row["id"]: row["cost"] for row in listed["sessions"]}
        assert rows["claude-sonnet-4-5"]["usd"] == claude["usd"]
        assert rows["my-own-model"]["usd"] is None
        assert listed["cost"] == {
            "sessions": 1, "unpriced": 1, "usd": claude["usd"], "usd_saved": claude["usd_saved"]
        }  # fmt: skip


# -- calls and messages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_id", SESSIONS)
def test_a_prompt_weighs_what_was_written_down(api: Running, session_id: str) -> None:
    for call in api.get(of(session_id))["calls"][::7]:
        page = api.get(of(session_id, "calls", call["number"]), limit=1000)
        assert page["slots_total"] == len(page["slots"])
        assert sum(slot["tokens"] for slot in page["slots"]) + page["fixed_tokens"] == call["tokens"]
        parts = [slot["part"] for slot in page["slots"]]
        assert parts.count("summary") == (call["summary_version"] > 0)
        assert len([part for part in parts if part not in ("injected", "rehydrated")]) == call["messages"]
        assert set(parts) <= {part for part, tokens in page["parts"].items() if tokens}


def test_what_stands_in_each_place_is_told(api: Running) -> None:
    numbers = [call["number"] for call in api.get(of(INJECTED))["calls"]]
    slots = [slot for n in numbers for slot in api.get(of(INJECTED, "calls", n), limit=1000)["slots"]]
    parts = {slot["part"] for slot in slots}
    assert parts == {"system", "pinned", "dialogue", "tool_results", "stubs", "rehydrated", "injected"}
    assert {slot["action"] for slot in slots if slot["part"] == "stubs"} == {"externalize"}
    assert {slot["action"] for slot in slots if slot["part"] != "stubs"} == {"include"}
    last = api.get(of(BUSY, "calls", api.get(of(BUSY))["calls"][-1]["number"]))
    summary = next(slot for slot in last["slots"] if slot["part"] == "summary")
    assert summary["text"].startswith("<COMPACT-SUMMARY")
    assert len(summary["ids"]) > 10
    texts = [slot["text"] for slot in api.get(of(INJECTED, "calls", numbers[-1]))["slots"]]
    assert "the build is green" in texts[-1]


def test_prompts_come_in_pages(api: Running) -> None:
    number = api.get(of(BUSY))["calls"][20]["number"]
    whole = api.get(of(BUSY, "calls", number), limit=1000)["slots"]
    pages = [api.get(of(BUSY, "calls", number), offset=n, limit=5)["slots"] for n in range(0, 60, 5)]
    assert list(chain(*pages)) == whole


def test_a_huge_text_is_cut_in_a_prompt_and_whole_on_its_own(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with seeding.manager_on(url, window_tokens=100_000) as manager:
        manager.preflight("s", [{"role": "user", "content": "x" * 50_000, "id": "big"}])
    with running(url) as viewer:
        (call,) = viewer.get(of("s"))["calls"]
        (slot,) = viewer.get(of("s", "calls", call["number"]))["slots"]
        assert (len(slot["text"]), slot["cut"]) == (20_000, True)
        assert len(viewer.get(of("s", "messages", "big"))["text"]) == 50_000
        assert len(viewer.get(of("s", "messages"))["messages"][0]["preview"]) == 300


def test_the_log_comes_in_pages(api: Running) -> None:
    total = api.get(of(BUSY, "messages"))["total"]
    pages = [api.get(of(BUSY, "messages"), offset=n, limit=90)["messages"] for n in range(0, 450, 90)]
    rows = list(chain(*pages))
    assert [row["seq"] for row in rows] == list(range(1, total + 1))
    assert all(row["tool"] for row in rows if row["role"] == "tool")
    assert {"include", "summarize"} <= {row["action"] for row in rows}


def test_hostile_content_arrives_as_it_is(api: Running) -> None:
    """It is data here; making it harmless is for whoever shows it."""
    rows = api.get(of(HOSTILE, "messages"), limit=200)["messages"]
    texts = [api.get(of(HOSTILE, "messages", row["id"]))["text"] for row in rows[:40]]
    for hostile in seeding.HOSTILE_TEXTS:
        assert any(hostile in text for text in texts)
    assert api.client.get(of(HOSTILE)).headers["content-type"] == "application/json"


def test_odd_ids_can_be_asked_for(api: Running) -> None:
    row = api.get(of(ODD_ID, "messages"))["messages"][5]
    assert row["id"] == "5/../5?x#<b>"
    assert api.get(of(ODD_ID, "messages", row["id"]))["seq"] == 6


def test_where_a_phrase_went(api: Running) -> None:
    """One verdict, then each message with who decided and why, and the calls that went out without it."""
    answer = api.get(of(LOSSY, "why"), q="LINE 7 of")
    (found, *_) = answer["sightings"]
    assert found["role"] == "assistant"
    assert {"text": "line 7 of", "is_match": True} in found["excerpt"]
    assert (found["action"], found["state"]) == ("summarize", "summarised")
    assert found["since_version"] > 0
    assert found["since_at"] > 1e9
    assert found["by"] == "summarize"
    assert "messages" in found["reason"]
    assert answer["verdict"]["is_in_prompt"] == bool(answer["verdict"]["count"])
    nothing = api.get(of(LOSSY, "why"), q="never said")
    assert (nothing["is_known"], nothing["sightings_total"], nothing["sightings"]) == (False, 0, [])
    assert (nothing["verdict"]["count"], nothing["calls"]["without"]) == (0, 0)


@pytest.mark.parametrize("session_id", [BUSY, UNDONE, INJECTED, EDITED, HOSTILE])
def test_a_phrase_of_the_newest_prompt_is_never_denied(api: Running, session_id: str) -> None:
    """Every message of the newest call, as its page shows it: three words of each are found, as often as they stand."""
    number = api.get(of(session_id))["calls"][-1]["number"]
    slots = api.get(of(session_id, "calls", str(number)), limit=1000)["slots"]
    checked = 0
    for slot in slots[:: max(1, len(slots) // 12)]:
        words = slot["text"].split()
        phrase = " ".join(words[len(words) // 2 :][:3])
        if not phrase or len(slot["text"]) >= 20_000:
            continue
        answer = api.get(of(session_id, "why"), q=phrase)
        assert answer["verdict"]["newest_call_count"] == sum(_count(slot, phrase) for slot in slots), phrase
        assert answer["verdict"]["newest_call_count"] > 0
        checked += 1
    assert checked > 3


def _count(slot: dict[str, Any], phrase: str) -> int:
    """How often the words stand in a message; in a summary also where a quotation goes on in the next line."""
    texts = [slot["text"], *(call[key] for call in slot["tool_calls"] for key in ("name", "arguments"))]
    counts = [" ".join(text.split()).casefold().count(phrase.casefold()) for text in texts]
    if slot["part"] == "summary" and not any(counts):
        counts = [" ".join(slot["text"].replace("\n| ", "\n").split()).casefold().count(phrase.casefold())]
    return sum(counts)


def test_messages_with_a_phrase_come_in_pages(api: Running) -> None:
    """The total counts all, whatever the page has."""
    whole = api.get(of(BUSY, "why"), q="order", limit=1000)
    page = api.get(of(BUSY, "why"), q="order", offset=3, limit=2)
    assert page["sightings"] == whole["sightings"][3:5]
    assert page["sightings_total"] == whole["sightings_total"] == len(whole["sightings"]) > 5
    assert page["verdict"]["count"] == whole["verdict"]["count"]


# -- changes ------------------------------------------------------------------------------------------------------


def test_a_compaction_can_be_taken_back(own: Running, own_url: str) -> None:
    before = own.get(of(BUSY))
    answer = own.post(of(BUSY, "undo"), {"version": before["plan_version"]})
    assert answer.status_code == 200
    after = own.get(of(BUSY))
    assert answer.json()["plan_version"] == after["plan_version"] == before["plan_version"] + 1
    assert after["plans"][-1]["restored_from"] == before["plan_version"] - 1
    assert answer.json()["tokens"] > before["calls"][-1]["tokens"]
    with seeding.manager_on(own_url) as manager:
        assert manager.current_plan(BUSY).held


def test_any_version_can_be_brought_back(own: Running) -> None:
    answer = own.post(of(BUSY, "restore"), {"version": 0, "from": own.get(of(BUSY))["plan_version"]})
    assert answer.status_code == 200
    newest = own.get(of(BUSY))["plan_version"]
    page = own.get(of(BUSY, "plans", newest), only="all", limit=1000)
    assert {row["after"]["action"] for row in page["rows"]} == {"include"}
    actions = {row["action"] for row in own.get(of(BUSY, "messages"), limit=1000)["messages"]}
    assert actions == {"include"}


@pytest.mark.parametrize(
    "body", [{"version": -1}, {"version": "1"}, {"version": True}, {"version": 1.5}, {}, [], {"version": 10**20}]
)
def test_a_version_that_is_none_is_refused(own: Running, body: object) -> None:
    assert own.post(of(BUSY, "undo"), body).status_code == 400
    assert own.post(of(BUSY, "restore"), body).status_code == 400
    sent = {**body, "from": 1} if isinstance(body, dict) else body
    assert own.post(of(BUSY, "restore"), sent).status_code == 400


def test_only_what_was_seen_is_taken_back(own: Running, own_url: str) -> None:
    """Between the question and the answer another plan came into force: that one was not meant."""
    seen = own.get(of(BUSY))["plan_version"]
    with seeding.manager_on(own_url) as manager:
        now = manager.restore(BUSY, 1).version
    for path, body in (("undo", {"version": seen}), ("restore", {"version": 0, "from": seen})):
        answer = own.post(of(BUSY, path), body)
        assert answer.status_code == 409
        assert answer.json()["error"] == f"plan v{now} is in force by now, not v{seen}: nothing was changed"
    assert own.get(of(BUSY))["plan_version"] == now
    assert own.post(of(BUSY, "undo"), {"version": now}).status_code == 200


def test_a_version_that_never_was_is_refused(own: Running) -> None:
    answer = own.post(of(BUSY, "restore"), {"version": 99, "from": own.get(of(BUSY))["plan_version"]})
    assert answer.status_code == 400
    assert answer.json()["hint"].startswith("its versions are 0 to ")


def test_a_viewer_may_only_read(own_url: str) -> None:
    with running(own_url, is_read_only=True) as viewer:
        assert viewer.get("/api/meta")["read_only"] is True
        assert viewer.post(of(BUSY, "undo"), {}).status_code == 403
        assert viewer.post(of(BUSY, "restore"), {"version": 0}).status_code == 403


def test_the_page_is_told_about_itself(api: Running) -> None:
    meta = api.get("/api/meta")
    assert (meta["state"], meta["read_only"]) == ("sqlite", False)
    assert abs(meta["now"] - time.time()) < 60
    assert "state.db" not in str(meta)


# -- numbers ------------------------------------------------------------------------------------------------------


def test_metrics_count_events_once_and_survive_anything(own: Running) -> None:
    done = {"event": "compact.error", "session_id": "s", "error_type": "Boom", "message": "", "fallback": ""}
    own.send(span(1, data=done))
    own.send(span(1, data=done), span(2, data=done))
    own.send(span(3, data={"event": "compact.completed"}), span(4, data={"event": "else"}), span(5, data={"event": []}))
    answer = own.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'compact_errors_total{error_type="Boom"} 2' in lines
    assert "compact_viewer_events_received_total 6" in lines
    assert "compact_viewer_events_unreadable_total 1" in lines


def test_metrics_stay_small_whatever_is_sent(own: Running) -> None:
    """Names that are not ours are not counted, long texts are cut, and no number is too large to be shown."""
    failed = {"event": "compact.error", "error_type": "B" * 5_000, "message": "", "fallback": ""}
    own.send(span(1, data={**failed, "session_id": "t" * 1_500}), span(2, data={"event": "compact.made_up"}))
    large = {"message_count": 1, "tokens_before": 10**400, "tokens_after": 1}
    own.send(span(3, data={"event": "compact.content_cleared", "session_id": "s", **large}))
    text = own.client.get("/metrics").text
    assert "made_up" not in text
    assert 'error_type="' + "B" * 200 + '"} 1' in text
    assert "compact_viewer_events_unreadable_total 1" in text
    assert [len(session) for session in own.app.state.live.metrics.collector.sessions()] == [200]


def test_the_page_of_one_session_does_not_read_the_list_of_all(own_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = DataSource(CompactConfig(state={"url": own_url}, storage={"adapter": "none"}))
    (first, *_) = source.sessions()
    monkeypatch.setattr(source.manager, "sessions", lambda: pytest.fail("read the list of all sessions"))
    assert source.info(first.session_id) == first
    assert session_page(source, first.session_id)["id"] == first.session_id
    with pytest.raises(UnknownSession):
        source.info("nobody")
    source.close()
