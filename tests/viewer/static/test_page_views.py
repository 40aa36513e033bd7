"""Sessions, one session, one compaction: in a real browser on a real store."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Locator, Page, expect

from compact.core.plan.parts import SENT_PARTS
from compact.testing import assistant, user
from viewer import seeding
from viewer.serving import Running

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)

PARTS = tuple(part.value for part in SENT_PARTS)


@pytest.fixture
def window(look: Callable[..., Look], api: Running) -> Look:
    """A window of the usual size."""
    return look(api)


def row(page: Page, session_id: str) -> Locator:
    return page.locator(".session-row", has=page.get_by_text(session_id, exact=True))


# -- sessions -----------------------------------------------------------------------------------------------------


def test_every_session_is_listed_with_its_window_over_time(window: Look, api: Running) -> None:
    """A row has a sparkline of its calls, how full the window is, and how often it was compacted."""
    page = window.go()
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS))
    busy = row(page, seeding.BUSY)
    expect(busy.locator(".compactions")).not_to_have_text("…")
    listed = next(one for one in api.get("/api/sessions")["sessions"] if one["id"] == seeding.BUSY)
    assert busy.locator(".spark-line").get_attribute("d").count("L") == len(listed["spark"]) - 1
    expect(busy.locator(".compactions")).to_have_text(str(listed["compactions"]))
    expect(busy.locator("[role=meter]")).to_have_attribute("aria-valuenow", str(listed["last_tokens"]))


def test_search_narrows_by_words_in_the_log_and_is_in_the_address(window: Look) -> None:
    """What was searched can be shared: the address leads to the same rows."""
    page = window.go()
    page.keyboard.press("/")
    page.keyboard.type("docs/api.md instead")
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.locator(".session-row")).to_contain_text(seeding.EDITED)
    assert "q=docs" in page.url
    page.reload()
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.locator("input[type=search]")).to_have_value("docs/api.md instead")


def test_filters_and_sorting_change_the_rows(window: Look, api: Running) -> None:
    """Only what was never compacted; the largest first."""
    page = window.go()
    page.get_by_role("radio", name="Never compacted").click()
    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.locator(".session-row")).to_contain_text(seeding.QUIET)
    page.get_by_role("radio", name="All", exact=True).click()
    page.get_by_label("Sort by").select_option("messages")
    most = api.get("/api/sessions", sort="messages")["sessions"][0]["id"]
    expect(page.locator(".session-row .mono").first).to_have_text(most)


def test_a_search_without_a_match_says_so(window: Look) -> None:
    """An empty list is a designed state, not a blank page."""
    page = window.go(query="?q=nobody-ever-said-this")
    expect(page.locator(".state h2")).to_have_text("No session matches")


def test_an_imported_session_shows_what_it_consists_of_and_no_call(
    own_url: str, own: Running, look: Callable[..., Look]
) -> None:
    """Its history went to no model from here; the window is that of the model that it names."""
    with seeding.manager_on(own_url, settings={"max_context_tokens": None}) as manager:
        manager.add_history("imported", [user("word " * 300), assistant("yes")], model="claude-sonnet-4-5")
    page = look(own).go("s", "imported")
    expect(page.locator(".state h2")).to_have_text("An imported log")
    expect(page.get_by_label("What fills the window")).to_contain_text("user")
    expect(page.locator(".fill a")).to_have_count(0)
    expect(page.locator(".figures")).to_contain_text("/ 200k")
    tokens = own.get("/api/sessions/imported")["imported"]["tokens"]
    expect(page.locator(".figures [role=meter]")).to_have_attribute("aria-valuenow", str(tokens))


def test_a_store_without_sessions_says_what_to_do(empty: Running, look: Callable[..., Look]) -> None:
    """Somebody who starts here is told the command that makes something to see."""
    page = look(empty).go()
    expect(page.locator(".state h2")).to_have_text("No sessions yet")
    expect(page.locator(".state-code")).to_have_text("compact demo")
    page.get_by_role("link", name="Traces").click()
    expect(page.locator(".state h2")).to_have_text("No traces yet")


def test_an_unknown_session_is_told_with_what_to_do(window: Look) -> None:
    """The server's error and its hint are on the page."""
    window.expected.append("404")
    page = window.go("s", "nobody")
    expect(page.locator(".state.is-error")).to_contain_text("nobody")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


# -- one session --------------------------------------------------------------------------------------------------


