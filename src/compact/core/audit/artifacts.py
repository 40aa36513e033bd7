"""Content that lives outside the prompt: what is known about it, and who may read it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

SENSITIVITIES = ("public", "internal", "confidential", "restricted")


@dataclass(frozen=True, slots=True)
class SecurityContext:
    """Who asks: a tenant sees its own things only, and above `internal` only with the permission to."""

    requester_id: str = ""
    tenant_id: str = ""
    permissions: frozenset[str] = frozenset()

    def may_read(self, metadata: ArtifactMetadata) -> bool:
        """True if this requester may see an artifact."""
        return metadata.tenant_id == self.tenant_id and self.may_read_sensitivity(metadata.sensitivity)

    def may_read_sensitivity(self, sensitivity: str) -> bool:
        """True if this requester may see its tenant's content of a sensitivity."""
        return sensitivity in ("public", "internal") or f"read:{sensitivity}" in self.permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactMetadata:
    """What is known about an artifact without reading it."""

    artifact_id: str
    session_id: str
    message_id: str
    tenant_id: str = ""
    sensitivity: str = "internal"
    tool_name: str = ""
    tokens: int = 0
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as it was put away."""

    metadata: ArtifactMetadata
    content: str


class ArtifactStore(Protocol):
    """Keeps artifacts; every read names who asks, and what one may not see is as if it were not there."""

    def store_artifact(self, artifact: Artifact) -> None:
        """Put an artifact away; the same id again with the same content changes nothing."""
        ...

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """An artifact, or nothing if it is not there, has expired, or is not for this requester."""
        ...

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """What a thread has put away, oldest first, as far as this requester may see it."""
        ...

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact; False if there was none that this requester may touch."""
        ...


def artifact_id_for(session_id: str, message_id: str) -> str:
    """The id of a message's artifact: always the same, and not to be guessed from another thread's."""
    return "art-" + hashlib.sha256(f"{session_id}\0{message_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
