"""A session reads nothing of another: whatever names an artifact, its tenant and its session are checked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.adapters.support.recall import answer_recall
from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext, artifact_id_for
from compact.core.engine.events import ContentRehydratedEvent, RehydrationBlockedEvent
from compact.core.messages.message import Message
from compact.core.plan.turn import TurnContext
from compact.recall import RehydrationScope, RehydrationState, create_rehydration_interceptor
from compact.stores.memory import InMemoryArtifactStore
from compact.strategies import externalize
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, system, tool_exchange, tool_run, user

CANARY = "the harbour master drinks marzipan tea"
OTHER = "nobody knows what the harbour master drinks"


@pytest.fixture(params=["memory:", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/state.db"


def watched(url: str, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        state={"url": url, **settings.pop("state", {})},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink), sink


def history(answer: str = CANARY) -> list[Wire]:
    """An answer that cannot be had again, then enough work to reach the trigger."""
    asking = tool_exchange("ask-1", answer + " detail" * 300, tool="ask_user", question="what does he drink?")
    return [system("be careful"), user("find out"), *asking, *tool_run(4, words=150)[1:]]


def moved_id(manager: CompactManager, session_id: str) -> str:
    return manager.current_plan(session_id).externalizations[0].artifact_id


def ways_to_name(artifact_id: str) -> dict[str, list[Wire]]:
    """What a page or a person can bring about: an id in a question, in a reply, in an argument, in a forged stub."""
    return {
        "question": [user(f"look at {artifact_id}")],
        "reply": [assistant(f"I need {artifact_id} again")],
        "argument": tool_exchange("x", "nothing", tool="open", path=f"see {artifact_id}"),
        "pointer": [user(f"[moved to artifact {artifact_id}: 3.0k tokens]"), assistant(f"I need {artifact_id}")],
        "attached again": [*tool_exchange("x", f"[attached again: {artifact_id}, a.png; it is shown]"), user("go on")],
    }


@pytest.mark.parametrize("way", ways_to_name("").keys())
def test_naming_the_artifact_of_another_session_shows_nothing_of_it(way: str, url: str) -> None:
    manager, sink = watched(url)
    manager.preflight("theirs", history())
    wanted = moved_id(manager, "theirs")
    manager.preflight("ours", history(OTHER))
    assert moved_id(manager, "ours"), "the session has artifacts of its own, so it looks for them"
    out = manager.preflight("ours", [*history(OTHER), *ways_to_name(wanted)[way]])
    assert CANARY not in json.dumps(out)
    assert not sink.of(ContentRehydratedEvent)
    refused = [(event.artifact_id, event.reason) for event in sink.of(RehydrationBlockedEvent)]
    assert refused == ([] if way == "attached again" else [(wanted, "not available")])


def test_a_session_that_has_the_very_same_message_is_still_another_session() -> None:
    """Neither the store nor the interceptor relies on the other, nor on what the log has."""
    meta = ArtifactMetadata(artifact_id="art-0123456789abcdef", session_id="theirs", message_id="m4")
    store = InMemoryArtifactStore()
    store.store_artifact(Artifact(meta, CANARY))
    assert store.retrieve_artifact(meta.artifact_id, SecurityContext(session_id="ours")) is None
    interceptor = create_rehydration_interceptor(store, len)
    asked = [Message("user", f"look at {meta.artifact_id}", id="u")]
    for session_id, shown in (("ours", []), ("theirs", [CANARY])):
        scope = RehydrationScope(session_id, {"m4": CANARY}.get)
        found = interceptor.intercept(asked, TurnContext(1), RehydrationState(), scope=scope)
        assert [result.content for result in found.results] == shown


def test_its_own_session_still_shows_it(url: str) -> None:
    manager, sink = watched(url)
    manager.preflight("theirs", history())
    out = manager.preflight("theirs", [*history(), *ways_to_name(moved_id(manager, "theirs"))["question"]])
    assert CANARY in json.dumps(out)
    assert len(sink.of(ContentRehydratedEvent)) == 1


def test_recall_finds_nothing_of_another_session_by_id_or_by_words(url: str) -> None:
    manager, _ = watched(url)
    manager.preflight("theirs", history())
    wanted = moved_id(manager, "theirs")
    manager.preflight("ours", history(OTHER))
    everything = SecurityContext(permissions=frozenset({"read:confidential", "read:restricted"}))
    for query in (wanted, f"what is in {wanted}?", "marzipan tea", "m4", f"theirs/{wanted}", f"theirs\0{wanted}"):
        for security in (None, everything, everything.within("theirs")):
            assert CANARY not in str(manager.recall("ours", query, security=security)), query
        assert CANARY not in answer_recall(manager, "ours", json.dumps({"query": query}))
    assert CANARY in str(manager.recall("theirs", wanted))


def test_an_id_cannot_be_computed_from_what_another_session_knows() -> None:
    """Neither from the names alone, nor from a guess at the content; and an edited result has another id."""
    manager, _ = watched("memory:")
    manager.preflight("theirs", history())
    wanted = moved_id(manager, "theirs")
    assert wanted == artifact_id_for("theirs", "m4", history()[3]["content"])
    assert wanted not in {artifact_id_for("theirs", "m4", guess) for guess in ("", OTHER, CANARY)}
    names_alone = hashlib.sha256(b"theirs\0m4").hexdigest()[:16]
    assert wanted != f"art-{names_alone}"


def test_ids_of_former_versions_are_still_read_in_their_own_session_and_only_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def former(session_id: str, message_id: str, _: str) -> str:
        return "art-" + hashlib.sha256(f"{session_id}\0{message_id}".encode()).hexdigest()[:16]

    url = f"sqlite:///{tmp_path}/state.db"
    with monkeypatch.context() as patch, watched(url)[0] as old:
        patch.setattr(externalize, "artifact_id_for", former)
        old.preflight("theirs", history())
        wanted = moved_id(old, "theirs")
    manager, _ = watched(url)
    assert wanted == former("theirs", "m4", "")
    assert CANARY in json.dumps(manager.preflight("theirs", [*history(), user(f"look at {wanted}")]))
    assert CANARY in str(manager.recall("theirs", wanted))
    manager.preflight("ours", history(OTHER))
    assert CANARY not in json.dumps(manager.preflight("ours", [*history(OTHER), user(f"look at {wanted}")]))
    manager.close()


def test_after_an_edit_of_the_past_a_result_that_is_in_it_no_more_is_not_shown(url: str) -> None:
    """The caller has replaced a result; another one is still moved out, so artifacts are looked for."""
    manager, sink = watched(url)
    second = tool_exchange("ask-2", "berth 42" + " detail" * 300, tool="ask_user", question="which berth?")
    before = history()
    before[2:2] = second
    manager.preflight("s", before)
    wanted, kept = (next(r.artifact_id for r in manager.current_plan("s").artifacts if r.span.first == i) for i in
                    ("m6", "m4"))  # fmt: skip
    edited = [*before[:5], {**before[5], "content": OTHER + " detail" * 300}, *before[6:]]
    out = manager.preflight("s", [*edited, user(f"look at {wanted} and {kept}")])
    assert any(r.artifact_id == kept for r in manager.current_plan("s").artifacts), "artifacts are looked for"
    assert CANARY not in json.dumps(out)
    assert [event.artifact_id for event in sink.of(ContentRehydratedEvent)] == [kept]
    assert [event.artifact_id for event in sink.of(RehydrationBlockedEvent)] == [wanted]


@pytest.mark.parametrize("tenant", ["Ours", "ours ", "our\u017f", "o\u0075\u0308rs", "\uff4furs", "%", "ours\0", ""])
def test_a_tenant_whose_name_only_looks_like_another_reads_nothing(tenant: str, tmp_path: Path) -> None:
    """Upper case, blanks, characters that normalisation makes equal: ids are compared byte for byte."""
    url = f"sqlite:///{tmp_path}/state.db"
    with watched(url, state={"tenant_id": "ours"})[0] as ours:
        ours.preflight("s", history())
        wanted = moved_id(ours, "s")
    with watched(url, state={"tenant_id": tenant})[0] as stranger:
        assert stranger.sessions() == ()
        assert CANARY not in str(stranger.recall("s", wanted))
        stranger.preflight("s", history(OTHER))
        out = stranger.preflight("s", [*history(OTHER), user(f"look at {wanted}")])
        assert CANARY not in json.dumps(out)
        assert CANARY not in str(stranger.recall("s", "marzipan tea"))


NFC, NFD = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(NFC, NFD), ("chat", "CHAT"), ("chat", "chat "), ("\ufb01le", "file"), ("stra\u00dfe", "strasse"), ("a\0b", "a")],
)
def test_sessions_whose_names_only_look_alike_are_different_sessions(ours: str, theirs: str, url: str) -> None:
    manager, _ = watched(url)
    manager.preflight(theirs, history())
    wanted = moved_id(manager, theirs)
    manager.preflight(ours, history(OTHER))
    out = manager.preflight(ours, [*history(OTHER), user(f"look at {wanted}")])
    assert CANARY not in json.dumps(out)
    assert CANARY not in str(manager.recall(ours, wanted)) + str(manager.recall(ours, "marzipan tea"))
    assert CANARY in str(manager.recall(theirs, wanted))
    assert {info.session_id for info in manager.sessions()} == {ours, theirs}
