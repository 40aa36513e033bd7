"""Ariadne: each event survives the real server's schema complete; a server that is away is nobody's problem."""

from __future__ import annotations

import json
import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextvars import Context
from typing import Any

import pytest

from compact.core.engine.events import (
    CompactionEvent,
    NoticeEvent,
    OperationStartedEvent,
    PrunedMessagesEvent,
    SummaryCreatedEvent,
)
from compact.core.errors import ConfigError, InsufficientBudget
from compact.telemetry.ariadne import AriadneExporter
from compact.telemetry.emitters import Dispatcher
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.worker import ExportWorker
from telemetry.ariadne_double import MAX_BODY_BYTES, Ariadne, ariadne_server, held_port, problems_of
from telemetry.event_samples import all_kinds, full_history, one_of_each, watched

SECRET = "api_key=sk-" + "abc123def456ghi789"

CHOSEN = "no model's summary stands for the messages that leave the prompt, but what code chose of them"


@pytest.fixture
def server() -> Iterator[Ariadne]:
    with ariadne_server() as double:
        yield double


def sent(server: Ariadne, events: list[CompactionEvent], **settings: Any) -> None:
    """Send events as a manager would, and wait until they are there; operations that stay open are open here alone."""
    worker = ExportWorker(AriadneExporter(server.url), **settings)
    dispatcher = Dispatcher([worker])

    def emit() -> None:
        for event in events:
            dispatcher(event)

    Context().run(emit)
    assert dispatcher.flush(30)
    dispatcher.close()


def test_one_of_each_is_one_of_each() -> None:
    assert {type(event) for event in one_of_each()} == all_kinds()


ENDED = [event for event in one_of_each() if not isinstance(event, OperationStartedEvent)]


@pytest.mark.parametrize("event", ENDED, ids=lambda event: event.name)
def test_every_event_survives_complete(server: Ariadne, event: CompactionEvent) -> None:
    """Every property of it is in `data` as it was, with a duration bar and the right state."""
    sent(server, [event])
    assert not server.refusals
    (span,) = server.spans.values()
    told = event.to_dict()
    for name in ("event_id", "parent_id", "started_at", "ended_at", "metadata"):
        told.pop(name)
    assert {name: span["data"][name] for name in told} == json.loads(json.dumps(told))
    assert span["trace_id"] == "s-1"
    assert span["kind"] in ("operation", "generation", "event")
    assert span["ended_at"] >= span["started_at"]
    is_failure = event.name in ("compact.error", "compact.operation_ended")
    assert span["status"] == span["data"]["status"] == ("error" if is_failure else "ok")
    assert server.traces["s-1"]["name"] == "s-1"


def test_the_text_to_read_is_the_output(server: Ariadne) -> None:
    sent(server, one_of_each())
    assert server.of("compact.summary_created")[0]["data"]["output"] == "The task is to refactor."
    error = server.of("compact.error")[0]
    assert error["data"]["output"] == f"SummaryFailed: no answer\ninstead: {CHOSEN}"
    assert error["status"] == "error"


def test_a_call_of_a_model_has_its_own_times(server: Ariadne) -> None:
    sent(server, one_of_each())
    (span,) = server.of("compact.summarizer_call")
    assert (span["started_at"], span["ended_at"]) == ("2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:21.500000Z")
    assert span["kind"] == "generation"


def test_a_session_is_a_trace_and_its_operations_are_a_tree(server: Ariadne) -> None:
    """Each operation is a span that is sent when it has ended, with what happened in it below."""
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
        manager.preflight("s", full_history())
        manager.recall("s", "migrations")
        assert manager.flush(30)
    assert not server.refusals
    assert list(server.traces) == ["s"]
    (preflight,) = server.of("compact.preflight")
    (compaction,) = server.of("compact.compaction")
    (summary,) = server.of("compact.summary")
    assert "parent_id" not in preflight
    assert compaction["parent_id"] == preflight["span_id"]
    assert summary["parent_id"] == compaction["span_id"]
    assert server.of("compact.token_estimate")[0]["parent_id"] == preflight["span_id"]
    assert server.of("compact.summary_created")[0]["parent_id"] == summary["span_id"]
    assert "<COMPACT-SUMMARY" in server.of("compact.summary_created")[0]["data"]["output"]
    assert preflight["started_at"] <= compaction["started_at"] <= compaction["ended_at"] <= preflight["ended_at"]
    assert server.of("compact.content_recalled")[0]["data"]["query"] == "migrations"
    assert server.traces["s"]["started_at"] == preflight["started_at"]


