"""Stores, archives, summarisers and event sinks whose n-th call goes wrong, in a way that is chosen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from compact import Message, StructuredSummary, SummaryRequest
from compact.core.audit.records import PrefetchedSummary, SessionHead, StoredSession
from compact.core.engine.events import CompactionEvent
from compact.stores.memory import InMemoryCompactionStore
from compact.summarizers.extractive import extractive_summary


class Fault(Enum):
    """What a call does instead of what it should do."""

    FAIL = "fail"
    FAIL_LATE = "fail late"  # it is done, and nobody is told
    HANG = "hang"
    LIE = "lie"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    INTERRUPT_LATE = "interrupt late"


# A function that gets events is called by the turn itself: who hangs in it hangs the turn, and nobody cancels there.
NOT_FOR_SINKS = (Fault.HANG, Fault.CANCEL)
INTERRUPTS = (Fault.CANCEL, Fault.INTERRUPT, Fault.INTERRUPT_LATE)


@dataclass
class Faults:
    """Counts the calls of all plug-ins, and has the `at`-th of them go wrong, and with `lasts` all after it."""

    fault: Fault | None = None
    at: int = 0
    lasts: bool = False
    # How an event loop takes an interrupt: it cancels the task. Without one the interrupt is raised.
    cancel: Callable[[], None] | None = None
    names: list[str] = field(default_factory=list)
    injected: str = ""
    is_over: bool = False
    released: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """From now on all is well again, and what hangs goes on."""
        self.is_over = True
        self.released.set()

    def call(self, name: str, call: Callable[[], Any], lie: Callable[[], Any]) -> Any:
        """Make a call of a plug-in, or do something else instead."""
        fault = self._fault_of(name)
        if fault is Fault.HANG:
            assert self.released.wait(60), "whoever hangs a call releases it"
        return self._do(fault, name, call, lie)

    async def acall(self, name: str, call: Callable[[], Any], lie: Callable[[], Any]) -> Any:
        """The same for a plug-in that is awaited."""
        fault = self._fault_of(name)
        if fault is Fault.HANG:
            await asyncio.sleep(60)
        return self._do(fault, name, call, lie)

    def _do(self, fault: Fault | None, name: str, call: Callable[[], Any], lie: Callable[[], Any]) -> Any:
        if fault is None:
            return call()
        if fault is Fault.LIE:
            return lie()
        if fault in INTERRUPTS:
            return self._interrupt(fault, call)
        if fault is Fault.FAIL_LATE:
            call()
        raise ConnectionError(f"{name}: the connection was lost")

    def _interrupt(self, fault: Fault, call: Callable[[], Any]) -> Any:
        answer = call() if fault is Fault.INTERRUPT_LATE else None
        if self.cancel is None:
            raise asyncio.CancelledError if fault is Fault.CANCEL else KeyboardInterrupt
        self.cancel()
        return answer if fault is Fault.INTERRUPT_LATE else call()

    def _fault_of(self, name: str) -> Fault | None:
        with self._lock:
            self.names.append(name)
            number = len(self.names)
            is_due = number == self.at or (self.lasts and number > self.at > 0)
            if self.is_over or self.fault is None or not is_due:
                return None
            if name == "sink" and self.fault in NOT_FOR_SINKS:
                return None
            self.injected = self.injected or name
            return self.fault


def _nothing() -> None:
    return None


# What a store says that is not so. Anything else says None.
LIES: Mapping[str, Callable[[Any], Any]] = {
    "head": lambda _: SessionHead(last_seq=3, plan_version=1),
    "load": lambda told: _torn(told),
    "commit": lambda _: SessionHead(last_seq=2),
    "plans": lambda _: (),
    "claim": lambda _: False,
    "wait": lambda _: None,
    "prefetched": lambda _: PrefetchedSummary(("no such message",), 1, StructuredSummary(narrative="Of others.")),
    "get": lambda _: StructuredSummary(narrative="Of others."),
}


def _torn(stored: StoredSession | None) -> StoredSession | None:
    """A session whose newest entries are missing, though the list of what the caller sees names them."""
    return stored and replace(stored, messages=stored.messages[:-2])


class Watched:
    """Any object, with each call of its methods through `Faults`; what is in `parts` is watched, too."""

    def __init__(self, target: object, faults: Faults, label: str, parts: Sequence[str] = ()) -> None:
        self.target, self._faults, self._label = target, faults, label
        for name in dir(target):
            if name.startswith("_"):
                continue
            value = getattr(target, name)
            if name in parts:
                setattr(self, name, Watched(value, faults, name))
            elif callable(value) and name != "close":
                setattr(self, name, self._watched(name, value))
            else:
                setattr(self, name, value)

    def _watched(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        reads = name in ("head", "load", "plans", "claim", "wait", "prefetched", "get")

        def call(*args: Any, **kwargs: Any) -> Any:
            def lie() -> Any:
                told = method(*args, **kwargs) if reads else None
                return LIES.get(name, lambda _: None)(told)

            return self._faults.call(f"{self._label}.{name}", lambda: method(*args, **kwargs), lie)

        return call


def watched_store(store: Any, faults: Faults) -> Any:
    """A store that may block, with its artifacts, claims and summaries, all of them watched."""
    watched = Watched(store, faults, "store", ("artifacts", "claims", "summaries"))
    watched.blocks = True
    return watched


class BlockingMemory(InMemoryCompactionStore):
    """The store in memory, called as one on a disk is."""

    blocks = True


@dataclass
class WatchedArchive:
    """Keeps what it is given."""

    faults: Faults
    saved: list[tuple[str, int]] = field(default_factory=list)

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        return self.faults.call("archive.save_transcript", lambda: self._save("transcript", step), _nothing)

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        return self.faults.call("archive.save_summary", lambda: self._save("summary", step), _nothing)

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Do nothing: events are watched where they are made."""

    def _save(self, what: str, step: int) -> str:
        self.saved.append((what, step))
        return f"{what}-{step}"


def watched_summarizer(faults: Faults, *, is_async: bool) -> Callable[[SummaryRequest], Any]:
    def lie() -> Any:
        return {"narrative": "no summary at all"}

    def summarize(request: SummaryRequest) -> Any:
        return faults.call("summarizer", lambda: extractive_summary(request), lie)

    async def asummarize(request: SummaryRequest) -> Any:
        return await faults.acall("summarizer", lambda: extractive_summary(request), lie)

    return asummarize if is_async else summarize


def watched_sink(faults: Faults, events: list[CompactionEvent]) -> Callable[[CompactionEvent], None]:
    def sink(event: CompactionEvent) -> None:
        faults.call("sink", lambda: events.append(event), _nothing)

    return sink
