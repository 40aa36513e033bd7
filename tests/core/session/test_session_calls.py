"""A session from call to call: what goes out for a list, what the store must get, and what stays when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compact.core.audit.records import AddedMessage, StoredSession
from compact.core.log.log import Match
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message, SettledItems
from compact.core.plan.budget import TokenBudget
from compact.core.plan.layers import KeepRules
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    CompactionRun,
    SpanReference,
    StepFailure,
    SummarizationRecord,
)
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.turn import RehydrationState, TurnContext, added_label
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.session import Session
from compact.core.summary.summary import StructuredSummary
from compact.testing import WordTokenizer, assistant, dialogue, tool_exchange, user

COUNT = WordTokenizer().count_message
# m1, the call m2 and its result m3, m4, m5
HISTORY = [user("look"), *tool_exchange("c1", "a long result " * 9), assistant("I see"), user("and now?")]
NOTE = AddedMessage("injected", Message("user", f"{added_label('clock')}\nit is noon"), 5)


def clearing(version: int, message_id: str = "m3", **fields: Any) -> CompactionPlan:
    record = ClearRecord(span=SpanReference((message_id,)), strategy="clear", reason="old", **fields)
    return CompactionPlan("s", version, (record,), lines={})


def summing_up(version: int, *message_ids: str) -> CompactionPlan:
    summary = StructuredSummary(narrative=f"they looked, version {version}")
    record = SummarizationRecord(span=SpanReference(message_ids), strategy="mine", reason="old", summary=summary)
    return CompactionPlan("s", version, (record,), lines={})


def prompt_of(session: Session, plan: CompactionPlan, view: Sequence[Message]) -> CurrentPrompt:
    rendered = PromptRenderer().render(view, plan)
    return CurrentPrompt.built(
        session.log,
        plan,
        rendered,
        repair_chat(rendered.slots)[0],
        covered=len(view),
        view_tokens=sum(session.tokens.of_messages(view)),
        tools=dict(LineIndex(view).tools),
        rules=KeepRules(),
        message_tokens=session.tokens.of,
        count_message=COUNT,
        like=session.like,
    )


def take(session: Session, items: Sequence[object], *names: str) -> Match:
    """Take a list; the prompt is made anew."""
    match = session.ingest(items, COUNT, lambda plan, view: prompt_of(session, plan, view), frozenset(names))
    assert match is not None
    match = session.without_trimmed(match, session.plan)
    session.show_unseen()
    session.show(prompt_of(session, session.plan, session.log.view))
    return match


def call(session: Session, items: Sequence[object]) -> list[Any]:
    """What goes out for a list."""
    return session.output(items, take(session, items))


def session_of(items: Sequence[object] = HISTORY, plan: CompactionPlan | None = None) -> Session:
    session = Session("s")
    take(session, items)
    if plan:
        session.adopt(plan, is_compaction=True)
    return session


def stored(session: Session, plan: CompactionPlan | None = None) -> StoredSession:
    """What a store has of a session that was saved."""
    commit = session.unsaved()
    return StoredSession(
        session_id="s",
        head=replace(session.stored.head, last_seq=len(session.log), plan_version=session.plan.version),
        messages=tuple(commit.messages),
        view_ids=tuple(session.log.view_ids),
        plan=plan or session.plan,
    )


def texts(items: Sequence[Any]) -> list[str]:
    return [str(item["content"]) for item in items]


# -- what goes out ---------------------------------------------------------------------------------------------------


def test_what_is_shown_as_it_is_goes_out_as_the_callers_own_objects() -> None:
    out = call(session_of(plan=clearing(1)), HISTORY)
    assert [ours is own for ours, own in zip(out, HISTORY, strict=True)] == [True, True, False, True, True]


def test_what_is_ours_goes_out_as_a_copy() -> None:
    """A caller may change what it was given: the next prompt must not change with it."""
    session = session_of(plan=clearing(1))
    out = call(session, HISTORY)
    out[2]["content"] = "changed"
    assert session.prompt.items.originals[2] != out[2]


def test_a_settled_list_of_which_nothing_was_changed_goes_out_itself_unless_something_is_added() -> None:
    settled = SettledItems(HISTORY)
    session = session_of(settled)
    assert call(session, settled) is settled
    assert call(session, list(settled)) == HISTORY
    match = take(session, settled)
    session.inject((NOTE,))
    assert session.output(settled, match) == [*HISTORY, {"role": "user", "content": NOTE.message.text}]
    assert settled == HISTORY


def test_a_list_that_goes_out_is_not_the_one_that_came() -> None:
    session = session_of()
    own = list(HISTORY)
    assert call(session, own) is not own


@pytest.mark.parametrize("kind", ["injected", "rehydrated"])
def test_what_stands_behind_the_log_goes_out_last_and_comes_back_as_ours(kind: str) -> None:
    session = session_of()
    match = take(session, HISTORY)
    if kind == "injected":
        session.inject((NOTE,))
        assert session.injected_tokens == 5
    else:
        session.add_rehydrated([NOTE], TurnContext(session.turn_number), RehydrationState())
    out = session.output(HISTORY, match)
    assert texts(out) == [*texts(HISTORY), NOTE.message.text]
    match = take(session, [*out, assistant("noon"), user("thanks")])
    assert [message.text for message in match.new] == ["noon", "thanks"]
    assert session.injected_tokens == 0


def test_what_is_added_has_the_form_of_the_callers_messages() -> None:
    items = [Message("user", "hello", id="u1")]
    session = session_of(items)
    match = take(session, items)
    session.inject((replace(NOTE, message=replace(NOTE.message, original=user("a note"))),))
    added = session.output(items, match)[-1]
    assert isinstance(added, Message)
    assert added.original is None


def test_what_is_added_to_an_empty_prompt_stands_alone() -> None:
    session = Session("s")
    match = take(session, [])
    session.inject((NOTE,))
    out: list[Any] = session.output([], match)
    assert texts(out) == [NOTE.message.text]
    assert [message.text for message in take(session, [*out, assistant("noon")]).new] == ["noon"]


def test_a_prompt_that_comes_back_goes_out_with_our_texts_as_they_are_now() -> None:
    session = session_of(plan=clearing(1))
    before = call(session, HISTORY)
    session.adopt(clearing(2, kept=((0, 6),)), is_compaction=True)
    out = call(session, [*before, assistant("done")])
    assert out[2] == session.prompt.items.originals[2] != before[2]
    assert [ours is own for ours, own in zip(out, before, strict=False)] == [True, True, False, True, True]


def test_a_prompt_with_a_summary_that_comes_back_goes_out_as_it_is() -> None:
    session = session_of(plan=summing_up(1, "m1", "m2", "m3"))
    before = call(session, HISTORY)
    assert len(before) == 3
    longer = [*before, assistant("done"), user("go on")]
    assert call(session, longer) == longer
    session.adopt(summing_up(2, "m1", "m2", "m3", "m4"), is_compaction=True)
    out = call(session, longer)
    assert out[1:] == longer[2:]
    assert out[-1] is longer[-1]


def test_behind_a_summary_that_is_another_one_now_the_callers_own_objects_go_out() -> None:
    """An item of its list is not at the place that the entry has in the log."""
    pinned = {**user("never push"), "meta": {"protected": True}}
    plans = [replace(summing_up(version, "m2", "m3"), pinned=("m1",)) for version in (1, 2)]
    session = session_of([pinned, *dialogue(1), user("and now?")], plans[0])
    before = call(session, [pinned, *dialogue(1), user("and now?")])
    session.adopt(plans[1], is_compaction=True)
    out = call(session, before)
    assert [ours is own for ours, own in zip(out, before, strict=True)] == [True, False, True]


def test_a_prompt_that_comes_back_goes_out_in_its_own_objects_though_its_last_result_is_cleared_now() -> None:
    items = [*dialogue(1), user("look"), *tool_exchange("c1", "a long result " * 9)]
    session = session_of(items, summing_up(1, "m1", "m2"))
    before = call(session, items)
    summed_up, cleared = summing_up(2, "m1", "m2"), clearing(2, "m5")
    session.adopt(replace(summed_up, records=(*summed_up.records, *cleared.records)), is_compaction=True)
    out = call(session, before)
    assert [ours is own for ours, own in zip(out, before, strict=True)] == [False, True, True, False]


def test_an_entry_that_a_trimmed_list_has_lost_goes_out_as_the_log_has_it() -> None:
    pinned = {**user("never push"), "meta": {"protected": True}}
    session = session_of([pinned, *HISTORY], replace(summing_up(1, "m2", "m3", "m4"), pinned=("m1",)))
    out = call(session, [*HISTORY[3:], assistant("done")])
    assert out[0] == pinned
    assert out[-3:] == [*HISTORY[3:], assistant("done")]


# -- what a list changes ---------------------------------------------------------------------------------------------


def test_an_empty_list_leaves_open_in_which_form_we_write() -> None:
    session = session_of()
    session.ingest([], COUNT)
    assert session.like == HISTORY[-1]


def test_the_store_gets_the_line_only_where_it_was_edited() -> None:
    session = session_of()
    session.mark_saved(stored(session).head)
    take(session, [*HISTORY, assistant("done")])
    assert session.unsaved().view_ids is None
    take(session, HISTORY[:3])
    assert session.unsaved().view_ids == ("m1", "m2", "m3")
    session.mark_saved(stored(session).head)
    take(session, [*HISTORY[:3], HISTORY[3]])
    assert session.unsaved().view_ids == ("m1", "m2", "m3", "m4"), "the caller is back at what it had left"


def test_the_store_gets_each_form_once_and_all_of_a_new_line() -> None:
    session = session_of()
    session.mark_saved(stored(session).head)
    cleared = [*HISTORY[:2], {**HISTORY[2], "content": "[cleared]"}, *HISTORY[3:]]
    take(session, cleared)
    assert set(session.unsaved().forms) == {"m3"}
    session.mark_saved(stored(session).head)
    take(session, [*cleared, assistant("done")])
    assert session.unsaved().forms == {}
    take(session, cleared[:4])
    assert set(session.unsaved().forms) == {"m3"}


def test_a_form_that_a_stub_stands_for_is_stored_unseen_and_shown_once_the_stub_is_gone() -> None:
    session = session_of(plan=clearing(1))
    session.mark_saved(stored(session).head)
    cleared = [*HISTORY[:2], {**HISTORY[2], "content": "[cleared]"}, *HISTORY[3:]]
    take(session, cleared)
    (form,) = [form for form in session.unsaved().unseen.values() if form]
    assert form.tokens < session.tokens.recorded["m3"]
    session.mark_saved(stored(session).head)
    take(session, [*cleared, assistant("done")])
    assert session.unsaved().unseen == {}
    session.adopt(CompactionPlan("s", 2))
    take(session, [*cleared, assistant("done")])
    assert session.log.view[2].text == "[cleared]"
    assert session.tokens.of("m3") == form.tokens
    commit = session.unsaved()
    assert (set(commit.forms), commit.unseen) == ({"m3"}, {"m3": None})


@pytest.mark.parametrize("has_added", [False, True])
def test_what_is_shown_again_in_this_call_goes_out_as_the_callers_own_object(has_added: bool) -> None:
    """Also where the list has what was added behind an earlier prompt: a copy would be written without its marks."""
    session = session_of(plan=clearing(1))
    match = take(session, HISTORY)
    if has_added:
        session.inject((NOTE,))
    before = session.output(HISTORY, match)
    cleared = {**HISTORY[2], "content": "[cleared]"}
    items = [*HISTORY[:2], cleared, *before[3:], assistant("noon")]
    match = session.ingest(items, COUNT, lambda plan, view: prompt_of(session, plan, view))
    assert match is not None
    session.adopt(CompactionPlan("s", 2))
    session.show_unseen()
    session.show(prompt_of(session, session.plan, session.log.view))
    out = session.output(items, match)
    assert out[2] is cleared
    assert texts(out) == [*texts(HISTORY[:2]), "[cleared]", *texts(HISTORY[3:]), "noon"]


def test_in_a_prompt_that_comes_back_what_is_shown_again_goes_out_as_the_callers_own_object() -> None:
    summary = summing_up(1, "m1", "m2", "m3").records
    plan = CompactionPlan("s", 1, (*summary, *clearing(1, "m6").records), lines={})
    history = [*dialogue(1), user("more"), *HISTORY]
    session = session_of(history, plan)
    sent = call(session, history)
    place = next(n for n, item in enumerate(sent) if item["role"] == "tool")
    cleared = {**sent[place], "content": "[cleared]"}
    items = [*sent[:place], cleared, *sent[place + 1 :], assistant("noon")]
    match = session.ingest(items, COUNT)
    assert match is not None
    session.adopt(CompactionPlan("s", 2, summary, lines={}))
    session.show_unseen()
    session.show(prompt_of(session, session.plan, session.log.view))
    assert session.output(items, match)[place] is cleared


def test_what_a_list_has_lost_stays_while_a_summary_stands_for_it_and_leaves_with_it() -> None:
    session = session_of([*dialogue(3), user("go on")], summing_up(1, "m1", "m2", "m3"))
    trimmed = [*dialogue(3)[3:], user("go on"), assistant("done")]
    match = take(session, trimmed)
    assert not match.branched
    assert len(session.log.view) == 8
    session.mark_saved(stored(session).head)
    again = session.without_trimmed(match, CompactionPlan("s", 2))
    assert (again.branched, again.left_ids) == (True, ("m1", "m2", "m3"))
    assert session.unsaved().view_ids == tuple(session.log.view_ids)
    assert len(session.log.view) == 5


def test_entries_in_another_form_are_shown_in_it_without_a_prompt_that_is_made_anew() -> None:
    session = session_of()
    cleared = [*HISTORY[:2], {**HISTORY[2], "content": "[cleared]"}, *HISTORY[3:]]
    match = session.ingest(cleared, COUNT)
    assert match is not None
    prompt = session.prompt
    assert session.show_forms(match.formed)
    assert session.prompt is prompt
    assert prompt.messages[2].text == "[cleared]"
    assert prompt.tokens == sum(session.view_tokens())


def test_who_quotes_a_label_is_heard_where_no_other_process_has_added_anything() -> None:
    session, quote = session_of(), user(f"{NOTE.message.text}: what is that?")
    match = take(session, [*HISTORY, assistant("yes"), quote, assistant("a note")])
    assert [message.text for message in match.new] == ["yes", quote["content"], "a note"]


def test_what_another_process_has_shown_again_and_injected_is_ours_at_the_end_of_its_prompt() -> None:
    shown_again = user(f"[retrieved artifact art-{'0' * 16}: a report]\nall is well")
    added = [shown_again, user(NOTE.message.text)]
    for names, heard in ((["clock"], 0), (["clock", "weather"], 0), (["weather"], 2), ([], 2)):
        read = Session.resumed(stored(session_of()))
        assert len(take(read, [*HISTORY, *added], *names).new) == heard


# -- forks, and what was read again ----------------------------------------------------------------------------------


def test_a_fork_knows_nothing_of_what_failed_for_its_session_and_both_know_of_a_deletion() -> None:
    session = session_of()
    session.note_failure(StepFailure(what="clear", error_type="ValueError", message="no", instead="nothing"))
    fork = session.fork()
    assert fork.failures == ()
    assert not session.is_deleted
    fork.mark_deleted()
    assert session.is_deleted


def test_nothing_is_tried_again_until_something_changes() -> None:
    session = session_of(plan=clearing(1))
    session.set_budget(TokenBudget(max_context_tokens=1_000))
    assert not session.is_exhausted
    session.mark_exhausted()
    assert session.is_exhausted
    session.set_budget(TokenBudget(max_context_tokens=900))
    assert not session.is_exhausted


@pytest.mark.parametrize("has_run", [True, False])
@pytest.mark.parametrize("has_more", [True, False])
def test_a_session_that_was_read_behind_its_compaction_has_nothing_left_to_compact(
    has_run: bool, has_more: bool
) -> None:
    """Whatever the window is: which one the compaction was made for is not stored."""
    session = session_of(plan=clearing(1))
    if has_run:
        session.record_run(CompactionRun())
    if has_more:
        take(session, [*HISTORY, assistant("done")])
    read = Session.resumed(stored(session))
    read.set_budget(TokenBudget(max_context_tokens=1_000))
    assert read.is_exhausted is (has_run and not has_more)
    assert read.is_as_stored
    take(read, [*HISTORY, assistant("done"), user("go on")])
    assert not read.is_exhausted
    assert not read.is_as_stored


def test_a_session_that_was_read_knows_its_turn_its_newest_item_and_what_it_weighs() -> None:
    read = Session.resumed(stored(session_of()))
    assert read.turn_number == 2
    assert read.like == HISTORY[-1]
    assert list(read.view_tokens()) == [COUNT(message) for message in read.log.view]


@pytest.mark.parametrize("origin", [None, 1])
def test_the_prompt_of_what_was_stored_went_out_unless_it_was_only_restored(origin: int | None) -> None:
    read = Session.resumed(stored(session_of(), replace(clearing(3), origin=origin)))
    read.show(prompt_of(read, read.plan, read.log.view))
    read.take_stored_as_sent()
    assert read.last_sent == (read.prompt.slots if origin is None else ())
