"""`compact demo`: a session of three windows goes through one, before your eyes."""

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
from compact.cli.settings import load_config, quiet
from compact.core.audit.store import StoreError

if TYPE_CHECKING:
    from compact.cli.demo_replay import Replay, Tally, Wire
    from compact.cli.demo_view import Frame
    from compact.config import CompactConfig

_SHOW_SECONDS = 8.0
_HOLD_SECONDS = 0.4
_FRAME_SECONDS = 1 / 30
_LISTED_ROUNDS = 8
_STORE = "sqlite:///.compact/demo.db"

Fast = Annotated[bool, typer.Option("--fast", help="Do not slow down for the eye.")]


def demo(model: Model = None, window: Window = None, fast: Fast = False) -> None:
    """Replay a long coding session through a small window.

    The session is generated and comes with the package: no key, no network, no model.
    """
    from compact.cli.demo_replay import Tally, load_session, protected_messages

    settings = quiet(load_config(model=model, window=window))
    with screen.working("counting the session"):
        replay, place = _replay(settings, load_session())
    messages, tokens = len(replay.history), sum(replay.tokens)
    screen.line(
        f"{messages:,} messages, {tokens:,} tokens, through a window of {replay.budget.max_context_tokens:,} "
        f"({settings.model})",
        style="bold",
    )
    screen.line()
    tally = Tally()
    if screen.is_live(sys.stdout) and not screen.console().is_dumb_terminal:
        _show(replay, tally, fast)
    else:
        _report(replay, tally)
    screen.line()
    for topic, text in _summary(replay, tally, protected_messages(replay.history)[0]["meta"]["label"]):
        screen.line(f"{topic:<12}{text}")
    replay.close()
    screen.line(f"{'next':<12}compact plan FILE: what would go; compact report SESSION: what went")
    if place:
        screen.line(f"{'see it':<12}{_command(place)}")
    if not all(step.has_protected for step in tally.steps):
        raise typer.Exit(1)


def _replay(settings: CompactConfig, history: list[Wire]) -> tuple[Replay, str]:
    """The session on its way into a store of its own, and where that is; nowhere if nothing can be written here."""
    from compact.cli.demo_replay import Replay

    kept = settings.model_copy(update={"state": settings.state.model_copy(update={"url": _STORE})})
    try:
        return Replay(kept, history), _STORE
    except StoreError as error:
        screen.remark(f"the session is not kept: {error.message}", label="note", style="yellow")
        return Replay(settings, history), ""


def _command(place: str) -> str:
    """What shows this session in the browser."""
    from compact.cli.demo_replay import SESSION

    # Run from a folder of its own it is called by its path.
    program = "compact" if which("compact") or not sys.argv[0].endswith("compact") else sys.argv[0]
    return shlex.join((program, "view", "--store", place, "--session", SESSION))


def _report(replay: Replay, tally: Tally) -> None:
    """One line per compaction."""
    for step in replay:
        tally.add(step)
        if step.round:
            done = step.round
            tokens = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
            place = f"round {done.number} at message {done.message + 1:,}"
            screen.line(f"{place}: {tokens} ({done.work}), {done.milliseconds:.0f} ms")


def _show(replay: Replay, tally: Tally, fast: bool) -> None:
    """The live view; at the end it stays on the screen with every round."""
    from rich.live import Live

    pause = 0.0 if fast else _SHOW_SECONDS / len(replay.call_places)
    due = drawn_at = time.monotonic()
    with Live(console=screen.console(), auto_refresh=False) as live:
        for step in replay:
            tally.add(step)
            if step.round:
                live.update(_frame(replay, tally, step.arrived_tokens, is_compacting=True), refresh=True)
                time.sleep(0 if fast else _HOLD_SECONDS)
                due += _HOLD_SECONDS
            elif time.monotonic() - drawn_at >= _FRAME_SECONDS:
                live.update(_frame(replay, tally, step.sent_tokens), refresh=True)
                drawn_at = time.monotonic()
            due += pause
            time.sleep(0 if fast else max(0.0, due - time.monotonic()))
        live.update(_frame(replay, tally, tally.steps[-1].sent_tokens, listed_rounds=len(tally.rounds)), refresh=True)


def _frame(
    replay: Replay,
    tally: Tally,
    used_tokens: int,
    *,
    is_compacting: bool = False,
    listed_rounds: int = _LISTED_ROUNDS,
) -> Frame:
    from compact.cli.demo_view import Frame

    return Frame(
        steps=tally.steps,
        calls=len(replay.call_places),
        messages=len(replay.history),
        budget=replay.budget,
        used_tokens=used_tokens,
        rounds=tally.rounds[-listed_rounds:] if listed_rounds else [],
        is_compacting=is_compacting,
    )


def _summary(replay: Replay, tally: Tally, label: str) -> Iterator[tuple[str, str]]:
    """What was seen, and what held."""
    window, total = replay.budget.max_context_tokens, sum(replay.tokens)
    yield "session", f"{len(replay.history):,} messages, {total:,} tokens: {total / window:.1f} windows of {window:,}"
    yield "compacted", f"{screen.counted(len(tally.rounds), 'time')}, with {len(tally.steps):,} model calls"
    largest = tally.largest_sent_tokens
    fits = "never over" if largest <= window else "OVER"
    yield "largest", f"{largest:,} tokens in one prompt, {screen.share(largest, window)} of the window: {fits}"
    missing = [step for step in tally.steps if not step.has_protected]
    kept = "in every prompt since it was given, verbatim"
    yield "protected", f"{label}: {kept if not missing else f'MISSING in {len(missing):,} prompts'}"
    if tally.rounds:
        yield "took out", _taken_out(replay)
    extending = sum(step.extends_last for step in tally.steps)
    yield "cache", f"{extending:,} of {len(tally.steps):,} prompts extend the one before, byte for byte"
    yield "preflight", f"p50 {tally.milliseconds(50):.1f} ms, p99 {tally.milliseconds(99):.1f} ms"


def _taken_out(replay: Replay) -> str:
    """The paths, ids, numbers and names that left with their messages, and where they are."""
    from compact.core.audit.report import EntityState

    reports = replay.reports()
    totals = {state: sum(report.total(state) for report in reports) for state in EntityState}
    shown = totals[EntityState.KEPT] + totals[EntityState.IN_LEDGER]
    retrievable, lost = totals[EntityState.RETRIEVABLE], totals[EntityState.LOST]
    all_of_them = screen.counted(sum(totals.values()), "string")
    return f"{all_of_them}: {shown:,} still in the prompt, {retrievable:,} retrievable, {lost:,} lost"
