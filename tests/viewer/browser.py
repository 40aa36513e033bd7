"""A real browser, which notices what the page must not do.

A test module gets the fixtures by `pytest_plugins = ("viewer.browser",)`. The browser lives as long as one module:
playwright keeps an event loop running in this thread, which other tests could not work beside.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect, sync_playwright

from viewer.serving import PATIENCE_SECONDS, Running, part

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = PATIENCE_SECONDS * 1000
expect.set_options(timeout=PATIENCE_MS)


# The texts that stand out too little from what is behind them, each with its ratio: 4.5 to 1 is the least.
_WEAK_TEXTS = """(texts) => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((n) => n / 255).map((n) => (n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = read(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const weak = [];
  for (const element of document.querySelectorAll(texts)) {
    if (!element.textContent.trim() || !element.getClientRects().length) continue;
    const [a, b] = [read(getComputedStyle(element).color), behind(element)].map((c) => light(c.slice(0, 3)));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(`${element.className || element.tagName} ${ratio.toFixed(2)}`);
  }
  return weak;
}"""


@dataclass
class Look:
    """One window of the browser: what it asked of others, and what the page complained about, is written down."""

    page: Page
    base: str
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def go(self, *path: object, query: str = "") -> Page:
        """Open a place in the page, from scratch."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base}/#/{'/'.join(part(str(piece)) for piece in path)}{query}")
        self.page.locator("#view .page > *:not(.skeleton), #view .state").first.wait_for(state="attached")
        return self.page

    def until(self, script: str) -> None:
        """Wait until a condition holds in the page; asked from here, for the page itself may not evaluate text."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.page.evaluate(script):
            assert time.monotonic() < deadline, script
            self.page.wait_for_timeout(50)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate(
            "Math.max(document.documentElement.scrollWidth - innerWidth,"
            " document.getElementById('view').scrollWidth - document.getElementById('view').clientWidth)"
        )

    def watch(self) -> None:
        """Write down what must not happen."""
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        # A pattern, not a function: what stays on the machine does not take the way through this process.
        self.page.route(re.compile(rf"^(?!{re.escape(self.base)}/)"), self._refuse)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.expected):
            self.complaints.append(f"{message.type}: {message.text}")

    def _refuse(self, route: Route) -> None:
        self.foreign.append(route.request.url)
        route.abort()

    def close(self) -> None:
        """Nothing may have left the machine, and nothing may have gone wrong."""
        self.page.context.close()
        assert self.foreign == []
        assert self.complaints == []

    def weak_texts(self, selector: str) -> list[str]:
        """The texts of the page that cannot be read well, of those that a selector finds."""
        found: list[str] = self.page.evaluate(_WEAK_TEXTS, selector)
        return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of this system."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def look(chromium: Browser) -> Iterator[Callable[..., Look]]:
    """Open windows; what the page must not do is checked when they close.

    A test names it after its server: fixtures end in the opposite order, and a page complains when its server ends.
    """
    opened: list[Look] = []

    def open_window(viewer: Running | str, *, width: int = 1280, height: int = 860, scheme: Any = "dark") -> Look:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        opened.append(Look(context.new_page(), viewer if isinstance(viewer, str) else viewer.url))
        opened[-1].watch()
        return opened[-1]

    yield open_window
    for window in opened:
        window.close()
