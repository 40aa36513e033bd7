"""Many sessions at once: all are answered, and none is ever given a word of another.

The full size, which `make soak` runs, is 500 sessions in one event loop, 8 processes on PostgreSQL for ten minutes, and
200 streams at once through the proxy. `COMPACT_TEST_LOAD_SECONDS` makes the ten minutes shorter.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import httpx2
import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
from compact.testing import RecordingSink, WordTokenizer, user
from load import worker
from load.sessions import Load, canary, strangers, turn
from proxying.conftest import running
from proxying.models import Model, Turn
from proxying.provider import Part, Provider, Received
from sizes import LOAD_SECONDS, SOAK
from soak_counts import SoakCounts
from stalls import watched_loop
from stores.worker import finish, manager_on

SESSIONS, TURNS, WINDOW = (500, 12, 1_200) if SOAK else (16, 6, 600)
# How long an agent waits for its model and its tools between two calls, at most.
PAUSE_SECONDS = 10.0 if SOAK else 0.2
PROCESSES = 8 if SOAK else 2
STREAMS, REQUESTS = (200, 8) if SOAK else (20, 4)


def config(folder: Path, window: int) -> CompactConfig:
    return CompactConfig(
        model="gpt-4o",
        max_context_tokens=window,
        policy={"hard_cap_buffer": 100},
        state={"url": f"sqlite:///{folder}/state.db"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        tokenizer="simple",
    )


# -- one event loop ---------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_many_sessions_in_one_event_loop(tmp_path: Path, soak: SoakCounts) -> None:
    load, sink, chance = Load(), RecordingSink(), random.Random(1)

    async def talk(manager: CompactManager, session: int) -> None:
        history: list[Any] = []
        for number in range(TURNS):
            await asyncio.sleep(chance.uniform(0, PAUSE_SECONDS))
            history += turn(session, number)
            with load.call():
                prompt = await manager.apreflight(f"s-{session}", history)
            load.check(prompt, session)
        answer = str(await manager.arecall(f"s-{session}", "free berths at quay 2"))
        load.check(answer, session)
        if canary(session) not in answer:
            load.errors.append(f"session {session}: recall found nothing")

    async def run() -> float:
        plugs: dict[str, Any] = {"on_event": sink, "tokenizer": WordTokenizer()}
        async with CompactManager(config(tmp_path, WINDOW), **plugs) as manager, watched_loop() as longest:
            with load.measured():
                await asyncio.gather(*(talk(manager, session) for session in range(SESSIONS)))
            return longest.seconds

    stall = asyncio.run(run())
    with CompactManager(config(tmp_path, WINDOW)) as manager:
        for session in range(SESSIONS):
            stored = [message.original for message in manager.history(f"s-{session}")]
            if stored != [*chain.from_iterable(turn(session, number) for number in range(TURNS))]:
                load.errors.append(f"session {session}: the store has {len(stored)} messages, or others")
    load.errors += [event.message for event in sink.of(CompactionErrorEvent)]
    soak.add(cases=len(load.seconds), breaches=len(load.leaks) + len(load.errors))
    what = load.line(f"{SESSIONS} sessions in one event loop, SQLite")
    soak.figure(f"{what}, the loop waited {stall * 1000:.0f} ms at most")
    assert load.leaks == []
    assert load.errors == []
    compacted = {event.session_id for event in sink.of(CompactionCompletedEvent)}
    assert len(compacted) == SESSIONS, "every session was compacted"


# -- many processes ---------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.timeout(max(300, 3 * LOAD_SECONDS))
def test_many_processes_on_postgresql(postgres_url: str, soak: SoakCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    sizes = {"url": postgres_url, "processes": PROCESSES, "seconds": LOAD_SECONDS}
    processes = [worker.start(number=number, **sizes) for number in range(PROCESSES)]
    told = [finish(process, timeout_seconds=60 + 2 * LOAD_SECONDS) for process in processes]
    load, sessions = Load(), sum(each.pop("sessions") for each in told)
    compactions = sum(each.pop("compactions") for each in told)
    for each in told:
        load.take(Load(**each))
    soak.add(cases=len(load.seconds), breaches=len(load.leaks) + len(load.errors))
    what = load.line(f"{PROCESSES} processes on PostgreSQL")
    soak.figure(f"{what}; {sessions:,} sessions, {compactions:,} compactions")
    assert load.leaks == []
    assert load.errors == []
    with manager_on(postgres_url)[0] as manager:
        stored = manager.sessions()
        assert len(stored) == sessions
        for info in stored[:: max(1, sessions // 50)]:
            number = int(info.session_id.removeprefix("s-"))
            words = " ".join(message.text for message in manager.history(info.session_id))
            assert canary(number) in words
            assert strangers(words, number) == []


# -- the proxy --------------------------------------------------------------------------------------------------------


class Upstream:
    """A model that names the canaries of a request, after the beginning of its answer.

    It goes on with the first answers only when so many are under way at once.
    """

    def __init__(self, at_once: int) -> None:
        self.model = Model(self._say, _count=lambda text: len(text) // 4)
        self.leaks: list[str] = []
        self.all_begun = threading.Event()
        self._lock = threading.Lock()
        self._missing = at_once

    def _say(self, body: dict[str, Any]) -> Turn:
        words = [message["content"] or "" for message in body["messages"] if message["role"] == "user"]
        own = next(word for word in words[-1].split() if word.startswith("canary-"))
        self.leaks += [f"{own}: {word}" for word in strangers(body, int(own.removeprefix("canary-")))]
        return Turn(f"For {own} all berths but two are free.")

    def __call__(self, request: Received) -> Iterator[Part]:
        parts = list(self.model(request))
        yield parts[0]
        yield parts[1]
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self.all_begun.set()
        yield self.all_begun
        yield from parts[2:]


async def stream(client: httpx2.AsyncClient, url: str, session: int, load: Load, seen: list[str]) -> None:
    """Talk in one session; each answer is read piece by piece, and is part of the next request."""
    history: list[Any] = []
    for number in range(REQUESTS):
        lines = (message["content"] for message in turn(session, number) if message["role"] == "tool")
        history.append(user(f"I am {canary(session)} , quay {number}:\n" + "\n".join(lines)))
        body = {"model": "gpt-4o", "messages": history, "stream": True}
        headers = {"authorization": "Bearer sk-all-the-same"}
        with load.call():
            async with client.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as answer:
                told = "".join([piece async for piece in answer.aiter_text()])
        if answer.status_code != 200 or canary(session) not in told or "[DONE]" not in told:
            load.errors.append(f"session {session}: {answer.status_code} {told[-300:]}")
        load.check(told, session)
        seen.append(answer.headers["x-compact"])
        history.append({"role": "assistant", "content": f"For {canary(session)} all berths but two are free."})


@pytest.mark.soak
def test_many_streams_through_the_proxy(tmp_path: Path, soak: SoakCounts) -> None:
    load, seen, upstream = Load(), list[str](), Upstream(STREAMS)

    async def run(url: str) -> None:
        unlimited = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(limits=unlimited, timeout=120) as client:
            with load.measured():
                await asyncio.gather(*(stream(client, url, session, load, seen) for session in range(STREAMS)))

    with Provider(upstream) as provider, running(provider.url, config(tmp_path, 800)) as proxy:
        asyncio.run(run(proxy.v1))
    load.leaks += upstream.leaks
    load.errors += upstream.model.rejections
    soak.add(cases=len(load.seconds), breaches=len(load.leaks) + len(load.errors))
    soak.figure(load.line(f"{STREAMS} streams at once through the proxy, model and agents in the same process"))
    assert load.leaks == []
    assert load.errors == []
    assert upstream.all_begun.is_set()
    sessions = [line.partition("session=")[2] for line in seen]
    assert len({*sessions}) == STREAMS
    assert any(line.startswith("compacted") for line in seen)


def test_a_word_of_another_session_is_noticed() -> None:
    load = Load()
    load.check(list(chain(turn(1, 1), turn(12, 1))), 1)
    assert load.leaks == ["session 1 was given canary-12"]
