"""Events as they come in: live, replayed, filtered, and for those who are too slow."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from compact.viewer.live.broadcast import Broadcaster, data_frame
from compact.viewer.live.feed import pause_after
from viewer import seeding
from viewer.serving import Listening, Running, part, running, span, until

TRACE = {"type": "trace", "trace_id": "t1", "name": "a run", "group_id": "g", "metadata": {"model": "x"}}


def test_who_listens_gets_what_comes_then(empty: Running) -> None:
    empty.send(span(1))
    listener = Listening(empty, "/events")
    assert listener.frames[0]["type"] == "connected"
    empty.send(TRACE, span(2, data={"output": "text"}))
    until(lambda: len(listener.frames) == 3)
    assert listener.frames[1:] == [TRACE, span(2, data={"output": "text"})]
    listener.stop()


def test_who_comes_late_may_have_what_is_in_memory(empty: Running) -> None:
    empty.send(TRACE, span(1), span(2))
    listener = Listening(empty, "/events?replay=1")
    empty.send(span(3))
    until(lambda: len(listener.frames) == 5)
    assert [frame.get("span_id") for frame in listener.frames] == [None, None, "s1", "s2", "s3"]
    listener.stop()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("traceId=t2", ["s2"]),
        ("kinds=tool", ["s3"]),
        ("kinds=tool,agent", ["s2", "s3"]),
        ("kinds=trace", [None]),
        ("since=2026-01-01T10:00:02.6Z", ["s3"]),
        ("since=1767261602.6", ["s3"]),
        ("since=1767261602600", ["s3"]),
        ("traceId=t2&kinds=tool", []),
    ],
)
def test_filters_hold_for_what_was_and_what_comes(empty: Running, query: str, wanted: list[str | None]) -> None:
    events = [
        TRACE | {"ended_at": "2026-01-01T10:00:00Z"},
        span(1),
        span(2, trace_id="t2", kind="agent"),
        span(3, kind="tool"),
    ]
    empty.send(*events)
    listener = Listening(empty, f"/events?replay=1&{query}")
    empty.send(*events, span(4, trace_id="t2", kind="tool"))
    empty.send(span(5, trace_id="t2", kind="tool", ended_at="2026-01-01T12:00:00Z"))
    last = ["s4", "s5"] if "t2&" in query else []
    until(
        lambda: len([f for f in listener.frames if f.get("span_id") in (*wanted, *last)]) >= len(wanted) or not wanted
    )
    seen = [frame.get("span_id") for frame in listener.frames[1:]]
    assert seen[: len(wanted)] == wanted
    listener.stop()


def test_a_time_that_is_none_is_refused(empty: Running) -> None:
    assert empty.client.get("/events?since=yesterday").status_code == 400


def test_the_wire_has_data_frames_only(empty: Running) -> None:
    """Ariadne sends no `event:` and no `id:` lines, and its readers know none."""
    empty.send(span(1))
    with empty.client.stream("GET", "/events?replay=1") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for _, line in zip(range(4), answer.iter_lines(), strict=False)]
    assert [line[:6] for line in lines] == ["data: ", "", "data: ", ""]


def test_traces_are_listed_with_what_is_known_of_them(empty: Running) -> None:
    empty.send(TRACE, span(1, status="error", data={"session_id": "my session"}), span(2))
    empty.send(span(1, trace_id="t2"))
    listed = empty.get("/api/traces")["traces"]
    assert [trace["trace_id"] for trace in listed] == ["t2", "t1"]
    first = listed[1]
    assert (first["name"], first["group_id"], first["spans"], first["errors"]) == ("a run", "g", 2, 1)
    assert first["sessions"] == ["my session"]
    assert [trace["trace_id"] for trace in empty.get("/api/traces", session="my session")["traces"]] == ["t1"]
    whole = empty.get("/api/traces/t1")
    assert [entry["span_id"] for entry in whole["spans"]] == ["s1", "s2"]
    assert whole["spans"][0]["received_at"] > 0
    assert empty.client.get("/api/traces/t3").status_code == 404


def test_odd_trace_ids_can_be_asked_for(empty: Running) -> None:
    odd = "a/b/../c?d#e%2f<b>"
    empty.send(span(1, trace_id=odd))
    assert empty.get(f"/api/traces/{part(odd)}")["trace_id"] == odd


def test_the_page_is_told_of_spans_and_the_sessions_they_name(empty: Running) -> None:
    page = Listening(empty, "/api/live")
    empty.send(TRACE, span(1, data={"session_id": "s"}))
    until(lambda: page.of("session"))
    assert page.of("trace")[0]["trace"]["name"] == "a run"
    assert page.of("span")[0]["span"]["span_id"] == "s1"
    assert page.of("session")[0]["id"] == "s"
    page.stop()


def test_a_large_request_is_told_once_for_each_span_and_session(empty: Running) -> None:
    """However many events it holds, whoever follows gets all of them, and no page is thrown out as too slow."""
    page, follower = Listening(empty, "/api/live"), Listening(empty, "/events")
    tiny = [{"type": "span", "trace_id": "t", "span_id": f"{n}", "data": {"session_id": "s"}} for n in range(3_000)]
    empty.send(*tiny, *[TRACE] * 100)
    until(lambda: page.of("session"))
    until(lambda: len(follower.of("trace")) == 100)
    assert (len(page.of("span")), len(page.of("trace")), len(page.of("session"))) == (3_000, 1, 1)
    assert len(follower.of("span")) == 3_000
    assert not page.of("dropped") + follower.of("dropped")
    page.stop()
    follower.stop()


def test_a_trace_ends_with_its_last_span(empty: Running) -> None:
    """An exporter that never says that a trace has ended does not leave it open for ever."""
    empty.send({**TRACE, "started_at": "2026-01-01T10:00:00Z"}, span(1), span(3))
    (trace,) = empty.get("/api/traces")["traces"]
    assert trace["ended_at"] - trace["started_at"] == 3.5
    going = {name: value for name, value in span(4).items() if name != "ended_at"}
    empty.send(going)
    assert empty.get("/api/traces/t1")["ended_at"] is None
    empty.send(span(1, trace_id="nameless"))
    (trace, _) = empty.get("/api/traces")["traces"]
    assert trace["ended_at"] - trace["started_at"] == 1.5


def test_the_page_is_told_when_another_process_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    history = seeding.work(2)
    with seeding.manager_on(url) as manager, running(url) as viewer:
        manager.preflight("first", history[:4])
        page = Listening(viewer, "/api/live")
        until(lambda: page.of("session"))
        manager.preflight("first", history)
        manager.preflight("second", history[:2])
        until(lambda: {(frame["id"], frame["calls"]) for frame in page.of("session")} >= {("first", 2), ("second", 1)})
        assert all(frame["plan_version"] == 0 for frame in page.of("session"))
        manager.delete("second")
        until(lambda: page.of("deleted") == [{"type": "deleted", "id": "second"}])
        page.stop()


def test_nobody_asks_the_store_while_nobody_looks(empty: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    source = empty.app.state.source
    sessions = source.sessions
    monkeypatch.setattr(source, "sessions", lambda: asked.append(1) or sessions())
    page = Listening(empty, "/api/live")
    until(lambda: asked)
    page.stop()
    until(lambda: len(empty.app.state.live.pages) == 0)
    assert not empty.app.state.live.pages.has_subscribers.is_set()


# -- those who go, and those who are slow ---------------------------------------------------------------------------


def test_a_slow_answer_of_the_store_never_holds_the_news_back_for_long() -> None:
    assert pause_after(0.05) == 1
    assert pause_after(60) == 10


def test_what_changes_before_the_first_page_looks_is_news(tmp_path: Path) -> None:
    """The store is read once at the start: a page's own reading may be older than the first poll after it."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with running(url) as viewer:
        until(lambda: viewer.app.state.live._known_sessions is not None)
        with seeding.manager_on(url) as manager:
            manager.preflight("early", seeding.work(1))
        page = Listening(viewer, "/api/live")
        until(lambda: page.of("session"))
        assert page.of("session")[0]["id"] == "early"
        page.stop()


