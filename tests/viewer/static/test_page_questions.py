"""What people ask, answered with at most two clicks from the list; and how two prompts, and a trace, are reached."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from viewer import seeding
from viewer.serving import Running, running

if TYPE_CHECKING:
    from pathlib import Path

    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)
BUSY = seeding.BUSY


@pytest.fixture
def page(api: Running, look: Callable[..., Look]) -> Page:
    """The list, of which one session has been opened: the first click."""
    page = look(api).go()
    page.locator(".session-row", has=page.get_by_text(BUSY, exact=True)).click()
    expect(page.locator("h1")).to_have_text(BUSY)
    return page


def test_what_was_removed_at_compaction_3_and_why(page: Page, api: Running) -> None:
    page.locator(".mark").nth(2).click()
    expect(page.locator("h1")).to_have_text("Compaction v3")
    plan = api.get(f"/api/sessions/{BUSY}/plans/3")
    card = page.locator("section[aria-label='Message by message']")
    expect(card).to_contain_text(f"{plan['changed_total']} messages")
    first = card.locator(".diff-row").first
    expect(first).to_contain_text(plan["rows"][0]["preview"].split("\n")[0][:40])
    expect(first.locator(".diff-why")).to_have_text(f"{plan['rows'][0]['by']}: {plan['rows'][0]['reason']}")


def test_what_the_model_saw_at_call_57(page: Page, api: Running) -> None:
    page.get_by_label(re.compile("^Go to a call")).first.fill("57")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Call #57")
    call = api.get(f"/api/sessions/{BUSY}/calls/57", limit=1_000)
    expect(page.locator("#view")).to_contain_text(f"{call['tokens']:,}")
    last = call["slots"][0]
    expect(page.locator(".slot").first).to_contain_text(last["text"][:60])


def test_where_a_phrase_is_now(page: Page, api: Running) -> None:
    page.get_by_role("link", name="Why", exact=True).click()
    page.get_by_role("searchbox").fill("cart")
    calls = api.get(f"/api/sessions/{BUSY}")["calls_total"]
    newest = api.get(f"/api/sessions/{BUSY}/calls/{calls}", limit=1_000)["slots"]
    texts = [text for slot in newest for text in (slot["text"], *(call["arguments"] for call in slot["tool_calls"]))]
    times = sum(text.count("cart") for text in texts)
    expect(page.locator(".verdict h2")).to_have_text(f"In the newest prompt, {times} times")


def test_what_it_cost_and_saved(page: Page, api: Running) -> None:
    """With one click; the list has both, too."""
    cost = api.get(f"/api/sessions/{BUSY}")["cost"]
    card = page.locator("section[aria-label=Cost]")
    for dollars in (cost["usd"], cost["usd_uncompacted"], cost["usd_saved"]):
        expect(card).to_contain_text(f"${dollars:.2f}")
    page.get_by_role("link", name="Sessions", exact=True).first.click()
    row = page.locator(".session-row", has=page.get_by_text(BUSY, exact=True))
    expect(row).to_contain_text(f"${cost['usd']:.2f}")


def test_two_prompts_are_compared_from_a_call(api: Running, look: Callable[..., Look]) -> None:
    page = look(api).go("s", BUSY, "c", 57)
    page.get_by_role("link", name="Compare").click()
    figures = page.locator(".compare-figures")
    expect(figures).to_contain_text("call #56")
    expect(figures).to_contain_text("call #57")
    answer = api.get("/api/compare", a=BUSY, a_call=56, b=BUSY, b_call=57)
    same = answer["same"]
    expect(page.locator("#view")).to_contain_text(
        f"{same['messages']} messages with {same['tokens']:,} tokens are in both"
    )
    expect(page.locator(".diff-row")).to_have_count(answer["rows_total"])
    expect(page.locator(".diff-row").first).to_contain_text("only right")


def test_two_sessions_are_compared_by_name(api: Running, look: Callable[..., Look]) -> None:
    page = look(api).go("s", BUSY)
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("Session on the right").fill(seeding.UNDONE)
    page.get_by_role("button", name="Compare").click()
    figures = page.locator(".compare-figures")
    expect(figures).to_contain_text(seeding.UNDONE)
    cost = api.get(f"/api/sessions/{seeding.UNDONE}")["cost"]
    expect(figures.locator("tr", has_text="cost of the session")).to_contain_text(f"${cost['usd']:.2f}"[:4])
    expect(figures).to_contain_text("compactions of the session")


def test_a_session_that_is_not_there_cannot_be_compared(api: Running, look: Callable[..., Look]) -> None:
    window = look(api)
    window.expected += ["404"]
    page = window.go("compare", query=f"?a={BUSY}&b=nobody")
    expect(page.locator("#view")).to_contain_text("nobody")


def test_a_compaction_leads_to_its_trace_and_the_trace_back(api: Running, look: Callable[..., Look]) -> None:
    page = look(api).go("s", BUSY, "p", 3)
    page.get_by_role("link", name="Its trace").click()
    expect(page.locator(".inspector h2")).to_have_text("compact.completed")
    page.locator(".inspector").get_by_role("link", name="Compaction v3").click()
    expect(page.locator("h1")).to_have_text("Compaction v3")


def test_a_plan_that_was_restored_has_no_trace_of_its_own(api: Running, look: Callable[..., Look]) -> None:
    plans = api.get(f"/api/sessions/{seeding.UNDONE}")["plans"]
    restored = next(plan["version"] for plan in plans if plan["restored_from"] is not None)
    page = look(api).go("s", seeding.UNDONE, "p", restored)
    expect(page.locator(".made-by")).to_be_visible()
    expect(page.get_by_role("link", name="Its trace")).to_have_count(0)


def test_list_and_page_count_the_same_compactions_after_an_undo(api: Running, look: Callable[..., Look]) -> None:
    plans = api.get(f"/api/sessions/{seeding.UNDONE}")["plans"]
    made = sum(plan["restored_from"] is None for plan in plans)
    assert made < len(plans)
    page = look(api).go()
    row = page.locator(".session-row", has=page.get_by_text(seeding.UNDONE, exact=True))
    expect(row.locator(".compactions")).to_have_text(str(made))
    row.click()
    expect(page.locator(".figure-box", has_text="compactions").locator(".figure-value")).to_have_text(str(made))


def test_code_in_a_sentence_is_shown_as_code(tmp_path: Path, look: Callable[..., Look]) -> None:
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        window = look(viewer)
        window.expected += ["404", "ERR_CONNECTION_REFUSED"]
        page = window.go("s", "nobody")
        expect(page.locator(".state")).to_be_visible()
        assert "`" not in page.locator("#view").inner_text()
        page.goto("about:blank")
