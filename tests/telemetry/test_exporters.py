"""Which exporters a configuration asks for, and what their worker promises."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionEvent, CompactionReportEvent, EventsDroppedEvent, NoticeEvent
from compact.core.errors import ConfigError
from compact.extras import install_line
from compact.telemetry import exporters
from compact.telemetry.exporters import ExportSettings, build_exporter
from compact.telemetry.worker import DeliveryFailed, ExportWorker, OutgoingEvent
from telemetry.ariadne_double import ariadne_server
from telemetry.event_samples import full_history, one_of_each, watched


@dataclass
class Recording:
    """An exporter that keeps what it gets; it may be away, slow or broken."""

    name: str = "recording"
    is_away: bool = False
    breaks_on: str = ""
    gate: threading.Event | None = None
    taken: list[OutgoingEvent] = field(default_factory=list)
    sent: list[OutgoingEvent] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    closed: int = 0
    forgotten: int = 0

    def capture_context(self, event: CompactionEvent) -> object:
        return threading.current_thread().name

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        self.threads.add(threading.current_thread().name)
        if self.gate:
            self.gate.wait(30)
        if any(self.breaks_on and self.breaks_on in str(outgoing.data) for outgoing in batch):
            raise ValueError("broken")
        self.taken.extend(batch)

    def send(self) -> None:
        if self.is_away:
            raise DeliveryFailed("away")
        self.sent.extend(self.taken)
        self.taken.clear()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def reset_after_fork(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        self.closed += 1


def notice(number: int) -> NoticeEvent:
    return NoticeEvent(session_id="s", message=str(number))


def messages(recording: Recording) -> list[str]:
    return [outgoing.event.message for outgoing in recording.sent if isinstance(outgoing.event, NoticeEvent)]


def test_everything_arrives_in_order_and_in_batches() -> None:
    recording = Recording()
    worker = ExportWorker(recording, max_batch=64)
    for number in range(1_000):
        worker(notice(number))
    assert worker.flush(30)
    assert messages(recording) == [str(number) for number in range(1_000)]
    assert worker.waiting == worker.dropped == 0
    worker.close()
    assert recording.closed == 1


def test_a_worker_that_waits_holds_no_event_that_was_sent() -> None:
    """Nobody read it, and it may know a whole session."""
    recording = Recording()
    worker = ExportWorker(recording)
    outgoing: list[weakref.ref[Callable[[], Any]]] = []
    for _ in range(2):
        compute: Any = lambda: None  # noqa: E731
        outgoing.append(weakref.ref(compute))
        worker(CompactionReportEvent(session_id="s", compute_report=compute))
        del compute
        assert worker.flush(30)
    recording.sent.clear()
    ends_at = time.monotonic() + 3  # the thread lets go after it has said that it sent them
    while any(ref() for ref in outgoing) and time.monotonic() < ends_at:
        gc.collect()
        time.sleep(0.01)
    assert [ref() for ref in outgoing] == [None, None]
    worker.close()


def test_close_loses_nothing() -> None:
    recording = Recording()
    worker = ExportWorker(recording)
    for number in range(300):
        worker(notice(number))
    worker.close()
    worker.close()
    worker(notice(999))
    assert len(messages(recording)) == 300
    assert recording.closed == 1


def test_work_is_done_in_the_worker_and_once() -> None:
    """Redaction, and what is expensive to work out, never happen where the agent waits."""
    worked: list[str] = []

    def compute_report() -> Any:
        worked.append(threading.current_thread().name)
        return next(event for event in one_of_each() if isinstance(event, CompactionReportEvent)).report

    def redact(value: Any) -> Any:
        redacted.append(threading.current_thread().name)
        return value

    redacted: list[str] = []
    recording = Recording(breaks_on="nothing breaks")
    worker = ExportWorker(recording, redact=redact)
    worker(CompactionReportEvent(session_id="s", compute_report=compute_report))
    assert worker.flush(30)
    (outgoing,) = recording.sent
    assert outgoing.data["counts"]
    worker.close()
    assert set(worked) == set(redacted) == recording.threads == {"compact-recording"}
    assert len(redacted) == 1
    assert outgoing.context == threading.current_thread().name


def test_the_oldest_go_when_too_many_wait() -> None:
    gate = threading.Event()
    recording = Recording(gate=gate)
    worker = ExportWorker(recording, max_queued=100, max_batch=10)
    for number in range(1_000):
        worker(notice(number))
    assert worker.waiting <= 110
    assert worker.dropped >= 890
    gate.set()
    assert worker.flush(30)
    assert messages(recording)[-1] == "999"
    assert len(messages(recording)) == 1_000 - worker.dropped
    told = [outgoing.event for outgoing in recording.sent if isinstance(outgoing.event, EventsDroppedEvent)]
    assert sum(event.count for event in told) == worker.dropped
    assert all(event.event_id and event.exporter == "recording" for event in told)
    assert any("events were dropped" in text for text in recording.warnings)
    worker.close()


def test_what_cannot_be_told_is_left_and_counted() -> None:
    recording = Recording(breaks_on="poison")
    worker = ExportWorker(recording)
    worker(NoticeEvent(session_id="s", message="poison"))
    assert not worker.flush(30)
    worker(notice(1))
    assert worker.flush(30)
    assert messages(recording) == ["1"]
    assert worker.dropped == 1
    assert recording.warnings[0] == "1 event could not be sent: ValueError"
    worker.close()


def test_flush_waits_no_longer_than_it_may() -> None:
    recording = Recording(is_away=True)
    worker = ExportWorker(recording)
    worker(notice(1))
    assert not worker.flush(0.5)
    recording.is_away = False
    assert worker.flush(30)
    assert messages(recording) == ["1"]
    worker.close()


def test_closing_while_nobody_listens_is_quick_and_told() -> None:
    recording = Recording(is_away=True)
    worker = ExportWorker(recording, close_seconds=30)
    for number in range(10):
        worker(notice(number))
    worker.close()
    assert recording.warnings[-1] == "10 events were never sent"
    assert not any("queue was full" in text for text in recording.warnings)
    assert worker.dropped == 10
    assert not recording.sent


def test_closing_while_somebody_hangs_is_bounded() -> None:
    recording = Recording(gate=threading.Event())
    worker = ExportWorker(recording, close_seconds=0.2, max_batch=4)
    for number in range(10):
        worker(notice(number))
    worker.close()
    assert recording.warnings == ["10 events were never sent"]
    assert recording.gate
    recording.gate.set()
    assert worker.dropped == 10


def test_at_exit_everything_is_sent() -> None:
    """A process that ends without closing anything."""
    with ariadne_server() as server:
        code = (
            "from compact import CompactConfig, CompactManager\n"
            f"telemetry = {{'exporter': 'ariadne', 'ariadne_url': '{server.url}'}}\n"
            "config = CompactConfig(state={'url': 'memory:'}, storage={'adapter': 'none'}, telemetry=telemetry)\n"
            "CompactManager(config).preflight('s', [{'role': 'user', 'content': 'hello'}])\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert len(server.of("compact.preflight")) == 1
        assert "ended_at" in server.of("compact.preflight")[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_sends_its_own_events_and_no_others() -> None:
    with ariadne_server() as server:
        code = (
            "import os, sys\n"
            "from compact import CompactConfig, CompactManager\n"
            f"telemetry = {{'exporter': 'ariadne', 'ariadne_url': '{server.url}'}}\n"
            "config = CompactConfig(state={'url': 'memory:'}, storage={'adapter': 'none'}, telemetry=telemetry)\n"
            "manager = CompactManager(config)\n"
            "manager.preflight('before', [{'role': 'user', 'content': 'hello'}])\n"
            "child = os.fork()\n"
            "manager.preflight('child' if child == 0 else 'parent', [{'role': 'user', 'content': 'hello'}])\n"
            "assert manager.flush(30)\n"
            "if child: os.waitpid(child, 0)\n"
        )
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
        names = [span["trace_id"] for span in server.of("compact.preflight")]
        assert sorted(names) == ["before", "child", "parent"]
        assert not server.refusals


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_archives_its_own_events(tmp_path: Path) -> None:
    code = f"""
