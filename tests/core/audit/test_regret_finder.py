"""Regrets: what was removed and then asked for again, and what only looks like it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compact.core.audit.regret_finder import RegretFinder, read_regrets
from compact.core.facts import tool_calls
from compact.core.facts.tool_calls import call_subjects
from compact.core.messages.message import ROLES, Message, ToolCall
from compact.core.plan.plan import (
    AttachmentPointer,
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.regret import Regret, Regrets, count_regrets
from compact.core.search.recall_answer import is_recall, is_recall_answer, recalled_ids
from compact.recall.search import Recall, Recalled
from compact.testing import as_log, tool_exchange, user


def listing(name: str, lines: int = 30, start: int = 0) -> str:
    """A file, or a part of it."""
    return "\n".join(f"{number}: value_{number} of {name}" for number in range(start, start + lines))


def read(call_id: str, path: str, text: str | None = None, **more: Any) -> list[dict[str, Any]]:
    return tool_exchange(call_id, listing(path) if text is None else text, tool="read_file", path=path, **more)


def clearing(*message_ids: str, **fields: Any) -> CompactionPlan:
    """A plan that cleared these."""
    records = (ClearRecord(span=SpanReference((i,)), strategy="clear", reason="old", **fields) for i in message_ids)
    return CompactionPlan("s", 1, tuple(records))


def found(plan: CompactionPlan, before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Regret]:
    """The regrets of what came after a plan."""
    log = as_log([*before, *after])
    finder = RegretFinder(plan)
    for number, message in enumerate(log):
        finder.add(message, tokens=7, is_new=number >= len(before))
    return finder.found


READ = [user("look"), *read("c1", "src/a.py")]  # m1, m2, m3


def test_a_file_that_is_read_again_after_it_was_cleared_is_a_regret() -> None:
    (regret,) = found(clearing("m3"), READ, read("c2", "src/a.py"))
    assert regret == Regret(
        message_id="m3",
        found_in="m5",
        tool="read_file",
        action="clear",
        strategy="clear",
        how="reread",
        plan_version=1,
        tokens=7,
    )


@pytest.mark.parametrize(
    "again",
    [
        read("c2", "./src/a.py", listing("src/a.py")),
        read("c2", "src/a.py", listing("src/a.py", 12, start=5), offset=5, limit=12),
        tool_exchange("c2", listing("src/a.py"), tool="bash", command="cat src/a.py"),
        tool_exchange("c2", listing("src/a.py", 10), tool="bash", command="cd /repo && sed -n '1,10p' src/a.py"),
    ],
    ids=["the same file by another spelling", "a part of it", "by a command", "a part of it by a command"],
)
def test_the_same_file_counts_however_it_is_read(again: list[dict[str, Any]]) -> None:
    assert [regret.message_id for regret in found(clearing("m3"), READ, again)] == ["m3"]


def test_the_same_call_counts_whatever_the_order_of_its_arguments() -> None:
    answer = listing("the orders of Ada")
    before = [user("look"), *tool_exchange("c1", answer, tool="get_orders", name="Ada", year=2020)]
    again = tool_exchange("c2", answer, tool="get_orders", year=2020, name="Ada")
    assert len(found(clearing("m3"), before, again)) == 1
    other = tool_exchange("c2", answer, tool="get_orders", year=2021, name="Ada")
    assert found(clearing("m3"), before, other) == []


@pytest.mark.parametrize(
    "after",
    [
        read("c2", "src/b.py"),
        read("c2", "src/a.py", listing("what somebody else wrote there")),
        read("c2", "src/a.py", listing("src/a.py", 30, start=20)),
        read("c2", "src/a.py", "Error: no such file"),
        [*tool_exchange("w", "ok", tool="edit_file", path="src/a.py"), *read("c2", "src/a.py")],
        [*tool_exchange("w", "ok", tool="edit_file", path="./src/a.py"), *read("c2", "src/a.py")],
        [
            *tool_exchange("w", "ok", tool="apply_patch", input="*** Update File: src/a.py\n@@\n+x"),
            *read("c2", "src/a.py"),
        ],
    ],
    ids=["another file", "other content", "mostly new lines", "a failure", "edited", "edited, other path", "patched"],
)
def test_no_regret(after: list[dict[str, Any]]) -> None:
    assert found(clearing("m3"), READ, after) == []


def test_an_edit_that_failed_changed_nothing() -> None:
    failed = tool_exchange("w", "Error: old_string not found", tool="edit_file", path="src/a.py")
    assert len(found(clearing("m3"), READ, [*failed, *read("c2", "src/a.py")])) == 1


def test_a_folder_is_changed_with_its_files() -> None:
    before = [user("look"), *tool_exchange("c1", listing("hits"), tool="grep", path="src", pattern="value")]
    again = tool_exchange("c2", listing("hits"), tool="grep", path="src", pattern="value")
    edit = tool_exchange("w", "ok", tool="edit_file", path="src/deep/b.py")
    assert len(found(clearing("m3"), before, again)) == 1
    assert found(clearing("m3"), before, [*edit, *again]) == []
    elsewhere = tool_exchange("w", "ok", tool="edit_file", path="docs/b.md")
    assert len(found(clearing("m3"), before, [*elsewhere, *again])) == 1


def test_a_command_is_run_again_for_a_reason_once_any_file_was_changed() -> None:
    before = [user("test"), *tool_exchange("c1", listing("a run"), tool="bash", command="pytest -q")]
    again = tool_exchange("c2", listing("a run"), tool="bash", command="pytest -q")
    edit = tool_exchange("w", "ok", tool="edit_file", path="src/a.py")
    assert len(found(clearing("m3"), before, again)) == 1
    assert found(clearing("m3"), before, [*edit, *again]) == []


def test_short_answers_and_writes_are_not_missed() -> None:
    for tool, answer in (("bash", "ok"), ("write_file", listing("a diff"))):
        before = [user("go"), *tool_exchange("c1", answer, tool=tool, path="src/a.py")]
        assert found(clearing("m3"), before, tool_exchange("c2", answer, tool=tool, path="src/a.py")) == []


def test_what_is_still_in_the_prompt_was_not_missed() -> None:
    """An older copy is gone, a newer one stands: reading it once more is the agent's own doing."""
    before = [*READ, *read("c2", "src/a.py")]
    assert found(clearing("m3"), before, read("c3", "src/a.py")) == []
    assert len(found(clearing("m3", "m5"), before, read("c3", "src/a.py"))) == 1


