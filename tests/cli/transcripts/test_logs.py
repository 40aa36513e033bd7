"""Logs of agents in the commands: `import`, `inspect`, `plan`, `run`, on a file, a folder and standard input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from compact.testing import assistant, user

SAMPLES = Path(__file__).parents[2] / "agent_logs" / "samples"


def test_import_writes_sessions_that_other_commands_show(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/state.db"
    done = cli("import", str(SAMPLES / "codex.jsonl"), str(SAMPLES / "pi.jsonl"), "--store", store, "--json")
    rows = {row["agent"]: row for row in json.loads(done.out)}
    assert done.code == 0, done.err
    assert (rows["Codex"]["messages"], rows["Codex"]["calls"], rows["Codex"]["results"]) == (30, 12, 12)
    assert rows["pi"]["session"] == "pi-0b1c"
    assert "not understood: type 'weather', 1 time, first at line 14" in done.err
    exported = json.loads(cli("export", "pi-0b1c", "--store", store).out)
    assert len(exported) == 9
    assert cli("sessions", "--store", store).code == 0


def test_a_second_import_changes_nothing(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/state.db"
    cli("import", str(SAMPLES / "pi.jsonl"), "--store", store)
    again = cli("import", str(SAMPLES / "pi.jsonl"), "--store", store, "--json")
    assert [row["state"] for row in json.loads(again.out)] == ["already there"]
    assert len(json.loads(cli("export", "pi-0b1c", "--store", store).out)) == 9


def test_a_session_that_went_on_is_brought_up_to_date(cli, tmp_path):
    """A log is imported again and again while its agent works."""
    store, log = f"sqlite:///{tmp_path}/state.db", tmp_path / "codex.jsonl"
    lines = (SAMPLES / "codex.jsonl").read_text().splitlines(keepends=True)
    rows: list[dict[str, object]] = []
    for count in (50, len(lines), len(lines)):
        log.write_text("".join(lines[:count]))
        rows += cli("import", str(log), "--store", store, "--json").data
    assert [row["state"] for row in rows] == ["imported", "updated", "already there"]
    assert len({row["session"] for row in rows}) == 1
    exported = json.loads(cli("export", rows[0]["session"], "--store", store).out)
    assert len(exported) == rows[-1]["messages"] == 30
    assert rows[0]["messages"] < 30


def test_logs_whose_files_are_called_the_same_are_not_mixed(cli, tmp_path):
    """Some agents write no id: then it is that of the file, and another log may have the same."""
    store, text = f"sqlite:///{tmp_path}/state.db", (SAMPLES / "roo-code.json").read_text()
    messages = json.loads(text)
    messages[0]["content"] = "Another task altogether."
    (tmp_path / "other").mkdir()
    (tmp_path / "task.json").write_text(text)
    (tmp_path / "other" / "task.json").write_text(json.dumps(messages))
    rows = [
        cli("import", str(tmp_path / place), "--store", store, "--json").data[0]
        for place in ("task.json", "other/task.json", "other/task.json")
    ]
    assert [row["state"] for row in rows] == ["imported", "imported", "already there"]
    assert rows[1]["session"] == rows[2]["session"] == f"{rows[0]['session']}-2"


def test_files_are_imported_by_their_names_and_never_taken_for_one_another(cli, tmp_path):
    """Files without an id of their own are often called the same; what is imported already is known by its content."""
    store = f"sqlite:///{tmp_path}/state.db"
    for folder, words in (("monday", "tide"), ("tuesday", "wind")):
        (tmp_path / folder).mkdir()
        lines = ({"messages": [user(f"{words} {number}"), assistant("yes")]} for number in range(2))
        (tmp_path / folder / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def imported(*folders: str) -> list[tuple[str, str]]:
        files = [str(tmp_path / folder / "session.jsonl") for folder in folders]
        rows = cli("import", *files, "--store", store, "--json").data
        return [(row["session"], row["state"]) for row in rows]

    assert imported("monday") == [("session", "imported"), ("session-2", "imported")]
    assert imported("tuesday") == [("session-3", "imported"), ("session-4", "imported")]
    again = [(f"session{suffix}", "already there") for suffix in ("", "-2", "-3", "-4")]
    assert imported("monday", "tuesday") == again
    assert json.loads(cli("export", "session-3", "--store", store).out)[0]["content"] == "wind 0"


def test_an_id_in_the_file_is_the_id_of_the_session(cli, tmp_path):
    (tmp_path / "many.json").write_text(json.dumps([{"id": name, "messages": [user("hi")]} for name in "ab"]))
    rows = cli("import", str(tmp_path / "many.json"), "--store", f"sqlite:///{tmp_path}/state.db", "--json").data
    assert [row["session"] for row in rows] == ["a", "b"]


def test_import_under_a_name_takes_one_session(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/state.db"
    done = cli("import", str(SAMPLES / "cline.json"), "--session", "tide", "--store", store)
    assert done.code == 0
    assert "tide" in done.out
    many = cli("import", str(SAMPLES), "--session", "tide", "--store", store)
    assert many.code == 2
    assert "names one session, but there are 16 sessions" in many.err


def test_a_log_is_inspected_planned_and_compacted_directly(cli):
    log = str(SAMPLES / "claude-code.jsonl")
    inspected = cli("inspect", log, "--json")
    assert inspected.data["messages"] == 46
    assert {row["tool"]: row["calls"] for row in inspected.data["tools"]} == {"Bash": 18}
    assert "Claude Code 2.1.197: 46 messages, 18 calls, 18 results, 1 compaction of its own" in inspected.err
    assert cli("plan", log, "--now").code == 0
    assert cli("run", log, "--now", "--json").data["messages"]


def test_a_folder_of_logs_is_chosen_from_by_index(cli, tmp_path):
    for name in ("codex.jsonl", "pi.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path / name)
    second = cli("inspect", str(tmp_path), "--index", "1", "--json")
    assert second.data["messages"] == 9
    assert "holds 2 sessions; this is 1, --index chooses another" in second.err
    assert cli("inspect", str(tmp_path), "--index", "2").err.startswith(f"error: {tmp_path} holds 2 transcripts")


def test_what_is_no_log_says_what_was_tried(cli, tmp_path):
    (tmp_path / "odd.json").write_text('{"weather": "grey"}')
    for command in ("inspect", "import"):
        done = cli(command, str(tmp_path / "odd.json"))
        assert done.code == 2
        assert "expected messages, got an object without `role` or `messages`" in done.err
        assert "Claude Code, Codex, Gemini CLI" in done.err


def anthropic_steps(count: int) -> list[dict[str, object]]:
    """Return a conversation in which each of the user's items has three results."""
    items: list[dict[str, object]] = [user("Read all of it.")]
    for step in range(count):
        ids = [f"c{step}-{number}" for number in range(3)]
        calls = [{"type": "tool_use", "id": one, "name": "read", "input": {"id": one}} for one in ids]
        results = [{"type": "tool_result", "tool_use_id": one, "content": f"it is {one}"} for one in ids]
        items += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    return items