import os
from compact.core.engine.events import NoticeEvent
from compact.telemetry import ExportWorker
from compact.telemetry.event_archive import ArchiveExporter

class Archive:
    def save_event(self, session_id, event):
        with open({str(tmp_path / "events")!r}, "a") as file:
            file.write(event["message"] + "\\n")

sink = ExportWorker(ArchiveExporter(Archive()))
child = os.fork()
sink(NoticeEvent(session_id="s", message="child" if child == 0 else "parent"))
sink.close()
if child:
    os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    assert sorted((tmp_path / "events").read_text().split()) == ["child", "parent"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("console", ("console",)),
        ("console, ariadne", ("console", "ariadne")),
        (["otlp", "otlp", "agents"], ("otlp", "agents")),
        ("none", ()),
        ([], ()),
    ],
)
def test_one_exporter_or_several(given: Any, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert CompactConfig(telemetry={"exporter": given}).telemetry.for_exporters()["exporters"] == names
    if isinstance(given, str):
        monkeypatch.setenv("COMPACT_EXPORTER", given)
        assert CompactConfig().telemetry.for_exporters()["exporters"] == names


def test_an_exporter_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="should be 'console', 'ariadne', 'otlp', 'agents' or 'none', not 'jaeger'"):
        CompactConfig(telemetry={"exporter": "console,jaeger"})
    with pytest.raises(ConfigError, match="no exporter 'jaeger'"):
        build_exporter("jaeger", ExportSettings(), lambda value: value)


@pytest.mark.parametrize(
    ("exporter", "module", "package", "extra"),
    [
        ("otlp", "opentelemetry.sdk", "opentelemetry-sdk", "otlp"),
        ("agents", "agents.tracing", "openai-agents", "openai-agents"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    exporter: str, module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporters, "find_spec", lambda name: None if name == module else find_spec(name))
    with pytest.raises(ConfigError) as caught:
        CompactManager(CompactConfig(telemetry={"exporter": exporter}))
    assert caught.value.message == f"the exporter {exporter} needs the package {package}"
    assert caught.value.hint == install_line(extra)
    assert caught.value.field == "telemetry.exporter"


def test_a_token_is_no_text_that_is_shown() -> None:
    config = CompactConfig(telemetry={"ariadne_token": "t0ken"})
    assert "t0ken" not in repr(config)
    assert config.telemetry.for_exporters()["ariadne_token"] == "t0ken"


def test_a_broken_exporter_never_reaches_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recording):
        def capture_context(self, event: CompactionEvent) -> object:
            raise RuntimeError("nothing to see")

    history = full_history()
    expected = watched().preflight("s", history)
    with watched(on_event=ExportWorker(Broken())) as manager:
        assert manager.preflight("s", history) == expected
    assert "it will not be reported again" in caplog.text
