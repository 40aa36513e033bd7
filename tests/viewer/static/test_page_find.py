"""What a person looks for and takes away: calls, messages, errors, prompts; and the way in, up and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from compact.viewer.pages import session as session_pages
from viewer import seeding
from viewer.seeding import BUSY, QUIET
from viewer.serving import Running, part, running, span

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)
TOKEN = "a token of many characters"


def clipboard(page: Page) -> str:
    """What was copied last."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return page.evaluate("navigator.clipboard.readText()")


def allow_copies(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])


# -- calls --------------------------------------------------------------------------------------------------------


def test_a_call_is_reached_by_its_number(api: Running, look: Callable[..., Look]) -> None:
    window = look(api)
    page = window.go("s", BUSY)
    total = api.get(f"/api/sessions/{part(BUSY)}")["calls_total"]
    box = page.get_by_label(f"Go to a call, 1 to {total}")
    box.fill("57")
    box.press("Enter")
    expect(page.locator("h1")).to_have_text("Call #57")
    expect(page.locator(".page-head .count")).to_contain_text(f"of {total}")
    assert page.title() == f"{BUSY} · call 57 · Compact"
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text("Call #58")
    box = page.get_by_label(f"Go to a call, 1 to {total}")
    box.fill(str(total + 1))
    box.press("Enter")
    expect(page.locator("h1")).to_have_text("Call #58")
    assert box.evaluate("field => field.validationMessage") == f"There are calls 1 to {total}."


