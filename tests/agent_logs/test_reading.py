"""Logs of agents: what each reader finds in a log that was recorded, or made by its documented format."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.transcripts import FORMATS, AgentLog, UnknownLines, read

SAMPLES = Path(__file__).parent / "samples"


def only(name: str | Path) -> AgentLog:
    logs = read(SAMPLES / name).logs
    assert len(logs) == 1
    return logs[0]


def texts(log: AgentLog, role: str) -> list[str]:
    return [str(message["content"]) for message in log.messages if message["role"] == role]


# Counted in the logs themselves: messages, calls, results, pieces of thinking, the agent's own compactions.
COUNTS = {
    "claude-code.jsonl": ("Claude Code", "2.1.197", 46, 18, 18, 18, 1),
    "codex.jsonl": ("Codex", "0.166.0", 30, 12, 12, 12, 2),
    "qwen-code.jsonl": ("Qwen Code", "0.15.10", 28, 12, 12, 0, 1),
    "opencode.json": ("opencode", "1.18.33", 29, 12, 12, 0, 1),
    "gemini-cli.jsonl": ("Gemini CLI", "", 11, 4, 4, 1, 1),
    "gemini-cli.json": ("Gemini CLI", "", 4, 1, 1, 1, 0),
    "pi.jsonl": ("pi", "", 9, 3, 3, 1, 1),
    "cline.json": ("Cline", "", 6, 2, 2, 1, 0),
    "roo-code.json": ("Roo Code", "", 9, 3, 3, 2, 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_log_has_its_messages_calls_and_results(name: str) -> None:
    log = only(name)
    found = (len(log.messages), log.calls, log.results, log.thinking, len(log.compactions))
    assert (log.agent, log.version, *found) == COUNTS[name]


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_results_follow_their_calls_as_a_provider_wants_it(name: str) -> None:
    for log in read(SAMPLES / name).logs:
        messages = [read_entry(message, f"messages[{n}]") for n, message in enumerate(log.messages)]
        assert not check_chat(messages)
        ids = [message["tool_call_id"] for message in log.messages if message["role"] == "tool"]
        assert len(ids) == log.results == len(set(ids))


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_a_log_is_found_by_its_content_packed_or_not_under_any_name(name: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "notes.txt", tmp_path / "data.bin"
    shutil.copy(SAMPLES / name, plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    expected = [(log.agent, log.messages) for log in read(SAMPLES / name).logs]
    assert expected
    assert [(log.agent, log.messages) for log in read(plain).logs] == expected
    assert [(log.agent, log.messages) for log in read(packed).logs] == expected


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_only_one_format_claims_a_log(name: str) -> None:
    text = (SAMPLES / name).read_text()
    head = [json.loads(line) for line in text.splitlines()[:60]] if name.endswith("l") else [json.loads(text)]
    assert sum(one.recognises(head) for one in FORMATS) == 1


def test_several_sessions_of_an_export() -> None:
    stored = read(SAMPLES / "openai-stored.jsonl").logs
    assert [(len(log.messages), log.calls, log.results) for log in stored] == [(5, 1, 1), (4, 1, 1), (2, 0, 0)]
    runs = read(SAMPLES / "langsmith.jsonl").logs
    assert [(log.session_id, len(log.messages), log.calls, log.results) for log in runs] == [
        ("thread-t1", 5, 1, 1),
        ("thread-t2", 2, 0, 0),
    ]
    spans = read(SAMPLES / "otlp.json").logs
    assert [(log.session_id, len(log.messages), log.calls, log.results) for log in spans] == [
        ("conv-1", 4, 1, 1),
        ("bb02", 2, 0, 0),
    ]
    assert spans[0].instructions == stored[1].instructions == "You watch the harbour."


def test_what_is_not_understood_is_counted_with_its_first_place() -> None:
    assert only("pi.jsonl").unknown == (UnknownLines("type 'weather'", 1, "line 14"),)
    assert only("gemini-cli.jsonl").unknown == (UnknownLines("line without an id", 1, "line 15"),)
    assert read(SAMPLES / "langsmith.jsonl").logs[0].unknown == (
        UnknownLines("object without `run_type`", 1, "line 5"),
    )
    assert not only("claude-code.jsonl").unknown
    assert not only("codex.jsonl").unknown


def test_a_log_that_ends_in_the_middle_of_a_line_is_read_up_to_there(tmp_path: Path) -> None:
    data = (SAMPLES / "codex.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(data[:-40] + b"\n")
    log = read(tmp_path / "cut.jsonl").logs[0]
    lines = data.count(b"\n")
    assert log.unknown == (UnknownLines("line that is not JSON", 1, f"line {lines}"),)
    assert log.calls == 12


def test_images_are_parts_of_their_message() -> None:
    for name in ("gemini-cli.jsonl", "cline.json", "pi.jsonl"):
        parts = [part for one in only(name).messages if isinstance(one["content"], list) for part in one["content"]]
        images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        assert [image[:27] for image in images] == ["data:image/png;base64,iVBOR"], name


def test_thinking_is_left_out_of_the_messages() -> None:
    assert not [text for name in COUNTS for text in texts(only(name), "assistant") if "Now note" in text]


# -- the agent's own compactions --------------------------------------------------------------------------------------


def test_the_prompt_around_a_compaction_is_what_the_agent_had() -> None:
    log = only("codex.jsonl")
    first, second = log.compactions
    assert (first.position, first.kept, second.position, second.kept) == (13, (0, 1, 2), 25, (0, 1, 2, 16))
    assert first.summary.startswith("Another language model")
    after = log.prompt_after(0)
    assert [message["role"] for message in after] == ["developer", "user", "user", "user"]
    assert after[1]["content"] == first.summary
    before = log.prompt_before(1)
    assert before == [*after, *log.messages[13:25]]
    assert log.later(0) == log.messages[13:25]
    # The summary is no message of the log, though the agent wrote it as an answer, too.
    assert not [text for text in texts(log, "assistant") if "Primary request" in text]


@pytest.mark.parametrize(
    ("name", "position", "kept"),
    [
        ("claude-code.jsonl", 28, (27,)),
        ("opencode.json", 19, ()),
        ("qwen-code.jsonl", 14, ()),
        ("gemini-cli.jsonl", 8, (6, 7)),
        ("pi.jsonl", 6, (4, 5)),
        ("roo-code.json", 6, ()),
    ],
)
def test_a_compaction_is_where_the_log_has_it(name: str, position: int, kept: tuple[int, ...]) -> None:
    log = only(name)
    (compaction,) = log.compactions
    assert (compaction.position, compaction.kept) == (position, kept)
    assert compaction.summary
    assert compaction.place
    assert compaction.summary not in [message["content"] for message in log.messages]


# -- Claude Code's tree -----------------------------------------------------------------------------------------------


def claude(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **({"id": more.pop("answer")} if "answer" in more else {})}
    own = {"uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s", "version": "2", "message": message}
    return {"isSidechain": False, **own, **more}


def use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"file_path": f"f{number}.py"}}


def answered(number: int) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"text of f{number}"}


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_calls_at_once_are_one_message_although_their_results_are_on_side_branches(tmp_path: Path) -> None:
    lines = [
        claude("u1", None, "user", "Read both."),
        claude("a1", "u1", "assistant", [use(1)], answer="m1"),
        claude("r1", "a1", "user", [answered(1)]),
        claude("a2", "a1", "assistant", [use(2)], answer="m1"),
        claude("r2", "a2", "user", [answered(2)]),
        claude("a3", "r2", "assistant", [{"type": "text", "text": "Done."}], answer="m2"),
    ]
    log = read(written(tmp_path, lines)).logs[0]
    assert [message["role"] for message in log.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in log.messages[1]["tool_calls"]] == ["c1", "c2"]


def test_a_branch_that_was_wound_back_is_not_read(tmp_path: Path) -> None:
    lines = [
        claude("u1", None, "user", "First."),
        claude("a1", "u1", "assistant", [{"type": "text", "text": "One."}], answer="m1"),
        claude("u2", "a1", "user", "Wrong way."),
        claude("a2", "u2", "assistant", [use(1)], answer="m2"),
        claude("r2", "a2", "user", [answered(1)]),
        claude("u3", "a1", "user", "Right way."),
        claude("a3", "u3", "assistant", [{"type": "text", "text": "Two."}], answer="m3"),
    ]
    log = read(written(tmp_path, lines)).logs[0]
    assert [message["content"] for message in log.messages] == ["First.", "One.", "Right way.", "Two."]


def test_what_was_before_a_compaction_is_read_although_its_chain_is_broken(tmp_path: Path) -> None:
    boundary = {"uuid": "b", "parentUuid": None, "type": "system", "subtype": "compact_boundary", "sessionId": "s"}
    lines = [
        claude("u1", None, "user", "First."),
        claude("a1", "u1", "assistant", [{"type": "text", "text": "One."}], answer="m1"),
        {**boundary, "compactMetadata": {"trigger": "auto", "preTokens": 155_000}},
        claude("s1", "b", "user", "A summary.", isCompactSummary=True),
        claude("a2", "s1", "assistant", [{"type": "text", "text": "Two."}], answer="m2"),
    ]
    log = read(written(tmp_path, lines)).logs[0]
    assert [message["content"] for message in log.messages] == ["First.", "One.", "Two."]
    (compaction,) = log.compactions
    assert (compaction.position, compaction.summary) == (2, "A summary.")
    assert (compaction.trigger, compaction.tokens_before, compaction.place) == ("auto", 155_000, "line 4")


def test_a_subagent_in_the_same_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "a7"}
    lines = [
        claude("u1", None, "user", "Ask somebody."),
        claude("x1", None, "user", "You are asked.", **side),
        claude("x2", "x1", "assistant", [{"type": "text", "text": "Yes."}], answer="m9", **side),
        claude("a1", "u1", "assistant", [{"type": "text", "text": "They said yes."}], answer="m1"),
        {"type": "teleport", "uuid": "t", "sessionId": "s"},
    ]
    main, other = read(written(tmp_path, lines)).logs
    assert [len(main.messages), len(other.messages)] == [2, 2]
    assert (other.session_id, other.parent_id) == ("s/a7", "s")
    assert main.unknown == (UnknownLines("type 'teleport'", 1, "line 5"),)


def test_a_result_without_its_call_is_counted_and_not_sent(tmp_path: Path) -> None:
    lines = [
        claude("u1", None, "user", "Go."),
        claude("r1", "u1", "user", [answered(1), {"type": "text", "text": "x"}]),
    ]
    log = read(written(tmp_path, lines)).logs[0]
    assert log.results == 0
    assert log.unknown == (UnknownLines("tool result without its call", 1, "line 2"),)


# -- other places -----------------------------------------------------------------------------------------------------


def test_turns_that_codex_rolled_back_are_not_read(tmp_path: Path) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": text}}

    started = {"type": "event_msg", "payload": {"type": "task_started"}}
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    lines = [started, said("user", "a"), said("assistant", "b"), started, said("user", "c"), back, said("user", "d")]
    log = read(written(tmp_path, lines)).logs[0]
    assert [message["content"] for message in log.messages] == ["a", "b", "d"]


def test_opencode_is_the_same_in_its_export_its_folder_and_its_database(tmp_path: Path) -> None:
    export = json.loads((SAMPLES / "opencode.json").read_text())
    info, storage = export["info"], tmp_path / "storage"
    (storage / "session" / "global").mkdir(parents=True)
    (storage / "session" / "global" / "s.json").write_text(json.dumps(info))
    database = sqlite3.connect(tmp_path / "opencode.db")
    database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, version TEXT, time_created INTEGER)")
    database.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
    database.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
    database.execute("INSERT INTO session VALUES (?, NULL, ?, 1)", (info["id"], info["version"]))
    for number, message in enumerate(export["messages"]):
        own = message["info"]
        folder = storage / "message" / info["id"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{own['id']}.json").write_text(json.dumps(own))
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (own["id"], info["id"], number, json.dumps(own)))
        for part in message["parts"]:
            parts = storage / "part" / own["id"]
            parts.mkdir(parents=True, exist_ok=True)
            (parts / f"{part['id']}.json").write_text(json.dumps(part))
            row = (part["id"], own["id"], info["id"], number, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
    database.commit()
    database.close()
    exported, stored, kept = only("opencode.json"), only(storage), only(tmp_path / "opencode.db")
    assert exported.messages == stored.messages == kept.messages
    assert exported.compactions == stored.compactions == kept.compactions
    assert exported.version == stored.version == kept.version == "1.18.33"


def test_a_folder_is_read_with_all_its_logs_and_the_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    shutil.copy(SAMPLES / "codex.jsonl", tmp_path / "deep" / "deeper" / "a.jsonl")
    shutil.copy(SAMPLES / "pi.jsonl", tmp_path / "b.jsonl")
    (tmp_path / "README.md").write_text("# no log\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    found = read(tmp_path)
    assert [log.agent for log in found.logs] == ["pi", "Codex"]
    assert [Path(other).name for other in found.others] == ["README.md", "picture.png"]


def test_our_own_forms_are_no_logs(tmp_path: Path) -> None:
    for number, value in enumerate(
        (
            [{"role": "user", "content": "hello"}],
            {"messages": [{"role": "user", "content": "hello"}]},
            {"input": "hello"},
            {"input": [{"role": "user", "content": "hello"}], "model": "gpt-5"},
            {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
            {"system": "x", "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]},
        )
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(value))
        assert not read(path).logs, value
