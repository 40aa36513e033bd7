"""Two tenants on one database: the same names, nothing in common."""

from __future__ import annotations

import pytest

from compact import UnknownSession
from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.testing import user
from stores.worker import history, manager_on

EVERYTHING = frozenset(f"read:{level}" for level in ("public", "internal", "confidential", "restricted"))


def test_the_same_session_id_is_two_sessions(url: str) -> None:
    ours, theirs = manager_on(url, tenant="ours")[0], manager_on(url, tenant="theirs")[0]
    with ours, theirs:
        ours.preflight("s", [user("our needle"), *history(100)])
        ours.observe_usage("s", 321)
        with pytest.raises(UnknownSession):
            theirs.history("s")
        for question in (theirs.sessions, lambda: theirs.plans("s"), lambda: theirs.model_calls("s")):
            assert question() == ()
        assert theirs.recall("s", "needle").found == ()
        assert theirs.recall("s", "m1").found == ()
        assert theirs.delete("s") is False
        theirs.preflight("s", [user("their needle")])
        assert [message.text for message in theirs.history("s")] == ["their needle"]
        assert [found.content for found in theirs.recall("s", "needle").found] == ["their needle"]
        assert [found.content for found in ours.recall("s", "needle").found] == ["our needle"]
        assert theirs.model_calls("s")[0].tokens_reported is None
        assert (ours.current_plan("s").version, theirs.current_plan("s").version) == (1, 0)
        assert theirs.delete("s") is True
        assert len(ours.history("s")) == 101
        assert ours.why("s", "our needle")[0].seq == 1


def test_artifacts_of_one_tenant_are_not_there_for_another(url: str) -> None:
    ours, theirs = manager_on(url, tenant="ours")[0], manager_on(url, tenant="theirs")[0]
    with ours, theirs:
        for manager in (ours, theirs):
            manager.preflight("s", history(4))
        artifact_id = "art-0123456789abcdef"
        known = ArtifactMetadata(artifact_id=artifact_id, session_id="s", message_id="m3", tenant_id="ours")
        ours._store.artifacts.store_artifact(Artifact(known, "our secret"))
        stranger = SecurityContext("me", "theirs", EVERYTHING)
        assert theirs._store.artifacts.retrieve_artifact(artifact_id, stranger) is None
        assert theirs._store.artifacts.list_artifacts("s", stranger) == ()
        assert theirs._store.artifacts.delete_artifact(artifact_id, stranger) is False
        assert theirs.recall("s", artifact_id).found == ()
        assert ours.recall("s", artifact_id).found[0].message_id == "m3"
        theirs.delete("s")
        assert ours._store.artifacts.list_artifacts("s", SecurityContext("me", "ours")) != ()


def test_claims_of_one_tenant_do_not_stop_another(url: str) -> None:
    ours, theirs = manager_on(url, tenant="ours")[0], manager_on(url, tenant="theirs")[0]
    with ours, theirs:
        assert ours._store.claims.claim("s", "span", stale_after_seconds=60)
        assert theirs._store.claims.claim("s", "span", stale_after_seconds=60)


@pytest.mark.parametrize("tenant", ["' OR '1'='1", "%", "ours\x00", "OURS", "ours ", "../ours", ""], ids=repr)
def test_no_tenant_id_opens_another_tenants_door(url: str, tenant: str) -> None:
    ours, crafted = manager_on(url, tenant="ours")[0], manager_on(url, tenant=tenant)[0]
    with ours, crafted:
        ours.preflight("s", history(4))
        assert crafted.sessions() == ()
        with pytest.raises(UnknownSession):
            crafted.history("s")
        crafted.preflight("s", history(8))
        assert (len(ours.history("s")), len(crafted.history("s"))) == (4, 8)
