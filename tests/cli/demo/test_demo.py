"""`compact demo`: what it shows is what happened."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from compact.cli.demo import replay as demo_replay
from compact.cli.demo.replay import DemoResults, Replay, load_session, protected_messages
from compact.cli.settings import in_memory, load_config
from compact.core.plan.budget import TokenBudget
from compact.core.plan.layers import KeepRules
from compact.strategies import span


def test_piped(process):
    """Plain lines, several compactions, and claims that were checked."""
    done = process("demo")
    assert done.code == 0, done.err
    assert done.err == ""
    assert all(char.isprintable() or char == "\n" for char in done.out)
    compactions = re.findall(
        r"^compaction (\d+) at message [\d,]+: ([\d,]+) → ([\d,]+) tokens \(.+\), \d+ ms$", done.out, re.M
    )
    assert len(compactions) >= 3
    assert [int(number) for number, _, _ in compactions] == list(range(1, len(compactions) + 1))
    for _, before, after in compactions:
        assert int(after.replace(",", "")) < int(before.replace(",", "")) < 128_000
    assert f"compacted   {len(compactions)} times, with 341 model calls" in done.out
    assert "in every prompt since it was given, verbatim" in done.out
    assert ": never over" in done.out
    assert re.search(r"preflight   p50 [\d.]+ ms, p99 [\d.]+ ms", done.out)
    where = r"removed     ([\d,]+) strings: ([\d,]+) still in the prompt, ([\d,]+) retrievable, 0 lost"
    taken = re.search(where, done.out)
    assert taken
    whole, shown, retrievable = (int(number.replace(",", "")) for number in taken.groups())
    assert whole == shown + retrievable > 1_000
    *_, next_line, last_line = done.out.splitlines()
    assert "compact plan FILE" in next_line
    assert "compact report SESSION" in next_line
    assert " view --store " in last_line


def test_claims_are_measured():
    """The session is three windows long, only compactions break the prefix, and all prompts fit."""
    replay = Replay(in_memory(load_config()), load_session())
    results = DemoResults()
    for call in replay:
        results.add(call)
    window = replay.budget.max_context_tokens
    assert sum(replay.tokens) > 3 * window
    assert results.largest_sent_tokens < replay.budget.trigger_tokens
    assert all(call.extends_previous is (call.compaction is None) for call in results.calls)
    assert len(protected_messages(replay.history)) == 1
    assert all(call.has_protected for call in results.calls)


def test_lost_protection_is_not_hidden(cli, monkeypatch):
    """If the message were missing, the demo would say so and fail."""
    monkeypatch.setattr(KeepRules, "pins", lambda self, message: message.role in self.pinned_roles)
    monkeypatch.setattr(span, "_affordable", lambda context, units, room: set())
    monkeypatch.setenv("COMPACT_SUMMARIZER__MAX_TOKENS", "256")
    done = cli("demo", "--window", 40_000)
    assert done.code == 1
    assert re.search(r"protected   acceptance criteria: MISSING in \d+ prompts", done.out)


def test_without_compaction_it_overflows(cli, monkeypatch):
    """Switched off, the history grows past the window, and that is said, too."""
    monkeypatch.setenv("COMPACT_ENABLED", "false")
    monkeypatch.setenv("COMPACT_POLICY__ENABLED", "false")
    done = cli("demo")
    assert "compacted   0 times" in done.out
    assert "removed" not in done.out
    assert "of the window: OVER" in done.out


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal(terminal, columns):
    """The live view: a bar, its thresholds, the chart, the compactions; no line is wider than the screen."""
    shown = terminal("demo", "--fast", columns=columns)
    assert shown.code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.out)
    for part in (
        "█",
        "▲ 50%",
        "▲ 70%",
        "▲ 85%",
        "trigger 85%",
        "compacting",
        "tokens before → after",
        "deduplicate 25",
    ):
        assert part in plain
    assert "\x1b[31m" in shown.out
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= columns


def test_without_colours(terminal, monkeypatch):
    """NO_COLOR is respected: the view moves, but in one colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    shown = terminal("demo", "--fast")
    assert shown.code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown.out)


def test_dumb_terminal_gets_lines(terminal, monkeypatch):
    """A terminal that cannot move its cursor gets what a pipe gets."""
    monkeypatch.setattr("rich.console.Console.is_dumb_terminal", True)
    shown = terminal("demo")
    assert "compaction 1 at message" in shown.out
    assert "█" not in shown.out


def test_it_is_slowed_down_for_the_eye(terminal, monkeypatch):
    """Without --fast it lasts about ten seconds on a clock of its own, however fast the machine is."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda seconds: vars(clock).update(now=clock.now + seconds)
    monkeypatch.setattr("compact.cli.demo.demo.time", clock)
    assert terminal("demo").code == 0
    assert 8 < clock.now < 20


def test_letters_instead_of_blocks():
    """Where the encoding has no blocks, the picture is made of letters; close thresholds do not overlap."""
    from compact.cli.demo.drawing import _WindowDrawing

    painter = _WindowDrawing(40, True, TokenBudget(max_context_tokens=3000))
    rows = [painter.bar(900, False), painter.marks(False), *painter.chart([100, 900, 1400], 4)]
    text = "\n".join(row.plain for row in rows)
    assert text.isascii()
    assert text.count("^") == 2
    assert "trigger 50%" in text


def test_round_that_only_shortened():
    """A round in which no strategy had anything to do still says what was done."""
    done = demo_replay.DemoCompaction(
        number=1, message=2, tokens_before=9, tokens_after=5, proposals={}, milliseconds=1.0
    )
    assert done.work == "shorten"
