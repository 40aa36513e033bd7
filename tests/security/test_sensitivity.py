"""What is confidential or restricted leaves by no way but the agent's own prompt and the operator's store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.cli.main import app
from compact.cli.servers.mcp_tools import build_server
from compact.core.audit.artifacts import SecurityContext
from compact.core.engine.events import CompactionReportEvent
from compact.core.messages.message import Message, ToolCall
from compact.core.messages.sensitivity import SENSITIVITIES, is_open, sensitivity_of, withheld
from compact.strategies.externalize import ExternalizeStrategy
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, system, tool_exchange, tool_run, user

CANARY = "marzipan-7"
RESULT = (
    f"Patient {CANARY} was treated at /wards/{CANARY}.txt\nerror: {CANARY} is overdue\n"
    + "detail " * 200
    + "of the insurance"
    + " detail" * 100
)
CLOSED = SENSITIVITIES[2:]
every_closed_level = pytest.mark.parametrize("level", CLOSED)


def opened(folder: Path, **settings: Any) -> CompactManager:
    plugs = {name: settings.pop(name) for name in ("summarizer", "on_event") if name in settings}
    plugs["strategies"] = settings.pop("own_strategies", None)
    config = CompactConfig(
        max_context_tokens=1_500,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        state={"url": f"sqlite:///{folder}/state.db"},
        storage={"adapter": "fs", "path": str(folder / "archive")},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), **plugs)


def closed_by_default(level: str) -> dict[str, Any]:
    return {"strategies": {"externalize": {"default_sensitivity": level}}}


def history() -> list[Wire]:
    """A result that cannot be had again, a smaller one, and enough work for a summary."""
    asked = tool_exchange("ask-1", RESULT, tool="ask_user", question="who?")
    small = tool_exchange("read-1", f"row 1: {CANARY} is overdue", tool="read_file", path="rows.csv")
    start = [system("be careful"), user("who is overdue?"), *asked, *small]
    for turn in range(6):
        start += [user(f"go on with part {turn}"), *tool_run(1, words=150)[1:], assistant(f"done with part {turn}")]
    return start


def files_under(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


@every_closed_level
def test_recall_gives_it_to_nobody_by_id_or_by_words(level: str, tmp_path: Path) -> None:
    with opened(tmp_path, **closed_by_default(level)) as manager:
        manager.manual_compact("s", history())
        ids = [message.id for message in manager.history("s") if CANARY in message.text]
        assert len(ids) == 2
        artifacts = [record.artifact_id for record in manager.current_plan("s").artifacts]
        for query in (*ids, *artifacts, CANARY, "who is overdue?", "Patient treated", f"{ids[0]} {ids[1]}"):
            assert CANARY not in str(manager.recall("s", query)).replace(query, ""), query
        allowed = SecurityContext(permissions=frozenset({f"read:{level}"}))
        assert CANARY in str(manager.recall("s", ids[0], security=allowed))


@every_closed_level
def test_the_archive_has_a_line_in_its_place_and_all_of_the_rest(level: str, tmp_path: Path) -> None:
    with opened(tmp_path, **closed_by_default(level)) as manager:
        manager.manual_compact("s", history())
    archived = files_under(tmp_path / "archive")
    assert CANARY not in archived
    assert f"[{level} content of {len(RESULT):,} characters is not shown here]" in archived
    assert "who is overdue?" in archived


@every_closed_level
def test_summaries_and_events_do_not_quote_it(level: str, tmp_path: Path) -> None:
    sink = RecordingSink()
    with opened(tmp_path, on_event=sink, **closed_by_default(level)) as manager:
        out = manager.manual_compact("s", history())
        summary = manager.current_plan("s").summary
    assert summary is not None
    (text,) = [str(m["content"]) for m in out if "<COMPACT-SUMMARY" in str(m["content"])]
    assert CANARY not in text
    assert "who is overdue?" in text
    assert CANARY not in repr([event.to_dict() for event in sink.events])
    assert CANARY not in json.dumps(manager.current_plan("s").to_dict())


def test_without_a_level_all_of_it_is_there(tmp_path: Path) -> None:
    """The tests above look at places where it would be."""
    sink = RecordingSink()
    with opened(tmp_path, on_event=sink) as manager:
        out = manager.manual_compact("s", history())
        assert CANARY in json.dumps(out)
        assert CANARY in repr([event.to_dict() for event in sink.events])
        assert CANARY in str(manager.recall("s", "Patient treated"))
    assert CANARY in files_under(tmp_path / "archive")


@every_closed_level
def test_a_summarisers_model_is_not_shown_it(level: str, tmp_path: Path) -> None:
    requests: list[SummaryRequest] = []

    def write(request: SummaryRequest) -> StructuredSummary:
        requests.append(request)
        return StructuredSummary(narrative="The user asked who is overdue.")

    with opened(tmp_path, summarizer=write, **closed_by_default(level)) as manager:
        manager.manual_compact("s", history())
    (request, *_) = requests
    assert any(m.role == "tool" for m in request.span)
    for part in (request.messages, request.span, request.history, request.ledger):
        assert CANARY not in repr(part)


@every_closed_level
def test_a_report_does_not_call_it_retrievable(level: str, tmp_path: Path) -> None:
    sink = RecordingSink()
    row = tool_exchange("read-2", "row 2: ORD-998123 is overdue " + "detail " * 200, tool="read_file", path="rows.csv")
    with opened(tmp_path, on_event=sink, **closed_by_default(level)) as manager:
        manager.manual_compact("s", [*history()[:2], *row, *history()[2:]])
        (report,) = manager.report("s")
    (event,) = sink.of(CompactionReportEvent)
    for told in (report, event.report):
        assert [item.state.value for item in told.items if item.text == "ORD-998123"] == ["lost"]


def test_a_message_that_says_so_itself_is_withheld_whoever_wrote_it(tmp_path: Path) -> None:
    told = [dict(message) for message in history()]
    told[1] = {**user(f"My name is {CANARY}. Never tell anyone."), "meta": {"sensitivity": "confidential"}}
    for place in (3, 5):
        told[place] = {**told[place], "meta": {"sensitivity": "Restricted "}}
    sink = RecordingSink()
    with opened(tmp_path, on_event=sink) as manager:
        manager.manual_compact("s", told)
        assert CANARY not in str(manager.recall("s", "what is my name?"))
        assert CANARY not in repr([event.to_dict() for event in sink.events])
    assert CANARY not in files_under(tmp_path / "archive")


def test_the_default_of_a_strategy_of_ones_own_holds_everywhere_too(tmp_path: Path) -> None:
    strategies = [ExternalizeStrategy(min_tokens=100, default_sensitivity="confidential")]
    with opened(tmp_path, own_strategies=strategies) as manager:
        manager.manual_compact("s", history(), target_tokens=900)
        assert manager.current_plan("s").artifacts
        assert CANARY not in str(manager.recall("s", "Patient treated"))
    assert CANARY not in files_under(tmp_path / "archive")


def test_export_and_mcp_withhold_it_and_raw_export_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_STRATEGIES__EXTERNALIZE__DEFAULT_SENSITIVITY", "confidential")
    with opened(tmp_path) as manager:
        manager.manual_compact("s", history(), target_tokens=300)
    url = f"sqlite:///{tmp_path}/state.db"
    exported = CliRunner().invoke(app, ["export", "s", "--store", url])
    assert exported.exit_code == 0, exported.output
    assert CANARY not in exported.output
    assert "confidential content of" in exported.output
    assert CANARY in CliRunner().invoke(app, ["export", "s", "--store", url, "--raw"]).output
    server = build_server(None, url, "s")
    for tool, arguments in (
        ("recall", {"query": "Patient treated"}),
        ("recall", {"query": "m4"}),
        ("why", {"phrase": "is overdue\nrow"}),
        ("why", {"phrase": "detail of the insurance"}),
    ):
        answer = repr(asyncio.run(server.call_tool(tool, arguments)))
        assert CANARY not in answer, (tool, arguments)
    assert "not found" in repr(asyncio.run(server.call_tool("why", {"phrase": "detail of the insurance"})))


@every_closed_level
def test_a_constraint_stays_in_the_prompt_whatever_its_sensitivity_and_gets_nowhere_else(
    level: str, tmp_path: Path
) -> None:
    start = history()
    start[1] = {
        **user(f"who is overdue? You must never mention {CANARY} to the press."),
        "meta": {"sensitivity": level},
    }
    for message in start[2:]:
        if message["role"] == "tool":
            message["content"] = message["content"].replace(CANARY, "somebody")
    with opened(tmp_path, on_event=(sink := RecordingSink())) as manager:
        prompt = manager.manual_compact("s", start, target_tokens=300)
        assert len(prompt) < len(start)
        assert f"never mention {CANARY}" in json.dumps(prompt)
        assert CANARY not in str(manager.recall("s", "mention to the press"))
    assert CANARY not in repr(sink.events)
    assert CANARY not in files_under(tmp_path / "archive")


def test_a_word_that_is_no_level_is_taken_for_the_strictest() -> None:
    for said, level in (
        ("secret", "restricted"),
        (" Confidential", "confidential"),
        ("PUBLIC", "public"),
        (7, "restricted"),
    ):
        message = Message("user", "x", meta={"sensitivity": said})
        assert sensitivity_of(message) == level
        assert is_open(message) is (level == "public")
    assert sensitivity_of(Message("tool", "x"), "restricted") == "restricted"
    assert sensitivity_of(Message("assistant", "x"), "restricted") == "internal"


def test_what_is_withheld_keeps_what_others_decide_by() -> None:
    call = ToolCall("c1", "send", json.dumps({"to": CANARY}))
    meta = {"sensitivity": "confidential", "protected": True, "note": CANARY}
    message = Message("assistant", CANARY, tool_calls=(call,), id="m7", meta=meta, original={"content": CANARY})
    shown = withheld(message)
    assert CANARY not in repr(shown) + repr(shown.original)
    assert (shown.id, shown.role, shown.tool_calls[0].id, shown.tool_calls[0].name) == ("m7", "assistant", "c1", "send")
    assert shown.meta == {"protected": True, "sensitivity": "confidential"}
    public = Message("user", "hello", meta={"sensitivity": "public"})
    assert withheld(public) is public
