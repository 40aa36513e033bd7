"""How it looks: themes, widths, motion; a long session; and the pictures of the documentation.

With `COMPACT_PICTURES=docs/images` in the environment the pictures are written there instead of a temporary folder.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from compact.core.plan.parts import SENT_PARTS
from viewer import seeding
from viewer.serving import Running, span

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)
_log = logging.getLogger(__name__)

PAINT_MS = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
MOST_BYTES = 400_000  # other fonts make other sizes


def places(api: Running) -> dict[str, tuple[object, ...]]:
    """Each view, by name."""
    call = api.get(f"/api/sessions/{seeding.BUSY}")["calls"][-1]["number"]
    return {
        "sessions": (),
        "session": ("s", seeding.BUSY),
        "compaction": ("s", seeding.BUSY, "p", 3),
        "call": ("s", seeding.BUSY, "c", call),
        "messages": ("s", seeding.HOSTILE, "messages"),
        "message": ("s", seeding.BUSY, "m", "m4"),
        "hostile compaction": ("s", seeding.HOSTILE, "p", 3),
        "why": ("s", seeding.BUSY, "why"),
        "traces": ("traces",),
        "trace": ("t", "t1"),
    }


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_no_view_is_wider_than_its_window(api: Running, look: Callable[..., Look], width: int) -> None:
    """Nothing scrolls sideways, whatever the content."""
    api.send(*(span(n, name="a long name of a span " * 5, data={"output": "x" * 500}) for n in range(5)))
    window = look(api, width=width, height=844)
    for name, place in places(api).items():
        page = window.go(*place)
        expect(page.locator("#view .page")).to_be_visible()
        assert window.overflow() <= 0, name


@pytest.mark.parametrize("width", [390, 320])
def test_the_bar_on_top_has_room_for_its_longest_word(own: Running, look: Callable[..., Look], width: int) -> None:
    """Whether updates arrive is told in words of different length; the page is as wide in each of these states."""
    window = look(own, width=width, height=844)
    page = window.go("s", seeding.BUSY)
    expect(page.locator(".live")).to_have_text("Live")
    page.keyboard.press("Space")
    own.send(*(span(n, trace_id=f"t{n}") for n in range(12)))
    expect(page.locator(".live")).to_contain_text("waiting")
    assert window.overflow() <= 0


def background(window: Look) -> tuple[int, ...]:
    colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(number) for number in colour.removeprefix("rgb(").removesuffix(")").split(","))


def test_the_theme_follows_the_system_until_it_is_chosen(api: Running, look: Callable[..., Look]) -> None:
    """A choice is remembered over a reload."""
    dark, light = look(api, scheme="dark"), look(api, scheme="light")
    for window in (dark, light):
        window.go()
    assert sum(background(dark)) < 150 < 600 < sum(background(light))
    dark.page.get_by_label("Switch to the light theme").click()
    assert sum(background(dark)) > 600
    dark.page.reload()
    expect(dark.page.get_by_label("Switch to the dark theme")).to_be_visible()
    assert sum(background(dark)) > 600
    dark.page.keyboard.press("t")
    assert sum(background(dark)) < 150


TEXTS = "h1, h2, .dim, .faint, .count, .tab, .subtab, .figure-name, .badge, .live, .segment, .card-note"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_text_stands_out_from_what_is_behind_it(api: Running, look: Callable[..., Look], scheme: str) -> None:
    """At least 4.5 to 1, in both themes."""
    window = look(api, scheme=scheme)
    for place in (("s", seeding.BUSY), ("s", seeding.BUSY, "p", 3), ()):
        window.go(*place)
        assert window.weak_texts(TEXTS) == [], place


def test_every_part_has_a_pattern_or_a_name_besides_its_colour(api: Running, look: Callable[..., Look]) -> None:
    """Two parts that touch never differ by colour alone; the legend has those that occur in the session."""
    page = look(api).go("s", seeding.BUSY)
    for part in ("tools", "summary", "ledger"):
        expect(page.locator(f".areas .layers-{part} .overlay").first).to_be_attached()
    assert legend(page) == [
        "System",
        "Tools",
        "Pinned",
        "Ledger",
        "Summary",
        "Dialogue",
        "Tool results",
        "Stubs",
        "Overhead",
        "Free",
    ]
    page = look(api).go("s", seeding.INJECTED)
    names = ["System", "Pinned", "Dialogue", "Tool results", "Stubs", "Rehydrated", "Injected", "Overhead", "Free"]
    expect(page.locator(".legend-item")).to_have_count(len(names))
    assert legend(page) == names


def legend(page: Page) -> list[str]:
    """The names in the legend, in order."""
    return [name.split("\n")[0] for name in page.locator(".legend-item").all_inner_texts()]


def test_the_page_divides_a_prompt_as_the_server_does() -> None:
    """The same parts in the same order, each with a colour; parts that touch have not both no pattern."""
    static = Path(__file__).parents[3] / "src" / "compact" / "viewer" / "static"
    script = (static / "charts" / "parts.js").read_text()
    rows = re.findall(r'\{ key: "(\w+)", .*?(?:pattern: "([^"]+)")? \}', script.split("FREE")[0])
    assert [key for key, _ in rows] == list(SENT_PARTS)
    colours = (static / "css" / "base.css").read_text()
    assert all(f"--part-{key}: " in colours for key, _ in rows)
    assert all(one != other for (_, one), (_, other) in pairwise(rows))


# -- ten thousand messages ----------------------------------------------------------------------------------------


def test_ten_thousand_messages_are_there_at_once(long_one: Running, look: Callable[..., Look]) -> None:
    """The first paint does not wait for the log, and only what is in sight exists."""
    window = look(long_one)
    page = window.go("s", seeding.LONG, "messages")
    expect(page.locator(".message-row").first).to_be_visible()
    paint = page.evaluate(PAINT_MS)
    _log.info("first paint of 10,000 messages after %.0f ms", paint)
    assert paint < 5_000, "a second is meant; a busy machine may take longer"
    expect(page.locator(".count")).to_have_text("10,000 messages")
    assert page.locator(".vrow").count() < 80
    page.keyboard.press("End")
    expect(page.locator(".message-row.is-active")).to_have_attribute("aria-posinset", "10000")
    expect(page.locator(".message-row.is-active")).to_contain_text("10,000")
    assert page.locator(".vrow").count() < 80


def test_why_answers_at_once_in_ten_thousand_messages(long_one: Running, look: Callable[..., Look]) -> None:
    """The page is there before the answer, and the answer soon after; the second is a matter of milliseconds."""
    window = look(long_one)
    page = window.go("s", seeding.LONG, "why", query="?q=ORD-4100")
    expect(page.locator(".verdict h2")).to_be_visible()
    paint = page.evaluate(PAINT_MS)
    started = time.monotonic()
    page.locator("input[type=search]").fill("round(cart")
    expect(page.locator(".sightings-title")).to_contain_text("3,748 messages of the log contain it, 50 of 3,748 shown")
    _log.info("first paint after %.0f ms, an answer after %.0f ms", paint, 1000 * (time.monotonic() - started))
    assert paint < 5_000, "a second is meant; a busy machine may take longer"
    assert time.monotonic() - started < 10, "half a second is meant; a busy machine may take longer"


def test_scrolling_through_ten_thousand_rows_stays_smooth(long_one: Running, look: Callable[..., Look]) -> None:
    """Drawing what comes into sight takes a fraction of a frame."""
    window = look(long_one)
    page = window.go("s", seeding.LONG, "messages")
    expect(page.locator(".message-row").first).to_be_visible()
    took = page.evaluate(
        """async () => {
          const view = document.getElementById("view");
          const frame = () => new Promise(requestAnimationFrame);
          const started = performance.now();
          for (let n = 1; n <= 60; n += 1) { view.scrollTop = n * 600; await frame(); }
          return performance.now() - started;
        }"""
    )
    _log.info("60 steps through 10,000 rows took %.0f ms", took)
    assert took < 15_000, "a second is meant; a busy machine may take longer"
    expect(page.locator(".message-row", has_text="900").first).to_be_visible()


def test_a_long_session_draws_its_timeline_and_diff(long_one: Running, look: Callable[..., Look]) -> None:
    """The session and its compactions open without waiting for the whole log."""
    window = look(long_one)
    page = window.go("s", seeding.LONG)
    plans = long_one.get(f"/api/sessions/{seeding.LONG}")["plans"]
    expect(page.locator(".mark")).to_have_count(len(plans))
    page.locator(".mark").last.click()
    expect(page.locator(".diff-row").first).to_be_visible()
    assert page.locator(".vrow").count() < 80


# -- pictures -----------------------------------------------------------------------------------------------------


def picture_events() -> list[dict[str, Any]]:
    """A turn that looks like one: estimate, decision, a summary by a model, an archive that failed."""
    rows = [
        ("turn", "", "turn 41", 0, 6400, "ok"),
        ("est", "turn", "compact.token_estimate", 20, 180, "ok"),
        ("dec", "turn", "compact.trigger_decision", 180, 230, "ok"),
        ("sum", "turn", "compact.summary_created", 240, 4100, "ok"),
        ("gen", "sum", "gpt-4o-mini", 300, 3900, "ok"),
        ("arc", "turn", "compact.archival", 4100, 4700, "error"),
        ("prn", "turn", "compact.pruned_messages", 4700, 4900, "ok"),
        ("mod", "turn", "gpt-4o", 4950, 6380, "ok"),
    ]
    events: list[dict[str, Any]] = [
        {"type": "trace", "trace_id": "picture", "name": "turn 41", "group_id": seeding.BUSY}
    ]
    for key, parent, name, start, end, status in rows:
        times = {
            "started_at": f"2026-01-01T10:00:{start / 1000:06.3f}Z",
            "ended_at": f"2026-01-01T10:00:{end / 1000:06.3f}Z",
        }
        data = {"session_id": seeding.BUSY, "output": f"{name} took {end - start} ms"}
        events.append(
            {
                "type": "span",
                "trace_id": "picture",
                "span_id": key,
                "name": name,
                "status": status,
                "data": data,
                **times,
                **({"parent_id": parent} if parent else {}),
            }
        )
    return events


def test_the_pictures_of_the_documentation_are_made_here(
    api: Running, look: Callable[..., Look], tmp_path: Path
) -> None:
    """Each view as it is now; all together they stay small."""
    folder = Path(os.environ.get("COMPACT_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    api.send(*picture_events())
    dark, light = look(api, scheme="dark", width=1120), look(api, scheme="light", width=1120)
    phone = look(api, scheme="light", width=390)
    shots = [(dark, "session", ("s", seeding.BUSY), ".mark", 810), (dark, "trace", ("t", "picture"), ".span-row", 460)]
    shots += [(light, "compaction", ("s", seeding.BUSY, "p", 3), ".counts", 560)]
    shots += [(phone, "phone", ("s", seeding.BUSY), ".mark", 600)]
    for window, name, place, ready, height in shots:
        window.page.set_viewport_size({"width": window.page.viewport_size["width"], "height": height})
        page = window.go(*place)
        expect(page.locator(ready).first).to_be_visible()
        page.screenshot(path=folder / f"viewer-{name}.png", animations="disabled")
    made = sorted(folder.glob("viewer-*.png"))
    assert [file.stem for file in made] == ["viewer-compaction", "viewer-phone", "viewer-session", "viewer-trace"]
    assert sum(file.stat().st_size for file in made) < MOST_BYTES


def test_a_duration_never_has_sixty_seconds(api: Running, look: Callable[..., Look]) -> None:
    code = "() => import('/static/base/format.js').then((m) => [1_799_600, 59_996, 61_000, 1_500].map(m.duration))"
    assert look(api).go().evaluate(code) == ["30m 0s", "1m 0s", "1m 1s", "1.50 s"]