def test_ariadne_gets_each_span_once_when_it_has_ended(server: Ariadne) -> None:
    """Its page keeps what it saw first: an operation that was sent when it began would be in progress for ever."""
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
        manager.preflight("s", full_history()[:4])
        assert manager.flush(30)
        manager.preflight("s", full_history())
        with pytest.raises(InsufficientBudget):
            manager.manual_compact("s", full_history(), target_tokens=1)
        assert manager.flush(30)
    sent_spans = [event for event in server.history if event["type"] == "span"]
    assert len(sent_spans) == len(server.spans) > 20
    assert all("ended_at" in span for span in sent_spans)
    statuses = [span["status"] for span in server.of("compact.preflight") + server.of("compact.manual_compact")]
    assert statuses == ["ok", "ok", "error"]


def test_a_server_that_shows_the_newest_version_gets_both(server: Ariadne) -> None:
    """`compact view` says so in its answer, and is believed until the connection is lost."""
    server.takes_updates = True
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
        manager.preflight("s", full_history()[:4])
        assert manager.flush(30)
        manager.preflight("s", full_history())
        assert manager.flush(30)
    _, second = server.of("compact.preflight")
    opened, closed = [event for event in server.history if event.get("span_id") == second["span_id"]]
    assert "ended_at" not in opened
    assert closed["status"] == "ok"
    assert all("ended_at" in span for span in server.spans.values())


def test_an_operation_of_a_server_that_changed_is_not_left_open(server: Ariadne) -> None:
    """What answers after an outage may be the real one."""
    server.takes_updates = True
    exporter = AriadneExporter(server.url)
    worker = ExportWorker(exporter)
    dispatcher = Dispatcher([worker])
    dispatcher(NoticeEvent(session_id="s", message="one"))
    assert dispatcher.flush(30)
    exporter._unreachable(OSError("gone"))
    server.takes_updates = False
    Context().run(dispatcher, OperationStartedEvent(session_id="s", operation="preflight"))
    assert dispatcher.flush(30)
    dispatcher.close()
    assert not server.of("compact.preflight")


def test_what_was_counted_here_can_be_counted_there(server: Ariadne) -> None:
    """`data` is all that metrics need: a viewer comes to the same figures."""
    here, there = MetricsCollector(), MetricsCollector()
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}, on_event=here) as manager:
        manager.preflight("s", full_history())
        manager.manual_compact("s", full_history(), "tidy")
    for event in server.history:
        if event["type"] == "span":
            there.record(event["data"])
    ours, theirs = here.snapshot(), there.snapshot()
    assert theirs.compactions == ours.compactions >= 1
    started = ("compact.check_started", "compact.operation_started")  # an operation is sent when it has ended
    assert theirs.events == {name: count for name, count in ours.events.items() if name not in started}
    for name in ("tokens_freed", "tokens_freed_by_action", "messages_by_action", "entities", "checks"):
        assert getattr(theirs, name) == getattr(ours, name), name
    assert theirs.preflight_seconds.total == pytest.approx(ours.preflight_seconds.total, abs=1e-4)
    assert theirs.preflight_seconds.total > 0
    assert there.sessions() == ("s",)


def test_no_secret_leaves(server: Ariadne) -> None:
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
        manager.preflight("s", full_history(SECRET))
        manager.recall("s", SECRET)
    everything = b"".join(server.raw)
    assert b"compact.summary_created" in everything
    assert b"sk-abc123" not in everything
    assert b"<REDACTED>" in everything


def test_the_callers_metadata_goes_along(server: Ariadne) -> None:
    settings = {"exporter": "ariadne", "ariadne_url": server.url}
    with watched(telemetry=settings, event_metadata={"team": "harbour", "run": 7}) as manager:
        manager.preflight("s", full_history())
    assert server.traces["s"]["metadata"] == {"team": "harbour", "run": "7"}
    assert all(span["data"]["metadata"] == {"team": "harbour", "run": 7} for span in server.spans.values())


def test_metadata_is_redacted_wherever_it_goes(server: Ariadne) -> None:
    settings = {"exporter": "ariadne", "ariadne_url": server.url}
    with watched(telemetry=settings, event_metadata={"note": SECRET}) as manager:
        manager.preflight("s", full_history()[:3])
    assert server.traces["s"]["metadata"] == {"note": "api_key=<REDACTED>"}
    assert b"sk-abc123" not in b"".join(server.raw)