def test_what_a_stub_keeps_was_not_removed() -> None:
    text = listing("src/a.py")
    assert found(clearing("m3", kept=((0, len(text)),)), READ, read("c2", "src/a.py")) == []
    pointer = ExternalizationRecord(
        span=SpanReference(("m3",)), strategy="externalize", reason="large", artifact_id="art-1", preview=text
    )
    assert found(CompactionPlan("s", 1, (pointer,)), READ, read("c2", "src/a.py")) == []


def test_beside_what_was_moved_of_a_message_its_text_was_not_removed() -> None:
    """With its attachments moved its text stays, or what a plan keeps of it."""
    moved = ExternalizationRecord(
        span=SpanReference(("m3",)),
        strategy="externalize",
        reason="large",
        artifact_id="art-1",
        attachments=(AttachmentPointer("art-1", "photo.png", "photo.png, 3 KB"),),
    )
    text, again = listing("src/a.py"), read("c2", "src/a.py")
    for kept, is_missed in ((None, False), (((0, len(text)),), False), (((0, 20),), True), ((), True)):
        plan = CompactionPlan("s", 1, (replace(moved, kept=kept),))
        assert [regret.message_id for regret in found(plan, READ, again)] == (["m3"] if is_missed else [])


def test_each_removed_message_is_counted_once() -> None:
    twice = [*read("c2", "src/a.py"), *read("c3", "src/a.py")]
    assert [regret.message_id for regret in found(clearing("m3"), READ, twice)] == ["m3"]
    twice = [*recalled("m3", "m3"), *recalled("m3", "m3")]
    assert [regret.message_id for regret in found(clearing("m3"), READ, twice)] == ["m3"]


