"""The next process goes on where the last one stopped: the same prompt, nothing counted again, no second summary."""

from __future__ import annotations

import pytest

from compact.core.engine.events import CompactionErrorEvent, HistoryBranchedEvent
from compact.core.messages.legality import MISSING_RESULT
from compact.core.messages.turn_order import LEFT_OUT
from compact.testing import user
from stores.worker import (
    SCENES,
    CountingSummarizer,
    CountingTokenizer,
    as_bytes,
    finish,
    history,
    manager_on,
    play,
    start,
    violations,
)


@pytest.mark.parametrize("scene", SCENES)
def test_the_next_process_gives_the_same_prompt_and_counts_nothing_again(url: str, scene: str) -> None:
    first = finish(start(play, url=url, scene=scene))
    assert first["plan"] > 0, "there was something to compact"
    # The same input, made anew here: all scenes are deterministic.
    entries, _ = SCENES[scene](manager_on("memory:")[0])
    assert as_bytes(entries) == first["entries"]
    tokenizer, summarizer = CountingTokenizer(), CountingSummarizer()
    manager, sink = manager_on(url, tokenizer=tokenizer, summarizer=summarizer)
    with manager:
        prompt = manager.preflight("s", entries)
        assert as_bytes(prompt) == first["prompt"]
        assert not sink.of(CompactionErrorEvent)
        assert not sink.of(HistoryBranchedEvent)
        assert len(summarizer.asked) == 0
        # Lines of ours are the only thing that is weighed anew: for a missing result, or a turn that was left out.
        ours = (MISSING_RESULT, LEFT_OUT)
        assert [message.text for message in tokenizer.counted if message.text not in ours] == []
        assert manager.current_plan("s").version == first["plan"]
        assert violations(manager.preflight("s", [*entries, user("go on")])) == ()


def test_the_scenes_reach_what_they_name() -> None:
    asked: dict[str, int] = {}
    branched: dict[str, int] = {}
    for name, scene in SCENES.items():
        summarizer = CountingSummarizer()
        manager, sink = manager_on("memory:", summarizer=summarizer)
        scene(manager)
        asked[name], branched[name] = len(summarizer.asked), len(sink.of(HistoryBranchedEvent))
    assert {name for name, count in asked.items() if not count} <= {"nothing_left"}
    assert {name for name, count in branched.items() if count} == {"edited_past", "cut_past", "cut_tail"}


def test_a_session_goes_back_and_forth_between_two_processes(url: str) -> None:
    """Two managers take turns, as two replicas behind a load balancer do."""
    tokenizers = [CountingTokenizer(), CountingTokenizer()]
    managers = [manager_on(url, tokenizer=tokenizer)[0] for tokenizer in tokenizers]
    alone, _ = manager_on("memory:")
    for end in range(1, 121):
        prompt = managers[end % 2].preflight("s", history(end))
        assert as_bytes(prompt) == as_bytes(alone.preflight("s", history(end)))
    ours = [message for tokenizer in tokenizers for message in tokenizer.counted if message.original in history(120)]
    assert sorted(history(120).index(message.original) for message in ours) == list(range(120)), "each is counted once"
    for manager in managers:
        assert len(manager.history("s")) == 120
        manager.close()


def test_usage_reported_to_one_process_counts_in_the_next(url: str) -> None:
    first, _ = manager_on(url)
    with first:
        for end, reported in ((20, 300), (30, 500), (40, 700)):
            first.preflight("s", history(end))
            first.observe_usage("s", reported)
        first.preflight("s", history(42))
        used = first.status("s").used_tokens
    assert used > 700
    with manager_on(url)[0] as second:
        assert second.status("s").used_tokens == used
        second.preflight("s", history(42))
        assert second.status("s").used_tokens == used