def test_events_arrive_within_a_moment(server: Ariadne) -> None:
    """By themselves, without being asked: within 200 ms here, and the limit is for a machine that is busy."""
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
        took = []
        for number in range(10):
            before = server.requests
            manager.preflight("s", full_history()[: 4 + number])
            assert server.wait_for(before + 1)
            last = max(server.spans.values(), key=lambda span: span["received_at"])
            took.append(last["received_at"] - _seconds(last["started_at"]))
    assert statistics.median(took) < 2.0


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def test_batches_stay_below_the_limit(server: Ariadne) -> None:
    """Hundreds of long texts are split over several requests, and none is lost."""
    long = [NoticeEvent(session_id="s", message=f"{number} " + "ü" * 20_000) for number in range(60)]
    sent(server, [*long])
    assert not server.refusals
    assert len(server.of("compact.notice")) == 60
    assert len(server.raw) >= 10
    assert max(map(len, server.raw)) < MAX_BODY_BYTES


def test_long_texts_are_cut_with_a_mark_and_a_warning(server: Ariadne, capsys: pytest.CaptureFixture[str]) -> None:
    summary = SummaryCreatedEvent(
        session_id="s", strategy="x", input_messages=1, summary_tokens=1, compression_ratio=1, summary="a" * 300_000
    )
    many = PrunedMessagesEvent(
        session_id="s", pruned_count=50_000, message_ids=tuple(f"message-{n:06}" for n in range(50_000)), layers={}
    )
    sent(server, [summary, many, NoticeEvent(session_id="s", message="\U0001f9e0" * 150_000)])
    assert not server.refusals
    text = server.of("compact.summary_created")[0]["data"]["output"]
    assert text.endswith("… [cut: 300,000 characters]")
    ids = server.of("compact.pruned_messages")[0]["data"]["message_ids"]
    assert ids[0] == "message-000000"
    assert ids[-1].startswith("… [cut: ")
    assert server.of("compact.pruned_messages")[0]["data"]["pruned_count"] == 50_000
    assert "[cut: 150,000 characters]" in server.of("compact.notice")[0]["data"]["output"]
    assert capsys.readouterr().err.count("[Ariadne] compact.summary_created is longer than the server takes") == 1


@pytest.mark.parametrize(
    "text", ["a\ud800b", "\x00\x1b[31m", "‮evil", "</script>", "\\", '"', "🧠"], ids=lambda text: repr(text)
)
def test_any_text_can_be_sent(server: Ariadne, text: str) -> None:
    event = NoticeEvent(session_id=text, message=text, metadata={text: text, "nan": float("nan"), "odd": object()})
    sent(server, [event])
    assert not server.refusals
    (span,) = server.spans.values()
    assert span["data"]["message"] == text.replace("\ud800", "?")


def test_what_happens_outside_of_sessions_has_a_trace_of_its_own(server: Ariadne) -> None:
    with watched(telemetry={"exporter": "ariadne", "ariadne_url": server.url}, redaction={"enabled": False}):
        assert server.wait_for(1)
    assert server.of("compact.notice")[0]["trace_id"] == "compact"


def test_the_double_is_strict() -> None:
    """It refuses what the real server refuses."""
    right = {"type": "span", "trace_id": "t", "span_id": "s", "started_at": "2026-01-01T00:00:00.1Z"}
    assert not list(problems_of(right, ""))
    wrong = [
        {"ended_at": "2026-01-01T00:00:00+00:00"},
        {"ended_at": "2025-01-01T00:00:00Z"},
        {"parent_id": None},
        {"parent_id": ""},
        {"span_id": ""},
        {"status": "fine"},
        {"data": []},
        {"type": "event"},
        {"type": "trace", "metadata": {"a": 1}},
    ]
    for change in wrong:
        assert list(problems_of({**right, **change}, "")), change
    double = Ariadne()
    for body in (b"[]", b'{"events": []}', b'{"batch": [{}]}', b"{"):
        assert double.take(body)[0] == 400
    assert double.take(b" " * 262_145)[0] == 413
    assert double.take(json.dumps({**right, "properties": {"a": 1}}).encode())[0] == 200
    assert "properties" not in double.spans["s"]