def test_what_came_back_can_be_missed_again() -> None:
    """The copy that came back was removed in its turn: the newest copy is what is missed."""
    first = found(clearing("m3"), READ, read("c2", "src/a.py"))
    plan = clearing("m3", "m5")
    plan = CompactionPlan("s", 2, plan.records, regrets=Regrets(tuple(first), 5))
    again = found(plan, [*READ, *read("c2", "src/a.py")], read("c3", "src/a.py"))
    assert [regret.message_id for regret in again] == ["m3", "m5"]


RECORDS = {
    "clear": ClearRecord(span=SpanReference(("m3",)), strategy="deduplicate", reason="old"),
    "summarize": SummarizationRecord(span=SpanReference(("m1", "m2", "m3")), strategy="summarize", reason="old"),
    "externalize": ExternalizationRecord(
        span=SpanReference(("m3",)), strategy="externalize", reason="large", artifact_id="art-00112233445566ff"
    ),
    "drop": DropRecord(span=SpanReference(("m2", "m3")), strategy="drop", reason="old"),
}


@pytest.mark.parametrize("action", RECORDS)
def test_action_and_strategy_are_those_of_the_record(action: str) -> None:
    record = RECORDS[action]
    for after in (read("c2", "src/a.py"), recalled("m3", "m3")):
        (regret,) = found(CompactionPlan("s", 4, (record,)), READ, after)
        assert (regret.action, regret.strategy, regret.plan_version) == (action, record.strategy, 4)


def recalled(query: str, *message_ids: str, tool: str = "recall") -> list[dict[str, Any]]:
    """A call of the recall tool, with the answer that Compact gives."""
    entries = tuple(Recalled(i, int(i[1:]), "tool", listing("src/a.py"), True) for i in message_ids)
    return tool_exchange("r1", str(Recall(query, entries)), tool=tool, query=query)


def test_a_recall_is_a_regret_of_the_message_it_names() -> None:
    (regret,) = found(clearing("m3"), READ, recalled("m3", "m3"))
    assert (regret.message_id, regret.how, regret.tool, regret.found_in) == ("m3", "recall", "read_file", "m5")
    assert len(found(clearing("m3"), READ, recalled("m3", "m3", tool="mcp__compact__recall"))) == 1
    artifact = CompactionPlan("s", 1, (RECORDS["externalize"],))
    assert len(found(artifact, READ, recalled("art-00112233445566ff", "m3"))) == 1


def test_a_recall_by_words_is_a_regret_of_the_best_that_was_removed() -> None:
    """What was found beside it was not asked for."""
    before = [*READ, *read("c2", "src/b.py")]
    after = recalled("value of a", "m1", "m3", "m5")
    assert [regret.message_id for regret in found(clearing("m3", "m5"), before, after)] == ["m3"]


def test_a_recall_is_about_what_it_names_before_what_its_answer_has() -> None:
    before = [*READ, *read("c2", "src/b.py")]
    (regret,) = found(clearing("m3", "m5"), before, recalled("m3", "m5", "m3"))
    assert regret.message_id == "m3"
    answer = recalled("m3", "m5", "m3")[1]["content"]
    unreadable = tool_exchange("r1", answer, tool="recall", query=["m3"])
    assert [regret.message_id for regret in found(clearing("m3", "m5"), before, unreadable)] == ["m5"]


def test_a_recall_of_what_is_in_the_prompt_or_unknown_is_none() -> None:
    assert found(clearing("m2"), READ, recalled("m3", "m3")) == []
    assert found(clearing("m3"), READ, recalled("no such thing")) == []
    before = [*READ, *read("c2", "src/a.py")]
    assert found(clearing("m3"), before, recalled("m3", "m3")) == []


