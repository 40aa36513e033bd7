"""`compact report`: what became of everything that compactions took out, for people and for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.testing import assistant, dialogue, tool_exchange, tool_run, user

CONSTRAINT = "From now on, never touch the table tide_log."
NASTY = "\x1b[31mred_paint\x1b]0;title\x07 in src/\u202eevil.py"
Run = Callable[..., object]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a session that was compacted several times, and one that never was."""
    path = tmp_path_factory.mktemp("report") / "state.db"
    config = CompactConfig(
        max_context_tokens=6_000,
        policy={"target_pct": 0.2},  # so low that nothing old stays as a message
        state={"url": f"sqlite:///{path}"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    history = [user(f"Paint crane CRANE-12. {CONSTRAINT} {NASTY}"), *dialogue(20, words=100), *tool_run(40, words=120)]
    with CompactManager(config) as manager:
        manager.preflight("short one", history[:3])
        for end in (30, 70, len(history)):
            manager.preflight("the harbour", history[:end])
    return f"sqlite:///{path}"


def test_people_see_a_table_the_constraints_and_what_to_recall(cli: Run, built: str) -> None:
    done = cli("report", "the harbour", "--store", built)
    assert done.code == 0
    assert re.search(r"^version \d: [\d,]+ → [\d,]+ tokens; \d+ messages? left the prompt$", done.out, re.MULTILINE)
    assert re.search(r"^kind +kept +in ledger +retrievable +lost$", done.out, re.MULTILINE)
    assert re.search(r"^all +\d+ +\d+ +\d+ +0$", done.out, re.MULTILINE)
    assert re.search(rf"^(?:kept|in ledger) +{re.escape(CONSTRAINT)}.*\(m\d+\)$", done.out, re.MULTILINE)
    assert done.err == ""


def test_the_newest_is_told_in_full_and_those_before_it_in_a_line(cli: Run, built: str) -> None:
    done = cli("report", "the harbour", "--store", built)
    newest = len(cli("report", "the harbour", "--json", "--store", built).data["reports"])
    assert re.findall(r"^version (\d+):", done.out, re.MULTILINE) == [str(newest)]
    earlier = done.out.split("messages removed  kept  in ledger  retrievable  lost\n")[1].splitlines()[: newest - 1]
    assert [int(row.split()[0]) for row in earlier] == list(range(1, newest))
    assert done.out.count("\nall ") == 1
    every = cli("report", "the harbour", "--all", "--store", built)
    assert re.findall(r"^version (\d+):", every.out, re.MULTILINE) == [str(n) for n in range(1, newest + 1)]


def test_decisions_are_told_with_where_they_are(cli: Run, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'state.db'}"
    config = CompactConfig(
        max_context_tokens=6_000,
        state={"url": store},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    said = [assistant(f"We decided to store the tide of berth {n} in table tide_{n}. Then on.") for n in range(30)]
    with CompactManager(config) as manager:
        manager.manual_compact("s", [user("Build it."), *said, *dialogue(20, words=100)], target_tokens=600)
    done = cli("report", "s", "--store", store)
    found = re.search(r"\ndecisions\n(.*)\nand (\d+) more; --all lists every decision\n", done.out, re.DOTALL)
    assert found
    listed = found[1].splitlines()
    assert len(listed) == 20
    assert all(re.match(r"(kept|in ledger|retrievable) +We decided to store .* \(m\d+\)$", line) for line in listed)
    assert re.search(r"^decision +\d+ +\d+ +\d+ +0$", done.out, re.MULTILINE)
    assert not re.search(r"^m\d+ +decision", done.out, re.MULTILINE), "told once"
    (data,) = cli("report", "s", "--json", "--store", store).data["reports"]
    assert len(data["decisions"]) == sum(data["counts"]["decision"].values()) == 20 + int(found[2])


def test_what_is_gone_is_told_by_message(cli: Run, built: str) -> None:
    """A message that took many strings along takes one row for each kind."""
    done = cli("report", "the harbour", "--store", built)
    rows = done.out.split("no longer in the prompt\n")[1].splitlines()
    assert re.split(r" {2,}", rows[0]) == ["message", "kind", "state", "used by", "strings", "which"]
    found = [re.split(r" {2,}", row)[:5] for row in rows[1:21]]
    assert len({(row[0], row[1], row[2], row[3]) for row in found}) == len(found)
    assert all(row[2] == "retrievable" for row in found)


def test_what_is_gone_is_listed_with_the_command_that_prints_it(cli: Run, built: str) -> None:
    done = cli("report", "the harbour", "--store", built)
    assert re.search(r"strings? (?:is|are) no longer in the prompt", done.out)
    command = re.search(r"^`compact (recall 'the harbour' (\S+))` prints a message$", done.out, re.MULTILINE)
    assert command
    recalled = cli("recall", "the harbour", command[2], "--store", built)
    assert recalled.code == 0
    assert command[2] in recalled.out


def test_one_version_and_every_string(cli: Run, built: str) -> None:
    one = cli("report", "the harbour", "--version", 2, "--all", "--store", built)
    assert "version 2:" in one.out
    assert "version 1:" not in one.out
    assert "every string" in one.out
    data = cli("report", "the harbour", "--version", 2, "--all", "--json", "--store", built).data["reports"][0]
    rows = re.findall(r"^\w+ +(?:kept|in ledger|retrievable|lost) +(?:dialogue|tools) ", one.out, re.MULTILINE)
    assert len(rows) == len(data["items"]) > 20


def test_programs_get_data(cli: Run, built: str) -> None:
    data = cli("report", "the harbour", "--json", "--store", built).data
    assert data["session_id"] == "the harbour"
    versions = [report["version"] for report in data["reports"]]
    assert versions == list(range(1, len(versions) + 1))
    assert len(versions) >= 2
    for report in data["reports"]:
        assert report["tokens_after"] < report["tokens_before"]
        assert len(report["not_in_prompt"]) <= 20
        assert all(entry["state"] in ("retrievable", "lost") for entry in report["not_in_prompt"])


def test_a_session_that_was_never_compacted_has_lost_nothing(cli: Run, built: str) -> None:
    done = cli("report", "short one", "--store", built)
    assert (done.code, done.out) == (0, "session 'short one' was never compacted: nothing left its prompt\n")
    assert cli("report", "short one", "--json", "--store", built).data["reports"] == []


def test_mistakes_are_told_in_two_lines(cli: Run, built: str) -> None:
    unknown = cli("report", "the harbor", "--store", built)
    assert (unknown.code, unknown.err.count("\n")) == (2, 2)
    assert "did you mean 'the harbour'?" in unknown.err
    version = cli("report", "the harbour", "--version", 99, "--store", built)
    assert version.code == 2
    assert "has no plan version 99" in version.err
    assert "its versions are: 1, 2" in version.err
    assert cli("report", "the harbour", "--version", 0, "--store", built).code == 2


def test_what_a_tool_printed_does_not_steer_the_terminal(cli: Run, terminal: Run, built: str) -> None:
    for run in (cli, terminal):
        out = run("report", "the harbour", "--all", "--store", built).out
        assert "red_paint" in out
        assert "\x1b]0;" not in out
        assert "\u202e" not in out
    drawn = terminal("report", "the harbour", "--store", built, columns=100).out
    assert re.search(r"\x1b\[1mversion \d:", drawn)


def test_looking_changes_nothing(cli: Run, built: str) -> None:
    path = Path(built.removeprefix("sqlite:///"))
    before = path.read_bytes()
    assert cli("report", "the harbour", "--store", built).code == 0
    assert path.read_bytes() == before


@pytest.fixture(scope="module")
def regretted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a session whose agent read a file again that had been removed."""
    url = f"sqlite:///{tmp_path_factory.mktemp('regret') / 'state.db'}"
    config = CompactConfig(
        max_context_tokens=6_000, state={"url": url}, storage={"adapter": "none"}, telemetry={"exporter": "none"}
    )
    history = tool_run(60, words=120)
    first = next(message for message in history if message["role"] == "tool")
    again = tool_exchange("again", first["content"], path="src/file_1.py")
    with CompactManager(config) as manager:
        for sent in (history, [*history, *again]):
            manager.preflight("the harbour", sent)
    return url


def test_what_was_asked_for_again_is_told_with_the_compaction_that_removed_it(cli: Run, regretted: str) -> None:
    done = cli("report", "the harbour", "--version", "1", "--store", regretted)
    assert re.search(r"^regret +1 of \d+ removed messages asked for again$", done.out, re.MULTILINE)
    line = r"^ +read_file, \w+ by \w+: 0 recalled, 1 read again; [\d,]+ tokens$"
    assert re.search(line, done.out, re.MULTILINE)
    (report,) = cli("report", "the harbour", "--version", "1", "--json", "--store", regretted).data["reports"]
    assert [(regret["tool"], regret["how"]) for regret in report["regrets"]] == [("read_file", "reread")]


def test_the_session_shows_its_regrets(cli: Run, regretted: str, built: str) -> None:
    done = cli("show", "the harbour", "--store", regretted)
    assert "\n1 removed message asked for again\n" in done.out
    assert re.search(r"^tool +action +by +recalled +read again +tokens$", done.out, re.MULTILINE)
    assert re.search(r"^read_file +\w+ +\w+ +0 +1 +[\d,]+$", done.out, re.MULTILINE)
    data = cli("show", "the harbour", "--json", "--store", regretted).data
    assert data["status"]["regrets"][0]["rereads"] == 1
    assert "asked for again" not in cli("show", "the harbour", "--store", built).out


def test_a_check_of_nothing_is_not_told(cli: Run, tmp_path: Path) -> None:
    """A compaction after which the summary has nothing to prove says nothing of it."""
    url = f"sqlite:///{tmp_path}/plain.db"
    config = CompactConfig(
        max_context_tokens=4_000,
        state={"url": url},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config) as manager:
        history = [user("Go on."), *(assistant("well " * 200) for _ in range(30))]
        manager.preflight("plain", history)
        assert manager.report("plain")[-1].check.required == 0
    assert "required fact" not in cli("report", "plain", "--store", url).out
