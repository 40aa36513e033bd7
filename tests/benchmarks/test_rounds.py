"""The benchmark of rounds: the same session every time, compactions with a summary, goals that can be missed."""

import json
import sys
from itertools import islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import rounds


def test_the_session_is_the_same_every_time_and_has_what_sessions_have() -> None:
    first, second = ([*islice(rounds.SessionMaker().exchanges(), 60)] for _ in range(2))
    assert first == second
    messages = [message for exchange in first for message in exchange]
    assert {message["role"] for message in messages} == {"system", "user", "assistant", "tool"}
    calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    assert {call["name"] for call in calls} == {"read_file", "edit_file", "grep", "bash", "query", "todo_write"}
    assert all(json.loads(call["arguments"]) for call in calls)
    assert any("AssertionError" in str(message["content"]) for message in messages)


@pytest.mark.parametrize("prefetch", ["never", "auto"])
def test_rounds_are_compactions_with_a_summary(prefetch: str) -> None:
    measured = rounds.measure_rounds(3, 12_000, prefetch=prefetch)
    assert [one.number for one in measured] == [1, 2, 3]
    sizes = [one.history_tokens for one in measured]
    assert sizes == sorted(sizes)
    assert sizes[0] > 0.85 * 12_000
    assert all(one.us_per_token > 0 for one in measured)


def test_the_large_messages_are_large() -> None:
    for name, build in rounds.large_histories():
        size = max(len(json.dumps(message)) for message in build())
        assert size >= 1_900_000, name


def test_a_missed_goal_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    cheap = [rounds.Round(number, 100_000, 0.1, 0.1) for number in range(1, 10)]
    assert not rounds._missed(cheap, {"code": 0.5})
    assert rounds._missed(cheap, {"code": 1.5})
    assert "code: 1.50 s" in capsys.readouterr().err
    dear = [rounds.Round(number, 100_000, 0.4, 0.4) for number in range(1, 10)]
    assert rounds._missed(dear, {})
    growing = [rounds.Round(number, 100_000, 0.03 * number, 0.1) for number in range(1, 10)]
    assert rounds.growth([one.us_per_token for one in growing]) == pytest.approx(4.0)
    assert rounds._missed(growing, {})
