"""A call's exact prompt, the log, a phrase that is looked for, and the way through all of it by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from viewer import seeding
from viewer.serving import Running

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)


@pytest.fixture
def window(look: Callable[..., Look], api: Running) -> Look:
    """A window of the usual size."""
    return look(api)


# -- a call, the log, a phrase ------------------------------------------------------------------------------------


def test_a_call_shows_the_exact_prompt(window: Look, api: Running) -> None:
    """Every message that was sent, in order, with its text as it was."""
    numbers = [call["number"] for call in api.get(f"/api/sessions/{seeding.BUSY}")["calls"]]
    every = (api.get(f"/api/sessions/{seeding.BUSY}/calls/{number}", limit=1000) for number in reversed(numbers))
    sent = next(call for call in every if call["slots_total"] <= 100 and "summary" in call["parts"])  # all at once
    number = sent["number"]
    page = window.go("s", seeding.BUSY, "c", number)
    expect(page.locator(".slot")).to_have_count(sent["slots_total"])
    for button in page.locator(".slot .fold").all():
        button.click()
    for shown, slot in zip(page.locator(".slot").all(), sent["slots"], strict=True):
        if slot["text"]:
            assert shown.locator("pre.text").first.text_content() == slot["text"]
    expect(page.locator(".slot-summary")).to_have_count(1)


def test_clicking_the_timeline_opens_the_call_and_arrows_go_on(window: Look, api: Running) -> None:
    """From the picture to the prompt, and along the calls."""
    calls = api.get(f"/api/sessions/{seeding.BUSY}")["calls"]
    page = window.go("s", seeding.BUSY)
    page.locator(".pad").click(position={"x": 2, "y": 60})
    expect(page.locator("h1")).to_have_text(f"Call #{calls[0]['number']}")
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(f"Call #{calls[1]['number']}")
    page.keyboard.press("Escape")
    expect(page.locator(".timeline")).to_be_visible()


def test_what_was_injected_is_told_apart(window: Look, api: Running) -> None:
    """Content that stood beside the log is in the prompt, with its own mark."""
    number = api.get(f"/api/sessions/{seeding.INJECTED}")["calls"][-1]["number"]
    total = api.get(f"/api/sessions/{seeding.INJECTED}/calls/{number}", limit=1)["slots_total"]
    page = window.go("s", seeding.INJECTED, "c", number)
    window.until(
        "() => { document.getElementById('view').scrollTop = 1e9;"
        f" return document.querySelectorAll('.slot').length === {total}; }}"
    )
    expect(page.locator(".slot-injected").last).to_contain_text("the build is green")


def test_the_log_lists_every_message_and_a_link_opens_one(window: Look, api: Running) -> None:
    """A message has an address of its own."""
    found = api.get(f"/api/sessions/{seeding.BUSY}/messages", limit=3)
    page = window.go("s", seeding.BUSY, "m", found["messages"][1]["id"])
    expect(page.locator(".count")).to_have_text(f"{found['total']} messages")
    expect(page.locator(".drawer pre.text").first).to_have_text(seeding.CONSTRAINT)
    page.keyboard.press("Escape")
    assert page.url.endswith("/messages")


# -- the keyboard -------------------------------------------------------------------------------------------------


def test_everything_can_be_reached_without_a_mouse(window: Look, api: Running) -> None:
    """Rows by j and k, Enter opens, Escape goes up, ? explains; the list says which row is active."""
    page = window.go()
    expect(page.locator(".session-row")).to_have_count(len(seeding.SESSIONS))
    for key in "jjjk":
        page.keyboard.press(key)
    expect(page.locator(".vrow.is-active")).to_have_attribute("aria-posinset", "2")
    active = page.locator(".is-active").get_attribute("id")
    assert page.locator(".vlist").get_attribute("aria-activedescendant") == active
    page.keyboard.press("Enter")
    expect(page.locator(".timeline")).to_be_visible()
    second = api.get("/api/sessions")["sessions"][1]["id"]
    assert page.url.endswith(f"#/s/{quote(second, safe='()')}")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("Keyboard")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Sessions")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Traces")


def test_what_has_the_focus_is_visible(window: Look) -> None:
    """Tabbing draws a ring around what it reaches."""
    page = window.go()
    for _ in range(4):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid", page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
