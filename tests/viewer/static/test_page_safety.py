"""Content is hostile: whatever it says, the page shows it and does nothing that it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from viewer import seeding
from viewer.serving import Running, part, span

if TYPE_CHECKING:
    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)

HOSTILE = seeding.HOSTILE
# Elements and handlers that only markup could have made; the page itself has none of them.
FOREIGN_MARKUP = (
    "#view :is(script, img, iframe, object, embed, form, textarea, [srcdoc]), [onerror], [onload], [onclick]"
)
ADDRESSES = "[...document.querySelectorAll('[href], [src]')].map(e => e.getAttribute('href') ?? e.getAttribute('src'))"


def places(api: Running) -> dict[tuple[object, ...], str]:
    """Every view of the hostile session, and what it shows of it."""
    known = api.get(f"/api/sessions/{part(HOSTILE)}")
    return {
        (): "<img src=x onerror=alert(1)>",
        ("s", HOSTILE): "<img src=x onerror=alert(1)>",
        ("s", HOSTILE, "p", known["plans"][-1]["version"]): "<script>window.__pwned = 1</script>",
        ("s", HOSTILE, "c", known["calls"][-1]["number"]): "<script>window.__pwned = 1</script>",
        ("s", HOSTILE, "messages"): "<script>window.__pwned = 1</script>",
        ("s", HOSTILE, "traces"): "evil",
        ("traces",): "evil",
    }


def test_hostile_content_is_inert_in_every_view(api: Running, look: Callable[..., Look]) -> None:
    """Scripts do not run, handlers are not attached, no link leads out, nothing is asked of another machine."""
    for number, text in enumerate(seeding.HOSTILE_TEXTS[:6]):
        api.send(span(number, trace_id="evil", name=text, data={"session_id": HOSTILE, "output": text}))
    window = look(api)
    for place, text in places(api).items():
        page = window.go(*place)
        expect(page.locator("#view")).to_contain_text(text)
        assert page.locator(FOREIGN_MARKUP).count() == 0, place
        assert page.evaluate("window.__pwned") is None, place
        assert all(address.startswith(("#", "/static/")) for address in page.evaluate(ADDRESSES)), place


def test_hostile_spans_are_inert_in_the_inspector(api: Running, look: Callable[..., Look]) -> None:
    """Response, properties and raw, all revealed."""
    text = seeding.HOSTILE_TEXTS[1]
    api.send(
        span(1, trace_id="<b>evil</b>", name=text, kind=text, data={"output": text, text: text, "deep": {text: [text]}})
    )
    window = look(api)
    page = window.go("t", "<b>evil</b>")
    page.locator("[data-reveal]").click()
    for side in ("Response", "Properties", "Raw"):
        page.get_by_role("tab", name=side).click()
        expect(page.locator(".inspector-body")).to_contain_text("onerror")
        assert page.locator(FOREIGN_MARKUP).count() == 0
    assert page.evaluate("window.__pwned") is None


def test_what_cannot_be_seen_is_made_visible(api: Running, look: Callable[..., Look]) -> None:
    """Controls and marks that turn the reading order around are signs, not effects; other text is unchanged."""
    found = api.get(f"/api/sessions/{part(HOSTILE)}/messages", limit=200)["messages"]
    bidi = next(one for one in found if "\u202e" in one["preview"])
    window = look(api)
    page = window.go("s", HOSTILE, "m", bidi["id"])
    shown = page.locator(".drawer pre.text").first
    expect(shown).to_contain_text("⟨U+202E⟩right to left override⟨U+202C⟩")
    assert "\u202e" not in (page.locator("body").text_content() or "")
    control = next(one for one in found if "\x1b" in one["preview"])
    page = window.go("s", HOSTILE, "m", control["id"])
    expect(page.locator(".drawer pre.text").first).to_contain_text("escape ␛[31mred")
    expect(page.locator(".drawer pre.text").first).to_contain_text("lone ⟨U+D800⟩ end")
    assert page.title().isprintable()


def test_an_odd_id_is_reached_like_any_other(api: Running, look: Callable[..., Look]) -> None:
    """Slashes, dots, question marks and percent signs in ids survive the way through addresses."""
    window = look(api)
    page = window.go()
    page.locator(".session-row", has_text="a/b ../c").click()
    expect(page.locator("h1")).to_contain_text("a/b ../c?d=e#f%2e%2e&⟨U+202E⟩gnp")
    expect(page.locator(".mark")).not_to_have_count(0)
    page.get_by_role("link", name="Messages").click()
    page.locator(".message-row").first.click()
    expect(page.locator(".drawer pre.text").first).to_contain_text("careful engineer")
    page.reload()
    expect(page.locator(".drawer pre.text").first).to_contain_text("careful engineer")


def test_the_policy_of_the_page_forbids_what_it_does_not_need(api: Running) -> None:
    """The browser itself would stop inline scripts, inline styles and other hosts."""
    policy = api.client.get("/").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy


# -- the files ----------------------------------------------------------------------------------------------------

STATIC = Path(__file__).parents[3] / "src" / "compact" / "viewer" / "static"
FILES = sorted(file for file in STATIC.rglob("*") if file.suffix in (".js", ".css", ".html", ".svg"))
NEVER = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "DOMParser",
    "srcdoc",
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_makes_markup_from_text_or_names_another_host(file: Path) -> None:
    """Not even by accident: the words are not there."""
    text = file.read_text()
    assert [word for word in NEVER if word in text] == []
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert len(text.splitlines()) <= 300


def test_every_module_is_there_and_is_loaded_ahead() -> None:
    """The page names each module once, so that none waits for another to be read."""
    page = (STATIC / "index.html").read_text()
    modules = {f"/static/{file.relative_to(STATIC).as_posix()}" for file in FILES if file.suffix in (".js", ".css")}
    assert [module for module in sorted(modules) if page.count(f'"{module}"') != 1] == []
    assert "style=" not in page
    assert "<script>" not in page
