"""Artifacts in the database; what a requester may not see is as if it were not there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, or_, select
from sqlalchemy.exc import IntegrityError

from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.stores import schema
from compact.stores.database import Database

_ARTIFACT_FIELDS = (
    "artifact_id", "session_id", "message_id", "tenant_id", "sensitivity", "tool_name", "tokens", "expires_at",
)  # fmt: skip


class SqlArtifactStore:
    """The artifacts of all tenants; every read is narrowed to the tenant that asks, and to its session."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock = database, clock

    def store_artifact(self, artifact: Artifact) -> None:
        """Store an artifact; what is there already stays."""
        row = {name: getattr(artifact.metadata, name) for name in _ARTIFACT_FIELDS}
        values = {**row, "content": artifact.content, "created_at": self._clock()}
        with suppress(IntegrityError), self._database.writing() as connection:
            # Of every tenant: nobody reads what has expired, and an index finds it.
            expired = schema.artifacts.c.expires_at <= bindparam("now")
            connection.execute(delete(schema.artifacts).where(expired), {"now": self._clock()})
            connection.execute(insert(schema.artifacts), values)

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """Return an artifact, if this requester may see it."""
        found = self._artifacts(security, schema.artifacts.c.artifact_id == artifact_id)
        return found[0] if found else None

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """Return what is known about a session's artifacts."""
        found = self._artifacts(security, schema.artifacts.c.session_id == session_id)
        return tuple(artifact.metadata for artifact in found)

    def _artifacts(self, security: SecurityContext, condition: ColumnElement[bool]) -> list[Artifact]:
        table = schema.artifacts.c
        is_good = or_(table.expires_at.is_(None), table.expires_at > self._clock())
        query = select(schema.artifacts).where(table.tenant_id == security.tenant_id, is_good, condition)
        if security.session_id:
            query = query.where(table.session_id == security.session_id)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(table.created_at, table.artifact_id)).mappings().all()
        found = [Artifact(ArtifactMetadata(**{f: row[f] for f in _ARTIFACT_FIELDS}), row["content"]) for row in rows]
        return [artifact for artifact in found if security.may_read(artifact.metadata)]

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact."""
        if self.retrieve_artifact(artifact_id, security) is None:
            return False
        table = schema.artifacts.c
        with self._database.writing() as connection:
            own = and_(table.tenant_id == security.tenant_id, table.artifact_id == artifact_id)
            return connection.execute(delete(schema.artifacts).where(own)).rowcount == 1
