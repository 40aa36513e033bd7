"""A session that lasts: the ten-thousandth turn takes no longer than the thousandth, and memory grows by its text.

`make soak` runs 10,000 turns. Of a very long history a summary reads only a part (`summarizers/reach.py`): until that
limit is reached each compaction takes longer than the one before, so the short form lowers it.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
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
        monkeypatch.setattr(reach, "MAX_CHARS", 12_000)
        monkeypatch.setattr(reach, "MAX_CHARS_WITH_SUMMARY", 6_000)
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