def test_connections_are_kept_and_renewed(server: Ariadne) -> None:
    exporter = AriadneExporter(server.url, token="t0ken")
    worker = ExportWorker(exporter)
    for number in range(3):
        worker(NoticeEvent(session_id="s", message=str(number), event_id=f"{number}", started_at=1, ended_at=1))
        assert worker.flush(30)
    assert server.requests == 3
    assert server.connections == 1
    assert server.headers[0]["Authorization"] == "Bearer t0ken"
    exporter.close()
    worker(NoticeEvent(session_id="s", message="again", event_id="9", started_at=1, ended_at=1))
    assert worker.flush(30)
    worker.close()
    assert "9" in server.spans


def test_a_refused_batch_is_told_and_left(server: Ariadne, capsys: pytest.CaptureFixture[str]) -> None:
    """One that the server will never take keeps no other from being sent."""
    worker = ExportWorker(AriadneExporter(server.url))
    worker(NoticeEvent(session_id="s", message="no id"))  # was never stamped
    assert not worker.flush(30)
    assert worker.dropped == 1
    worker(NoticeEvent(session_id="s", message="right", event_id="1", started_at=1, ended_at=1))
    assert worker.flush(30)
    worker.close()
    assert worker.dropped == 1
    assert server.refusals[0]["status"] == 400
    assert [span["name"] for span in server.spans.values()] == ["compact.events_dropped", "compact.notice"]
    assert server.of("compact.events_dropped")[0]["data"]["count"] == 1
    lines = capsys.readouterr().err
    assert "[Ariadne]" in lines
    assert "answered 400, so a batch is lost: batch.1.span_id: Invalid: ''" in lines


def test_a_token_that_is_not_taken_is_told_and_counted(server: Ariadne) -> None:
    """What was lost is told of when the server takes it again, all of it and once."""
    server.status = 401
    worker = ExportWorker(AriadneExporter(server.url))
    dispatcher = Dispatcher([worker])
    for number in range(3):
        dispatcher(NoticeEvent(session_id="s", message=str(number)))
        assert not dispatcher.flush(30)
    assert worker.dropped == 3
    assert worker.waiting == 0
    server.status = 200
    dispatcher(NoticeEvent(session_id="s", message="taken"))
    assert dispatcher.flush(30)
    dispatcher.close()
    assert [span["data"]["count"] for span in server.of("compact.events_dropped")] == [3]


@pytest.mark.parametrize("token", ["t0ken\nX-Evil: 1", "t0ken\x00", "t0kén", "t0ken\x7f"])
def test_a_token_that_no_header_takes_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AriadneExporter("http://127.0.0.1:5175/ingest", token=token)
    assert caught.value.field == "telemetry.ariadne_token"
    assert "t0k" not in f"{caught.value} {caught.value.hint}"


def test_blanks_around_a_token_are_no_part_of_it(server: Ariadne) -> None:
    """As they come with a file that ends in a newline."""
    worker = ExportWorker(AriadneExporter(server.url, token=" t0ken\r\n"))
    worker(NoticeEvent(session_id="s", message="x", event_id="1", started_at=1, ended_at=1))
    assert worker.flush(30)
    worker.close()
    assert server.headers[0]["Authorization"] == "Bearer t0ken"


def test_what_nobody_expected_fills_no_memory_and_tells_no_content(
    server: Ariadne, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: AriadneExporter, body: bytes) -> tuple[int, str]:
        raise ValueError(f"cannot send {body!r} t0ken")

    exporter = AriadneExporter(server.url)
    worker = ExportWorker(exporter)
    with monkeypatch.context() as patched:
        patched.setattr(AriadneExporter, "_request", broken)
        for number in range(5):
            worker(NoticeEvent(session_id="s", message="hush", event_id=f"{number}", started_at=1, ended_at=1))
            assert not worker.flush(30)
    assert not exporter._pending
    assert worker.dropped == 5
    worker(NoticeEvent(session_id="s", message="well", event_id="9", started_at=1, ended_at=1))
    assert worker.flush(30)
    worker.close()
    assert "9" in server.spans
    lines = capsys.readouterr().err
    assert "could not be sent: ValueError" in lines
    assert "t0ken" not in lines
    assert "hush" not in lines


def test_what_waited_is_sent_when_the_server_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    with held_port() as port, watched(telemetry=_at(port)) as manager:
        manager.preflight("s", full_history())
        assert not manager.flush(1)
        with ariadne_server(port) as second:
            assert manager.flush(30)
            assert len(second.of("compact.preflight")) == 1
            assert second.traces["s"]
    assert "[Ariadne] http://127.0.0.1" in capsys.readouterr().err


def _at(port: int) -> dict[str, Any]:
    return {"exporter": "ariadne", "ariadne_url": f"http://127.0.0.1:{port}/ingest"}


