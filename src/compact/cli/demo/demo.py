"""`compact demo`: a session of three windows goes through one window while you watch."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import Model, Window
from compact.cli.settings import in_memory, load_config
from compact.core.audit.store import StoreError

if TYPE_CHECKING:
    from compact.cli.demo.drawing import Frame
    from compact.cli.demo.replay import DemoResults, Replay, WireMessage
    from compact.config import CompactConfig

# Chosen: long enough to see the window fill and empty, short enough to watch to the end.
_SHOW_SECONDS = 8.0
_HOLD_SECONDS = 0.4
_FRAME_SECONDS = 1 / 30
_LISTED_COMPACTIONS = 8
_STORE = "sqlite:///.compact/demo.db"

Fast = Annotated[bool, typer.Option("--fast", help="Do not slow down for the eye.")]


def demo(model: Model = None, window: Window = None, fast: Fast = False) -> None:
    """Replay a long coding session through a small window.

    The session comes with the package: no key, no network and no model are needed.
    """
    from compact.cli.demo.replay import DemoResults, load_session, protected_messages

    settings = in_memory(load_config(model=model, window=window))
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
    for topic, text in _summary(replay, results, protected_messages(replay.history)[0]["meta"]["label"]):
        screen.line(f"{topic:<12}{text}")
    replay.close()
    screen.line(f"{'next':<12}compact plan FILE is a dry run; compact report SESSION lists losses")
    if store_url:
        screen.line(f"{'see it':<12}{_view_command(store_url)}")
    if not all(call.has_protected for call in results.calls):
        raise typer.Exit(1)


def _open_replay(settings: CompactConfig, history: list[WireMessage]) -> tuple[Replay, str]:
    """Return the replay and the URL of its store; an empty URL if nothing can be written here."""
    from compact.cli.demo.replay import Replay

    stored = settings.model_copy(update={"state": settings.state.model_copy(update={"url": _STORE})})
    try:
        return Replay(stored, history), _STORE
    except StoreError as error:
        screen.notice(f"the session is not stored: {error.message}", label="note", style="yellow")
        return Replay(settings, history), ""


def _view_command(store_url: str) -> str:
    """Return the command that shows this session in the browser."""
    from compact.cli.demo.replay import SESSION

    # In a virtual environment that is not activated, the command is called by its path.
    program = "compact" if which("compact") or not sys.argv[0].endswith("compact") else sys.argv[0]
    return shlex.join((program, "view", "--store", store_url, "--session", SESSION))


def _print(replay: Replay, results: DemoResults) -> None:
    """Print one line per compaction."""
    for call in replay:
        results.add(call)
        if call.compaction:
            done = call.compaction
            tokens = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
            place = f"compaction {done.number} at message {done.message + 1:,}"
            screen.line(f"{place}: {tokens} ({done.work}), {done.milliseconds:.0f} ms")


def _draw(replay: Replay, results: DemoResults, fast: bool) -> None:
    """Draw the window as it fills; the last frame stays on the screen and lists every compaction."""
    from rich.live import Live

    pause = 0.0 if fast else _SHOW_SECONDS / len(replay.call_places)
    due = drawn_at = time.monotonic()
    with Live(console=screen.console(), auto_refresh=False) as live:
        for call in replay:
            results.add(call)
            if call.compaction:
                live.update(_frame(replay, results, call.tokens_before, is_compacting=True), refresh=True)
                time.sleep(0 if fast else _HOLD_SECONDS)
                due += _HOLD_SECONDS
            elif time.monotonic() - drawn_at >= _FRAME_SECONDS:
                live.update(_frame(replay, results, call.sent_tokens), refresh=True)
                drawn_at = time.monotonic()
            due += pause
            time.sleep(0 if fast else max(0.0, due - time.monotonic()))
        last = _frame(replay, results, results.calls[-1].sent_tokens, listed=len(results.compactions))
        live.update(last, refresh=True)


def _frame(
    replay: Replay,
    results: DemoResults,
    used_tokens: int,
    *,
    is_compacting: bool = False,
    listed: int = _LISTED_COMPACTIONS,
) -> Frame:
    from compact.cli.demo.drawing import Frame

    return Frame(
        calls=results.calls,
        total_calls=len(replay.call_places),
        messages=len(replay.history),
        budget=replay.budget,
        used_tokens=used_tokens,
        compactions=results.compactions[-listed:] if listed else [],
        is_compacting=is_compacting,
    )


def _summary(replay: Replay, results: DemoResults, label: str) -> Iterator[tuple[str, str]]:
    """Yield what happened, and what was checked, topic by topic."""
    window, total = replay.budget.max_context_tokens, sum(replay.tokens)
    yield "session", f"{len(replay.history):,} messages, {total:,} tokens: {total / window:.1f} windows of {window:,}"
    yield "compacted", f"{screen.quantity(len(results.compactions), 'time')}, with {len(results.calls):,} model calls"
    largest = results.largest_sent_tokens
    fits = "never over" if largest <= window else "OVER"
    yield "largest", f"{largest:,} tokens in one prompt, {screen.percentage(largest, window)} of the window: {fits}"
    missing = [call for call in results.calls if not call.has_protected]
    kept = "in every prompt since it was given, verbatim"
    yield "protected", f"{label}: {kept if not missing else f'MISSING in {len(missing):,} prompts'}"
    if results.compactions:
        yield "removed", _removed_strings(replay)
    extending = sum(call.extends_previous for call in results.calls)
    yield "cache", f"{extending:,} of {len(results.calls):,} prompts extend the one before, byte for byte"
    yield "preflight", f"p50 {results.milliseconds(50):.1f} ms, p99 {results.milliseconds(99):.1f} ms"


def _removed_strings(replay: Replay) -> str:
    """Return where the paths, ids, numbers and names are whose messages left the prompt."""
    from compact.core.audit.report import EntityState

    reports = replay.reports()
    totals = {state: sum(report.total(state) for report in reports) for state in EntityState}
    in_prompt = totals[EntityState.KEPT] + totals[EntityState.IN_LEDGER]
    retrievable, lost = totals[EntityState.RETRIEVABLE], totals[EntityState.LOST]
    strings = screen.quantity(sum(totals.values()), "string")
    return f"{strings}: {in_prompt:,} still in the prompt, {retrievable:,} retrievable, {lost:,} lost"
