"""Every call of every plug-in goes wrong once, in every way: the session goes on, and nothing of it is lost.

The short form takes a few calls for each kind of fault; `make soak` takes all of them, on SQLite, too.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from faults.plugins import NOT_FOR_SINKS, BlockingMemory, Fault, Faults
from faults.sessions import play
from sizes import SOAK
from soak_counts import SoakCounts

# How many calls of a session go wrong in the short form, for each kind of fault.
_SHORT = 2
# Which of the many calls of an event sink are tried: all of them are made in the same way.
_SINK_STEP = 9


@cache
def calls_of_a_session(prefetch: str) -> tuple[str, ...]:
    """The names of all calls that plug-ins get in a session without a fault, in order."""
    faults = Faults()
    played = play(BlockingMemory(), faults, is_async=False, prefetch=prefetch)
    assert played.breaches == []
    return tuple(faults.names)


def places(fault: Fault, prefetch: str) -> Iterator[int]:
    """Which calls go wrong: every one, but only some of an event sink."""
    seen = Counter[str]()
    for number, name in enumerate(calls_of_a_session(prefetch), 1):
        seen[name] += 1
        if name != "sink" or (fault not in NOT_FOR_SINKS and seen[name] % _SINK_STEP == 0):
            yield number


def chosen(fault: Fault, *, is_async: bool) -> list[int]:
    """In the short form a few calls, others for each kind of fault; in a soak all of them."""
    every = list(places(fault, "never"))
    first = 7 * list(Fault).index(fault) + 3 * is_async
    return every if SOAK else [every[(first + n * len(every) // _SHORT) % len(every)] for n in range(_SHORT)]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


def inject(store: Any, faults: Faults, soak: SoakCounts, **how: Any) -> list[str]:
    """Play a session in which calls go wrong, and count it; return the breaches."""
    breaches = play(store, faults, **how).breaches
    soak.add(faults=bool(faults.injected), breaches=len(breaches))
    return breaches


@pytest.mark.soak
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.value)
def test_whichever_call_goes_wrong_the_session_goes_on(fault: Fault, is_async: bool, soak: SoakCounts) -> None:
    breaches: list[str] = []
    for number in chosen(fault, is_async=is_async):
        breaches += inject(BlockingMemory(), Faults(fault, number), soak, is_async=is_async)
    assert breaches == []
    assert soak.faults == soak.cases, "each case met its fault"


@pytest.mark.soak
@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.HANG, Fault.INTERRUPT_LATE], ids=lambda fault: fault.value)
def test_a_store_that_stays_away_for_a_whole_call_is_written_to_when_it_is_back(fault: Fault, soak: SoakCounts) -> None:
    """From one call on all of them go wrong, until the turn is over."""
    breaches: list[str] = []
    for number in list(places(fault, "never"))[:: 1 if SOAK else 30]:
        breaches += inject(BlockingMemory(), Faults(fault, number, lasts=True), soak, is_async=False)
    assert breaches == []


@pytest.mark.soak
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_no_file_or_connection_is_left_on_sqlite(tmp_path: Path, is_async: bool, soak: SoakCounts) -> None:
    files, breaches = open_files(), list[str]()
    for fault in Fault if SOAK else (Fault.FAIL_LATE, Fault.LIE):
        for number in list(places(fault, "never"))[:: 5 if SOAK else 40]:
            database = Database(f"sqlite:///{tmp_path}/{fault.name}-{number}/state.db")
            breaches += inject(SqlCompactionStore(database), Faults(fault, number), soak, is_async=is_async)
            pool = database._engine.pool
            if pool.checkedout():  # type: ignore[attr-defined]
                breaches.append(f"{fault} at {number}: {pool.status()}")
            database.close()
    assert breaches == []
    gc.collect()
    assert open_files() <= files + 2, "a loop or a pool may keep a file or two"


@pytest.mark.soak
def test_a_fault_while_summaries_are_prefetched(soak: SoakCounts) -> None:
    """Where a thread prefetches, the order of calls is not the same each time: whichever is the n-th goes wrong."""
    breaches: list[str] = []
    for fault in (Fault.FAIL, Fault.HANG, Fault.LIE, Fault.INTERRUPT):
        for number in range(20, 120, 3 if SOAK else 40):
            for is_async in (False, True) if SOAK else (False,):
                faults = Faults(fault, number)
                breaches += inject(BlockingMemory(), faults, soak, is_async=is_async, prefetch="auto")
    assert breaches == []
