"""A scripted session that is played with one fault in it, and what must hold whatever the fault is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from compact import CompactConfig, CompactManager, runner
from compact.core.engine.events import CompactionEvent
from compact.core.errors import CompactError
from compact.testing import Wire, WordTokenizer, assistant, tool_exchange, user
from compact.waiting.limits import stalled_stores
from faults.plugins import INTERRUPTS, Fault, Faults, WatchedArchive, watched_sink, watched_store, watched_summarizer
from stores.worker import violations

WINDOW = 400
# Longer than any limit that a session of this folder has, and much shorter than a claim is held.
_TOO_LONG_SECONDS = 12.0
_COUNT = WordTokenizer()


def long_history(turns: int) -> list[Wire]:
    """Questions, calls with results that are moved out of the prompt, and answers that name what was moved."""
    history: list[Wire] = []
    for turn in range(turns):
        size = 90 if turn % 4 == 1 else 12
        call, result = tool_exchange(f"call-{turn}", f"result-{turn}" + " word" * size, path=f"src/file_{turn}.py")
        history += [user(f"question-{turn} must be answered"), call, result, assistant(f"answer-{turn}" + " word" * 12)]
    return history


HISTORY = long_history(18)


@dataclass(frozen=True)
class Call:
    """One call of the script; `is_prompt` if it returns what is sent, which must never fail."""

    name: str
    args: tuple[Any, ...]
    is_prompt: bool = False


def script() -> Iterator[Call]:
    def preflight(length: int) -> Call:
        return Call("preflight", ("s", HISTORY[:length]), is_prompt=True)

    yield preflight(8)
    yield preflight(21)
    yield Call("plan", ("s", HISTORY[:40]))
    yield preflight(33)
    yield Call("observe_usage", ("s", 300))
    yield preflight(45)
    yield Call("undo", ("s",))
    yield Call("manual_compact", ("s", HISTORY[:48]), is_prompt=True)
    yield Call("forget", ("s",))
    yield preflight(60)
    yield preflight(68)


LENGTH = 68
# What may come out of a call that asks a store something, and gets no answer.
_ASKED_IN_VAIN = (CompactError, ConnectionError)


@dataclass
class Played:
    """How a session went."""

    faults: Faults
    breaches: list[str] = field(default_factory=list)
    events: list[CompactionEvent] = field(default_factory=list)
    calls: int = 0

    def breach(self, text: str) -> None:
        self.breaches.append(f"{self.faults.fault} at {self.faults.at} ({self.faults.injected}): {text}")


def manager_with(store: Any, played: Played, *, is_async: bool, prefetch: str = "never") -> CompactManager:
    faults = played.faults
    config = CompactConfig(
        max_context_tokens=WINDOW,
        policy={"hard_cap_buffer": 0, "max_wait_seconds": 1.0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        strategies={
            "enabled": ("deduplicate", "clear", "externalize", "summarize", "drop"),
            "externalize": {"min_tokens": 60},
        },
        state={"timeout_seconds": 0.3},
        summarizer={"prefetch": prefetch, "timeout_seconds": 0.3},
        telemetry={"exporter": "none"},
    )
    return CompactManager(
        config,
        tokenizer=_COUNT,
        store=watched_store(store, faults),
        archive=WatchedArchive(faults),
        summarizer=watched_summarizer(faults, is_async=is_async),
        on_event=watched_sink(faults, played.events),
    )


def play(store: Any, faults: Faults, *, is_async: bool, prefetch: str = "never") -> Played:
    """Play the session from beginning to end; a call that was interrupted is made again, as its caller would."""
    played = Played(faults)
    manager = manager_with(store, played, is_async=is_async, prefetch=prefetch)
    if is_async:
        asyncio.run(_aplay(manager, played))
    else:
        for call in script():
            if not _play_call(manager, call, played):
                _play_call(manager, call, played)
        _expect_quick(played, "close", manager.close)
    faults.end()
    _check_nothing_runs(played)
    _check_stored(store, played)
    return played


def _play_call(manager: CompactManager, call: Call, played: Played) -> bool:
    """Make a call; return False if it was interrupted, and is to be made again."""
    made = lambda: getattr(manager, call.name)(*call.args)  # noqa: E731
    try:
        _check(call, _expect_quick(played, call.name, made), played)
    except BaseException as error:  # noqa: BLE001 - which ones may come out is what is tested
        return _is_expected(error, call, played)
    finally:
        _end_fault(played)
    return True


async def _aplay(manager: CompactManager, played: Played) -> None:
    for call in script():
        if not await _aplay_call(manager, call, played):
            await _aplay_call(manager, call, played)
    await manager.aclose()


async def _aplay_call(manager: CompactManager, call: Call, played: Played) -> bool:
    method = getattr(manager, f"a{call.name}", None)
    if method is None:
        return _play_call(manager, call, played)
    loop, started = asyncio.get_running_loop(), time.monotonic()
    task = asyncio.create_task(method(*call.args))
    played.faults.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
    played.calls += 1
    try:
        async with asyncio.timeout(_TOO_LONG_SECONDS):
            await asyncio.wait([task])
        _check(call, task.result(), played)
    except TimeoutError:
        played.breach(f"{call.name} did not end")
        task.cancel()
    except BaseException as error:  # noqa: BLE001 - which ones may come out is what is tested
        return _is_expected(error, call, played)
    finally:
        _end_fault(played)
        if time.monotonic() - started > _TOO_LONG_SECONDS / 2:
            played.breach(f"{call.name} took {time.monotonic() - started:.1f} s")
        if others := asyncio.all_tasks() - {asyncio.current_task(), task}:
            await asyncio.wait(others, timeout=1)
            if left := [other for other in others if not other.done()]:
                played.breach(f"{len(left)} tasks are left of {call.name}")
    return True


def _expect_quick(played: Played, name: str, call: Callable[[], Any]) -> Any:
    started = time.monotonic()
    played.calls += 1
    try:
        return call()
    finally:
        if time.monotonic() - started > _TOO_LONG_SECONDS / 2:
            played.breach(f"{name} took {time.monotonic() - started:.1f} s")


def _end_fault(played: Played) -> None:
    """Let all be well again once the fault was met, and wait until what hung is back."""
    if not played.faults.injected or played.faults.is_over:
        return
    played.faults.end()
    for _ in range(500):
        if not stalled_stores()._stalled:
            return
        time.sleep(0.01)
    played.breach("a store is still taken to hang")


def _is_expected(error: BaseException, call: Call, played: Played) -> bool:
    """Return False if the call is to be made again; note a breach if nothing like it may come out of that call."""
    fault = played.faults.fault
    if isinstance(error, KeyboardInterrupt) and fault in (Fault.INTERRUPT, Fault.INTERRUPT_LATE):
        return False
    if isinstance(error, asyncio.CancelledError) and fault in INTERRUPTS and played.faults.cancel:
        return False
    if not call.is_prompt and isinstance(error, _ASKED_IN_VAIN):
        return False
    played.breach(f"{call.name} raised {type(error).__name__}: {error}")
    return True


def _check(call: Call, answer: Any, played: Played) -> None:
    """Check a prompt: legal, within the budget, and the newest message in it."""
    if not call.is_prompt:
        return
    if illegal := violations(answer):
        played.breach(f"{call.name} returned an illegal prompt: {illegal}")
    from compact.core.messages.entries import read_entry

    tokens = sum(_COUNT.count_message(read_entry(item, "prompt")) for item in answer)
    if tokens > WINDOW:
        played.breach(f"{call.name} returned {tokens} tokens")
    if answer[-1] != call.args[1][-1]:
        played.breach(f"{call.name} lost the newest message")


def _check_nothing_runs(played: Played) -> None:
    """Wait a moment for threads that made a call which hung: all of them must be without work then."""
    pools = (runner._store_threads(), runner._waiters())
    for _ in range(300):
        with pools[0]._lock, pools[1]._lock:
            if all(pool._threads == pool._idle and not pool._waiting for pool in pools):
                break
        time.sleep(0.01)
    else:
        played.breach("a thread still works")
    known = ("compact-worker", "compact-store", "compact-waiter", "compact-prefetch", "compact-starter")
    if strange := [
        t.name for t in threading.enumerate() if t.name.startswith("compact") and not t.name.startswith(known)
    ]:
        played.breach(f"threads are left: {strange}")


def _check_stored(store: Any, played: Played) -> None:
    """Check that the store has all that was acknowledged, in order and once, and that another process goes on."""
    fresh = Played(Faults())
    manager = manager_with(store, fresh, is_async=False)
    with manager:
        stored = [message.original for message in manager.history("s")]
        if stored != HISTORY[:LENGTH]:
            played.breach(f"the store has {len(stored)} of {LENGTH} messages, or others")
        _play_call(manager, Call("preflight", ("s", HISTORY), is_prompt=True), fresh)
    played.breaches += [f"{breach}, in the next process after {played.faults}" for breach in fresh.breaches]
