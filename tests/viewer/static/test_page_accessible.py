"""Every view, in both themes and on a phone, by the rules of axe-core."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from viewer import seeding
from viewer.serving import Running, running, span

if TYPE_CHECKING:
    from pathlib import Path

    from viewer.browser import Look

pytest_plugins = ("viewer.browser",)

VIEWS: dict[str, tuple[tuple[object, ...], str, str]] = {
    "sessions": ((), "", ".session-row"),
    "session": (("s", seeding.BUSY), "", ".call-row"),
    "failed session": (("s", seeding.UNDONE), "", ".plan-card"),
    "compaction": (("s", seeding.BUSY, "p", 3), "", ".counts, .items"),
    "call": (("s", seeding.BUSY, "c", 57), "", ".slot"),
    "messages": (("s", seeding.BUSY, "messages"), "?role=tool", ".message-row"),
    "message": (("s", seeding.BUSY, "m", "m4"), "", ".drawer h3"),
    "why": (("s", seeding.BUSY, "why"), "?q=total", ".verdict"),
    "compare": (("compare",), f"?a={seeding.BUSY}&a_call=50&b={seeding.BUSY}&b_call=60", ".compare-figures"),
    "traces": (("traces",), "", ".trace-row"),
    "trace": (("t", seeding.BUSY), "", ".span-row"),
    "unknown": (("s", "nobody"), "", ".state"),
}


def faults(window: Look) -> list[str]:
    """What axe-core calls serious or worse, with the elements."""
    found = Axe().run(window.page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{fault['id']}: {fault['help']}: {[node['html'][:160] for node in fault['nodes'][:3]]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_serious_fault(
    api: Running, look: Callable[..., Look], view: str, scheme: str, width: int
) -> None:
    path, query, shown = VIEWS[view]
    window = look(api, scheme=scheme, width=width, height=844)
    window.expected += ["404"]
    page = window.go(*path, query=query)
    expect(page.locator(shown).first).to_be_visible()
    assert faults(window) == []


def test_the_field_for_the_token_has_no_serious_fault(tmp_path: Path, look: Callable[..., Look]) -> None:
    with running(f"sqlite:///{tmp_path / 'state.db'}", token="a-token-of-many-characters") as viewer:
        window = look(viewer)
        window.expected += ["401", "ERR_", "Failed to load"]
        expect(window.go().locator(".token")).to_be_visible()
        assert faults(window) == []
        window.page.goto("about:blank")


def test_a_dialog_has_no_serious_fault(own: Running, look: Callable[..., Look]) -> None:
    window = look(own)
    page = window.go("s", seeding.BUSY)
    page.locator("[data-undo]").click()
    expect(page.locator("dialog b").first).to_be_visible()
    assert faults(window) == []


def test_a_span_that_failed_has_no_serious_fault(own: Running, look: Callable[..., Look]) -> None:
    own.send(span(1, trace_id="t1", status="error", data={"output": "the model answered 500"}))
    window = look(own)
    page = window.go("t", "t1")
    page.locator("[data-reveal]").click()
    expect(page.locator(".inspector")).to_contain_text("answered 500")
    assert faults(window) == []
