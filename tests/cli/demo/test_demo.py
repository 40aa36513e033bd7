"""`compact demo`: what it shows is what happened."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from compact.cli.demo import demo
from compact.cli.demo import replay as demo_replay
from compact.cli.demo.replay import DemoResults, Replay, WireMessage, agent_tools, load_session, protected_messages
from compact.cli.demo.scripted_model import load_script
from compact.cli.demo.story import change_line, story
from compact.cli.settings import in_memory, load_config
from compact.core.audit.cost import dollars
from compact.core.plan.budget import TokenBudget
from compact.core.plan.layers import KeepRules
from compact.strategies import span

README = Path(__file__).parents[3] / "README.md"
COMPACTION = r"^compaction (\d+) at message [\d,]+(?:, asked for)?: ([\d,]+) → ([\d,]+) tokens \(.+\), \d+ ms"


@pytest.fixture(scope="module")
def finished() -> Iterator[tuple[Replay, DemoResults]]:
    """The whole demo, without its store."""
    replay, results = Replay(in_memory(load_config(window=64_000)), load_session()), DemoResults()
    for call in replay:
        results.add(call)
    yield replay, results
    replay.close()


@pytest.fixture
def half(monkeypatch) -> None:
    """Let the demo end behind the undo: what is looked at is the same, and it takes half of the time."""
    history = load_session()[:345]
    monkeypatch.setattr(demo_replay, "load_session", lambda: history)


def test_piped(process):
    """Plain lines, several compactions, claims that were checked; the last line is the one command to go on with."""
    done = process("demo")
    assert done.code == 0, done.err
    assert done.err == ""
    assert all(char.isprintable() or char == "\n" for char in done.out)
    compactions = re.findall(COMPACTION, done.out, re.M)
    assert len(compactions) >= 10
    assert [int(number) for number, _, _ in compactions] == list(range(1, len(compactions) + 1))
    assert all(int(after.replace(",", "")) < int(before.replace(",", "")) for _, before, after in compactions)
    for line in (
        rf"compacted    {len(compactions)} times, with 341 model calls; \d+ summaries by gpt-4o-mini, which .+",
        r"largest      [\d,]+ tokens in one prompt, [\d.]+% of the window: never over",
        r"tool errors  21 of 360 calls \(bash 17, edit_file 4\), the newest: edit_file, error: found 0 places .+",
        r"constraints  6 of 6 kept: each in every prompt since it was given, word for word",
        r"protected    acceptance criteria: in every prompt since it was given, verbatim",
        r"preflight    p50 [\d.]+ ms, p99 [\d.]+ ms",
    ):
        assert re.search(f"^{line}$", done.out, re.M), line
    where = (
        r"removed      ([\d,]+) strings of messages that left the prompt: "
        r"([\d,]+) still in the prompt, ([\d,]+) retrievable, 0 lost"
    )
    taken = re.search(where, done.out)
    assert taken
    whole, shown, retrievable = (int(number.replace(",", "")) for number in taken.groups())
    assert whole == shown + retrievable > 1_000
    *_, last_line = done.out.splitlines()
    assert last_line.startswith("see it       ")
    assert last_line.endswith("compact view --store sqlite:///.compact/demo.db --session demo")
    assert done.out.count(" view ") == 1


def test_the_failure_and_the_undo_are_told(finished):
    """One summary fails, what was done instead is said, and some calls later it is taken back."""
    replay, results = finished
    (failed,) = results.failures
    assert failed.is_manual
    assert failed.failure.error_type == "ModelBusy"
    lines = dict(story(replay, results))
    said = "gpt-4o-mini: InternalServerError (500), The server had an error while processing your request"
    assert lines["failed"] == f"the summary of compaction {failed.number}: {said}"
    assert lines["instead"] == "a summary by code replaces the messages"
    (undo,) = results.undos
    following = results.compactions[failed.number]
    assert undo.number == failed.number
    assert undo.tokens_before < undo.tokens_after
    assert lines["undone"].startswith(
        f"compaction {undo.number}: {undo.tokens_before:,} → {undo.tokens_after:,} tokens; the next one was at message "
        f"{following.message + 1:,}"
    )
    assert change_line(failed).endswith(" ms; summary FAILED")
    assert change_line(undo).startswith(f"undo of compaction {failed.number}: ")


def test_the_agent_goes_on_after_the_undo(finished):
    """The prompts of the calls behind an undo are those of the plan before, until the budget forbids it."""
    _, results = finished
    (place,) = (number for number, call in enumerate(results.calls) if call.undo)
    before, after = results.calls[place - 1], results.calls[place]
    assert not after.compaction
    assert not after.extends_previous
    assert after.sent_tokens > before.sent_tokens + 30_000
    following = next(number for number, call in enumerate(results.calls) if number > place and call.compaction)
    assert following - place > 3
    assert all(call.extends_previous for call in results.calls[place + 1 : following])


def test_the_summaries_are_the_models(finished):
    """The model wrote every other summary, about what it read: no string in them that is not in the session."""
    replay, results = finished
    plans = {entry.plan.version: entry.plan for entry in replay.plans()}
    summaries = {
        plan.summary.version: plan.summary.summary for plan in plans.values() if plan.summary and not plan.origin
    }
    by_model = [summary for summary in summaries.values() if summary.writing.summarizer == "gpt-4o-mini"]
    assert len(by_model) == sum(compaction.has_summary for compaction in results.compactions) - 1 >= 5
    for summary in by_model:
        assert summary.check.ungrounded == ()
        assert summary.tool_outcomes
        assert all(outcome.source_ids for outcome in summary.tool_outcomes)
        assert summary.writing.input_tokens > summary.writing.output_tokens > 0
    assert by_model[-1].decisions
    assert by_model[-1].narrative


def test_money_is_the_librarys(finished):
    """What is printed is what `manager.cost` says: dollars, by the list, with the summaries in it."""
    replay, results = finished
    cost = replay.cost()
    assert cost.unpriced_calls == 0
    assert 0 < cost.summaries < cost.total < cost.uncompacted
    assert cost.saved == pytest.approx(cost.uncompacted - cost.total)
    too_large = sum(call.history_tokens > 64_000 for call in results.calls)
    spent = f"{dollars(cost.total)} for gpt-4o, of which {dollars(cost.summaries)} for summaries"
    without = f"{dollars(cost.uncompacted)} without compaction ({too_large} prompts would not have fitted)"
    assert dict(story(replay, results))["cost"] == f"{spent}; {without}: saved {dollars(cost.saved)}"


def test_the_readme_shows_what_is_printed(finished):
    """The lines in the README are lines of the demo."""
    behind = README.read_text().split("the command that shows the session in the browser:\n\n```text\n", 1)[1]
    shown = behind.split("```", 1)[0]
    printed = {f"{topic:<13}{text}" for topic, text in story(*finished)}
    *lines, empty, command = shown.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line not in printed] == []
    assert (empty, command.removeprefix("see it       .venv/bin/")) == (
        "",
        demo._view_command("sqlite:///.compact/demo.db"),
    )


def test_a_model_without_a_price_costs_an_unknown_sum():
    """No dollars are made up."""
    replay = Replay(in_memory(load_config(model="own-model", window=64_000)), load_session()[:30])
    results = DemoResults(list(replay))
    assert dict(story(replay, results))["cost"] == "not known: own-model has no price in the list"
    replay.close()


def test_claims_are_measured(finished):
    """The session is six windows long, only compactions and undos break the prefix, and all prompts fit."""
    replay, results = finished
    assert sum(replay.tokens) > 6 * replay.budget.max_context_tokens
    assert results.largest_sent_tokens <= replay.budget.ceiling_tokens
    assert all(call.extends_previous is (call.compaction is None and call.undo is None) for call in results.calls)
    assert len(protected_messages(replay.history)) == 1
    assert len(replay.constraints) == 6
    assert results.has_kept_all


def test_the_script_is_about_the_session():
    """Every answer belongs to a call of the session, and every constraint to one message of its user."""
    history, script = load_session(), load_script()
    calls = [json.dumps(call, ensure_ascii=False) for message in history for call in message.get("tool_calls", ())]
    for answer in script["answers"]:
        assert any(answer["call"] in call for call in calls), answer
    for text in script["constraints"]:
        assert sum(text in message["content"] for message in history if message["role"] == "user") == 1
    used = {call["function"]["name"] for message in history for call in message.get("tool_calls", ())}
    assert {tool["function"]["name"] for tool in agent_tools()} == used


def test_lost_protection_is_not_hidden(cli, monkeypatch):
    """If the message were missing, the demo would say so and fail."""
    monkeypatch.setattr(KeepRules, "pins", lambda self, message: message.role in self.pinned_roles)
    monkeypatch.setattr(span, "_affordable", lambda context, units, room: set())
    monkeypatch.setenv("COMPACT_SUMMARIZER__MAX_TOKENS", "256")
    done = cli("demo", "--window", 40_000)
    assert done.code == 1
    assert re.search(r"protected    acceptance criteria: MISSING in \d+ prompts", done.out)


@pytest.mark.usefixtures("half")
def test_lost_constraint_is_not_hidden(cli, monkeypatch):
    """If what the person asked to hold were not in a prompt, the demo would name it and fail."""
    made = Replay._prompt

    def forgetful(self: Replay, history: list[WireMessage]) -> list[WireMessage]:
        prompt = made(self, history)
        kept = [message for message in prompt if "never send real SMS" not in (message["content"] or "")]
        return prompt if len(history) < 330 else kept

    monkeypatch.setattr(Replay, "_prompt", forgetful)
    done = cli("demo")
    assert done.code == 1
    assert re.search(r"constraints  3 of 4 kept: 'never send real SMS from tests' MISSING in \d+ prompts", done.out)


def test_again_is_the_same(tmp_path):
    """A demo that finds one of an earlier time, even one that was interrupted, begins anew."""
    config = in_memory(load_config(window=20_000))
    state = config.state.model_copy(update={"url": f"sqlite:///{tmp_path / 'demo.db'}", "events_days": 1})
    stored, history = config.model_copy(update={"state": state}), load_session()[:120]

    def outcome(calls: int | None) -> list[object]:
        replay = Replay(stored, history)
        seen = [(call.sent_tokens, call.compaction and call.compaction.work) for call in islice(replay, calls)]
        replay.close()
        return seen

    first, interrupted, again = outcome(None), outcome(9), outcome(None)
    assert first == again
    assert interrupted == first[:9]
    assert any(work for _, work in first)


@pytest.mark.parametrize(
    ("activated", "expected"), [("ours", "compact"), ("", "./bin/compact"), ("another", "./bin/compact")]
)
def test_the_command_is_named_so_that_it_works(tmp_path, monkeypatch, activated, expected):
    """By its name alone only if that leads to this very command, and not to none or to another one."""
    for folder in ("bin", "another"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "compact").write_text("#!/bin/sh\n")
        (tmp_path / folder / "compact").chmod(0o700)
    monkeypatch.setenv("PATH", {"ours": str(tmp_path / "bin"), "another": str(tmp_path / "another")}.get(activated, ""))
    monkeypatch.setattr("sys.argv", ["./bin/compact", "demo"])
    assert demo._view_command("sqlite:///x.db") == f"{expected} view --store sqlite:///x.db --session demo"


def test_make_run_ends_with_the_demo():
    """The last thing that `make run` does is the demo, whose last line is the command."""
    recipe = README.with_name("Makefile").read_text().split("\nrun:", 1)[1].split("\n\n", 1)[0]
    assert recipe.splitlines()[-1].strip() == "$(BIN)/compact demo"


def test_without_compaction_it_overflows(cli, monkeypatch):
    """Switched off, the history grows past the window, and that is said, too."""
    monkeypatch.setenv("COMPACT_ENABLED", "false")
    monkeypatch.setenv("COMPACT_POLICY__ENABLED", "false")
    done = cli("demo")
    assert "compacted    0 times" in done.out
    assert "removed" not in done.out
    assert "undone" not in done.out
    assert "of the window: OVER" in done.out


@pytest.mark.usefixtures("half")
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
        "deduplicate 11",
        "summary FAILED",
        "undone",
        "see it       compact view ",
    ):
        assert part in plain
    assert not re.search(r"\d…", plain)  # no figure is cut
    assert re.search(r": saved \$\d+\.\d\d ", " ".join(plain.split()))
    assert "\x1b[31m" in shown.out
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= columns


@pytest.mark.usefixtures("half")
def test_without_colours(terminal, monkeypatch):
    """NO_COLOR is respected: the view moves, but in one colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    shown = terminal("demo", "--fast")
    assert shown.code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown.out)


@pytest.mark.usefixtures("half")
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
