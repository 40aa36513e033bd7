"""What failed is said to have failed, in red, wherever a compaction is shown; and what was done instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from compact.cli.main import main
from viewer import seeding
from viewer.serving import Running, running, until

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)
FAILED = "The summary failed: a summary by code replaces the messages."


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of a session whose summaries failed, one that kept its prompts for it, and one without a failure."""
    url = f"sqlite:///{tmp_path_factory.mktemp('failing') / 'state.db'}"
    seeding.seed_failing(url)
    seeding.seed_failing(url, on_failure="keep", session_id="keeping")
    seeding._quiet(url, seeding.WINDOW_TOKENS)
    with running(url) as viewer:
        yield viewer


@pytest.fixture
def window(look: Callable[..., Look], api: Running) -> Look:
    """A window of the usual size."""
    return look(api)


def is_red(look: Look, selector: str) -> bool:
    """Return whether something is written, or painted, in the colour of errors."""
    script = """([selector]) => {
      const probe = document.body.appendChild(document.createElement("span"));
      probe.style.setProperty("color", "var(--bad)");
      const bad = getComputedStyle(probe).color;
      probe.remove();
      const style = getComputedStyle(document.querySelector(selector));
      return style.color === bad || style.backgroundColor === bad;
    }"""
    return look.page.evaluate(script, [selector])


def test_the_page_of_the_compaction_says_what_failed(window: Look, api: Running) -> None:
    page = window.go("s", "failing", "p", 1)
    expect(page.locator(".failure")).to_contain_text(FAILED)
    expect(page.locator(".failure")).to_contain_text("SummarizerUnavailable: the model answered 500")
    assert is_red(window, ".failure")
    expect(page.locator(".page-head .badge.is-error")).to_have_text("summary failed")
    summary = page.locator("section[aria-label=Summary]")
    expect(summary).to_contain_text("In place of a summary")
    expect(summary).to_contain_text("gpt-4o-mini wrote no summary")
    expect(summary).not_to_contain_text("verified")
    expect(page.locator(".diff-card")).to_contain_text("a summary by code replaces it: the summary failed")
    expect(page.locator(".diff-card")).not_to_contain_text("the summary stands for it")
    expect(page.locator("section[aria-label=Price]")).to_contain_text("for attempts at a summary")


def test_the_timeline_and_the_cards_say_it(window: Look, api: Running) -> None:
    page = window.go("s", "failing")
    mark = page.locator(".mark").first
    assert "the summary failed (SummarizerUnavailable: the model answered 500" in (mark.get_attribute("title") or "")
    assert is_red(window, ".mark.is-failed .mark-flag")
    expect(page.locator(".plan-card").last.locator(".badge.is-error")).to_have_text("summary failed")
    expect(page.locator(".plan-card").last).to_contain_text("a summary by code replaces the messages")


def test_the_list_says_it_and_finds_it(window: Look, api: Running) -> None:
    until(lambda: all(row["cost"] for row in api.get("/api/sessions")["sessions"]))
    page = window.go()
    rows = page.locator(".session-row")
    expect(rows.filter(has_text="failing").locator(".badge.is-error")).to_contain_text("failure")
    expect(rows.filter(has_text=seeding.QUIET).locator(".badge.is-error")).to_have_count(0)
    page.get_by_role("radio", name="With errors").click()
    expect(rows).to_have_count(2)


def test_a_prompt_that_was_kept_says_why(window: Look, api: Running) -> None:
    """With `on_failure: keep` there is no plan to tell it: the call does."""
    failed = [call for call in api.get("/api/sessions/keeping")["calls"] if call["failures"]]
    assert failed
    assert failed[0]["plan_version"] == 0
    page = window.go("s", "keeping", "c", failed[0]["number"])
    expect(page.locator(".failure")).to_contain_text("nothing was compacted: the prompt stayed as it was")


def test_each_failure_is_told_once(api: Running) -> None:
    session = api.get("/api/sessions/failing")
    assert all(plan["failures"] for plan in session["plans"])
    assert not any(call["failures"] for call in session["calls"]), "what the plan tells, its call does not repeat"
    assert all(not plan["cost"]["usd_summary"] for plan in session["plans"]), "nobody was paid"


def test_the_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    seeding.seed_failing(url)
    for command in (("show", "failing"), ("report", "failing"), ("show", "failing", "--plan", "1")):
        assert main([*command, "--store", url]) == 0
        out = capsys.readouterr().out
        assert "the summary failed (Summarizer" in out, command
        assert "a summary by code replaces the messages" in out, command