def test_calls_of_a_long_session_are_paged(
    api: Running, look: Callable[..., Look], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_pages, "CALLS_PER_PAGE", 50)
    window = look(api)
    page = window.go("s", BUSY)
    total = api.get(f"/api/sessions/{part(BUSY)}")["calls_total"]
    expect(page.locator(".pager")).to_contain_text(f"Calls {total - 49} to {total} of {total}")
    page.get_by_role("button", name="Earlier").click()
    expect(page.locator(".pager")).to_contain_text(f"Calls {total - 99} to {total - 50} of {total}")
    expect(page.locator(".readout b")).to_have_text(f"Call #{total - 50}")
    assert f"until={total - 50}" in page.url
    page.get_by_role("button", name="Later").click()
    expect(page.locator(".readout b")).to_have_text(f"Call #{total}")
    calls = page.get_by_role("listbox", name="Model calls, newest first")
    expect(calls.locator(".call-row").first).to_contain_text(f"#{total}")
    calls.focus()
    page.keyboard.press("End")
    expect(calls.locator(".call-row", has_text=re.compile(r"^#1\D")).first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Call #1")


# -- messages -----------------------------------------------------------------------------------------------------


def test_messages_are_searched_and_filtered_and_the_address_says_how(api: Running, look: Callable[..., Look]) -> None:
    window = look(api)
    page = window.go("s", BUSY, "messages")
    log = api.get(f"/api/sessions/{part(BUSY)}/messages", limit=1000)["messages"]
    expect(page.locator(".page-head .count")).to_have_text(f"{len(log)} messages")
    greps = [row for row in log if (row["role"], row["tool"]) == ("tool", "grep")]
    page.get_by_label("Every role").select_option("tool")
    page.get_by_label("Every tool").select_option(label=f"grep ({sum(row['tool'] == 'grep' for row in log)})")
    expect(page.locator(".page-head .count")).to_have_text(f"{len(greps)} of {len(log)} messages")
    page.get_by_label("Search the messages").fill("total_22(")
    expect(page.locator(".message-row")).to_have_count(1)
    expect(page.locator(".message-row")).to_contain_text("def total_22(cart)")
    address = page.url
    assert "role=tool&tool=grep" in address.replace("q=total_22%28&", "")
    page.locator(".message-row").click()
    expect(page.locator(".drawer h2")).to_contain_text("Message")
    again = look(api)
    again.page.goto(address)
    expect(again.page.locator(".message-row")).to_have_count(1)
    expect(again.page.get_by_label("Every tool")).to_have_value("grep")
    again.page.get_by_label("Search the messages").fill("never said by anybody")
    expect(again.page.locator(".state h2")).to_have_text("No message matches")


def test_a_message_is_copied_and_shown_raw(api: Running, look: Callable[..., Look]) -> None:
    window = look(api)
    page = window.go("s", BUSY, "messages", query="?role=user")
    allow_copies(page)
    page.locator(".message-row").first.click()
    drawer = page.locator(".drawer")
    drawer.get_by_label("Copy the text").click()
    assert clipboard(page) == seeding.CONSTRAINT
    drawer.get_by_label("Copy the id").click()
    assert page.url.endswith(f"/m/{part(clipboard(page))}?role=user")
    drawer.get_by_role("button", name="Raw").click()
    expect(drawer.locator(".raw pre")).to_contain_text('"role": "user"')
    drawer.get_by_role("button", name="Copy JSON").click()
    expect(drawer.get_by_role("button", name="Copy JSON")).to_contain_text("Copied")
    assert json.loads(clipboard(page)) == {"role": "user", "content": seeding.CONSTRAINT}


# -- prompts and logs -----------------------------------------------------------------------------------------------


def test_a_prompt_is_taken_away_as_json(api: Running, look: Callable[..., Look], tmp_path: Path) -> None:
    window = look(api)
    page = window.go("s", BUSY, "c", 57)
    allow_copies(page)
    page.get_by_label("Copy prompt as JSON").click()
    expect(page.get_by_label("Copy prompt as JSON")).to_contain_text("Copied")
    prompt = api.get(f"/api/sessions/{part(BUSY)}/calls/57/prompt")
    assert json.loads(clipboard(page)) == prompt
    page.get_by_label("Wire form").select_option("anthropic")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save JSON").click()
    assert download.value.suggested_filename == f"{BUSY}-call-57.json"
    download.value.save_as(tmp_path / "prompt.json")
    saved = json.loads((tmp_path / "prompt.json").read_text())["messages"]
    assert any(
        block.get("type") == "tool_use" for item in saved for block in item["content"] if isinstance(block, dict)
    )
    first = page.locator(".slot").first
    first.get_by_label("Copy this message").click()
    assert clipboard(page) == "You are a careful engineer. Answer in English."
    first.get_by_role("button", name="Raw").click()
    expect(first.locator(".raw pre")).to_contain_text('"role": "system"')


def test_a_session_is_exported(api: Running, look: Callable[..., Look], tmp_path: Path) -> None:
    window = look(api)
    page = window.go("s", QUIET)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export log").click()
    download.value.save_as(tmp_path / "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert len(lines) == api.get(f"/api/sessions/{part(QUIET)}")["messages"]
    assert lines[0] == {"role": "system", "content": "You are a careful engineer. Answer in English."}
    assert page.title() == f"{QUIET} · Compact"


def test_a_summary_is_copied(api: Running, look: Callable[..., Look]) -> None:
    window = look(api)
    page = window.go("s", BUSY, "p", 3)
    allow_copies(page)
    page.get_by_label("Copy the summary").click()
    expect(page.get_by_label("Copy the summary")).to_contain_text("Copied")
    assert clipboard(page).startswith("<COMPACT-SUMMARY v")


# -- traces -------------------------------------------------------------------------------------------------------


def test_errors_of_a_session_are_found(own: Running, look: Callable[..., Look]) -> None:
    """What the agent did is there without an exporter; the next error is a click away."""
    for number in (1, 2):
        failed = {"session_id": BUSY, "output": f"the model answered 50{number}"}
        times = {"started_at": f"2036-01-01T1{number}:00:00Z", "ended_at": f"2036-01-01T1{number}:00:01Z"}
        own.send(span(number, trace_id=BUSY, kind="generation", status="error", data=failed, **times))
    window = look(own)
    page = window.go("s", BUSY, "traces")
    expect(page.locator(".subtab[aria-current]")).to_have_text("Traces")
    expect(page.locator(".span-row").first).to_contain_text("compact.preflight")
    expect(page.locator(".badge.is-error").first).to_have_text("2 errors")
    page.get_by_role("button", name="Next error").click()
    expect(page.locator(".span-row.is-active")).to_contain_text("span 1")
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(page.locator(".span-row.is-active")).to_contain_text("span 2")
    assert "span=s2" in page.url
    page.get_by_label("Kind of span").select_option("generation")
    expect(page.locator(".span-row")).to_have_count(2)
    page.get_by_label("Search the spans").fill("answered 501")
    expect(page.locator(".span-row")).to_have_count(1)
    expect(page.locator(".span-row")).to_contain_text("span 1")
    address = page.url
    again = look(own)
    again.page.goto(address)
    expect(again.page.locator(".span-row")).to_have_count(1)
    again.page.get_by_label("Search the spans").fill("")
    again.page.get_by_label("Kind of span").select_option("")
    again.page.get_by_label("Which spans").select_option("errors")
    expect(again.page.locator(".span-row")).to_have_count(2)


def test_traces_with_errors_are_listed_alone(own: Running, look: Callable[..., Look]) -> None:
    own.send(span(1, trace_id="went wrong", status="error"))
    window = look(own)
    page = window.go("traces")
    expect(page.locator(".trace-row").first).to_contain_text("went wrong")
    assert page.locator(".trace-row").count() > 1
    page.get_by_label("Which traces").select_option("errors")
    expect(page.locator(".trace-row")).to_have_count(1)
    assert "state=errors" in page.url


# -- undo ---------------------------------------------------------------------------------------------------------


def test_an_undo_says_what_it_comes_to(own: Running, look: Callable[..., Look]) -> None:
    said = own.get(f"/api/sessions/{part(BUSY)}/restore")
    window = look(own)
    page = window.go("s", BUSY)
    page.locator("[data-undo]").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text(f"goes from {said['tokens_now']:,} to {said['tokens']:,} tokens")
    fits, again = f"until {said['ceiling']:,} tokens are reached", f"no more than {said['ceiling']:,} tokens fit"
    expect(dialog).to_contain_text(again if said["compacts_again"] else fits)
    page.locator("[data-confirm]").click()
    expect(page.locator(".toast")).to_contain_text(f"{said['tokens']:,} tokens")


def test_who_restores_what_does_not_fit_is_warned(own: Running, own_url: str, look: Callable[..., Look]) -> None:
    with seeding.manager_on(own_url) as manager:
        manager.restore(BUSY, 0)
        manager.restore(BUSY, 3)
    plans = own.get(f"/api/sessions/{part(BUSY)}")["plans"]
    whole = next(plan["version"] for plan in plans if plan["restored_from"] == 0)
    said = own.get(f"/api/sessions/{part(BUSY)}/restore", version=whole)
    assert said["compacts_again"]
    window = look(own)
    page = window.go("s", BUSY)
    page.locator(f"[data-restore='{whole}']").click()
    warning = f"The next call will compact again: no more than {said['ceiling']:,} tokens fit."
    expect(page.locator("dialog .warning")).to_have_text(warning)


# -- the way in and up ----------------------------------------------------------------------------------------------


def test_the_token_is_asked_for(own_url: str, look: Callable[..., Look]) -> None:
    with running(own_url, token=TOKEN) as viewer:
        window = look(viewer)
        window.expected.append("401")
        page = window.page
        page.goto(f"{viewer.url}/#/s/{part(QUIET)}")
        expect(page.locator("h1")).to_have_text("This viewer needs its token")
        expect(page.locator("#banner")).to_be_hidden()
        page.get_by_label("Token").fill("not the token, but as long")
        page.get_by_label("Token").press("Enter")
        expect(page.get_by_role("alert")).to_have_text("the token is wrong")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("h1")).to_have_text(QUIET)
        expect(page.locator(".live")).to_have_class("live is-on")
        assert TOKEN not in page.url
        page.reload()
        expect(page.locator("h1")).to_have_text(QUIET)
        page.goto("about:blank")


def test_a_phone_has_a_way_up(api: Running, look: Callable[..., Look]) -> None:
    window = look(api, width=390)
    page = window.go("s", BUSY, "c", 57)
    page.get_by_role("link", name=f"Up to {BUSY}").click()
    expect(page.locator("h1")).to_have_text(BUSY)
    page.get_by_role("link", name="Up to Sessions").click()
    expect(page.locator(".session-row").first).to_be_visible()
    expect(page.locator(".up")).to_be_hidden()
    for place in (("s", BUSY), ("s", BUSY, "messages"), ("s", BUSY, "traces"), ("s", BUSY, "c", 57)):
        window.go(*place)
        assert window.overflow() <= 0, place
