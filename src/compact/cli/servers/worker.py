"""`compact worker`: prefetches summaries for the agents that share a PostgreSQL store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile
from compact.cli.settings import load_agent_config

if TYPE_CHECKING:
    from compact.manager import CompactManager

Concurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, help="How many summaries to write at the same time.")
]
Once = Annotated[bool, typer.Option("--once", help="Stop when nothing is left to do.")]


def worker(config: ConfigFile = None, concurrency: Concurrency = 2, once: Once = False) -> None:
    """Prefetch summaries for agents that share a PostgreSQL store.

    Summaries are written before they are needed, so that no agent waits. Start as many workers as you like, on any
    machine that can reach the database; stop them with Ctrl-C.
    """
    from compact.core.errors import ConfigError
    from compact.manager import CompactManager

    settings = load_agent_config(config)
    if not settings.state.url.startswith("postgresql"):
        raise ConfigError(
            f"state.url is {settings.state.url}: with it, summaries are prefetched in the agent's own process",
            field="state.url",
            hint="set state.url to postgresql://… to share the work",
        )
    from compact.prefetching.job_queue import run_worker

    managers: dict[str, CompactManager] = {}

    def prefetch(session_id: str, tenant_id: str) -> bool:
        if tenant_id not in managers:
            own = settings.model_copy(
                update={
                    "state": settings.state.model_copy(update={"tenant_id": tenant_id}),
                    "summarizer": settings.summarizer.model_copy(update={"prefetch": "never"}),
                }
            )
            managers[tenant_id] = CompactManager(own)
        return managers[tenant_id].prefetch_summary(session_id)

    screen.notice(f"waiting for work, {screen.quantity(concurrency, 'summary', 'summaries')} at a time; Ctrl-C stops")
    asyncio.run(run_worker(settings.state.url, prefetch, concurrency=concurrency, until_empty=once))
    for manager in managers.values():
        manager.close()
