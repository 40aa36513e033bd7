"""`compact audit`: what an agent's own compactions dropped, what was needed of it, and what Compact keeps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig
from compact.cli.audit.facts import KnownFact, Remembered
from compact.cli.audit.findings import CompactionAudit, FactOutcome, audit_log, count_kind
from compact.cli.audit.page import render_page
from compact.cli.audit.text import share_of
from compact.testing import assistant, user
from compact.transcripts import AgentLog, OwnCompaction

SAMPLES = Path(__file__).parents[2] / "agent_logs" / "samples"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
RULE = "Never restart the gauge G-4417 during the night."


def read_call(number: int, path: str, text: str) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function"}
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


def harbour(summary: str, *, kept: tuple[int, ...] = ()) -> AgentLog:
    """A session that reads three files, is compacted, and needs one of them and one id again."""
    before: list[Any] = [user(f"Find out why pier 7 reports no tide. {RULE}")]
    before += read_call(1, "conf/gauges.toml", "pier7 = G-4417\n" * 40)
    before += read_call(2, "log/collect.log", "timeout after 3,100 ms\n" * 40)
    before += read_call(3, "web/page.html", "<p>tide</p>\n" * 40)
    before += [assistant("The tide is collected by TideCollector; its limit is 3,100 ms.")]
    later: list[Any] = read_call(4, "log/collect.log", "timeout after 3,100 ms\n" * 40)
    later += read_call(5, "log/collect.log", "timeout after 3,100 ms\n" * 40)
    later += [assistant("TideCollector gives up."), user(RULE)]
    compaction = OwnCompaction(len(before), summary, kept, "line 9", "auto", 90_000)
    return AgentLog(agent="Harbour", messages=[*before, *later], compactions=(compaction,), source="harbour.jsonl")


def audited(log: AgentLog) -> CompactionAudit:
    (one,) = audit_log(log, CompactConfig()).compactions
    return one


def fact(one: CompactionAudit, text: str) -> FactOutcome:
    return next(fact for fact in one.facts if text in fact.text)


def test_what_a_summary_drops_and_what_was_used_of_it() -> None:
    one = audited(harbour("The user wants to know why pier 7 reports no tide; conf/gauges.toml was read."))
    assert (fact(one, "conf/gauges.toml").kept, fact(one, "conf/gauges.toml").used_later) == (True, False)
    log = fact(one, "log/collect.log")
    assert (log.kind, log.kept, log.used_later, log.is_missed) == ("path", False, True, True)
    name = fact(one, "TideCollector")
    assert (name.kind, name.kept, name.used_later) == ("id", False, True)
    assert fact(one, "3,100").kind == "number"


def test_a_constraint_that_was_dropped_and_said_again() -> None:
    dropped = fact(audited(harbour("Pier 7 reports no tide.")), "Never restart")
    assert (dropped.kind, dropped.kept, dropped.said_again) == ("constraint", False, RULE)
    kept = fact(audited(harbour("The gauge G-4417 must never be restarted during the night.")), "Never restart")
    assert (kept.kept, kept.said_again) == (True, "")


def test_a_file_that_is_read_again_counts_once_with_the_tokens_of_its_result() -> None:
    (again,) = audited(harbour("Pier 7.")).repeats
    assert (again.tool, again.about) == ("read_file", "log/collect.log")
    assert again.tokens > 200
    assert again.position == 8


def test_what_stayed_in_the_prompt_is_not_read_again() -> None:
    one = audited(harbour("Pier 7.", kept=(3, 4)))
    assert one.repeats == ()
    assert fact(one, "log/collect.log").kept


def test_another_part_of_a_file_is_not_read_again() -> None:
    log = harbour("Pier 7.")
    messages = [dict(message) for message in log.messages]
    for message in messages[8:]:
        if message["role"] == "tool":
            message["content"] = "\n".join(f"{number:6}→started {number} times" for number in range(40))
    assert audited(AgentLog(agent="", messages=messages, compactions=log.compactions)).repeats == ()
    # With the numbers of lines before them, the same lines are the same.
    for message in messages[8:]:
        if message["role"] == "tool":
            message["content"] = "\n".join(f"{number:6}→timeout after 3,100 ms" for number in range(40))
    assert len(audited(AgentLog(agent="", messages=messages, compactions=log.compactions)).repeats) == 1


def test_a_file_that_was_changed_since_is_read_for_its_new_content() -> None:
    log = harbour("Pier 7.")
    function = {"name": "write_file", "arguments": json.dumps({"path": "log/collect.log", "content": "x"})}
    write = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "w", "type": "function", "function": function}],
    }
    messages = list(log.messages)
    messages[8:8] = [write, {"role": "tool", "tool_call_id": "w", "content": "ok"}]
    assert audited(AgentLog(agent="", messages=messages, compactions=log.compactions)).repeats == ()


def test_ours_fits_into_the_same_room_or_says_why_not() -> None:
    one = audited(harbour("A summary. " + "Words that fill the room. " * 60))
    assert 0 < one.tokens_by_compact <= one.tokens_after < one.tokens_before
    assert fact(one, "Never restart").kept_by_compact
    small = audited(harbour("x"))
    assert small.failure
    assert not any(fact.kept_by_compact for fact in small.facts)


RAISE = "Raise the limit in collect.py, keep the retry at 5."
# What was asked, what a summary says, and whether it says all of it.
STATEMENTS = [
    (RAISE, "The limit in collect.py was to be raised.", False),
    (RAISE, "Raise the limit in collect.py; the retry stays at 5.", True),
    (RAISE, "- raise the limit in src/collect.py\n- keep the retry at five", True),
    (RAISE, "Raise the limit, keep the retry at 5. It was read before.", False),
    (RAISE, "Raise the limit in collect.py, keep the retry at 15.", False),
    ("Never touch config/a.py or config/b.py.", "Never touch config/a.py.", False),
    ("Never touch config/a.py or config/b.py.", "Neither a.py nor b.py in config may be touched, never.", True),
    ("Always run the linter on changed files, and never push.", "Always run the linter on changed files.", False),
    ("Always run the linter on changed files, and never push.", "Lint changed files (run linter), no pushing.", True),
    ("Answers stay under 100 words, please.", "Answers must stay under 100 words.", True),
    ("Answers stay under 100 words, please.", "Answers must stay under a few words.", False),
    ("1. Wait 2,500 ms between calls.", "It waits 2500ms between calls.", True),
    ("Keep the API of TideCollector as it is.", "The api of TideCollector is kept.", True),
    ("Keep the API of TideCollector stable for callers.", "The API is kept stable for callers.", False),
    ("No deploys until 2026-03-01, they break gauges.", "No deploys until 1 March 2026: they break gauges.", True),
    ("Do not write 'on it' to customers.", "Do not write to customers that it is done.", True),
    ("Never restart gauge, pump, station or server, and never deploy.", "Never restart gauge, pump, station.", False),
    ("Never restart the gauge G-4417 at night.", "The user forbids restarts of G-4417, a gauge, at night.", True),
]


@pytest.mark.parametrize(
    ("kind", "text", "kept", "is_there"),
    [
        ("path", "/home/user/src/app.py", "We changed app.py and went on.", True),
        ("path", "src/app", "We changed app and went on.", False),
        ("id", "G-4417", "The gauge G-44171 was read.", False),
        ("id", "G-4417", "The gauge (G-4417) was read.", True),
        ("number", "3,100", "It took 3,100 ms.", True),
        ("constraint", "Do not touch the database.", "- the database must not be touched", True),
        ("constraint", "Do not touch the database.", "- the database was touched", False),
        *(("constraint", *case) for case in STATEMENTS),
    ],
)
def test_whether_a_text_has_a_fact(kind: str, text: str, kept: str, is_there: bool) -> None:
    assert Remembered(kept).has(KnownFact(kind, text)) is is_there


def test_shares_are_whole_only_if_nothing_is_missing() -> None:
    shares = [share_of(*pair) for pair in ((999, 1000), (1000, 1000), (1, 1000), (0, 1000), (1, 2), (0, 0))]
    assert shares == ["99%", "100%", "1%", "0%", "50%", "0%"]


def test_kinds_add_up() -> None:
    one = audited(harbour("Pier 7."))
    assert sum(counts.known for counts in one.counts) == one.total.known == len(one.facts)
    assert count_kind("path", one.facts).known == 3


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_report_in_a_pipe(cli):
    done = cli("audit", str(SAMPLES / "codex.jsonl"))
    assert done.code == 0, done.err
    assert "Codex 0.166.0, compaction 1 of 2" in done.out
    assert re.search(r"^path +5 +2 +5 ", done.out, re.MULTILINE)
    assert "2 compactions kept " in done.out
    assert "looked up again: 6 calls, 210 tokens" in cli("audit", str(SAMPLES / "claude-code.jsonl")).out


def test_the_report_as_data(cli):
    (log,) = cli("audit", str(SAMPLES / "codex.jsonl"), "--json").data
    assert (log["agent"], log["version"], len(log["compactions"])) == ("Codex", "0.166.0", 2)
    first = log["compactions"][0]
    assert first["repeated_tokens"] == sum(one["tokens"] for one in first["repeats"])
    assert {one["kind"] for one in first["counts"]} >= {"path"}


@pytest.mark.parametrize(
    "name", ["claude-code.jsonl", "opencode.json", "qwen-code.jsonl", "gemini-cli.jsonl", "pi.jsonl"]
)
def test_each_agent_can_be_audited(cli, name):
    (log,) = cli("audit", str(SAMPLES / name), "--json").data
    (one,) = log["compactions"]
    assert one["summary"]
    assert one["tokens_before"] > 0
    assert one["facts"]


def test_the_page_needs_nothing_from_elsewhere(cli, tmp_path):
    page = tmp_path / "page.html"
    assert cli("audit", str(SAMPLES), "--html", str(page)).code == 0
    text = page.read_text()
    title = "What Claude Code, Codex, Gemini CLI, opencode, pi, Qwen Code and Roo Code forgot"
    assert f"<h1>{title}</h1>" in text
    assert f"<title>{title}</title>" in text
    assert not re.search(r"<script|<link|src=|url\(|@import|href=", text)
    assert "{{" not in text
    assert text.count("<article>") == 8


def test_the_page_shows_the_words_of_a_session_as_text() -> None:
    log = harbour("A <script>alert(1)</script> & more.")
    evil = AgentLog(agent="<b>", messages=log.messages, compactions=log.compactions, session_id="<i>")
    page = render_page([audit_log(evil, CompactConfig())])
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "&lt;b&gt;" in page
    assert "<i>" not in page.replace("<i><b class=", "")


def test_no_secret_leaves_in_a_report(cli, tmp_path):
    messages = [
        user(f"Never print the key {SECRET} in a log."),
        *read_call(1, "notes.txt", "text " * 50),
        {"role": "user", "name": "compact_summary", "content": f"The key is {SECRET}."},
        assistant(f"I use {SECRET} now."),
    ]
    (tmp_path / "log.json").write_text(json.dumps(messages))
    page = tmp_path / "page.html"
    done = cli("audit", str(tmp_path / "log.json"), "--html", str(page))
    told = cli("audit", str(tmp_path / "log.json"), "--json")
    assert done.code == told.code == 0
    assert "constraint" in done.out
    for text in (done.out, told.out, page.read_text()):
        assert SECRET not in text


def test_a_log_without_a_compaction_has_nothing_to_audit(cli):
    done = cli("audit", str(SAMPLES / "cline.json"))
    assert (done.code, done.out) == (
        0,
        "nothing to audit: 1 session, none with a compaction of its own that can be read\n",
    )


def test_a_compaction_that_cannot_be_read_is_said(cli, tmp_path):
    lines = [
        {"type": "session_meta", "payload": {"id": "x", "cli_version": "1"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Go."}},
        {"type": "compacted", "payload": {"message": "", "replacement_history": [{"type": "compaction"}]}},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = cli("audit", str(path))
    assert done.code == 0
    assert "1 compaction cannot be judged" in done.err


def test_a_transcript_of_ours_is_audited_by_how_its_summary_begins(cli, tmp_path):
    summary = "This session is being continued from a previous conversation. " + "It was about tides. " * 30
    messages = [user(f"Watch pier 7. {RULE}"), assistant("I do."), user(summary), assistant("I go on.")]
    (tmp_path / "log.json").write_text(json.dumps(messages))
    (log,) = cli("audit", str(tmp_path / "log.json"), "--json").data
    assert log["messages"] == 3
    assert [one["kept"] for one in log["compactions"][0]["facts"] if one["kind"] == "constraint"] == [False]
