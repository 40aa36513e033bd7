"""Build what has summaries written before they are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compact.config import CompactConfig
from compact.core.engine.engine import Engine
from compact.core.engine.prefetch import Prefetch
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.prefetching.background import InProcessPrefetcher


class Prefetcher(Protocol):
    """Has summaries written before they are needed."""

    def __call__(self, session: Session) -> None:
        """Start prefetching for a session, without waiting."""
        ...

    def close(self) -> None:
        """Wait for what is under way here."""
        ...


def build_prefetcher(
    config: CompactConfig,
    prefetch: Callable[[Session], Steps[object]],
    run: Callable[[Steps[None]], None],
    *,
    is_quick: bool,
) -> Prefetcher | None:
    """Build what prefetches summaries; those of the built-in summariser (`is_quick`) need no job in a queue."""
    when = config.summarizer.prefetch
    if when == "never":
        return None
    is_quick = is_quick and when == "auto" and not config.summarizer.uses_model
    if config.state.url.startswith("postgresql") and not is_quick:
        from compact.prefetching.job_queue import QueuePrefetcher  # procrastinate is only loaded where it is used

        return QueuePrefetcher(config.state.url, tenant_id=config.state.tenant_id)
    return InProcessPrefetcher(prefetch, run, is_quick=is_quick)


def build_prefetch(engine: Engine, prefetcher: Prefetcher) -> Prefetch:
    """Build how an engine prefetches; what a queue is asked for is under way in another process."""
    claiming, emitter = engine.compactor.claiming, engine.emitter
    if isinstance(prefetcher, InProcessPrefetcher):
        return Prefetch(
            claiming=claiming,
            emitter=emitter,
            start=prefetcher,
            running=prefetcher.running,
            is_quick=prefetcher.is_quick,
        )
    return Prefetch(claiming=claiming, emitter=emitter, start=prefetcher)