def test_an_answer_of_recall_is_known_by_what_it_is_written_with() -> None:
    ids = ["m3", "my id, with a comma", "m3-2"]
    found = (Recalled(ids[n], n + 1, ROLES[n], "text", is_whole=n > 1) for n in range(3))
    answer = str(Recall("x", tuple(found)))
    for text in (answer, json.dumps([{"type": "text", "text": answer}])):
        assert recalled_ids(text) == ids
        assert is_recall_answer(text)
    assert is_recall_answer(str(Recall("x", ())))
    assert recalled_ids(str(Recall("x", ()))) == recalled_ids("[m3, entry 4] and [1, 2, 3]") == []
    assert not is_recall_answer("[m3, entry 4]")
    assert not is_recall_answer(f"{'a report that cites one ' * 20}{answer}"), "an answer begins like one"
    assert [is_recall(name) for name in ("recall", "mcp__x__recall", "X.Recall", "recalls", "xrecall", "recall_x")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_words_of_people_can_be_recalled() -> None:
    (regret,) = found(CompactionPlan("s", 1, (RECORDS["summarize"],)), READ, recalled("m1", "m1"))
    assert (regret.message_id, regret.tool) == ("m1", "")


def test_reading_entry_by_entry_and_at_once_is_the_same() -> None:
    """A process that resumes a session finds what the one before it had found."""
    before, after = READ, [*read("c2", "src/a.py"), *recalled("m3", "m3"), *read("c3", "src/b.py")]
    plan = CompactionPlan("s", 1, clearing("m3").records, regrets=Regrets((), len(before)))
    log = as_log([*before, *after])
    at_once = read_regrets(plan, log, log, lambda _: 7)
    assert at_once.found == found(plan, before, after)
    assert len(at_once.found) == 1


def missed_ids(plan: CompactionPlan, history: Sequence[dict[str, Any]]) -> list[str]:
    log = as_log(history)
    return list(read_regrets(plan, log, log, lambda _: 7).missed_ids())


def test_what_came_back_is_kept_while_it_is_up_to_date() -> None:
    history = [*READ, *read("c2", "src/a.py")]
    regrets = Regrets(tuple(found(clearing("m3"), READ, read("c2", "src/a.py"))), 5)
    plan = CompactionPlan("s", 2, clearing("m3").records, regrets=regrets)
    assert missed_ids(plan, history) == ["m5"]
    edit = tool_exchange("w", "ok", tool="edit_file", path="src/a.py")
    assert missed_ids(plan, [*history, *edit]) == []
    assert missed_ids(plan, [*history, *read("c3", "src/a.py")]) == []
    assert missed_ids(CompactionPlan("s", 2, clearing("m3", "m5").records, regrets=regrets), history) == []


def test_what_a_recall_brought_back_is_kept_while_its_file_is_as_it_was() -> None:
    """It is the file that the removed message was about which must not have changed."""
    recall = recalled("m3", "m3")
    regrets = Regrets(tuple(found(clearing("m3"), READ, recall)), 5)
    plan = CompactionPlan("s", 2, clearing("m3").records, regrets=regrets)
    edit = tool_exchange("w", "ok", tool="edit_file", path="src/a.py")
    elsewhere = tool_exchange("w", "ok", tool="edit_file", path="src/b.py")
    assert missed_ids(plan, [*READ, *recall]) == ["m5"]
    assert missed_ids(plan, [*READ, *recall, *elsewhere]) == ["m5"]
    assert missed_ids(plan, [*READ, *recall, *edit]) == []


def test_each_that_came_back_is_kept_newest_first_and_named_once() -> None:
    history = [*READ, *read("c2", "src/b.py"), *read("c3", "src/a.py"), *read("c4", "src/b.py")]
    first, second = found(clearing("m3", "m5"), history[:5], history[5:])
    twice = replace(first, message_id="m2")
    for removed, kept in ((("m3", "m5"), ["m9", "m7"]), (("m3", "m5", "m9"), ["m7"])):
        plan = CompactionPlan("s", 2, clearing(*removed).records, regrets=Regrets((first, twice, second), 9))
        assert missed_ids(plan, history) == kept


def test_a_finder_knows_which_messages_it_has_read() -> None:
    log = as_log([*READ, *read("c2", "src/b.py")])
    finder = RegretFinder(clearing("m3"))
    assert finder.has_read([])
    for message in log[:3]:
        finder.add(message)
    assert finder.has_read(log[:3])
    assert finder.has_read(tuple(log[:3]))
    assert not finder.has_read(log[:2])
    assert not finder.has_read(log)
    assert not finder.has_read([*log[:2], log[4]])


def test_nothing_is_kept_for_ever() -> None:
    history = [*READ, *read("c2", "src/a.py")]
    regrets = Regrets(tuple(found(clearing("m3"), READ, read("c2", "src/a.py"))), 5)
    kept = [
        bool(missed_ids(CompactionPlan("s", version, clearing("m3").records, regrets=regrets), history))
        for version in range(1, 7)
    ]
    assert kept == [True, True, True, True, False, False]


def test_a_new_entry_costs_the_same_however_long_the_history_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only results of the same call or file are looked at, and of those the newest."""
    history = [message for number in range(400) for message in read(f"c{number}", f"src/{number % 4}.py")]
    log = as_log(history)
    finder = read_regrets(clearing(*(m.id for m in log if m.role == "tool")), log, log, lambda _: 7)
    asked: list[str] = []
    get_action = CompactionPlan.get_action

    def counted(plan: CompactionPlan, message_id: str) -> Any:
        asked.append(message_id)
        return get_action(plan, message_id)

    monkeypatch.setattr(CompactionPlan, "get_action", counted)
    new = as_log(read("new", "src/1.py"))
    for message in new:
        finder.add(replace(message, id=f"new-{message.id}"), tokens=7)
    assert 0 < len(asked) < 40


def test_arguments_are_parsed_once_in_the_life_of_their_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be whole files, and there is a new finder for each plan."""
    large = "x = 1\n" * 20_000
    writes = [
        m for n in range(5) for m in tool_exchange(f"w{n}", "written", tool="write_file", path="b", content=large)
    ]
    log = as_log([*READ, *writes, *read("c2", "src/a.py", note=large), *read("c3", "src/a.py", note=large)])
    parsed: list[int] = []
    parse = tool_calls._parse

    def counted(arguments: str) -> dict[str, Any]:
        parsed.append(len(arguments))
        return parse(arguments)

    monkeypatch.setattr(tool_calls, "_parse", counted)
    plan = clearing("m3")
    (regret,) = read_regrets(plan, log[:3], log, lambda _: 7).found
    assert regret.message_id == "m3"
    assert 0 < len(parsed) <= 2 * 7, "what a call is about, and its digest"
    parsed.clear()
    assert read_regrets(plan, log[:3], log, lambda _: 7).found == [regret]
    assert parsed == []


def read_path(call: ToolCall) -> str | None:
    return call_subjects(Message("assistant", tool_calls=(call,)))[call.id].only_reads


def test_only_calls_that_read_have_a_file() -> None:
    assert read_path(ToolCall("1", "read_file", '{"path": "a//b.py"}')) == "a/b.py"
    assert read_path(ToolCall("1", "editor", '{"command": "view", "path": "a.py"}')) == "a.py"
    assert read_path(ToolCall("1", "bash", '{"command": "cat \'a b.py\' | wc -l"}')) is None
    assert read_path(ToolCall("1", "bash", '{"command": "rm -rf a.py"}')) is None
    assert read_path(ToolCall("1", "bash", "not json")) is None


def test_counted_by_tool_action_and_strategy() -> None:
    once = Regret(
        message_id="m3", found_in="m5", tool="t", action="clear", strategy="c", how="reread", plan_version=1, tokens=7
    )
    fields = once.to_dict()
    others = [
        Regret.from_dict({**fields, **change}) for change in ({"how": "recall"}, {"tool": "a"}, {"action": "drop"})
    ]
    first, *rest = count_regrets([once, *others])
    assert (first.tool, first.recalls, first.rereads, first.total, first.tokens) == ("t", 1, 1, 2, 14)
    assert (first.source, replace(first, tool="").source) == ("t", "dialogue")
    assert [(count.tool, count.action) for count in rest] == [("a", "clear"), ("t", "drop")]
    assert {(count.recalls, count.rereads) for count in rest} == {(0, 1)}
    assert Regrets.from_dict(Regrets((once,), 3).to_dict()) == Regrets((once,), 3)