def responses_steps(count: int) -> list[dict[str, object]]:
    """Return a conversation in which the calls of one answer are items of their own."""
    items: list[dict[str, object]] = [user("Read all of it.")]
    for step in range(count):
        ids = [f"c{step}-{number}" for number in range(3)]
        items += [{"type": "function_call", "call_id": one, "name": "read", "arguments": "{}"} for one in ids]
        items += [{"type": "function_call_output", "call_id": one, "output": f"it is {one}"} for one in ids]
    return items


@pytest.mark.parametrize("steps", [anthropic_steps, responses_steps])
def test_messages_calls_and_results_are_counted_in_every_dialect(cli, tmp_path, steps):
    """What has grown, and only that, is brought up to date: an item may be several messages, or a part of one."""
    file, rows = tmp_path / "session.json", []
    for count in (3, 3, 4):
        file.write_text(json.dumps(steps(count)))
        rows += cli("import", str(file), "--store", f"sqlite:///{tmp_path}/state.db", "--json").data
    counts = [(row["messages"], row["calls"], row["results"], row["state"]) for row in rows]
    assert counts == [(13, 9, 9, "imported"), (13, 9, 9, "already there"), (17, 12, 12, "updated")]


def test_a_session_is_imported_with_its_recorded_model(cli, tmp_path):
    """Its window and its tokens are those of the model that the log names, unless another is set."""
    log, found = str(SAMPLES / "claude-code.jsonl"), []
    for number, options in enumerate(([], ["--config", str(tmp_path / "own.json")])):
        (tmp_path / "own.json").write_text('{"model": "gpt-4o"}')
        store = f"sqlite:///{tmp_path}/{number}.db"
        session = cli("import", log, "--store", store, "--json", *options).data[0]["session"]
        found.append(cli("show", session, "--store", store, "--json").data["status"]["max_context_tokens"])
    assert found == [200_000, 128_000]


def test_an_import_is_no_model_call_and_costs_nothing(cli, tmp_path):
    """What an agent did elsewhere was not sent from here; its size is known all the same, as its log has grown."""
    store, log = f"sqlite:///{tmp_path}/state.db", tmp_path / "codex.jsonl"
    lines, found = (SAMPLES / "codex.jsonl").read_text().splitlines(keepends=True), []
    for count in (50, len(lines)):
        log.write_text("".join(lines[:count]))
        cli("import", str(log), "--store", store)
        (listed,) = cli("sessions", "--store", store, "--json").data
        shown = cli("show", listed["session_id"], "--store", store, "--json").data
        assert (listed["model_calls"], shown["calls"], shown["cost"]["usd"]) == (0, [], None)
        assert listed["last_tokens"] == shown["status"]["used_tokens"] > 0
        assert "cost" not in cli("show", listed["session_id"], "--store", store).out
        found.append(listed["last_tokens"])
    assert found[0] < found[1]


def test_what_is_no_log_in_a_folder_is_said(cli, tmp_path):
    """A transcript of our own among logs is not imported, and that is not kept quiet; other files do not matter."""
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(SAMPLES / "pi.jsonl", logs / "a.jsonl")
    (logs / "list.json").write_text(json.dumps([user("hi"), assistant("yes")]))
    (logs / "README.md").write_text("My logs.")
    done = cli("import", str(logs), "--store", f"sqlite:///{tmp_path}/state.db", "--json")
    assert [row["agent"] for row in done.data] == ["pi"]
    assert f"note: 1 file in {logs} left out: no log of an agent; the first: {logs / 'list.json'}\n" in done.err
