"""The socket for artifacts: content that was moved out of the prompt, what is known about it, and who may read it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

from compact.core.messages.sensitivity import OPEN_SENSITIVITIES


@dataclass(frozen=True, slots=True)
class SecurityContext:
    """Who asks: a tenant sees its own things only, and above `internal` only with the permission to.

    With `session_id` the requester is in that session and sees nothing of the tenant's others: what an agent or a user
    names is always asked for like this. Without it, it is an operator, who looks after all of them.
    """

    requester_id: str = ""
    tenant_id: str = ""
    permissions: frozenset[str] = frozenset()
    session_id: str = ""

    def may_read(self, metadata: ArtifactMetadata) -> bool:
        """Return True if this requester may see an artifact."""
        is_own = metadata.tenant_id == self.tenant_id and self.session_id in ("", metadata.session_id)
        return is_own and self.may_read_sensitivity(metadata.sensitivity)

    def within(self, session_id: str) -> SecurityContext:
        """Return the same requester, who sees one session only."""
        return replace(self, session_id=session_id)

    def may_read_sensitivity(self, sensitivity: str) -> bool:
        """Return True if this requester may see its tenant's content of a sensitivity."""
        return sensitivity in OPEN_SENSITIVITIES or f"read:{sensitivity}" in self.permissions


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


def artifact_id_for(session_id: str, message_id: str, content: str) -> str:
    """Return the id of an artifact: that of one message with one content, in one session.

    Whoever does not know the content cannot compute the id, and a result that was edited has another.
    """
    key = f"{session_id}\0{message_id}\0{content}".encode("utf-8", "surrogatepass")
    return "art-" + hashlib.sha256(key).hexdigest()[:16]
