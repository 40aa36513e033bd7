"""Claims, artifacts and cached summaries that live as long as the process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.core.audit.records import PrefetchedSummary
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary


class InMemorySummaryClaims:
    """Claims in a dictionary: when each was made, and what came of it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._claims: dict[tuple[str, str], tuple[float, StructuredSummary | None]] = {}
        self._prepared: dict[tuple[str, int], PrefetchedSummary] = {}

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """True for the one caller that is to write the summary of a span."""
        with self._lock:
            now, standing = self._clock(), self._claims.get((session_id, span_key))
            if standing and (standing[1] or now - standing[0] < stale_after_seconds):
                return False
            self._claims[session_id, span_key] = (now, None)
            return True

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up; what is finished stays."""
        with self._lock:
            if self.finished(session_id, span_key):
                return
            if summary is None:
                self._claims.pop((session_id, span_key), None)
            else:
                self._claims[session_id, span_key] = (self._clock(), summary)

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """The summary of a span, once somebody has written it."""
        return self._claims.get((session_id, span_key), (0.0, None))[1]

    def store_prefetched(self, session_id: str, span_key: str, prepared: PrefetchedSummary) -> None:
        """Note what a finished summary stands for."""
        self._prepared[session_id, prepared.version] = prepared

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """The newest summary that was written ahead for a version."""
        return self._prepared.get((session_id, version))

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """The summary of a span; sessions are not shared in memory, so there is nobody to wait for."""
        return self.finished(session_id, span_key)

    def forget(self, session_id: str) -> None:
        """Remove the claims of a session."""
        with self._lock:
            self._claims = {key: claim for key, claim in self._claims.items() if key[0] != session_id}
            self._prepared = {key: kept for key, kept in self._prepared.items() if key[0] != session_id}


class InMemoryArtifactStore:
    """Artifacts in a dictionary."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], Artifact] = {}

    def store_artifact(self, artifact: Artifact) -> None:
        """Put an artifact away."""
        self._kept.setdefault((artifact.metadata.tenant_id, artifact.metadata.artifact_id), artifact)

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """An artifact, if this requester may see it."""
        artifact = self._kept.get((security.tenant_id, artifact_id))
        return artifact if artifact and self._is_visible(artifact, security) else None

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """What a thread has put away."""
        kept = [artifact for artifact in self._kept.values() if artifact.metadata.session_id == session_id]
        return tuple(artifact.metadata for artifact in kept if self._is_visible(artifact, security))

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact."""
        if self.retrieve_artifact(artifact_id, security) is None:
            return False
        return self._kept.pop((security.tenant_id, artifact_id), None) is not None

    def forget_thread(self, session_id: str) -> None:
        """Remove everything a thread has put away."""
        for key in [key for key, artifact in self._kept.items() if artifact.metadata.session_id == session_id]:
            del self._kept[key]

    def _is_visible(self, artifact: Artifact, security: SecurityContext) -> bool:
        expires_at = artifact.metadata.expires_at
        return security.may_read(artifact.metadata) and (expires_at is None or expires_at > self._clock())


class InMemorySummaryCache:
    """The most recently used summaries, each for a limited time."""

    def __init__(
        self, *, max_entries: int = 256, ttl_seconds: float = 7 * 86_400, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_entries, self._ttl_seconds, self._clock = max_entries, ttl_seconds, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[SummaryCacheKey, tuple[float, StructuredSummary]] = OrderedDict()

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """A summary that is still good."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None or self._clock() - entry[0] > self._ttl_seconds:
                self._kept.pop(key, None)
                return None
            self._kept.move_to_end(key)
            return entry[1]

    def put(self, key: SummaryCacheKey, summary: StructuredSummary) -> None:
        """Remember a summary; the one not used for longest goes when there are too many."""
        with self._lock:
            self._kept[key] = (self._clock(), summary)
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_entries:
                self._kept.popitem(last=False)

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Forget a summary."""
        with self._lock:
            self._kept.pop(key, None)
