"""A session that lasts: the ten-thousandth turn takes no longer than the thousandth, and memory grows by its text.

`make soak` runs 10,000 turns. Of a very long history a summary reads only a part (`summarizers/reach.py`): until that
limit is reached each compaction takes longer than the one before, so the short form lowers it.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from types import FrameType

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, CompactionReportEvent
from compact.summarizers import reach
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, tool_exchange, user
from load.sessions import resident_mb
from sizes import SOAK
from soak_counts import SoakCounts
from stores.worker import violations

TURNS = 10_000 if SOAK else 200
# Parts of the session that are compared; the first is not, since it is still short.
PARTS = 10
WORDS = ("berth", "crane", "harbour", "pilot", "quay", "tide", "crate", "ledger")


def turn(number: int, chance: random.Random) -> list[Wire]:
    """Return a question, a call with its result, and an answer: about 60 words."""
    words = " ".join(chance.choices(WORDS, k=20))
    read = tool_exchange(f"call-{number}", f"{number} free\n{words}", path=f"src/quay_{number % 50}.py")
    return [user(f"Is berth {number} free? {words}"), *read, assistant(f"Berth {number} is.")]


@pytest.mark.soak
@pytest.mark.parametrize("sends", ["history", "prompt"])
def test_a_long_session_stays_quick(
    tmp_path: Path, sends: str, soak: SoakCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the caller sends all of its history each time, or goes on with the last prompt."""
    if not SOAK:
        monkeypatch.setattr(reach, "MAX_CHARS", 15_000)
    config = CompactConfig(
        max_context_tokens=4_000 if SOAK else 1_000,
        policy={"hard_cap_buffer": 0},
        state={"url": f"sqlite:///{tmp_path}/state.db"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        summarizer={"prefetch": "never"},
    )
    sink, chance = RecordingSink(), random.Random(1)
    history, prompt, parts, memory = list[Wire](), list[Wire](), list[list[float]](), list[float]()
    with CompactManager(config, tokenizer=WordTokenizer(), on_event=sink) as manager:
        for number in range(TURNS):
            if number % (TURNS // PARTS) == 0:
                parts.append([])
                memory.append(resident_mb())
            new = turn(number, chance)
            history += new
            items = history if sends == "history" else [*prompt, *new]
            started = time.process_time()
            prompt = manager.preflight("s", items)
            parts[-1].append(time.process_time() - started)
            assert prompt[-1] == new[-1]
            soak.add()
        assert not violations(prompt)
        assert len(manager.history("s")) == len(history)
    compactions = len(sink.of(CompactionCompletedEvent))
    assert sink.of(CompactionErrorEvent) == []
    assert compactions > PARTS
    means = [sum(part) / len(part) for part in parts]
    growth = (resident_mb() - memory[1]) / (PARTS - 1) / (TURNS // PARTS) * 1000
    soak.figure(
        f"{TURNS:,} turns in one session, the caller sends its {sends}: {compactions:,} compactions; CPU ms a turn in "
        f"each tenth: {', '.join(f'{1000 * mean:.0f}' for mean in means)}; {growth:.1f} kB of memory a turn"
    )
    # A turn of the last tenth against the slowest tenth of the first half.
    assert means[-1] < 2 * max(means[1 : PARTS // 2]), means
    assert growth < 40


class CallCount:
    """Counts the functions that this thread calls: what a turn does, whatever else the machine does meanwhile."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> CallCount:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


def test_a_compaction_and_its_report_do_little_more_in_a_session_five_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What stands behind the summary is not walked again: measured are the calls of all turns of a tenth of it."""
    monkeypatch.setattr(reach, "MAX_CHARS", 15_000)
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        summarizer={"prefetch": "never"},
    )
    sink, chance, prompt = RecordingSink(), random.Random(1), list[Wire]()
    early, late = CallCount(), CallCount()
    with CompactManager(config, tokenizer=WordTokenizer(), on_event=sink) as manager:
        for number in range(500):
            items = [*prompt, *turn(number, chance)]
            count = early if 50 <= number < 100 else late if number >= 450 else None
            if count is None:
                prompt = manager.preflight("s", items)
                continue
            with count:
                prompt = manager.preflight("s", items)
    assert len(sink.of(CompactionCompletedEvent)) > 50
    # Measured: 1.1 times as many, 1.4 when each compaction asked every message for one thing after another, 2.0 when
    # all that a summary stands for is read again, and 3.7 when each compaction walked the log a dozen times. What is
    # left is the ledger, which grows.
    assert late.calls < 1.2 * early.calls, (early.calls, late.calls)
    # A report is made when it is read, in whatever thread that is.
    reports = sink.of(CompactionReportEvent)
    first, last = CallCount(), CallCount()
    for count, read in (first, reports[5:15]), (last, reports[-10:]):
        with count:
            assert all(event.report.items for event in read)
    # Measured: 1.1 times as many, and 1.8 when a report looked at each message of the history.
    assert last.calls < 1.3 * first.calls, (first.calls, last.calls)
