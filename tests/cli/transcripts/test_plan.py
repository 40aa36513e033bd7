"""`compact plan`: what would go, grouped, listed, and adding up."""

from __future__ import annotations

import json
import re

import pytest

from compact import CompactConfig, CompactionPlan, CompactManager, estimate_messages_tokens
from compact.testing import user


@pytest.fixture
def without_summary(monkeypatch):
    """Only the free strategies, which leave one record per message."""
    monkeypatch.setenv("COMPACT_SUMMARIZER__ENABLED", "false")


def _numbers(row: str) -> list[int]:
    return [int(word.replace(",", "")) for word in re.findall(r"(?<= )-?[\d,]+", row)]


@pytest.mark.parametrize("window", [8_000, 128_000])
def test_totals_add_up(cli, transcript, history, window):
    """The strategies and what stays as it is come to the whole, before and after."""
    done = cli("plan", transcript, "--window", window, "--now")
    assert done.code == 0
    block = done.out.split("by strategy\n")[1].split("\n\n")[0].splitlines()[1:]
    *parts, whole = [_numbers(row) for row in block]
    assert [sum(column) for column in zip(*parts, strict=True)] == whole
    assert whole[0] == len(history)


def test_rows_are_limited(cli, transcript, without_summary):
    """The first rows, and how many more there are."""
    done = cli("plan", transcript, "--window", 8000, "--limit", 3)
    rows = done.out.split("and why\n")[1].splitlines()
    assert len(rows) == 5
    assert re.match(r"m\d+ +tool read_file +clear +\d+ +\d+ +old read_file result", rows[1])
    more = re.fullmatch(r"and (\d+) more; --limit (\d+) lists them all", rows[-1])
    assert more
    every = cli("plan", transcript, "--window", 8000, "--limit", more[2]).out
    assert "more;" not in every


def test_summary_is_one_row(cli, transcript):
    """A span is shown by its ends and its size."""
    assert re.search(r"m3 … m\d+ +\d+ messages +summarize", cli("plan", transcript, "--now").out)


def test_json_is_the_plan(cli, transcript):
    """The data reads back as a plan."""
    done = cli("plan", transcript, "--json", "--target-tokens", 2000)
    plan = CompactionPlan.from_dict(done.data["plan"])
    assert plan.records
    assert done.data["tokens_after"] <= 2000 < done.data["tokens_before"]
    assert done.data["proposals"]


def test_it_says_what_it_costs_and_when_that_is_paid_back(cli, transcript):
    """Once for what is written again, then saved with every call."""
    done = cli("plan", transcript, "--now", "--model", "claude-sonnet-4-5")
    block = done.out.split("what it costs with claude-sonnet-4-5\n")[1].split("\n\n")[0].splitlines()
    assert re.match(r"kept in the provider's cache +\d+ +\$0\.0000$", block[1])
    assert re.match(r"after the first change, cached again +[\d,]+ +\$0\.\d{4}$", block[2])
    assert re.match(r"no longer read, at every call +[\d,]+ +-\$0\.\d{4}$", block[3])
    assert re.fullmatch(r"pays back after \d+ calls?", block[4])


def test_costs_of_an_unknown_model_are_no_money(cli, transcript):
    """The ratios are named, and so is what they are."""
    done = cli("plan", transcript, "--now", "--model", "my-model", "--window", 128_000)
    assert "$" not in done.out
    assert re.search(r"cached again +[\d,]+ +[\d,]+ input tokens", done.out)
    assert "prices of model 'my-model' are not known: no money, but the usual ratios" in " ".join(done.err.split())


def test_costs_are_in_the_data(cli, transcript):
    """The figures as they are."""
    data = cli("plan", transcript, "--now", "--json", "--model", "claude-sonnet-4-5").data
    assert data["economics"]["tokens_freed"] == data["tokens_before"] - data["tokens_after"]
    assert data["economics"]["currency"] == "USD"
    assert data["economics"]["break_even_calls"] >= 1


def test_a_summary_by_a_model_is_priced_and_nobody_is_asked(cli, transcript, monkeypatch):
    """It takes no more than it may, and planning it needs no key."""
    by_code = cli("plan", transcript, "--now", "--json").data
    assert "the summary, by" not in cli("plan", transcript, "--now").out
    monkeypatch.setenv("COMPACT_SUMMARIZER__MODEL", "gpt-4o-mini")
    monkeypatch.setenv("COMPACT_SUMMARIZER__API_KEY_ENV", "NOT_SET")
    monkeypatch.setenv("COMPACT_SUMMARIZER__MAX_TOKENS", "500")
    done = cli("plan", transcript, "--now")
    assert re.search(r"^the summary, by gpt-4o-mini +500 +\$0\.\d{4}$", done.out, re.MULTILINE)
    by_model = cli("plan", transcript, "--now", "--json").data
    assert by_model["economics"]["summary_cost"] > 0 == by_code["economics"]["summary_cost"]
    assert by_model["tokens_after"] < by_code["tokens_after"]


def test_nothing_to_do(cli, tmp_path):
    """An empty plan is not an error."""
    path = tmp_path / "short.json"
    path.write_text(json.dumps([user("hello")]))
    done = cli("plan", path, "--now")
    assert (done.code, done.out) == (0, "nothing to compact: 1 message, 5 tokens\n")


def test_below_the_trigger_there_is_nothing_to_do(cli, transcript, history):
    """What an agent would do with it: nothing; the line says from where on, and how to compact it all the same."""
    done = cli("plan", transcript)
    tokens = estimate_messages_tokens(history)
    below = f"{len(history)} messages, {tokens:,} tokens, below the trigger of 108,800 tokens: nothing to do"
    assert done.out == f"{below}; --now compacts anyway\n"
    assert cli("plan", transcript, "--json").data["plan"]["records"] == []


def test_it_is_what_preflight_does(cli, transcript, history):
    """The plan of the command and the plan of a preflight have the same records."""
    planned = cli("plan", transcript, "--window", 8000, "--json").data
    manager = CompactManager(CompactConfig(max_context_tokens=8000, state={"url": "memory:"}))
    manager.preflight("s", history)
    records = manager.current_plan("s").records
    assert [record["span"] for record in planned["plan"]["records"]] == [list(one.span) for one in records]
    assert "trigger is" in planned["reason"]


def test_switched_off_it_says_so(cli, transcript, monkeypatch):
    """Above the trigger, nothing is done because the settings say so."""
    monkeypatch.setenv("COMPACT_POLICY__ENABLED", "false")
    assert "compaction is switched off" in cli("plan", transcript, "--window", 8000).out


def test_a_focus_is_planned_for(cli, transcript):
    """It means --now, and less is summarised than without it."""
    every = cli("plan", transcript, "--now", "--json").data["plan"]["records"]
    focused = cli("plan", transcript, "--focus", "step 7", "--json").data["plan"]["records"]
    assert 0 < len(focused[-1]["span"]) < len(every[-1]["span"])


def test_nothing_is_written(cli, transcript, tmp_path):
    """The directory is the same afterwards."""
    before = sorted(tmp_path.rglob("*"))
    cli("plan", transcript)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal(terminal, transcript, without_summary, columns):
    """Drawn tables keep to the width."""
    shown = terminal("plan", transcript, "--window", 8000, columns=columns)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.out)
    assert "old read_file result" in " ".join(plain.split())
    assert max(len(row) for row in plain.replace("\r", "\n").splitlines()) <= columns
