"""The socket for artifacts: content that was moved out of the prompt, what is known about it, and who may read it."""

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
        """Return True if this requester may see an artifact."""
        return metadata.tenant_id == self.tenant_id and self.may_read_sensitivity(metadata.sensitivity)

    def may_read_sensitivity(self, sensitivity: str) -> bool:
        """Return True if this requester may see its tenant's content of a sensitivity."""
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

    def is_expired(self, now: float) -> bool:
        """Return True if the artifact is no longer to be read."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as it was stored."""

    metadata: ArtifactMetadata
    content: str


class ArtifactStore(Protocol):
    """Stores artifacts; every read names who asks, and what one may not see is as if it were not there."""

    def store_artifact(self, artifact: Artifact) -> None:
        """Store an artifact; what a tenant has stored under an id stays as it is."""
        ...

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """Return an artifact; None if it is not there, has expired, or is not for this requester."""
        ...

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """Return what is known about a session's artifacts, oldest first, as far as this requester may see them."""
        ...

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact; return False if there is none that this requester may see."""
        ...


def artifact_id_for(session_id: str, message_id: str) -> str:
    """Return the id of a message's artifact: always the same, and not to be guessed from another session's."""
    return "art-" + hashlib.sha256(f"{session_id}\0{message_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
