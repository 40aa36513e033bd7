"""Why, as a person reads it: the verdict, the calls without the words, and each message that has them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from compact.stores.sql import SqlCompactionStore
from viewer import seeding
from viewer.serving import Running, part

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)


@pytest.fixture
def window(api: Running, look: Callable[..., Look]) -> Look:
    return look(api)


def answer(api: Running, session_id: str, phrase: str, **page: int) -> dict[str, Any]:
    return api.get(f"/api/sessions/{part(session_id)}/why", q=phrase, **page)


def ask(window: Look, session_id: str, phrase: str) -> Any:
    """Open the page with a phrase, and wait for the answer."""
    page = window.go("s", session_id, "why", query=f"?q={part(phrase)}")
    expect(page.locator(".verdict, .state")).to_be_visible()
    return page


def summarised_phrase(api: Running) -> str:
    """Words that stand in the newest prompt only because the summary tells them."""
    newest = api.get(f"/api/sessions/{seeding.BUSY}")["calls"][-1]["number"]
    summary = next(slot["text"] for slot in prompt(api, seeding.BUSY, newest) if "COMPACT-SUMMARY" in slot["text"])
    for phrase in re.findall(r"compared run \d+ with batch|def total_\d+\(cart", summary):
        found = answer(api, seeding.BUSY, phrase)
        if [place["kind"] for place in found["verdict"]["places"]] == ["summary"]:
            return phrase
    raise AssertionError("nothing is told by the summary alone")


def told_otherwise(api: Running) -> str:
    """Words that are in the newest prompt, but not through the first message that has them."""
    for number in range(10, 40):
        found = answer(api, seeding.LOSSY, f"B-{number}")
        if found["verdict"]["count"] and not found["sightings"][0]["is_visible"]:
            return f"B-{number}"
    raise AssertionError("no words are there otherwise")


def times_in(api: Running, session_id: str, phrase: str) -> str:
    """How the page says how often the newest prompt has a phrase."""
    newest = api.get(f"/api/sessions/{session_id}")["calls"][-1]["number"]
    slots = prompt(api, session_id, newest)
    count = sum(str(slot["text"]).casefold().count(phrase.casefold()) for slot in slots)
    assert count > 0
    return "once" if count == 1 else f"{count} times"


def test_words_that_only_the_summary_has_are_in_the_prompt(window: Look, api: Running) -> None:
    """Typing words tells first whether the model sees them, how often and in what; then each message."""
    page = window.go("s", seeding.BUSY, "why")
    expect(page.locator("input[type=search]")).to_be_focused()
    phrase = summarised_phrase(api)
    page.keyboard.type(phrase)
    times = times_in(api, seeding.BUSY, phrase)
    expect(page.locator(".verdict h2")).to_have_text(f"In the newest prompt, {times}")
    expect(page.locator(".verdict")).to_contain_text("In the summary")
    first = page.locator(".sighting").first
    expect(first).to_contain_text("summarised")
    expect(first).to_contain_text("In the prompt, in the summary that stands for it")
    expect(first).to_contain_text("since plan v")
    assert "q=" in page.url
    page.locator("input[type=search]").fill("words that nobody used")
    expect(page.locator(".state h2")).to_have_text("Not found")


def test_words_that_left_the_prompt_name_the_calls_without_them(window: Look, api: Running) -> None:
    """The verdict says so, and since which call; its links open the prompts that lack them."""
    phrase = "value_41_0"
    page = ask(window, seeding.LOSSY, phrase)
    expect(page.locator(".verdict h2")).to_have_text("Not in the newest prompt")
    calls = [call["number"] for call in api.get(f"/api/sessions/{seeding.LOSSY}")["calls"]]
    text = page.locator(".verdict p").first.inner_text()
    told = re.fullmatch(
        r"The last call that had it was call ([\d,]+)\. ([\d,]+) of ([\d,]+) calls went out without it: "
        r"calls ([\d,]+)–([\d,]+)\.",
        text,
    )
    assert told, text
    last_with, without, total, first, last = (int(number.replace(",", "")) for number in told.groups())
    having = [number for number in calls if phrase in str(prompt(api, seeding.LOSSY, number))]
    assert (last_with, total, last) == (having[-1], len(calls), calls[-1])
    assert (without, first) == (len(calls) - calls.index(first), calls[calls.index(last_with) + 1])
    sighting = page.locator(".sighting")
    expect(sighting).to_contain_text("Not in the prompt")
    expect(sighting).to_contain_text(f"{without} calls since this message went out without the words")
    page.locator(".verdict a", has_text=f"{first}").first.click()
    page.wait_for_url(re.compile(rf"/c/{first}$"))


def prompt(api: Running, session_id: str, number: int) -> list[dict[str, Any]]:
    return api.get(f"/api/sessions/{session_id}/calls/{number}", limit=1000)["slots"]


def test_who_decided_and_why_stands_beside_each_message(window: Look, api: Running) -> None:
    page = ask(window, seeding.LOSSY, "value_41_0")
    (found,) = answer(api, seeding.LOSSY, "value_41_0")["sightings"]
    assert found["reason"]
    expect(page.locator(".decided")).to_contain_text(f"{found['by']}: {found['reason']}")
    page.locator(".decided a").click()
    page.wait_for_url(re.compile(rf"/p/{found['since_version']}$"))


def test_words_that_are_there_otherwise_are_not_denied(window: Look, api: Running) -> None:
    """A message that left the prompt says that the words are still in it, not through this one."""
    phrase = told_otherwise(api)
    page = ask(window, seeding.LOSSY, phrase)
    expect(page.locator(".verdict h2")).to_have_text(f"In the newest prompt, {times_in(api, seeding.LOSSY, phrase)}")
    expect(page.locator(".sighting").first).to_contain_text("In the prompt, but not through this message")
    expect(page.locator(".sighting").last).to_contain_text("In the prompt, as it came")


def test_an_undo_is_told_from_what_the_newest_call_had(window: Look, api: Running) -> None:
    page = ask(window, seeding.UNDONE, "order")
    verdict = answer(api, seeding.UNDONE, "order")["verdict"]
    assert verdict["count"] > verdict["newest_call_count"] > 0
    expect(page.locator(".verdict")).to_contain_text(
        f"The newest call, call {verdict['newest_call']}, had it {verdict['newest_call_count']} times: "
        "the plan or the history was changed after it."
    )


def test_a_message_of_a_branch_that_was_left_says_so(window: Look) -> None:
    page = ask(window, seeding.EDITED, "Step 9")
    expect(page.locator(".verdict h2")).to_have_text("Not in the newest prompt")
    expect(page.locator(".sighting")).to_contain_text("left behind when the past was edited")
    expect(page.locator(".sighting .chip")).to_have_count(0)


def test_injected_words_are_in_the_prompt(window: Look) -> None:
    page = ask(window, seeding.INJECTED, "the build is green")
    expect(page.locator(".verdict h2")).to_have_text("In the newest prompt, once")
    expect(page.locator(".verdict")).to_contain_text("In 1 injected message.")
    expect(page.locator(".quiet")).to_contain_text("No message of the log contains it")


def test_the_phrase_is_highlighted_and_excerpts_are_cut_between_words(window: Look, api: Running) -> None:
    """Every highlighted piece is the phrase, whatever its case; an excerpt begins and ends with whole words."""
    page = ask(window, seeding.BUSY, "ROUNDS")
    marks = page.locator("mark").all_inner_texts()
    assert len(marks) > 10
    assert {mark.casefold() for mark in marks} == {"rounds"}
    for found in answer(api, seeding.BUSY, "ROUNDS")["sightings"]:
        text = " ".join(api.get(f"/api/sessions/{seeding.BUSY}/messages/{found['message_id']}")["text"].split())
        shown = "".join(piece["text"] for piece in found["excerpt"])
        assert f" {shown.removeprefix('… ').removesuffix(' …')} " in f" {text} "


def test_totals_are_honest_and_the_rest_can_be_seen(window: Look, api: Running) -> None:
    total = answer(api, seeding.UNDONE, "order")["sightings_total"]
    page = ask(window, seeding.UNDONE, "order")
    expect(page.locator(".sightings-title")).to_have_text(
        f"{total} messages of the log contain it, 50 of {total} shown"
    )
    expect(page.locator(".places-rest")).to_contain_text("8 of ")
    page.get_by_role("button", name=f"Show {total - 50} more").click()
    expect(page.locator(".sightings-title")).to_have_text(f"{total} messages of the log contain it")
    expect(page.locator(".sighting")).to_have_count(total)
    page.locator(".places-rest button").click()
    assert page.locator(".place").count() == 50


def test_typing_on_cancels_the_search_under_way(window: Look, api: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request of the former words is given up, and the answer is that of the last ones."""
    read = SqlCompactionStore.call_history

    def read_slowly(store: SqlCompactionStore, session_id: str, **after: int) -> Any:
        time.sleep(0.6)
        return read(store, session_id, **after)

    monkeypatch.setattr(SqlCompactionStore, "call_history", read_slowly)
    page = window.go("s", seeding.BUSY, "why")
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.url))
    with page.expect_request(re.compile(r"/why\?q=billing")):
        page.locator("input[type=search]").fill("billing")
    page.locator("input[type=search]").fill("rounds")
    expect(page.locator(".verdict h2")).to_have_text(f"In the newest prompt, {times_in(api, seeding.BUSY, 'rounds')}")
    assert [url for url in given_up if "q=billing" in url]


LINKS = """() => [...document.querySelectorAll(".why-answer a, .why-answer .link")].map((link) => {
  const style = getComputedStyle(link);
  return style.textDecorationLine;
})"""
TEXTS = ".why-answer :is(h2, p, a, mark, .link, .chip, .num, b)"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_links_and_words_can_be_told_apart_and_read(api: Running, look: Callable[..., Look], scheme: str) -> None:
    """Links among words are underlined, for their colour alone is too near; all text has at least 4.5 to 1."""
    window = look(api, scheme=scheme)
    for session_id, phrase in ((seeding.LOSSY, "value_41_0"), (seeding.UNDONE, "order")):
        page = ask(window, session_id, phrase)
        links = page.evaluate(LINKS)
        assert len(links) > 2
        assert set(links) == {"underline"}
        assert window.weak_texts(TEXTS) == []


def test_it_fits_a_phone(api: Running, look: Callable[..., Look]) -> None:
    window = look(api, width=390, height=844)
    for session_id, phrase in (
        (seeding.HOSTILE, "a" * 40),
        (seeding.UNDONE, "order"),
        (seeding.BUSY, "billing schema"),
    ):
        ask(window, session_id, phrase)
        assert window.overflow() <= 0, phrase
