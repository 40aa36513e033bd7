"""Many processes on one PostgreSQL, several of them in the same sessions.

The full size, 200 sessions with 50 preflights each, is `make soak`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compact import StructuredSummary, SummaryRequest
from compact.core.engine.events import VersionConflictEvent
from compact.summarizers.extractive import extractive_summary
from compact.testing import user
from sizes import SOAK
from soak_counts import SoakCounts
from stores.worker import (
    CountingSummarizer,
    crowd,
    crowd_history,
    finish,
    history,
    manager_on,
    start,
    summarize_for_ever,
    violations,
)

PROCESSES = 8
SESSIONS, PREFLIGHTS = (200, 50) if SOAK else (24, 30)


@pytest.mark.soak
def test_eight_processes_lose_nothing_and_double_nothing(postgres_url: str, tmp_path: Path, soak: SoakCounts) -> None:
    log = tmp_path / "summaries"
    sizes = {"processes": PROCESSES, "sessions": SESSIONS, "preflights": PREFLIGHTS}
    processes = [start(crowd, url=postgres_url, log=str(log), number=n, **sizes) for n in range(PROCESSES)]
    told = [finish(process, timeout_seconds=900) for process in processes]
    assert [error for each in told for error in each["errors"]] == []
    manager, _ = manager_on(postgres_url, window=400)
    with manager:
        assert len(manager.sessions()) == SESSIONS
        calls = 0
        for number in range(SESSIONS):
            entries = crowd_history(number, PREFLIGHTS)
            written = [message.original for message in manager.history(f"s-{number}")]
            assert written == entries, f"session {number}: {len(written)} of {len(entries)}"
            versions = [entry.plan.version for entry in manager.plans(f"s-{number}")]
            assert versions == sorted(set(versions)), "each version once"
            calls += len(manager.model_calls(f"s-{number}"))
            assert violations(manager.preflight(f"s-{number}", entries)) == ()
    spans = Counter(log.read_text().splitlines())
    doubled = [json.loads(line) for line, count in spans.items() if count > 1]
    assert len({json.loads(line)[1] for line in spans}) == SESSIONS, "every session was compacted"
    assert doubled == [], "no span is summarised twice"
    times = sorted(seconds for each in told for seconds in each["times"])
    assert calls == len(times), "every call is on record"
    conflicts = sum(each["conflicts"] for each in told)
    soak.add(cases=len(times))
    soak.figure(
        f"{PROCESSES} processes in {SESSIONS} sessions on PostgreSQL, several in the same ones: "
        f"{len(times):,} preflights, median {statistics.median(times) * 1000:.1f} ms, "
        f"99% {times[int(len(times) * 0.99)] * 1000:.0f} ms, worst {times[-1]:.2f} s; "
        f"{conflicts} conflicts, {sum(spans.values())} summaries"
    )


def test_a_lost_race_is_reported_and_made_good(url: str) -> None:
    """Another process writes while this one waits for its summary."""
    other, _ = manager_on(url)

    def interrupted(request: SummaryRequest) -> StructuredSummary:
        other.preflight("s", history(100))
        return extractive_summary(request)

    manager, sink = manager_on(url, summarizer=interrupted)
    with manager, other:
        prompt = manager.preflight("s", history(96))
        assert len(sink.of(VersionConflictEvent)) == 1
        assert "session 's'" in sink.of(VersionConflictEvent)[0].message
        assert violations(prompt) == ()
        other.preflight("s", history(101))
        assert [message.original for message in other.history("s")] == history(101)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("lengths", [(20, 16, 20), (20, 16, 12, 20), (20, 8, 16, 20, 24), (20, 4, 20, 4, 24)], ids=str)
def test_an_older_history_sent_again_doubles_nothing(url: str, lengths: tuple[int, ...], replicas: int) -> None:
    """One replica is behind: it sends less than the store has, then somebody sends all of it again."""
    managers = [manager_on(url)[0] for _ in range(replicas)]
    for turn, length in enumerate(lengths):
        prompt = managers[turn % replicas].preflight("s", history(length))
        assert prompt == history(length)
    assert [message.original for message in managers[0].history("s")] == history(max(lengths))
    for manager in managers:
        manager.close()


def test_two_lines_of_one_session_double_nothing(url: str) -> None:
    """Two replicas disagree about the past and take turns: each finds its own line in the log."""
    one, other = manager_on(url)[0], manager_on(url)[0]
    trunk = history(8)
    left, right = [*trunk, user("left")], [*trunk, user("right")]
    for _ in range(3):
        for manager, line in ((one, left), (other, right)):
            assert manager.preflight("s", line) == line
    assert [message.original for message in one.history("s")] == [*trunk, user("left"), user("right")]
    one.close()
    other.close()


def test_nobody_waits_for_a_writer_that_was_killed(url: str) -> None:
    """Its claim would be held for a minute; it is taken over at once, by exactly one of those who want it."""
    process = start(summarize_for_ever, url=url)
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    process.kill()
    process.communicate()
    summarizers = [CountingSummarizer(delay_seconds=0.2) for _ in range(3)]
    managers = [manager_on(url, summarizer=summarizer)[0] for summarizer in summarizers]
    started = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        prompts = list(pool.map(lambda manager: manager.preflight("s", history(96)), managers))
    assert time.monotonic() - started < 20
    assert sum(len(summarizer.asked) for summarizer in summarizers) == 1
    assert prompts[0] == prompts[1] == prompts[2]
    for manager in managers:
        manager.close()
