"""What happens while the page is open: news, pauses, a server that goes away, plans taken back."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from viewer import seeding
from viewer.serving import Running, part, running, span

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)
_log = logging.getLogger(__name__)

COMMAND = Path(sys.executable).parent / "compact"
# What an agent in another process does; its arguments are the store, the session and how many turns.
AGENT = """
import sys
from viewer import seeding
url, session, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
with seeding.manager_on(url) as manager:
    seeding.run_agent(manager, session, seeding.work(turns))
"""


def run_agent_elsewhere(url: str, session_id: str, turns: int) -> None:
    """Let an agent in another process write to the store."""
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", AGENT, url, session_id, str(turns)], cwd=tests, timeout=120, check=False
    )
    assert done.returncode == 0


def is_live(page: Page) -> None:
    expect(page.locator(".live")).to_have_class("live is-on")


# -- news ---------------------------------------------------------------------------------------------------------


def test_a_session_of_another_process_appears_by_itself(own: Running, own_url: str, look: Callable[..., Look]) -> None:
    """The list and the open session follow what is written to the store, without a reload."""
    window = look(own)
    page = window.go()
    is_live(page)
    page.evaluate("window.isStillTheSame = true")
    run_agent_elsewhere(own_url, "newcomer", 2)
    expect(page.locator(".session-row").first).to_contain_text("newcomer")
    page.locator(".session-row").first.click()
    expect(page.locator(".readout b")).to_be_visible()
    before = len(own.get("/api/sessions/newcomer")["calls"])
    run_agent_elsewhere(own_url, "newcomer", 12)
    after = own.get("/api/sessions/newcomer")
    assert len(after["calls"]) > before
    expect(page.locator(".readout b")).to_have_text(f"Call #{after['calls'][-1]['number']}")
    expect(page.locator(".mark")).to_have_count(len(after["plans"]))
    assert page.evaluate("window.isStillTheSame")


def test_pause_holds_the_page_still_and_counts_what_waits(own: Running, look: Callable[..., Look]) -> None:
    """Space pauses; what arrives meanwhile is counted, and shown when it goes on."""
    window = look(own)
    page = window.go("traces")
    is_live(page)
    known = len(seeding.SESSIONS)
    own.send(span(1, trace_id="one"))
    expect(page.locator(".trace-row")).to_have_count(known + 1)
    page.keyboard.press("Space")
    expect(page.locator(".live")).to_have_text("Paused")
    own.send(span(2, trace_id="two"), span(3, trace_id="two"), span(4, trace_id="three"))
    expect(page.locator(".live")).to_contain_text("waiting")
    expect(page.locator(".trace-row")).to_have_count(known + 1)
    page.keyboard.press("Space")
    expect(page.locator(".trace-row")).to_have_count(known + 3)
    is_live(page)
    page.reload()
    expect(page.locator(".trace-row")).to_have_count(known + 3)


def test_a_server_that_went_away_is_told_and_found_again(
    look: Callable[..., Look], own_url: str, tmp_path: Path
) -> None:
    """A banner says that what is shown may be old; when the server is back, the page catches up by itself."""
    first, port = start_command(own_url, tmp_path, 0)
    window = look(f"http://127.0.0.1:{port}")
    window.expected += [
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED",
        "ERR_CONNECTION_RESET",
        "ERR_EMPTY_RESPONSE",
    ]
    page = window.go()
    is_live(page)
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS))
    end(first)
    expect(page.locator("#banner")).to_contain_text("Reconnecting")
    expect(page.locator("#banner")).to_contain_text("does not answer. Is compact view still running?")
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS))
    with seeding.manager_on(own_url) as manager:
        seeding.run_agent(manager, "meanwhile", seeding.work(1))
    again, _ = start_command(own_url, tmp_path, port)
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator(".session-row").first).to_contain_text("meanwhile")
    page.locator(".session-row").first.click()
    expect(page.locator(".timeline")).to_be_visible()
    end(again)


def test_a_page_without_its_token_says_so(tmp_path: Path, look: Callable[..., Look]) -> None:
    """The server is there, and it is not the network that one has to look at."""
    with running(f"sqlite:///{tmp_path / 'state.db'}", token="a-token-of-many-characters") as viewer:
        window = look(viewer)
        window.expected += ["401", "ERR_", "Failed to load"]
        page = window.go()
        expect(page.locator("h1")).to_have_text("This viewer needs its token")
        page.goto("about:blank")


def test_a_session_that_is_deleted_leaves_the_list(own: Running, own_url: str, look: Callable[..., Look]) -> None:
    page = look(own).go()
    is_live(page)
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS))
    with seeding.manager_on(own_url) as manager:
        manager.delete(seeding.BUSY)
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS) - 1)


def start_command(url: str, folder: Path, port: int) -> tuple[subprocess.Popen[str], int]:
    """Run `compact view` and wait until it tells its address."""
    arguments = ["view", "--no-open", "--port", str(port), "--store", url]
    process = subprocess.Popen([COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = process.stdout.readline()
    assert "http://" in told, told
    return process, int(told.split("127.0.0.1:")[1].split("/")[0].split("#")[0].strip())


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(30)
    assert process.stdout is not None
    process.stdout.close()


# -- plans taken back ---------------------------------------------------------------------------------------------


def test_undo_says_what_will_happen_and_asks_first(own: Running, look: Callable[..., Look]) -> None:
    """Nothing changes until it is confirmed; then another plan is in force, and the page shows it."""
    before = own.get(f"/api/sessions/{seeding.BUSY}")
    current = next(plan for plan in before["plans"] if plan["is_current"])
    window = look(own)
    page = window.go("s", seeding.BUSY)
    page.get_by_role("button", name="Undo compaction").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text(f"plan v{current['version']} will no longer be in force")
    expect(dialog).to_contain_text("The prompt goes from")
    expect(dialog).to_contain_text("The log does not change")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert own.get(f"/api/sessions/{seeding.BUSY}")["plan_version"] == before["plan_version"]
    page.get_by_role("button", name="Undo compaction").click()
    dialog.get_by_role("button", name="Undo compaction").click()
    expect(page.locator(".toast")).to_contain_text("Undone")
    after = own.get(f"/api/sessions/{seeding.BUSY}")
    assert after["plan_version"] == before["plan_version"] + 1
    expect(page.locator(".plan-card.is-current")).to_contain_text(f"v{after['plan_version']}")


def test_restore_brings_an_older_plan_back(own: Running, look: Callable[..., Look]) -> None:
    """From the card of a plan, with the same question before it."""
    window = look(own)
    page = window.go("s", seeding.BUSY)
    page.locator("[data-restore='3']").click()
    expect(page.locator("dialog")).to_contain_text("content of v3")
    page.get_by_role("button", name="Restore v3").click()
    expect(page.locator(".toast")).to_contain_text("Restored")
    expect(page.locator(".plan-card.is-current")).to_contain_text("restores v3")
    current = next(plan for plan in own.get(f"/api/sessions/{seeding.BUSY}")["plans"] if plan["is_current"])
    assert current["restored_from"] == 3


def test_a_refused_undo_is_told_in_the_dialog(own: Running, look: Callable[..., Look]) -> None:
    """The reason stands where it was asked, and the dialog stays open."""
    window = look(own)
    window.expected += ["409", "400", "403", "404"]
    page = window.go("s", seeding.BUSY)
    page.route("**/undo", lambda route: route.fulfill(status=409, json={"error": "it moved on", "hint": "look again"}))
    page.get_by_role("button", name="Undo compaction").click()
    page.locator("dialog [data-confirm]").click()
    expect(page.locator(".dialog-error")).to_have_text("it moved onlook again")
    expect(page.locator("dialog [data-confirm]")).to_be_enabled()


def test_an_undo_that_was_not_meant_is_refused(own: Running, own_url: str, look: Callable[..., Look]) -> None:
    """While the question stood there, another plan came into force."""
    window = look(own)
    window.expected += ["409"]
    page = window.go("s", seeding.BUSY)
    page.get_by_role("button", name="Undo compaction").click()
    with seeding.manager_on(own_url) as manager:
        now = manager.restore(seeding.BUSY, 1).version
    page.locator("dialog [data-confirm]").click()
    expect(page.locator(".dialog-error")).to_contain_text(f"plan v{now} is in force by now")
    assert own.get(f"/api/sessions/{seeding.BUSY}")["plan_version"] == now


# -- traces -------------------------------------------------------------------------------------------------------


def at(second: float) -> str:
    return f"2026-01-01T10:00:{second:06.3f}Z"


def trace_events() -> list[dict[str, Any]]:
    """A turn with a summary inside it, an error, and something that goes on."""
    story = {"output": "The story so far.", "session_id": seeding.BUSY, "tokens": 1234}
    return [
        {"type": "trace", "trace_id": "turn", "name": "turn 7", "group_id": seeding.BUSY, "started_at": at(0)},
        span(1, trace_id="turn", span_id="root", name="turn", started_at=at(0), ended_at=at(4)),
        span(
            2,
            trace_id="turn",
            span_id="sum",
            parent_id="root",
            name="summary",
            started_at=at(1),
            ended_at=at(3),
            data=story,
        ),
        span(
            3,
            trace_id="turn",
            span_id="bad",
            parent_id="sum",
            name="archive",
            started_at=at(2),
            ended_at=at(3),
            status="error",
        ),
    ]


def test_a_trace_is_a_tree_with_bars_to_scale(own: Running, look: Callable[..., Look]) -> None:
    """Spans nest under their parents; a bar begins and ends where its span does; errors have a shape of their own."""
    own.send(*trace_events())
    window = look(own)
    page = window.go("t", "turn")
    expect(page.locator(".span-row")).to_have_count(3)
    assert [row.get_attribute("aria-level") for row in page.locator(".span-row").all()] == ["1", "2", "3"]
    track = page.locator(".track").nth(1).bounding_box()
    bar = page.locator(".span-bar").nth(1).bounding_box()
    assert track is not None
    assert bar is not None
    assert bar["x"] - track["x"] == pytest.approx(track["width"] / 4, abs=2)
    assert bar["width"] == pytest.approx(track["width"] / 2, abs=2)
    expect(page.locator(".span-row.is-error .span-bar.is-error")).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".span-row")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".span-row")).to_have_count(3)


def test_bars_are_to_the_scale_of_their_operation(own: Running, look: Callable[..., Look]) -> None:
    """Hours lie between two operations of a session; what takes a second is seen in both."""
    later = {"started_at": "2026-01-01T19:00:00Z", "ended_at": "2026-01-01T19:00:02Z"}
    half = {"started_at": "2026-01-01T19:00:01Z", "ended_at": "2026-01-01T19:00:02Z"}
    own.send(*trace_events(), span(5, trace_id="turn", span_id="next", **later))
    own.send(span(6, trace_id="turn", span_id="half", parent_id="next", **half))
    page = look(own).go("t", "turn")
    expect(page.locator(".span-row")).to_have_count(5)
    tracks = [box.bounding_box() for box in page.locator(".track").all()]
    bars = [box.bounding_box() for box in page.locator(".span-bar").all()]
    shares = [bar["width"] / track["width"] for bar, track in zip(bars, tracks, strict=True) if bar and track]
    assert shares == pytest.approx([1, 1 / 2, 1 / 4, 1, 1 / 2], abs=0.02)


def test_payloads_are_covered_until_they_are_revealed(own: Running, look: Callable[..., Look]) -> None:
    """Response, properties and the raw span, only after a click; then for every span."""
    own.send(*trace_events())
    window = look(own)
    page = window.go("t", "turn")
    page.locator(".span-row").nth(1).click()
    expect(page.locator(".inspector h2")).to_have_text("summary")
    expect(page.locator(".inspector")).not_to_contain_text("The story so far.")
    page.locator("[data-reveal]").click()
    expect(page.locator(".inspector pre")).to_have_text("The story so far.")
    page.get_by_role("tab", name="Properties").click()
    expect(page.locator(".props")).to_contain_text("1234")
    page.get_by_role("tab", name="Raw").click()
    raw = json.loads(page.locator(".inspector pre").text_content() or "")
    assert raw["span_id"] == "sum"
    page.get_by_role("button", name="Hide content").click()
    expect(page.locator(".inspector pre")).to_have_count(0)


def test_spans_arrive_in_an_open_trace(own: Running, look: Callable[..., Look]) -> None:
    """A new span shows within moments, an open one closes when it is sent again, and nothing is lost by a reload."""
    own.send(*trace_events())
    window = look(own)
    page = window.go("t", "turn")
    is_live(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    going = span(4, trace_id="turn", span_id="late", parent_id="root", name="late one", started_at=at(3))
    del going["ended_at"]
    sent = time.monotonic()
    own.send(going)
    late = page.locator(".span-row", has_text="late one")
    expect(late).to_have_class("vrow span-row is-open")
    _log.info("a span was seen %.2f s after it was sent", time.monotonic() - sent)
    own.send({**going, "ended_at": at(4)})
    expect(late.locator(".took")).to_have_text("1.00 s")
    assert not [url for url in asked if "/api/traces" in url], "news bring all there is to know"
    page.reload()
    expect(page.locator(".span-row")).to_have_count(4)


def test_a_session_lists_its_own_traces(own: Running, look: Callable[..., Look]) -> None:
    """The tab of a session shows what was traced of it, and a trace leads back to the session."""
    own.send(*trace_events(), span(9, trace_id="other"))
    window = look(own)
    page = window.go("s", seeding.BUSY, "traces")
    expect(page.locator(".trace-row")).to_have_count(2)
    page.locator(".trace-row", has_text="turn 7").click()
    page.get_by_role("link", name="Session", exact=True).click()
    expect(page.locator("h1")).to_have_text(seeding.BUSY)
    assert page.url.endswith(f"#/s/{part(seeding.BUSY)}")