def test_listeners_may_come_and_go(empty: Running) -> None:
    live = empty.app.state.live
    for _ in range(5):
        listener = Listening(empty, "/events")
        assert len(live.events) == 1
        listener.stop()
        until(lambda: len(live.events) == 0)
    empty.send(span(1))
    assert empty.get("/healthz")["events"]["count"] == 1


def test_a_listener_that_vanishes_is_noticed(empty: Running) -> None:
    """A process that was killed sends no word of farewell."""
    live = empty.app.state.live
    gone = socket.create_connection(("127.0.0.1", empty.port))
    gone.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    gone.recv(100)
    until(lambda: len(live.events) == 1)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    gone.close()
    until(lambda: len(live.events) == 0)


def test_a_slow_listener_is_dropped_and_told_so(empty: Running) -> None:
    live = empty.app.state.live
    live.events._most_frames, live.events._most_chars = 10, 1_000_000
    slow = socket.create_connection(("127.0.0.1", empty.port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    quick = Listening(empty, "/events?traceId=t2")
    until(lambda: len(live.events) == 2)
    for number in range(400):
        empty.send(span(number, data={"output": "x" * 50_000}))
        if live.events.dropped:
            break
    assert live.events.dropped == 1
    empty.send(span(1, trace_id="t2"))
    until(lambda: len(quick.frames) == 2)
    slow.settimeout(30)
    taken = b"".join(iter(lambda: slow.recv(65_536), b""))
    assert b'"type":"dropped"' in taken
    assert b"reads too slowly" in taken
    assert "compact_viewer_subscribers_dropped_total 1" in empty.client.get("/metrics").text
    quick.stop()
    slow.close()


def test_streams_end_when_the_server_does(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        listeners = [Listening(viewer, "/events"), Listening(viewer, "/api/live")]
    until(lambda: all(listener.has_ended for listener in listeners))


def test_only_so_many_may_listen() -> None:
    async def crowd() -> None:
        broadcaster = Broadcaster(max_subscribers=2)
        broadcaster.subscribe()
        second = broadcaster.subscribe()
        with pytest.raises(Exception, match="2 clients follow this stream already"):
            broadcaster.subscribe()
        broadcaster.unsubscribe(second)
        broadcaster.subscribe()

    asyncio.run(crowd())


def test_a_sign_of_life_when_nothing_happens() -> None:
    async def wait() -> list[str]:
        broadcaster = Broadcaster()
        subscriber = broadcaster.subscribe(first=[data_frame({"type": "hello"})])
        frames = subscriber.frames(heartbeat_seconds=0.01)
        seen = [await anext(frames), await anext(frames)]
        broadcaster.publish("x", lambda: data_frame({"n": 1}))
        while not seen[-1].startswith("data: {"):
            seen.append(await anext(frames))
        broadcaster.close()
        return [*seen, *[frame async for frame in frames]]

    seen = asyncio.run(wait())
    assert seen[0] == 'data: {"type":"hello"}\n\n'
    assert seen[1].startswith(": ")
    assert seen[-1] in ('data: {"n":1}\n\n', ": still here\n\n")


# -- tomorrow -------------------------------------------------------------------------------------------------------


def test_a_viewer_started_later_shows_the_same(tmp_path: Path) -> None:
    """What was sent to one is there for the next, and for another that runs at the same time."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with running(url) as first, running(url) as second:
        page = Listening(second, "/api/live")
        first.send(TRACE, span(1, status="error", data={"session_id": "s", "output": "it failed"}), span(2))
        until(lambda: len(page.of("span")) == 2)
        page.stop()
        whole = first.get("/api/traces/t1")
        assert second.get("/api/traces/t1") == whole
    with running(url) as tomorrow:
        assert tomorrow.get("/api/traces/t1") == whole
        assert tomorrow.get("/api/traces", session="s")["traces"][0]["errors"] == 1
        listener = Listening(tomorrow, "/events?replay=1")
        until(lambda: len(listener.frames) == 4)
        assert listener.frames[1] == TRACE
        listener.stop()


def test_what_an_agent_does_is_there_without_an_exporter(tmp_path: Path) -> None:
    """An agent writes its events to its own store, whether a viewer runs or not; the viewer that runs shows them."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with running(url) as viewer:
        page = Listening(viewer, "/api/live")
        with seeding.manager_on(url) as manager:
            calls = seeding.run_agent(manager, "agent", seeding.work(20))
            assert manager.flush()
            until(lambda: [frame for frame in page.of("span") if frame["span"]["name"] == "compact.compaction"])
        page.stop()
        spans = viewer.get("/api/traces/agent")["spans"]
    names = [entry["name"] for entry in spans]
    assert names.count("compact.preflight") == calls
    assert "compact.completed" in names
    assert {entry["data"]["session_id"] for entry in spans} == {"agent"}
    assert all("ended_at" in entry for entry in spans), "an operation that has ended is not left open"


def test_a_session_takes_its_events_along(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with running(url) as viewer, seeding.manager_on(url) as manager:
        manager.preflight("gone", seeding.work(2))
        manager.preflight("stays", seeding.work(2))
        assert manager.delete("gone")
        manager.flush()
        assert [trace["trace_id"] for trace in viewer.get("/api/traces")["traces"]] == ["stays"]


def test_no_secret_is_kept_that_was_sent(tmp_path: Path) -> None:
    """Our exporters redact what they send; others may not."""
    key = "sk-proj-" + "A1b2C3d4" * 6
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with running(url) as viewer:
        listener = Listening(viewer, "/events")
        viewer.send(span(1, name=f"use {key}", data={"session_id": key, "output": f"the key is {key}"}))
        until(lambda: listener.of("span"))
        (kept,) = viewer.get("/api/traces/t1")["spans"]
        assert key not in kept["name"] + kept["data"]["output"] + listener.of("span")[0]["data"]["output"]
        assert kept["data"]["session_id"] == key, "by which its session is found"
        listener.stop()


def test_tenants_do_not_see_each_others_traces(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    state = {"state": {"url": url, "tenant_id": "other"}}
    with running(url) as viewer, seeding.manager_on(url, settings=state) as manager:
        manager.preflight("theirs", seeding.work(2))
        assert manager.flush()
        assert manager.store.events.count() > 0
        assert viewer.get("/api/traces")["traces"] == []
        assert viewer.client.get("/api/traces/theirs").status_code == 404


def test_a_viewer_that_only_reads_takes_no_events(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with seeding.manager_on(url) as manager:
        manager.preflight("s", seeding.work(2))
    with running(url, is_read_only=True) as viewer:
        answer = viewer.client.post("/ingest", json=span(1))
        assert (answer.status_code, answer.json()["error"]) == (403, "this viewer is read-only: it keeps no events")
        assert [trace["trace_id"] for trace in viewer.get("/api/traces")["traces"]] == ["s"]


def test_an_id_that_no_index_takes_is_refused(empty: Running) -> None:
    for event in (span(1, trace_id="x" * 2_000), span(1, data={"session_id": "\ud800" * 400})):
        assert empty.client.post("/ingest", content=json.dumps(event)).status_code == 400
    empty.send(span(1, trace_id="漢" * 300, data={"session_id": "x" * 500}))
