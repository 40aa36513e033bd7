"""Many conversations at once: none waits for another's summary, and no API key takes all of the memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from compact import CompactConfig, CompactManager
from compact.core.summary.summarizer import SummaryRequest
from compact.proxy.caller_keys import SessionsOfKeys, caller_key
from compact.proxy.compaction import capture_event
from compact.runner import _WAITERS
from proxying.conftest import Running, eventually, running
from proxying.models import Model, Turn
from proxying.provider import Provider

WINDOW = 4_000
CONFIG = CompactConfig(
    model="gpt-4o",
    max_context_tokens=WINDOW,
    policy={"hard_cap_buffer": 100},
    state={"url": "memory:"},
    storage={"adapter": "none"},
    telemetry={"exporter": "none"},
)
# More than there are threads for slow calls.
SLOW = _WAITERS + 8


def notes(name: str) -> list[dict[str, Any]]:
    """A conversation that has to be summarised."""
    return [{"role": "user", "content": f"{name} note {n}: " + "word " * 300} for n in range(30)]


def ask(url: str, messages: list[dict[str, Any]], key: str = "sk-1") -> httpx2.Response:
    body = {"model": "gpt-4o", "messages": messages}
    return httpx2.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}, timeout=60)


@contextmanager
def slow_summaries(proxy: Running) -> Iterator[threading.Semaphore]:
    """Summaries that wait until the end of the block; each releases the semaphore when it has begun."""
    begun, let_go = threading.Semaphore(0), threading.Event()

    def summarise(request: SummaryRequest) -> str:
        begun.release()
        let_go.wait(60)
        return "Notes were taken."

    managers = proxy.app.managers
    store = managers.for_model("gpt-4o").store
    managers._managers["gpt-4o"] = CompactManager(CONFIG, store=store, on_event=capture_event, summarizer=summarise)
    try:
        yield begun
    finally:
        let_go.set()


def test_slow_summaries_hold_up_nobody_else() -> None:
    """More of them than there are threads to wait in; and each response tells of its own compaction."""
    answers = Model(lambda _: Turn("yes"))
    with (
        Provider(answers) as provider,
        running(provider.url, CONFIG) as proxy,
        ThreadPoolExecutor(SLOW) as pool,
    ):
        with slow_summaries(proxy) as begun:
            waiting = [pool.submit(ask, proxy.url, notes(f"conversation {n}")) for n in range(SLOW)]
            for _ in range(_WAITERS):
                assert begun.acquire(timeout=60)
            quick = [ask(proxy.url, [{"role": "user", "content": f"hello {n}"}]) for n in range(5)]
            assert not any(one.done() for one in waiting)
        slow = [one.result() for one in waiting]
    assert all(answer.headers["x-compact"].startswith("unchanged; tokens=") for answer in quick)
    told = [answer.headers["x-compact"] for answer in slow]
    assert all(line.startswith("compacted; plan=1 before=") for line in told)
    assert len({line.partition("session=")[2] for line in told}) == SLOW


def test_a_key_has_so_many_sessions_in_memory_and_others_keep_theirs() -> None:
    """What left memory is in the store, and goes on from there."""
    answers = Model(lambda _: Turn("yes"))
    with Provider(answers) as provider, running(provider.url, CONFIG, max_sessions_per_key=3) as proxy:
        manager = proxy.app.managers.for_model("gpt-4o")
        other = ask(proxy.url, [{"role": "user", "content": "mine"}], key="sk-other")
        greedy = [ask(proxy.url, [{"role": "user", "content": f"task {n}"}], key="sk-greedy") for n in range(8)]
        eventually(lambda: len(manager._sessions) == 4)
        in_memory = {held.session.session_id for held in manager._sessions}
        sessions = [answer.headers["x-compact"].partition("session=")[2] for answer in (other, *greedy)]
        again = ask(proxy.url, [{"role": "user", "content": "task 0"}], key="sk-greedy")
        stored = len(manager.sessions())
    assert in_memory == {sessions[0], *sessions[-3:]}
    assert again.headers["x-compact"].partition("session=")[2] == sessions[1]
    assert stored == 9


def test_the_session_used_longest_ago_leaves_first() -> None:
    sessions = SessionsOfKeys(2)
    assert [sessions.use(b"key", name) for name in "abab"] == [[], [], [], []]
    assert sessions.use(b"key", "c") == ["a"]
    assert sessions.use(b"other", "d") == []
    assert b"key" not in repr(vars(sessions)).encode()


@pytest.mark.parametrize(
    ("headers", "query", "key"),
    [
        ({b"authorization": b"Bearer sk-1"}, b"", b"Bearer sk-1"),
        ({b"x-api-key": b"sk-1"}, b"key=other", b"sk-1"),
        ({}, b"alt=sse&key=AIza%2B1", b"AIza+1"),
        ({b"authorization": b"AWS4-HMAC-SHA256 Credential=AKIA1/20260101/r/s/aws4_request, X"}, b"", b"aws:AKIA1"),
        ({}, b"y=%c3%a9", b""),
    ],
)
def test_a_caller_is_known_by_its_key_wherever_it_is(headers: dict[bytes, bytes], query: bytes, key: bytes) -> None:
    """Of a signature, which is another one in each request, only whose it is."""
    assert caller_key(headers, query) == key


def test_a_websocket_is_refused_at_once_in_a_way_that_clients_know() -> None:
    """Codex goes over to HTTP after this status, and tries again for seconds after any other."""
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with Provider(Model(lambda _: Turn("yes"))) as provider, running(provider.url, CONFIG) as proxy:
        answer = httpx2.get(f"{proxy.v1}/responses", headers=handshake, timeout=30)
    assert answer.status_code == 426
    assert "over HTTP" in answer.json()["error"]["message"]
    assert not provider.received