def test_the_timeline_stacks_what_each_prompt_was_made_of(window: Look, api: Running) -> None:
    """Every part that was ever used has a layer, every limit a line with its name, every plan a mark."""
    page = window.go("s", seeding.BUSY)
    known = api.get(f"/api/sessions/{seeding.BUSY}")
    used = [part for part in PARTS if any(call["parts"][part] for call in known["calls"])]
    assert {"system", "tools", "summary", "dialogue"} <= set(used)
    for part in used:
        expect(page.locator(f".areas .layers-{part}")).to_have_count(1)
    expect(page.locator(".areas .free")).to_have_count(1)
    for name in ("window", "trigger", "prefetch", "target"):
        expect(page.locator(".limit text", has_text=name)).to_have_count(1)
    expect(page.locator(".mark")).to_have_count(len(known["plans"]))


def test_what_was_asked_for_again_has_a_card_and_leads_to_the_messages(window: Look) -> None:
    """A session without regrets has no such card."""
    page = window.go("s", seeding.MISSED)
    card = page.locator(".regrets")
    expect(card.locator("tbody tr")).to_have_count(2)
    expect(card.locator("tbody tr").first).to_contain_text("read_file")
    expect(card.locator("tbody tr").first).to_contain_text("summarised")
    card.get_by_role("button", name="m8", exact=True).click()
    expect(page.locator(".drawer")).to_contain_text("src/checkout/cart.py:0")
    page = window.go("s", seeding.QUIET)
    expect(page.locator(".figures")).to_be_visible()
    expect(page.locator(".regrets")).to_be_hidden()


def test_the_cursor_reads_out_a_call_by_mouse_and_by_key(window: Look, api: Running) -> None:
    """Pointing at a call tells its number and its parts; arrow keys move on."""
    page = window.go("s", seeding.BUSY)
    calls = api.get(f"/api/sessions/{seeding.BUSY}")["calls"]
    expect(page.locator(".readout b")).to_have_text(f"Call #{calls[-1]['number']}")
    pad = page.locator(".pad")
    box = pad.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 50)
    expect(page.locator(".readout b")).to_have_text(f"Call #{calls[0]['number']}")
    pad.focus()
    page.keyboard.press("ArrowRight")
    expect(pad).to_have_attribute("aria-valuenow", str(calls[1]["number"]))
    expect(page.locator(".readout")).to_contain_text(f"{calls[1]['tokens']:,} tokens")


def test_the_timeline_zooms_by_dragging_and_by_buttons(window: Look) -> None:
    """A dragged part fills the plot; the strip below shows where it is; one button shows all again."""
    page = window.go("s", seeding.BUSY)
    whole = page.locator(".overview-window").bounding_box()
    box = page.locator(".pad").bounding_box()
    assert box is not None
    assert whole is not None
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 60, steps=4)
    page.mouse.up()
    part = page.locator(".overview-window").bounding_box()
    assert part is not None
    assert part["width"] < whole["width"] / 3
    page.get_by_label("Show all calls (0)").click()
    again = page.locator(".overview-window").bounding_box()
    assert again is not None
    assert again["width"] == pytest.approx(whole["width"])


def test_a_tier_can_be_hidden_and_shown_again(window: Look) -> None:
    """The legend is a switch for each part."""
    page = window.go("s", seeding.BUSY)
    dialogue = page.locator("button.legend-item", has_text="Dialogue")
    dialogue.click()
    expect(page.locator(".areas .layers-dialogue")).to_have_count(0)
    dialogue.click()
    expect(page.locator(".areas .layers-dialogue")).to_have_count(1)


# -- a compaction -------------------------------------------------------------------------------------------------


