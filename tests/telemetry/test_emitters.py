"""Whoever takes events: callables and emitters, many at once, logs, consoles and counters."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import compact.core.engine.events
import compact.telemetry
from compact.cli.screen import json_text
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    ContentRecalledEvent,
    EventsDroppedEvent,
    NoticeEvent,
)
from compact.redaction import Redactor
from compact.telemetry.emitters import CompactionEventEmitter, CompositeEventEmitter, as_sink
from compact.telemetry.event_archive import ArchiveExporter
from compact.telemetry.log import ConsoleEmitter, LoggingEventEmitter
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.truncation import one_line
from compact.telemetry.worker import ExportWorker, ThrottledWarnings
from compact.testing import RecordingSink
from telemetry.event_samples import all_kinds, full_history, one_of_each, watched

S2_NAMES = (
    "CompactionEventType CompactionEvent CompactionCheckStartedEvent CompactionCompletedEvent ProposalGeneratedEvent "
    "ProposalRejectedEvent ContentClearedEvent ContentSummarizedEvent ContentExternalizedEvent ContentDroppedEvent "
    "ContentRehydratedEvent RehydrationBlockedEvent CompactionErrorEvent VersionConflictEvent CompactionMetrics "
    "CompactionEventEmitter LoggingEventEmitter MetricsCollector CompositeEventEmitter"
)
SECRET = "api_key=sk-" + "abc123def456ghi789"


@dataclass
class Emitter:
    """Takes events by a method alone."""

    events: list[CompactionEvent] = field(default_factory=list)

    def emit(self, event: CompactionEvent) -> None:
        self.events.append(event)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", S2_NAMES.split())
def test_everything_is_in_one_place(name: str) -> None:
    assert getattr(compact.telemetry, name)
    assert name in dir(compact.telemetry)
    if name.endswith(("Event", "Type")):
        assert getattr(compact.core.engine.events, name) is getattr(compact.telemetry, name)


def test_every_event_is_there() -> None:
    for kind in all_kinds():
        assert getattr(compact.telemetry, kind.__name__) is kind


def test_types_and_names_are_the_same() -> None:
    """What is found late is what a type checker sees, and all of it can be had."""
    source = ast.parse(Path(compact.telemetry.__file__).read_text(encoding="utf-8"))
    imported = [alias for node in ast.walk(source) if isinstance(node, ast.ImportFrom) for alias in node.names]
    exported = {alias.name for alias in imported if alias.name == alias.asname}
    assert [alias.name for alias in imported if alias.name == "*"] == ["*"]  # the events
    assert {kind.__name__ for kind in all_kinds()} | exported <= set(dir(compact.telemetry))
    assert {"AgentsTracing", "AriadneExporter", "OtlpExporter", "mark_compacted", "MetricsCollector"} <= exported
    for name in dir(compact.telemetry):
        assert hasattr(compact.telemetry, name)


@pytest.mark.parametrize("place", [compact.telemetry, compact.core.engine.events])
def test_what_is_not_there_is_said(place: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchEvent'"):
        place.NoSuchEvent  # noqa: B018


def test_nothing_heavy_is_loaded() -> None:
    """Neither events nor a manager load what only an exporter needs."""
    code = (
        "import sys, compact.telemetry, compact.core.engine.events; from compact import CompactConfig, CompactManager\n"
        "CompactManager(CompactConfig(state={'url': 'memory:'}, storage={'adapter': 'none'})).close()\n"
        "heavy = ('opentelemetry', 'agents', 'http.client', 'rich', 'requests')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_an_emitter_is_as_good_as_a_callable() -> None:
    emitter = Emitter()
    assert isinstance(emitter, CompactionEventEmitter)
    with watched(on_event=emitter) as manager:
        manager.preflight("s", full_history()[:3])
    assert emitter.events[0].name == "compact.check_started"
    assert as_sink(print) is print


@pytest.mark.parametrize("kind", [MetricsCollector, LoggingEventEmitter, ConsoleEmitter, CompositeEventEmitter])
def test_ours_are_both(kind: type) -> None:
    sink = kind()
    assert isinstance(sink, CompactionEventEmitter)
    for event in one_of_each():
        sink.emit(event)
        sink(event)


def test_one_event_reaches_all(caplog: pytest.LogCaptureFixture) -> None:
    """One that fails keeps nobody else from it, and is reported once."""

    def bad(event: CompactionEvent) -> None:
        raise ValueError("broken")

    first, last = Emitter(), RecordingSink()
    composite = CompositeEventEmitter([first, bad, last])
    for event in one_of_each():
        composite.emit(event)
    assert first.events == last.events
    assert len(last.events) == len(one_of_each())
    assert len([record for record in caplog.records if "it will not be reported again" in record.getMessage()]) == 1


def test_a_composite_closes_and_flushes_all(caplog: pytest.LogCaptureFixture) -> None:
    class Closing(Emitter):
        closed = flushed = False

        def flush(self, timeout_seconds: float) -> bool:
            self.flushed = True
            return False

        def close(self) -> None:
            self.closed = True
            raise OSError("already gone")

    class Failing(Emitter):
        def flush(self, timeout_seconds: float) -> bool:
            raise RuntimeError("not now")

    one, two = Closing(), Closing()
    composite = CompositeEventEmitter([one, Failing(), two])
    assert not composite.flush(1)
    assert not CompositeEventEmitter([Failing()]).flush(1)
    composite.close()
    assert "could not be flushed" in caplog.text
    assert one.flushed
    assert two.flushed
    assert one.closed
    assert two.closed
    assert "could not be closed" in caplog.text


def test_log_lines_have_levels_and_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="compact")
    with watched(telemetry={"exporter": "console"}) as manager:
        manager.preflight("s", full_history(SECRET))
        with pytest.raises(Exception, match="tokens"):
            manager.manual_compact("s", full_history(SECRET), SECRET, target_tokens=1)
    levels = {record.levelname for record in caplog.records}
    assert levels == {"DEBUG", "INFO", "WARNING"}
    assert "[s] compacted, plan v1: " in caplog.text
    assert "<REDACTED>" in caplog.text
    assert "sk-abc123" not in caplog.text


def test_every_line_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    event = CompactionErrorEvent(session_id="s", error_type="E", message=f"refused {SECRET}", fallback="none")
    LoggingEventEmitter(Redactor().value)(event)
    stream = io.StringIO()
    ConsoleEmitter(Redactor().value, stream=stream)(event)
    for text in (caplog.text, stream.getvalue()):
        assert "refused api_key=<REDACTED>" in text
        assert "sk-abc123" not in text


def emitted(stream: io.StringIO, *, level: str = "auto") -> str:
    emitter = ConsoleEmitter(level=level, stream=stream)
    for event in one_of_each():
        emitter(event)
    return stream.getvalue()


def test_a_pipe_gets_plain_lines() -> None:
    lines = emitted(io.StringIO(), level="info").splitlines()
    labels = [line.split()[3] for line in lines]
    assert {"error", "compacted", "history_branched", "history_repaired", "notice"} <= set(labels)
    assert len(labels) == sum(event.spec.severity != "debug" for event in one_of_each())
    said = "no model's summary stands for the messages that leave the prompt, but what code chose of them"
    assert any(f"compact [s-1] error SummaryFailed: no answer (instead: {said})" in line for line in lines)
    assert not any("pruning-only" in line for line in lines), "that is a term for programs"
    assert any("] compacted plan v2: 900 → 450 tokens" in line for line in lines)
    assert "\x1b" not in "".join(lines)


def test_by_default_a_pipe_gets_warnings_alone() -> None:
    words = [line.split()[3] for line in emitted(io.StringIO()).splitlines()]
    loud = [event for event in one_of_each() if event.spec.severity in ("warning", "error")]
    assert words == [event.name.removeprefix("compact.") for event in loud]
    assert {"error", "notice"} <= set(words)


def test_a_terminal_gets_colour_and_one_calm_line_for_each() -> None:
    text = emitted(Terminal())
    assert len(text.splitlines()) == sum(event.spec.severity != "debug" for event in one_of_each())
    assert "\x1b[32m" in text
    assert "█████░░░░░" in text


def test_every_level_can_be_asked_for() -> None:
    assert len(emitted(io.StringIO(), level="debug").splitlines()) == len(one_of_each())


def test_hostile_text_is_one_line_without_markup() -> None:
    stream = Terminal()
    ConsoleEmitter(stream=stream)(NoticeEvent(session_id="[red]", message="[bold]a[/bold]\nb", ended_at=1.0))
    assert len(stream.getvalue().splitlines()) == 1
    assert "[bold]a[/bold] b" in stream.getvalue()
    assert "[red]" in stream.getvalue()


# Every character that Unicode calls a control or a mark for the direction of writing.
DIRECTIONS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
STEERING = [
    char
    for char in map(chr, range(0x7F, 0x10000))
    if unicodedata.category(char) == "Cc"
    or unicodedata.bidirectional(char) in DIRECTIONS
    or char in "\u061c\u200e\u200f"
]


def test_what_steers_a_terminal_is_the_same_in_a_log_and_in_json() -> None:
    assert len(STEERING) > 40
    text = "".join(STEERING)
    assert set(one_line(f"-{text}-")) <= {"-", "\N{REPLACEMENT CHARACTER}", " "}
    assert not set(json_text(text)) & set(STEERING)
    assert json.loads(json_text(text)) == text


HOSTILE = "a\x1b]0;title\x07b\x1b[2J\x9b31m\x00\x7f\x85\r\u202ec"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_no_text_gives_a_terminal_orders(stream: io.StringIO) -> None:
    """Neither what an event says nor the name of its session; the colours are ours."""
    ConsoleEmitter(stream=stream)(NoticeEvent(session_id=f"s\n{HOSTILE}", message=HOSTILE, ended_at=1.0))
    text = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert len(stream.getvalue().splitlines()) == 1
    assert text.count("a�]0;title�b�[2J�31m") == 2


def test_log_lines_give_a_terminal_no_orders(caplog: pytest.LogCaptureFixture) -> None:
    LoggingEventEmitter()(NoticeEvent(session_id=HOSTILE, message=HOSTILE))
    (record,) = caplog.records
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", record.getMessage())


def test_warnings_give_a_terminal_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    ThrottledWarnings("[X]")(f"the server said {HOSTILE}")
    line = capsys.readouterr().err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", line)
    assert line.startswith("[X] the server said a�]0;title�b")


def test_without_logging_set_up_a_piped_process_says_only_what_it_must() -> None:
    code = (
        "from compact import CompactConfig, CompactManager\n"
        "from compact.testing import dialogue\n"
        "base = dict(max_context_tokens=2000, state={'url': 'memory:'}, storage={'adapter': 'none'})\n"
        "base['policy'] = {'hard_cap_buffer': 100}\n"
        "CompactManager(CompactConfig(**base)).manual_compact('s', dialogue(60, words=30))\n"
        "level = {'console_level': 'info'}\n"
        "CompactManager(CompactConfig(**base, telemetry=level)).manual_compact('loud', dialogue(60, words=30))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "compact [loud] compacted" in line


def test_metrics_count_every_session_and_all() -> None:
    collector = MetricsCollector()

    def count() -> None:
        for _ in range(500):
            collector(NoticeEvent(session_id=threading.current_thread().name, message=""))

    threads = [threading.Thread(target=count, name=name) for name in ("a", "b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert collector.global_metrics.events["compact.notice"] == 2_000
    assert collector.session_metrics("b").events["compact.notice"] == 500
    assert set(collector.sessions()) == {"a", "b", "c", "d"}
    assert collector.session_metrics("nobody").events == {}
    collector.reset()
    assert collector.sessions() == ()


def test_the_old_names_of_sessions_still_work() -> None:
    collector = MetricsCollector()
    collector(NoticeEvent(session_id="s", message=""))
    with pytest.warns(DeprecationWarning, match="thread_metrics is now session_metrics"):
        assert collector.thread_metrics("s") is collector.session_metrics("s")
    with pytest.warns(DeprecationWarning, match="threads is now sessions"):
        assert collector.threads() == ("s",)


def test_metrics_are_bounded() -> None:
    collector = MetricsCollector()
    for number in range(1_200):
        collector(NoticeEvent(session_id=str(number), message=""))
    assert len(collector.sessions()) == 1_000
    assert collector.sessions()[-1] == "1199"
    assert collector.global_metrics.events["compact.notice"] == 1_200
    for number in range(1_000):
        collector.record({"event": "compact.error", "error_type": f"E{number}", "session_id": ""})
    assert len(collector.global_metrics.errors_by_type) == 201
    assert collector.global_metrics.errors_by_type["other"] == 800
    for number in range(1_000):
        collector.record({"event": f"{number}" + "x" * 10_000, "session_id": "s"})
    names = collector.session_metrics("s").events
    assert len(names) == 51
    assert max(map(len, names)) == 200
    assert names.total() == 1_000


def test_a_counter_never_falls() -> None:
    """What became longer frees nothing."""
    collector = MetricsCollector()
    for freed in (60, -20):
        collector.record({"event": "compact.content_cleared", "tokens_freed": freed, "message_count": 1})
    assert collector.global_metrics.tokens_freed_by_action == {"clear": 60}


class HangingArchive:
    """Never finishes its first event."""

    def __init__(self) -> None:
        self.hangs, self.released = threading.Event(), threading.Event()

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        self.hangs.set()
        self.released.wait(60)


def test_closing_an_archive_that_hangs_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    archive = HangingArchive()
    sink = ExportWorker(ArchiveExporter(archive), max_queued=1_000, close_seconds=0.2)
    sink(NoticeEvent(session_id="s", message="in hand"))
    assert archive.hangs.wait(30)
    for number in range(1_100):
        sink(NoticeEvent(session_id="s", message=str(number)))
    closing = threading.Thread(target=sink.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    assert sink.dropped == 1_101
    assert "1,101 events were never sent" in caplog.text
    archive.released.set()


def test_figures_of_each_kind() -> None:
    collector = MetricsCollector()
    for event in one_of_each():
        collector(event)
    found = collector.session_metrics("s-1")
    assert found.compactions == 1
    assert found.tokens_freed == 450
    assert found.tokens_freed_by_action == {"clear": 800, "summarize": 800, "externalize": 800, "drop": 800}
    assert found.entities == {"kept": 3, "in_ledger": 1, "retrievable": 2, "lost": 1}
    assert (found.recalls, found.rehydrations, found.blocked_rehydrations, found.conflicts) == (1, 1, 1, 1)
    assert (found.summarizer_calls, found.summarizer_failures, found.summarizer_output_tokens) == (1, 0, 90)
    assert found.summarizer_seconds.total == 1.5
    assert found.dropped_by_exporter == {"ariadne": 7}


def test_a_recall_is_told_with_what_it_found() -> None:
    with watched(on_event=(sink := RecordingSink())) as manager:
        manager.preflight("s", full_history())
        answer = manager.recall("s", "migrations")
    (event,) = sink.of(ContentRecalledEvent)
    assert event.query == "migrations"
    assert event.message_ids == tuple(entry.message_id for entry in answer.entries) != ()
    assert event.tokens == sum(len(entry.content.split()) for entry in answer.entries)
    assert event.plan_version == 1
    assert event.ended_at >= event.started_at > 0


def test_warnings_are_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    warn = ThrottledWarnings("[X]", clock=lambda: now[0])
    for number in range(50):
        warn(f"{number} events were dropped\nby http://x:5175")
    warn("something else")
    now[0] = 61.0
    warn("51 events were dropped by http://x:5175")
    assert capsys.readouterr().err.splitlines() == [
        "[X] 0 events were dropped by http://x:5175",
        "[X] something else",
        "[X] 51 events were dropped by http://x:5175 (49 more like this)",
    ]


def test_warnings_survive_a_closed_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    ThrottledWarnings("[X]")("nobody hears it")
    monkeypatch.setattr(sys, "stderr", None)
    ThrottledWarnings("[X]")("nobody hears it")


def test_what_an_event_says_is_plain_data() -> None:
    for event in one_of_each():
        told = event.to_dict()
        assert told["event"] == event.name
        assert told["status"] == ("error" if event.failure else "ok")
        assert not {"began", "compute_report", "compute_economics", "hidden"} & set(told)
    completed = next(event for event in one_of_each() if isinstance(event, CompactionCompletedEvent))
    assert completed.to_dict()["economics"] == {"freed_tokens": 450}
    assert {"error_type", "message", "fallback"} <= set(
        next(event for event in one_of_each() if isinstance(event, CompactionErrorEvent)).to_dict()
    )
    assert EventsDroppedEvent(session_id="", exporter="x", count=1).to_dict()["count"] == 1
