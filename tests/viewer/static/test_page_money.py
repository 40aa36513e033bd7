"""What it cost, what left, and what fills the window: as a person reads it on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from compact.core.audit.cost import dollars
from viewer import seeding
from viewer.serving import Running, until

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)


@pytest.fixture
def window(look: Callable[..., Look], api: Running) -> Look:
    """A window of the usual size."""
    return look(api)


def test_a_session_says_what_it_cost_and_saved(window: Look, api: Running) -> None:
    cost = api.get(f"/api/sessions/{seeding.BUSY}")["cost"]
    card = window.go("s", seeding.BUSY).locator("section[aria-label=Cost]")
    for amount in (cost["usd"], cost["usd_uncompacted"], cost["usd_saved"]):
        expect(card).to_contain_text(dollars(amount))
    expect(card).to_contain_text("saved by compaction so far")
    expect(card).to_contain_text("from the cache, estimated")
    expect(card).to_contain_text("gpt-4o")


def test_the_list_has_totals(window: Look, api: Running) -> None:
    until(lambda: all(row["cost"] for row in api.get("/api/sessions")["sessions"]))
    listed = api.get("/api/sessions")
    page = window.go()
    busy = next(row for row in listed["sessions"] if row["id"] == seeding.BUSY)
    row = page.locator(".session-row", has=page.get_by_text(seeding.BUSY, exact=True))
    expect(row).to_contain_text(dollars(busy["cost"]["usd"]))
    expect(row).to_contain_text(f"{dollars(busy['cost']['usd_saved'])} saved")
    expect(page.locator(".page-head")).to_contain_text(f"{dollars(listed['cost']['usd'])} spent")


def test_the_page_of_a_compaction_begins_with_what_left(window: Look, api: Running) -> None:
    page = window.go("s", seeding.INVENTED, "p", 2)
    titles = page.locator(".card h2").all_text_contents()
    assert titles[:3] == ["What left, and why", "Before and after", "Price"]
    expect(page.locator(".card h2").nth(3)).to_have_text("Loss report")
    expect(page.locator(".card h2").nth(4)).to_have_text("Summary")
    assert "took " in (page.locator(".made-by").text_content() or "")
    expect(page.locator(".made-by")).to_contain_text("summary by tell")


def test_without_a_summary_there_is_no_card_for_it(window: Look, api: Running) -> None:
    plans = api.get(f"/api/sessions/{seeding.INJECTED}")["plans"]
    version = next(p["version"] for p in plans if not p["actions"].get("summarize") and p["restored_from"] is None)
    page = window.go("s", seeding.INJECTED, "p", version)
    expect(page.locator("section[aria-label=Price]")).to_be_visible()
    expect(page.locator("section[aria-label=Summary]")).to_have_count(0)
    expect(page.locator(".made-by")).to_contain_text("no summary was needed")


def test_any_other_version_can_be_chosen_to_compare_with(window: Look, api: Running) -> None:
    page = window.go("s", seeding.BUSY, "p", 3)
    expect(page.get_by_label("Compare with")).to_have_value("2")
    page.get_by_label("Compare with").select_option("0")
    wanted = api.get(f"/api/sessions/{seeding.BUSY}/plans/3", against=0)["rows_total"]
    expect(page.locator(".diff-card .card-note")).to_have_text(f"{wanted} messages")
    assert "against=0" in page.url


def test_what_fills_the_window_leads_to_its_messages(window: Look, api: Running) -> None:
    call = api.get(f"/api/sessions/{seeding.BUSY}")["calls"][-1]
    tool, _ = next(iter(call["contents"]["tool_results"].items()))
    page = window.go("s", seeding.BUSY)
    line = page.locator(".fill-row.is-source", has_text=tool).first
    expect(line).to_be_visible()
    line.click()
    expect(page.locator(".filter-note")).to_contain_text(f"Tool results, {tool}")
    only = api.get(f"/api/sessions/{seeding.BUSY}/calls/{call['number']}", part="tool_results", source=tool)
    expect(page.locator("article.slot")).to_have_count(only["slots_total"])
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(".filter-note")).to_have_count(0)
