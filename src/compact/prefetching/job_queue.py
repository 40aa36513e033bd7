"""Prefetch summaries in worker processes: jobs on the PostgreSQL that holds the sessions, run by procrastinate.

One job per session and plan version, one at a time per session, retried with growing pauses; a job whose worker died
goes to the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from compact.core.errors import ConfigError
from compact.core.session.session import Session
from compact.extras import install_line

try:
    import procrastinate
    import psycopg
    from procrastinate.exceptions import AlreadyEnqueued
    from procrastinate.schema import SchemaManager
except ModuleNotFoundError as error:
    raise ConfigError(
        f"prefetching summaries on PostgreSQL needs the package {error.name}",
        field="summarizer.prefetch",
        hint=f"{install_line('postgres')}, or set summarizer.prefetch to never",
    ) from error

TASK = "compact.prefetch_summary"
QUEUE = "compact"
# Chosen: over some minutes; after that the summary is written when it is needed.
_RETRY = procrastinate.RetryStrategy(max_attempts=5, exponential_wait=3)
_log = logging.getLogger("compact")


class QueuePrefetcher:
    """Asks a worker process to prefetch; never waits, never raises."""

    def __init__(self, url: str, *, tenant_id: str = "") -> None:
        self._url, self._tenant_id = url, tenant_id
        self._app: procrastinate.App | None = None
        # Asking is a write to the server: a thread of its own keeps the agent from waiting for it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compact-jobs")

    def __call__(self, session: Session) -> None:
        """Ask for a summary of a session, once per plan version."""
        version = session.plan.version
        if session.queued_version != version:
            session.mark_queued(version)
            self._thread.submit(self._defer, session, version)

    def _defer(self, session: Session, version: int) -> None:
        session_id = session.session_id
        try:
            if self._app is None:
                create_schema(self._url)
                self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
                self._app.open()
            key = f"{self._tenant_id}\x1f{session_id}"
            job = self._app.configure_task(
                TASK, queue=QUEUE, lock=key, queueing_lock=f"{key}\x1f{version}", allow_unknown=True
            )
            with suppress(AlreadyEnqueued):
                job.defer(session_id=session_id, tenant_id=self._tenant_id)
        except Exception as error:  # noqa: BLE001 - the summary is then written when it is needed
            session.mark_queued(None)
            _log.warning("could not ask a worker to prefetch a summary of session %s: %s", session_id, error)

    def close(self) -> None:
        """Send what is still to be asked for, and close the connection."""
        self._thread.shutdown(wait=True)
        if self._app:
            self._app.close()
            self._app = None


def create_schema(url: str) -> None:
    """Create the queue's own tables, once, however many processes start together."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('compact_jobs'))")
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row and row[0] is None:
            connection.execute(SchemaManager.get_schema().encode())


async def run_worker(
    url: str,
    prefetch: Callable[[str, str], bool],
    *,
    concurrency: int = 2,
    stalled_after_seconds: float = 30.0,
    until_empty: bool = False,
) -> None:
    """Work off jobs until stopped or, with `until_empty`, until none is left; `prefetch` gets session and tenant."""
    create_schema(url)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name=TASK, queue=QUEUE, retry=_RETRY)
    async def prefetch_summary(session_id: str, tenant_id: str) -> None:  # pyright: ignore[reportUnusedFunction]
        done = await asyncio.to_thread(prefetch, session_id, tenant_id)
        _log.info("session %s: %s", session_id, "summary prefetched" if done else "nothing to prefetch")

    async with app.open_async():
        stalled = asyncio.create_task(_retry_stalled(app, stalled_after_seconds))
        try:
            await app.run_worker_async(
                queues=[QUEUE],
                concurrency=concurrency,
                wait=not until_empty,
                fetch_job_polling_interval=1.0,
                update_heartbeat_interval=stalled_after_seconds / 3,
                stalled_worker_timeout=stalled_after_seconds,
            )
        finally:
            stalled.cancel()


async def _retry_stalled(app: procrastinate.App, stalled_after_seconds: float) -> None:
    """Give the jobs of workers that died to other workers."""
    while True:
        try:
            for job in await app.job_manager.get_stalled_jobs(
                queue=QUEUE, seconds_since_heartbeat=stalled_after_seconds
            ):
                _log.warning("job %s was left by a worker that died; it is retried", job.id)
                await app.job_manager.retry_job(job)
        except Exception as error:  # noqa: BLE001 - the queue must not stop the worker
            _log.warning("could not look for stalled jobs: %s", error)
        await asyncio.sleep(stalled_after_seconds / 2)
