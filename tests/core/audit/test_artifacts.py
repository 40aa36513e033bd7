"""Artifacts: who may read one, until when, and what it is called."""

from __future__ import annotations

import re
from dataclasses import replace

from compact.core.audit.artifacts import ArtifactMetadata, SecurityContext, artifact_id_for

OPEN = ArtifactMetadata(artifact_id="art-1", session_id="s", message_id="m1", tenant_id="ours")
CLOSED = replace(OPEN, sensitivity="restricted")


def test_a_tenant_reads_its_own_artifacts_in_any_session_or_in_one() -> None:
    assert SecurityContext("me", "ours").may_read(OPEN)
    assert SecurityContext("me", "ours", session_id="s").may_read(OPEN)
    assert not SecurityContext("me", "ours", session_id="another").may_read(OPEN)
    assert not SecurityContext("me", "theirs").may_read(OPEN)
    assert SecurityContext("me", "ours").within("another") == SecurityContext("me", "ours", session_id="another")


def test_what_is_closed_is_read_with_the_permission_for_it() -> None:
    permitted = SecurityContext("me", "ours", frozenset({"read:restricted"}))
    assert permitted.may_read(CLOSED)
    assert permitted.may_read(OPEN)
    assert not SecurityContext("me", "ours").may_read(CLOSED)
    assert not permitted.may_read(replace(CLOSED, sensitivity="confidential"))
    assert not replace(permitted, tenant_id="theirs").may_read(CLOSED)


def test_an_artifact_expires_at_its_time() -> None:
    assert not OPEN.is_expired(now=1e12)
    timed = replace(OPEN, expires_at=100.0)
    assert [timed.is_expired(now) for now in (99.9, 100.0, 100.1)] == [False, True, True]


def test_an_id_is_one_that_an_answer_of_recall_can_name() -> None:
    found = artifact_id_for("s", "m1", "content")
    assert re.fullmatch("art-[0-9a-f]{16}", found)
    others = (("t", "m1", "content"), ("s", "m2", "content"), ("s", "m1", "edited"))
    assert found not in {artifact_id_for(*other) for other in others}