def test_a_server_that_was_started_anew_is_told_of_the_session_again() -> None:
    """Nothing of the first server is known to the second."""
    with held_port() as port, ariadne_server(port) as first, watched(telemetry=_at(port)) as manager:
        manager.preflight("s", full_history()[:3])
        assert manager.flush(30)
        first.shut_down()
        manager.preflight("s", full_history()[:4])
        assert not manager.flush(0.5)
        with ariadne_server(port) as second:
            manager.preflight("s", full_history()[:5])
            assert manager.flush(30)
            assert "s" in second.traces
            assert len(second.of("compact.preflight")) >= 1


@pytest.mark.parametrize("behaviour", ["hangs", "refuses", "answers 500"])
def test_an_hour_of_traffic_without_a_server(behaviour: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls take no longer, what waits is bounded, what is dropped is counted, and closing is quick."""
    quiet = watched()
    usual = _p99(quiet)
    with ariadne_server() as server, held_port() as port:
        server.hangs, server.status = behaviour == "hangs", 500 if behaviour == "answers 500" else 200
        url = f"http://127.0.0.1:{port}/ingest" if behaviour == "refuses" else server.url
        worker = ExportWorker(AriadneExporter(url), max_queued=500)
        manager = watched(on_event=worker)
        with_it = _p99(manager)
        assert worker.waiting <= 500 + 256
        assert worker.dropped > 8_000
        start = time.perf_counter()
        manager.close()
        assert time.perf_counter() - start < 20
    # The machine may be busy with something else; a call that waited for the server would take 2 seconds.
    assert with_it < 20 * usual + 0.1
    assert with_it < 1.0
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert all(line.startswith("[Ariadne] ") for line in lines)
    # The same thing is said again after a minute, which this may take on a busy machine.
    kinds = {re.sub(r"[\d,]+", "#", re.sub(r" \([\d,]+ more like this\)$", "", line)) for line in lines}
    assert 1 <= len(kinds) <= 6, lines
    assert any("events were never sent" in line for line in lines)


def _p99(manager: Any) -> float:
    """An hour of an agent that calls about every second, as quickly as it goes."""
    history = full_history()[:6]
    manager.preflight("s", history)
    times = []
    for _ in range(3_000):
        start = time.perf_counter()
        manager.preflight("s", history)
        times.append(time.perf_counter() - start)
    return sorted(times)[int(len(times) * 0.99)]


def test_after_an_outage_the_viewer_learns_what_it_missed(server: Ariadne) -> None:
    server.status = 503
    worker = ExportWorker(AriadneExporter(server.url), max_queued=100)
    dispatcher = Dispatcher([worker])
    for number in range(600):
        dispatcher(NoticeEvent(session_id="s", message=str(number)))
    assert server.wait_for(1)
    for number in range(600, 800):
        dispatcher(NoticeEvent(session_id="s", message=str(number)))
    server.status = 200
    assert dispatcher.flush(30)
    dispatcher.close()
    assert worker.dropped >= 300
    told = sum(span["data"]["count"] for span in server.of("compact.events_dropped"))
    assert told == worker.dropped
    assert len(server.of("compact.notice")) == 800 - worker.dropped
    assert server.of("compact.notice")[-1]["data"]["message"] == "799"


@pytest.mark.parametrize("url", ["", "localhost:5175", "ftp://x/ingest", "http://", "http://x:99999/ingest"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not an address to send events to"):
        AriadneExporter(url)


def test_a_password_in_the_address_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with held_port() as port:
        worker = ExportWorker(AriadneExporter(f"http://user:hunter2@127.0.0.1:{port}/ingest"))
        worker(one_of_each()[0])
        worker.close()
    lines = capsys.readouterr().err
    assert "[Ariadne]" in lines
    assert "hunter2" not in lines


def test_threads_end_by_themselves(server: Ariadne, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that nobody closes leaves no thread behind, and what comes later is sent all the same."""
    monkeypatch.setattr("compact.telemetry.worker._IDLE_SECONDS", 0.05)
    worker = ExportWorker(AriadneExporter(server.url))
    dispatcher = Dispatcher([worker])
    for number in range(2):
        dispatcher(NoticeEvent(session_id="s", message=str(number)))
        assert dispatcher.flush(30)
        thread = next((t for t in threading.enumerate() if t.name == "compact-ariadne"), None)
        if thread:
            thread.join(30)
            assert not thread.is_alive()
    dispatcher.close()
    assert len(server.spans) == 2
