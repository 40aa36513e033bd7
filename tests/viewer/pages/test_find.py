"""Calls by their number, messages by a filter, prompts and logs as files, and what an undo comes to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialect_conversations as wire
from compact.core.audit.records import Commit
from compact.testing import user
from compact.testing.store_samples import sample_call
from compact.viewer.pages import session as session_pages
from made_once import copied_store
from viewer import seeding
from viewer.seeding import BUSY, EDITED, HOSTILE, INJECTED, ODD_ID, QUIET, UNDONE
from viewer.serving import Running, part, running


def of(session: str, *more: object) -> str:
    return "/".join(["/api/sessions", part(session), *(part(str(piece)) for piece in more)])


# -- calls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [QUIET, BUSY, EDITED, ODD_ID])
def test_the_calls_of_a_session_are_numbered_from_one(api: Running, session: str) -> None:
    page = api.get(of(session))
    assert [call["number"] for call in page["calls"]] == list(range(1, page["calls_total"] + 1))
    third = api.get(of(session, "calls", 3))
    assert (third["number"], third["calls_total"]) == (3, page["calls_total"])
    assert third["listed"] == page["calls"][2]
    assert api.client.get(of(session, "calls", page["calls_total"] + 1)).status_code == 404
    assert api.client.get(of(session, "calls", 0)).status_code == 404


def test_calls_are_paged_and_none_is_dropped(api: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_pages, "CALLS_PER_PAGE", 10)
    total = api.get(of(BUSY))["calls_total"]
    assert total > 30
    newest = api.get(of(BUSY))["calls"]
    assert [call["number"] for call in newest] == list(range(total - 9, total + 1))
    earlier = api.get(of(BUSY), until=total - 10)["calls"]
    assert [call["number"] for call in earlier] == list(range(total - 19, total - 9))
    assert [call["number"] for call in api.get(of(BUSY), until=4)["calls"]] == [1, 2, 3, 4]
    listed: list[int] = []
    while len(listed) < total:
        page = api.get(of(BUSY, "calls"), offset=len(listed), limit=17)
        assert page["total"] == total
        listed += [call["number"] for call in page["calls"]]
    assert listed == list(range(total, 0, -1))


def test_a_session_of_many_calls_is_whole(own: Running) -> None:
    store = own.app.state.source.store
    head = store.head(QUIET)
    for _ in range(2_100):
        store.commit(
            Commit(session_id=QUIET, expected=head, call=sample_call(last_seq=2, limits={"window": 9, "trigger": 8}))
        )
    page = own.get(of(QUIET))
    assert page["calls_total"] > 2_100
    assert own.get(of(QUIET), until=5)["calls"][0]["number"] == 1
    assert own.get(of(QUIET, "calls", 57))["number"] == 57


# -- messages -----------------------------------------------------------------------------------------------------


def whole_log(api: Running, session: str) -> list[dict[str, Any]]:
    return api.get(of(session, "messages"), limit=1000)["messages"]


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ({"role": "tool"}, lambda row: row["role"] == "tool"),
        ({"tool": "grep"}, lambda row: row["tool"] == "grep"),
        ({"action": "summarize"}, lambda row: row["action"] == "summarize"),
        ({"role": "user", "action": "include"}, lambda row: (row["role"], row["action"]) == ("user", "include")),
        ({"q": "ord-4003"}, lambda row: "ORD-4003" in row["preview"]),
        ({"q": "never said by anybody"}, lambda row: False),
    ],
)
def test_messages_are_filtered(api: Running, query: dict[str, str], fits: Callable[[dict[str, Any]], bool]) -> None:
    log = whole_log(api, BUSY)
    page = api.get(of(BUSY, "messages"), limit=1000, **query)
    assert page["messages"] == [row for row in log if fits(row)]
    assert (page["total"], page["log_total"]) == (len(page["messages"]), len(log))
    second = api.get(of(BUSY, "messages"), offset=1, limit=2, **query)
    assert second["messages"] == page["messages"][1:3]


def test_words_are_found_in_what_a_row_does_not_show(api: Running) -> None:
    found = api.get(of(BUSY, "messages"), q="value_0_19 = round(")["messages"]
    assert len(found) == 1
    assert "value_0_19" not in found[0]["preview"]
    assert api.get(of(BUSY, "messages"), q='"line": 7')["messages"][0]["role"] == "assistant", "in arguments, too"


def test_a_log_says_what_it_can_be_filtered_by(api: Running) -> None:
    facets = api.get(of(BUSY, "facets"))
    log = whole_log(api, BUSY)
    for name in ("role", "tool", "action"):
        counted = {value: sum(row[name] == value for row in log) for value in {row[name] for row in log} - {""}}
        assert facets[name] == counted
    assert set(facets["tool"]) == {"read_file", "run_tests", "grep", "write_file"}


def test_a_long_log_is_filtered_in_time(long_one: Running) -> None:
    started = time.monotonic()
    page = long_one.get(of(seeding.LONG, "messages"), q="ORD-4999", limit=10)
    assert time.monotonic() - started < 10
    assert page["log_total"] == 10_000
    assert page["total"] >= 1


def test_a_message_comes_with_what_its_caller_sent(api: Running) -> None:
    row = next(row for row in whole_log(api, BUSY) if row["tool"] == "grep" and row["role"] == "tool")
    raw = api.get(of(BUSY, "messages", row["id"]))["raw"]
    assert set(raw) == {"role", "tool_call_id", "content"}
    assert raw["content"].startswith(row["preview"])


# -- files --------------------------------------------------------------------------------------------------------


def test_a_log_is_exported_without_secrets(own: Running, own_url: str) -> None:
    key = "sk-proj-" + "A1b2C3d4" * 6
    odd = 'a "name"/../\r\nX-Evil: 1'
    with seeding.manager_on(own_url) as manager:
        manager.preflight(odd, [user(f"the key is {key}"), user("two")])
    answer = own.client.get(of(odd, "export"))
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["role"] for line in lines] == ["user", "user"]
    assert key not in answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="a-name-X-Evil-1.jsonl"'
    assert "x-evil" not in answer.headers
    log = whole_log(own, BUSY)
    exported = own.client.get(of(BUSY, "export")).text.splitlines()
    assert len(exported) == len(log)
    assert own.client.get(of("nobody", "export")).status_code == 404


@pytest.fixture(scope="module")
def sent(sessions_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, list[Any]]]:
    """A store with sessions in other dialects, too, and every prompt that went out while it was written."""
    url = copied_store(sessions_folder, tmp_path_factory.mktemp("sent"))
    with seeding.noting_prompts() as prompts, seeding.manager_on(url, window_tokens=4_000) as manager:
        for name in ("responses", "anthropic", "gemini"):
            items = getattr(wire, name)(steps())
            for length in (len(items) // 2, len(items)):
                manager.preflight(name, items[:length], dialect=name)
    return url, {**json.loads((sessions_folder / seeding.PROMPTS).read_text(encoding="utf-8")), **prompts}


def steps() -> list[wire.Step]:
    """A conversation with thoughts, calls and results, long enough to be compacted."""
    found: list[wire.Step] = []
    for number in range(30):
        call = wire.Call(f"call_{number}", "read_file", {"path": f"src/{number}.py"}, f"line {number} " * 60)
        found += [wire.Step("user", f"look at {number}", number=2 * number)]
        found += [wire.Step("model", f"done with {number}", (call,), thinks="let me see", number=2 * number + 1)]
    return found


@pytest.mark.parametrize("session", [BUSY, UNDONE, INJECTED, EDITED, HOSTILE])
def test_a_prompt_is_taken_away_as_it_was_sent(sent: tuple[str, dict[str, list[Any]]], session: str) -> None:
    url, prompts = sent
    with running(url) as viewer:
        for number, prompt in list(enumerate(prompts[session], 1))[::7]:
            assert viewer.get(of(session, "calls", number, "prompt")) == {"messages": prompt}


@pytest.mark.parametrize(
    ("session", "field"), [("responses", "input"), ("anthropic", "messages"), ("gemini", "contents")]
)
def test_a_prompt_is_taken_away_in_its_own_wire_form(
    sent: tuple[str, dict[str, list[Any]]], session: str, field: str
) -> None:
    url, prompts = sent
    with running(url) as viewer:
        assert viewer.get(of(session))["plan_version"] > 0, "one of them was compacted"
        for number, prompt in enumerate(prompts[session], 1):
            assert viewer.get(of(session, "calls", number, "prompt")) == {field: prompt}
        named = viewer.get(of(session, "calls", 1, "prompt"), form=session)
        assert named == {field: prompts[session][0]}
        assert viewer.client.get(of(session, "calls", 1, "prompt"), params={"form": "morse"}).status_code == 400


# -- undo ---------------------------------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "abcdef"]


def test_an_undo_says_what_will_really_be_there(own: Running, own_url: str) -> None:
    """The figure is that of the next call with the same history, whatever the log has grown to meanwhile."""
    said = own.get(of(UNDONE, "restore"), version=2)
    done = own.post(of(UNDONE, "restore"), {"version": 2, "from": said["from"]}).json()
    assert done["tokens"] == said["tokens"]
    with seeding.manager_on(own_url) as manager:
        history = [message.original for message in manager.history(UNDONE)]
        manager.preflight(UNDONE, history)
        call, version = manager.model_calls(UNDONE)[-1], manager.current_plan(UNDONE).version
    assert said["compacts_again"] is (version > done["plan_version"])
    if not said["compacts_again"]:
        assert call.tokens_estimated == said["tokens"]


def test_what_is_sent_beside_the_messages_counts(own: Running, own_url: str) -> None:
    said = own.get(of(BUSY, "restore"), version=own.get(of(BUSY))["plan_version"] - 1)
    assert said["tokens"] > said["tokens_now"]
    with seeding.manager_on(own_url) as manager:
        history = [message.original for message in manager.history(BUSY)]
        manager.preflight(BUSY, history, tools=TOOLS, instructions="Follow the house rules. " * 20)
        now = manager.model_calls(BUSY)[-1]
    if now.plan_version == said["from"]:
        assert now.tokens_estimated == said["tokens_now"]


def test_who_would_be_compacted_again_is_warned(own: Running, own_url: str) -> None:
    said = own.get(of(BUSY, "restore"), version=0)
    assert said["tokens"] > said["ceiling"]
    assert said["compacts_again"] is True
    done = own.post(of(BUSY, "restore"), {"version": 0, "from": said["from"]}).json()
    with seeding.manager_on(own_url) as manager:
        history = [message.original for message in manager.history(BUSY)]
        manager.preflight(BUSY, history, tools=TOOLS, instructions="Follow the house rules. " * 20)
        assert manager.current_plan(BUSY).version > done["plan_version"]


def test_there_is_nothing_to_undo_without_a_compaction(own: Running) -> None:
    answer = own.client.get(of(QUIET, "restore"))
    assert (answer.status_code, "none to undo" in answer.json()["error"]) == (409, True)
    assert own.client.get(of("nobody", "restore")).status_code == 404
    assert own.client.get(of(BUSY, "restore"), params={"version": 99}).status_code == 404
    assert own.get(of(BUSY))["plan_version"] == own.get(of(BUSY, "restore"))["from"], "asking changes nothing"
