"""Summaries prepared by workers: jobs on the PostgreSQL that holds the sessions, run by procrastinate.

One job per session and plan version, one at a time per session, retried with growing pauses; a job whose worker died
goes to the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from compact.core.engine.session import Session
from compact.core.errors import ConfigError

try:
    import procrastinate
    import psycopg
    from procrastinate.exceptions import AlreadyEnqueued
    from procrastinate.schema import SchemaManager
except ModuleNotFoundError as error:
    raise ConfigError(
        f"preparing summaries on PostgreSQL needs the package {error.name}",
        field="summarizer.prepare",
        hint="pip install 'compact-context[postgres]', or set summarizer.prepare to never",
    ) from error

TASK = "compact.prepare_summary"
QUEUE = "compact"
_RETRY = procrastinate.RetryStrategy(max_attempts=5, exponential_wait=3)
_log = logging.getLogger("compact")


class QueuePreparer:
    """Asks for a summary to be prepared by whichever worker is free; never waits, never raises."""

    def __init__(self, url: str, *, tenant_id: str = "") -> None:
        self._url, self._tenant_id = url, tenant_id
        self._app: procrastinate.App | None = None
        self._asked: dict[str, int] = {}
        # Asking is a write to the server: a thread of its own keeps that off the agent's way.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compact-jobs")

    def __call__(self, session: Session) -> None:
        """Ask once per plan version."""
        version = session.plan.version
        if self._asked.get(session.session_id) != version:
            self._asked[session.session_id] = version
            self._thread.submit(self._defer, session.session_id, version)

    def _defer(self, session_id: str, version: int) -> None:
        try:
            if self._app is None:
                prepare_schema(self._url)
                self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
                self._app.open()
            key = f"{self._tenant_id}\x1f{session_id}"
            job = self._app.configure_task(
                TASK, queue=QUEUE, lock=key, queueing_lock=f"{key}\x1f{version}", allow_unknown=True
            )
            with suppress(AlreadyEnqueued):
                job.defer(session_id=session_id, tenant_id=self._tenant_id)
        except Exception as error:  # the summary is then written when it is needed
            self._asked.pop(session_id, None)
            _log.warning("could not ask for a summary of session %s to be prepared: %s", session_id, error)

    def close(self) -> None:
        """Hand over what is still to be asked for."""
        self._thread.shutdown(wait=True)
        if self._app:
            self._app.close()
            self._app = None


def prepare_schema(url: str) -> None:
    """Create the queue's own tables, once, however many processes start together."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('compact_jobs'))")
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row and row[0] is None:
            connection.execute(SchemaManager.get_schema().encode())


async def run_worker(
    url: str,
    prepare: Callable[[str, str], bool],
    *,
    concurrency: int = 2,
    stalled_after_seconds: float = 30.0,
    until_empty: bool = False,
) -> None:
    """Work until told to stop (or, with `until_empty`, until nothing is left)."""
    prepare_schema(url)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name=TASK, queue=QUEUE, retry=_RETRY)
    async def prepare_summary(session_id: str, tenant_id: str) -> None:  # pyright: ignore[reportUnusedFunction]
        done = await asyncio.to_thread(prepare, session_id, tenant_id)
        _log.info("session %s: %s", session_id, "summary prepared" if done else "nothing to prepare")

    async with app.open_async():
        rescuer = asyncio.create_task(_rescue(app, stalled_after_seconds))
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
            rescuer.cancel()


async def _rescue(app: procrastinate.App, stalled_after_seconds: float) -> None:
    """Give the jobs of workers that died to those that live."""
    while True:
        try:
            for job in await app.job_manager.get_stalled_jobs(
                queue=QUEUE, seconds_since_heartbeat=stalled_after_seconds
            ):
                _log.warning("job %s was left by a worker that died; it is tried again", job.id)
                await app.job_manager.retry_job(job)
        except Exception as error:
            _log.warning("could not look for jobs that were left: %s", error)
        await asyncio.sleep(stalled_after_seconds / 2)
