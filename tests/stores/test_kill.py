"""`kill -9` at any moment: what was acknowledged is there, in order, and the session goes on."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from compact.core.engine.events import CompactionErrorEvent
from sizes import SOAK
from soak_counts import SoakCounts
from stores.worker import history, manager_on, start, violations, write_on

PREFLIGHTS, KILLS = (1_600, 80) if SOAK else (200, 6)


def acknowledged(log: Path) -> int:
    """The last message whose preflight had returned; a line that was cut off does not count."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return int(lines[-1]) if lines else 0


@pytest.mark.soak
def test_what_was_acknowledged_survives_kill_9(url: str, tmp_path: Path, soak: SoakCounts) -> None:
    chance, log = random.Random(4711), tmp_path / "acknowledged"
    kills = 0
    while acknowledged(log) < PREFLIGHTS:
        before = acknowledged(log)
        process = start(write_on, url=url, log=str(log), preflights=PREFLIGHTS - before)
        if kills < KILLS:
            # Not at a step of its choosing: some messages further on, then a moment that nobody knows.
            goal = before + chance.randint(5, PREFLIGHTS // KILLS)
            while acknowledged(log) < min(goal, PREFLIGHTS) and process.poll() is None:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
            kills += 1
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, -9), err[-3000:]
        check(url, acknowledged(log))
        soak.add(faults=process.returncode == -9)
    assert kills == KILLS


def check(url: str, count: int) -> None:
    manager, sink = manager_on(url)
    with manager:
        written = [message.original for message in manager.history("s")]
        assert len(written) in (count, count + 1), "one more than acknowledged may have been written"
        assert written == history(len(written)), "in order, none lost, none twice"
        assert manager.plans("s")[-1:] == () or manager.current_plan("s") == manager.plans("s")[-1].plan
        assert len(manager.model_calls("s")) >= count
        prompt = manager.preflight("s", history(len(written)))
        assert violations(prompt) == ()
        assert len(prompt) == len(manager.prompt("s"))
    assert sink.of(CompactionErrorEvent) == []
