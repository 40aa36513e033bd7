"""`compact demo`: an agent's session of six windows goes through one window while you watch."""

from __future__ import annotations

import shlex
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import Model, Window
from compact.cli.settings import in_memory, load_config
from compact.core.audit.store import StoreError
from compact.extras import install_line

if TYPE_CHECKING:
    from compact.cli.demo.drawing import Frame
    from compact.cli.demo.replay import DemoResults, Replay, WireMessage
    from compact.config import CompactConfig

# Chosen: long enough to see the window fill and empty, short enough to watch to the end.
_SHOW_SECONDS = 6.0
_HOLD_SECONDS = 0.3
_FRAME_SECONDS = 1 / 30
_LISTED_CHANGES = 8
# Chosen: small enough that clearing tool results is not enough and summaries are written.
_WINDOW_TOKENS = 64_000
_STORE = "sqlite:///.compact/demo.db"
_VIEWER_PACKAGES = ("starlette", "uvicorn")
_TOPIC_COLUMNS = 13
_STYLES = {"failed": "red", "instead": "red", "undone": "yellow", "cost": "green"}

Fast = Annotated[bool, typer.Option("--fast", help="Do not pause between the steps.")]


def demo(model: Model = None, window: Window = None, fast: Fast = False) -> None:
    """Run a long coding session through a small window.

    The session is part of the package, and a script takes the place of its models: no key and no network are needed.
    One summary fails on purpose, and that compaction is undone. The window is 64,000 tokens, unless you set another.
    """
    from compact.cli.demo.replay import DemoResults, load_session
    from compact.cli.demo.story import story

    settings = load_config(model=model, window=window)
    if settings.max_context_tokens is None:
        settings = settings.model_copy(update={"max_context_tokens": _WINDOW_TOKENS})
    with screen.spinner("counting the session"):
        replay, store_url = _open_replay(settings, load_session())
    messages, tokens = len(replay.history), sum(replay.tokens)
    screen.line(
        f"{messages:,} messages, {tokens:,} tokens, through a window of {replay.budget.max_context_tokens:,} "
        f"({settings.model})",
        style="bold",
    )
    screen.line()
    results = DemoResults()
    if screen.is_terminal(sys.stdout) and not screen.console().is_dumb_terminal:
        _draw(replay, results, fast)
    else:
        _print(replay, results)
    screen.line()
    for topic, text in story(replay, results):
        _print_topic(topic, text)
    replay.close()
    if store_url:
        screen.line()
        if not all(map(find_spec, _VIEWER_PACKAGES)):
            screen.line(f"{'first':<{_TOPIC_COLUMNS}}{install_line('viewer')}")
        screen.line(f"{'see it':<{_TOPIC_COLUMNS}}{_view_command(store_url)}", style="bold")
    if not results.has_kept_all:
        raise typer.Exit(1)


def _print_topic(topic: str, text: str) -> None:
    """Print what is said of a topic; on a terminal, lines that are too long go on under their beginning."""
    room = screen.console().width - _TOPIC_COLUMNS
    lines = wrap(text, max(room, 1)) if screen.is_terminal(sys.stdout) else [text]
    for number, line in enumerate(lines):
        screen.line(f"{'' if number else topic:<{_TOPIC_COLUMNS}}{line}", style=_STYLES.get(topic, ""))


def _open_replay(settings: CompactConfig, history: list[WireMessage]) -> tuple[Replay, str]:
    """Return the replay and the URL of its store; an empty URL if nothing can be written here."""
    from compact.cli.demo.replay import Replay

    quiet = in_memory(settings)
    # With the events of the session, which the viewer shows as its trace.
    stored = quiet.model_copy(update={"state": settings.state.model_copy(update={"url": _STORE})})
    try:
        return Replay(stored, history), _STORE
    except StoreError as error:
        screen.notice(f"the session is not stored: {error.message}", label="note", style="yellow")
        return Replay(quiet, history), ""


def _view_command(store_url: str) -> str:
    """Return the command that shows this session in the browser."""
    from compact.cli.demo.replay import SESSION

    return shlex.join((_program(), "view", "--store", store_url, "--session", SESSION))


def _program() -> str:
    """Return how this very command is called: by its path, unless its name alone leads to it."""
    called, found = Path(sys.argv[0]), which("compact")
    if called.stem != "compact" or not called.exists() or (found and called.samefile(found)):
        return "compact"
    return sys.argv[0]


def _print(replay: Replay, results: DemoResults) -> None:
    """Print one line per compaction, and per undo."""
    from compact.cli.demo.story import change_line

    for call in replay:
        results.add(call)
        for change in (call.undo, call.compaction):
            if change:
                screen.line(change_line(change))


def _draw(replay: Replay, results: DemoResults, fast: bool) -> None:
    """Draw the window as it fills; the last frame stays on the screen and lists every compaction."""
    from rich.live import Live

    pause = 0.0 if fast else _SHOW_SECONDS / len(replay.call_places)
    due = drawn_at = time.monotonic()
    with Live(console=screen.console(), auto_refresh=False) as live:
        for call in replay:
            results.add(call)
            if call.compaction or call.undo:
                frame = _frame(replay, results, call.tokens_before, is_compacting=call.compaction is not None)
                live.update(frame, refresh=True)
                time.sleep(0 if fast else _HOLD_SECONDS)
                due += _HOLD_SECONDS
            elif time.monotonic() - drawn_at >= _FRAME_SECONDS:
                live.update(_frame(replay, results, call.sent_tokens), refresh=True)
                drawn_at = time.monotonic()
            due += pause
            time.sleep(0 if fast else max(0.0, due - time.monotonic()))
        last = _frame(replay, results, results.calls[-1].sent_tokens, listed=len(results.changes))
        live.update(last, refresh=True)


def _frame(
    replay: Replay,
    results: DemoResults,
    used_tokens: int,
    *,
    is_compacting: bool = False,
    listed: int = _LISTED_CHANGES,
) -> Frame:
    from compact.cli.demo.drawing import Frame

    return Frame(
        calls=results.calls,
        total_calls=len(replay.call_places),
        messages=len(replay.history),
        budget=replay.budget,
        used_tokens=used_tokens,
        changes=results.changes[-listed:] if listed else [],
        is_compacting=is_compacting,
    )