def cleared_row(rows: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """The first message that was whole before and is cleared now, and its place among those that changed."""
    return next((n, row) for n, row in enumerate(rows) if row["after"]["action"] == "clear")


def test_a_mark_leads_to_the_compaction_side_by_side(window: Look, api: Running) -> None:
    """Before and after, message by message: action, tokens and reason, and the price above."""
    page = window.go("s", seeding.BUSY)
    page.locator(".mark").first.click()
    expect(page.locator("h1")).to_have_text("Compaction v1")
    plan = api.get(f"/api/sessions/{seeding.BUSY}/plans/1")
    place, first = cleared_row(plan["rows"])
    shown = page.locator(".diff-row").nth(place)
    expect(shown.locator(".side").first).to_contain_text("kept")
    expect(shown.locator(".side").nth(1)).to_contain_text("cleared")
    expect(shown.locator(".side").nth(1)).to_contain_text(f"{first['after']['tokens']:,} tokens")
    expect(shown.locator(".diff-why")).to_contain_text(first["reason"])
    expect(page.locator("section[aria-label=Price]")).to_contain_text(f"{plan['cost']['freed_tokens']:,}")
    expect(page.locator("section[aria-label=Price]")).to_contain_text("until it has paid for itself")


def test_a_stub_leads_to_the_original_word_for_word(window: Look, api: Running) -> None:
    """What was cleared is one click away, whole."""
    page = window.go("s", seeding.BUSY, "p", 1)
    place, first = cleared_row(api.get(f"/api/sessions/{seeding.BUSY}/plans/1")["rows"])
    page.locator(".diff-row").nth(place).click()
    original = api.get(f"/api/sessions/{seeding.BUSY}/messages/{first['id']}")["text"]
    blocks = page.locator(".drawer pre.text")
    # Of a long one, how it begins.
    expect(blocks.first).to_contain_text(first["after"]["text"].split("\n")[0])
    assert blocks.nth(1).text_content() == original
    page.keyboard.press("Escape")
    expect(page.locator(".drawer")).to_have_count(0)


def test_a_summarised_message_leads_to_its_original(window: Look, api: Running) -> None:
    """It has no stub of its own: it is told what stands for it."""
    plan = api.get(f"/api/sessions/{seeding.BUSY}/plans/3")
    place = next(n for n, row in enumerate(plan["rows"]) if row["after"]["action"] == "summarize")
    page = window.go("s", seeding.BUSY, "p", 3)
    page.locator(".diff-row").nth(place).click()
    expect(page.locator(".drawer")).to_contain_text("the summary stands for it")
    original = api.get(f"/api/sessions/{seeding.BUSY}/messages/{plan['rows'][place]['id']}")
    expect(page.locator(".drawer")).to_contain_text(original["text"] or original["tool_calls"][0]["name"])


def test_all_messages_can_be_shown_not_only_changed_ones(window: Look, api: Running) -> None:
    """The switch asks for every row, and the address says so."""
    page = window.go("s", seeding.BUSY, "p", 2)
    both = [api.get(f"/api/sessions/{seeding.BUSY}/plans/2", only=only)["rows_total"] for only in ("changed", "all")]
    assert both[0] < both[1]
    expect(page.locator(".diff-card [role=status]")).to_have_text(f"{both[0]} messages")
    page.get_by_role("radio", name="All").click()
    expect(page.locator(".diff-card [role=status]")).to_have_text(f"{both[1]} messages")
    assert page.url.endswith("only=all")


def test_the_summary_is_marked_where_it_was_verified_mended_or_invented(window: Look, api: Running) -> None:
    """What no source says, and what code had to add, is to be seen at once."""
    session = api.get(f"/api/sessions/{seeding.INVENTED}")
    versions = [plan["version"] for plan in session["plans"]]
    summaries = {
        v: api.get(f"/api/sessions/{seeding.INVENTED}/plans/{v}", report="without")["summary"] for v in versions
    }
    version, told = next((v, s) for v, s in summaries.items() if s and (s["ungrounded"] or s["appended"]))
    page = window.go("s", seeding.INVENTED, "p", version)
    for mark in {piece["mark"] for piece in told["segments"]} - {"plain"}:
        expect(page.locator(f".summary-text .mk-{mark}")).not_to_have_count(0)
    expect(page.locator(".summary-text .mk-verified")).not_to_have_count(0)
    for text in told["ungrounded"]:
        expect(page.locator(".found-ungrounded")).to_contain_text(text)


def test_the_loss_report_counts_and_leads_to_what_left(window: Look, api: Running) -> None:
    """Of each kind how many were kept, can be recalled, or are lost; each item opens its message."""
    plans = api.get(f"/api/sessions/{seeding.LOSSY}")["plans"]
    asked = f"/api/sessions/{seeding.LOSSY}/plans/"
    reports = {plan["version"]: api.get(f"{asked}{plan['version']}", report="only")["report"] for plan in plans}
    version, report = next(
        (v, r) for v, r in reports.items() if r and any(counts.get("lost") for counts in r["counts"].values())
    )
    page = window.go("s", seeding.LOSSY, "p", version)
    kind, counts = next((kind, counts) for kind, counts in report["counts"].items() if counts.get("lost"))
    line = page.locator(".counts tr", has=page.locator(f"th:text-is({kind!r})"))
    expect(line.locator(".state-of-lost")).to_have_text(f"{counts['lost']:,}")
    expect(page.locator(".items li").first).to_contain_text(report["items"][0]["text"])
    page.locator(".items li button").first.click()
    expect(page.locator(".drawer h2")).to_have_text(re.compile(r"Message \d+"))
