"""The log by itself: what a list that is matched with it changes, and what of other lists is asked for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from compact.core.errors import InvalidHistory
from compact.core.log.known_list import KnownList, LeftLine
from compact.core.log.log import Log, Match
from compact.core.log.recognition import SUMMARY_MARK, IncomingList, Shown, hidden_in
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message, SettledItems
from compact.testing import Wire, assistant, system, tool_exchange, user

S, A, B, C, D, E = system("be brief"), *(user(letter) for letter in "abcde")
X, Y, Z = (user(letter) for letter in "xyz")
CALL, RESULT = tool_exchange("c1", "the whole file")
CLEARED = {**RESULT, "content": "[cleared]"}
NOT = {name: Shown(always_as_is=lambda i, name=name: i not in name.split()) for name in ("m1", "m2", "m3", "m1 m2")}


def matched(
    log: Log,
    items: Iterable[object],
    output: KnownList | None = None,
    *,
    shown: Shown | None = None,
    earlier: Callable[[], Iterable[KnownList] | None] = tuple,
) -> Match:
    if output is None:  # a prompt that shows all
        output = KnownList()
        output.add_entries(log.view)
    found = log.match(
        items if isinstance(items, list) else list(items),
        output=output,
        read=lambda item, place: read_entry(item, place),
        earlier=earlier,
        shown=shown or Shown(),
    )
    assert found is not None
    return found


def log_of(*lists: list[Wire]) -> Log:
    log = Log()
    for items in lists:
        matched(log, items)
    return log


def texts(log: Log) -> str:
    return " ".join(message.text for message in log.view)


def summary_of(ids: Iterable[str], *behind: Message) -> KnownList:
    """A prompt with a summary for some entries, and others as they are."""
    prompt = KnownList()
    prompt.add(user("a summary"), tuple(ids), "")
    prompt.add_entries(behind)
    return prompt


# -- a list that is known --------------------------------------------------------------------------------------------


def test_a_known_list_is_the_start_of_itself_and_of_longer_ones() -> None:
    known = KnownList()
    known.add_entries(log_of([A, B]).view)
    assert known.is_start_of([A, B])
    assert known.is_start_of(copy.deepcopy([A, B, C]))
    assert known.is_start_of((A, B))
    assert not known.is_start_of([A])
    assert not known.is_start_of([A, C])


def test_objects_that_nobody_changes_any_more_are_taken() -> None:
    for items in ([A], [A, B]):
        known = KnownList()
        known.add_entries(log_of(items).view)
        plain, settled = copy.deepcopy(items), SettledItems(copy.deepcopy(items))
        known.take_objects(plain)
        assert known.originals[0] is not plain[0]
        known.take_objects(settled)
        assert all(one is other for one, other in zip(known.originals, settled, strict=True))
        log = log_of(items)
        matched(log, settled)
        assert log._raw.originals[0] is settled[0]
    KnownList().take_objects([])


def test_a_known_list_says_where_texts_of_ours_are() -> None:
    known = summary_of(["m1"], *log_of([A, B]).view[1:])
    known.add(user("a line"), (), "")
    assert (known.ours, known.owners) == ([0, 2], ["", "m2", ""])
    assert known.copy() == known


# -- a list that begins as before ------------------------------------------------------------------------------------


def test_what_is_behind_a_known_list_is_new() -> None:
    log = log_of([A, B])
    assert matched(log, [A, B]) == Match((), ["m1", "m2"])
    more = matched(log, [A, B, C])
    assert more == Match(tuple(log.entries[2:]), ["m1", "m2", "m3"])
    assert [entry.line for entry in log.entries] == [0, 0, 0]
    assert log.ids_until(2) == {"m1", "m2"}


def test_an_id_that_is_taken_gets_a_number() -> None:
    log = log_of([{**user(text), "id": own} for text, own in (("a", "x"), ("b", "x"), ("c", "x"), ("d", "m5"))])
    assert log.view_ids == ["x", "x-2", "x-3", "m5"]
    matched(log, [*(message.original for message in log.view), E])
    assert log.view_ids[-1] == "m-2", "the fifth would be called m5"


def test_an_entry_is_got_in_the_form_that_it_has_now() -> None:
    log = log_of([A, CALL, RESULT, B], [A, CALL, CLEARED, B])
    assert [log.get(message_id) for message_id in ("m1", "m3", "m9")] == [log.view[0], log.view[2], None]


def test_what_is_behind_a_prompt_that_was_sent_back_is_new() -> None:
    log = log_of([A, B])
    repaired = summary_of((), *log.view)
    assert matched(log, [*repaired.originals, C], repaired).owners == ["", "m1", "m2", "m3"]
    assert matched(log, [X, A, B, C], KnownList()).branched, "a prompt that was never made begins no list"


def test_what_was_left_is_met_again_each_as_often_as_it_was_there() -> None:
    log = log_of([A, C, C], [A])
    once = matched(log, [A, C])
    assert (once.rejoined, [entry.id for entry in once.new]) == (True, ["m2"])
    assert matched(log, [A, C, C]).rejoined
    assert log.view_ids == ["m1", "m2", "m3"]
    assert len(log) == 3
    some = matched(log_of([A, B, C], [A, C]), [A, B, D])
    assert (some.rejoined, [entry.id for entry in some.new]) == (True, ["m2", "m4"])


def test_of_equal_messages_that_were_left_the_oldest_is_met_again_whenever_each_was_left() -> None:
    """Also by a process that has read the log anew, and knows no order but that of the log."""
    log = log_of([A, B, A], [A, B], [C])
    again = Log.restored(log.entries, log.view_ids)
    for one in (log, again, log.fork()):
        matched(one, [A])
        assert one.view_ids == ["m1"]


def test_a_message_that_cannot_be_read_leaves_everything_as_it_was() -> None:
    log = log_of([A, B], [A])
    with pytest.raises(InvalidHistory, match=r"messages\[2\]"):
        matched(log, [A, B, {"role": "nobody"}])
    assert log.view_ids == ["m1"]
    assert matched(log, [A, B]).rejoined
    assert len(log) == 2


def test_a_log_that_was_stored_knows_what_it_knew() -> None:
    before = log_of([A, CALL, RESULT, B], [A, CALL, CLEARED, B, C], [A, CALL, CLEARED, B])
    log = Log.restored(before.entries, before.view_ids, before.forms)
    assert (log.view, log.line, log.view_ids) == (before.view, 0, ["m1", "m2", "m3", "m4"])
    assert texts(log).endswith("[cleared] b")
    assert not matched(log, [A, CALL, CLEARED, B]).branched
    assert matched(log, [A, CALL, CLEARED, B, C]).rejoined
    assert len(log) == 5
    assert Log.restored([], []).line == 0


def test_what_is_not_seen_is_in_the_callers_list_of_a_stored_log() -> None:
    before = log_of([A, CALL, RESULT, B])
    matched(before, [A, CALL, CLEARED, B, C], with_stub(before), shown=HIDDEN)
    log = Log.restored(before.entries, before.view_ids, before.forms, before.unseen)
    assert log.known_start([A, CALL, CLEARED, B, C], KnownList()) == 5
    found = matched(log, [A, CALL, CLEARED, B, C, D], with_stub(log), shown=HIDDEN)
    assert found.owners == ["m1", "m2", "", "m4", "m5", "m6"]


def test_a_prompt_with_a_summary_is_no_list_of_the_callers_own() -> None:
    log = log_of([A, B, C])
    prompt = summary_of(["m1", "m2"], log.view[2])
    assert len(matched(log, [user("a summary"), C, D], prompt).new) == 1
    assert log.known_start([A, B, C, D, E], KnownList()) == 4


def test_the_line_of_a_stored_log_is_that_of_its_newest_words() -> None:
    log = log_of([S, A], [S, X])
    assert [entry.line for entry in log.entries] == [0, 0, 1]
    assert Log.restored(log.entries, ["m3", "m1"]).line == 1
    assert Log.restored(log.entries, ["m1", "m2"]).line == 0


# -- a list that was changed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "view", "left", "branched"),
    [
        ([A, X, C], "a x c", ("m2",), True),
        ([A, C], "a c", ("m2",), True),
        ([A, B], "a b", ("m3",), True),
        ([A, X, B, C], "a x b c", (), True),
        ([X, A, B, C], "x a b c", (), True),
        ([A, B, C, X], "a b c x", (), False),
    ],
)
def test_what_becomes_of_the_line(items: list[Wire], view: str, left: tuple[str, ...], branched: bool) -> None:
    log = log_of([A, B, C])
    found = matched(log, items)
    assert (texts(log), found.left_ids, found.branched) == (view, left, branched)
    assert list(found.owners) == log.view_ids
    assert not found.is_new_line
    assert matched(log, items) == Match((), log.view_ids), "and it is known from then on"


def test_a_form_is_shown_unless_something_else_stands_for_its_entry() -> None:
    log = log_of([A, CALL, RESULT, B])
    found = matched(log, [A, CALL, CLEARED, B])
    assert (found.formed, log.unseen, found.owners[2], found.branched) == (("m3",), {}, "m3", False)
    assert log.view[2].text == "[cleared]"
    assert log.recorded("m3").text == "the whole file"

    log = log_of([A, CALL, RESULT, B])
    found = matched(log, [A, CALL, CLEARED, B], shown=Shown(as_is=lambda i: i != "m3"))
    assert (found.formed, list(log.unseen), found.owners[2]) == ((), ["m3"], "")
    assert log.show_unseen([]) == ()
    assert log.view[2].text == "the whole file"
    assert log.show_unseen(["m3"]) == ("m3",)
    assert (log.view[2].text, log.unseen) == ("[cleared]", {})
    assert matched(log, [A, CALL, CLEARED, B]).owners == log.view_ids, "the caller's item is the entry as it is shown"


def test_a_form_that_is_not_shown_is_the_callers_own_text() -> None:
    log = log_of([A, B, CALL, RESULT, C, D])
    cleared = Shown(as_is=lambda i: i != "m4")
    older = summary_of(["m1", "m2"], *log.view[2:])
    matched(log, [user("a summary"), CALL, CLEARED, C, D], earlier=lambda: [older], shown=cleared)
    found = matched(log, [A, B, CALL, CLEARED, X, D], older, shown=cleared)
    assert texts(log) == "a b  the whole file x d"
    assert (log.view_ids, found.left_ids) == (["m1", "m2", "m3", "m4", "m7", "m6"], ("m5",)), "nothing is there twice"


@pytest.mark.parametrize("ours", ["[...]", SUMMARY_MARK + "1>"])
def test_our_text_in_the_place_of_a_message_is_no_edit_of_it(ours: str) -> None:
    """A prompt of an earlier plan comes back, which had a text of ours where the newest one has a message."""
    log = log_of([A, B, C, D])
    older = KnownList()
    older.add(user(ours), (), "")
    older.add_entries(log.view[1:])
    matched(log, [user(ours), B, C, D], earlier=lambda: [older])
    assert "b c d" in texts(log)
    assert ours not in texts(log)


GAP, S1 = user("[...]"), assistant(SUMMARY_MARK + "1>")


def prompt_of(*behind: Message) -> KnownList:
    prompt = KnownList()
    prompt.add(S1, ("m1", "m2"), "")
    prompt.add_entries(behind)
    return prompt


def test_a_line_for_a_turn_that_is_in_an_earlier_prompt_alone_is_no_message() -> None:
    log = log_of([A, B, C, D])
    found = matched(log, [S1, GAP, C, D, X], prompt_of(*log.view[2:]))
    assert (texts(log), found.owners, found.left_ids) == ("a b c d x", ["", "", "m3", "m4", "m5"], ())
    assert matched(log, [S1, GAP, C, D, X, Y]).owners == ["", "", "m3", "m4", "m5", "m6"]
    log = log_of([A, B, C, D])
    matched(log, [S1, X, GAP, C, D], prompt_of(*log.view[2:]))
    assert texts(log) == "a b x c d", "only the line is no message"


def test_a_line_for_a_turn_that_is_changed_in_place_is_a_message() -> None:
    log, line = log_of([A, B, C, D]), user("[...]")
    matched(log, [S1, line, C, D, X], prompt_of(*log.view[2:]))
    line["content"] = "no"
    matched(log, [S1, line, C, D, X], prompt_of(*log.view[2:]))
    assert texts(log) == "a b no c d x"


def test_a_user_may_say_what_a_line_for_a_turn_says() -> None:
    log = log_of([A, B, C, D])
    matched(log, [S1, GAP, C, D, GAP], prompt_of(*log.view[2:]))
    assert texts(log) == "a b c d [...]", "the second is behind what is known"
    log = log_of([A, B])
    matched(log, [A, GAP, B])
    assert texts(log) == "a [...] b", "no prompt comes back: it has no summary"


def test_a_line_for_a_turn_tells_no_prompt_from_another() -> None:
    log = log_of([A, B, C, D, E])
    older = KnownList()
    for item, ids in ((S1, ("m1", "m2")), (GAP, ())):
        older.add(item, ids, "")
    older.add_entries([log.view[4], *log_of([X]).view])
    matched(log, [S1, GAP, C, D, E], prompt_of(*log.view[2:]), earlier=lambda: [older])
    assert texts(log) == "a b c d e"


def test_a_message_in_the_place_of_the_first_that_is_shown_stays_behind_what_is_hidden() -> None:
    log = log_of([A, B, C])
    shown = KnownList()
    shown.add_entries(log.view[1:])
    matched(log, [X, C], shown)
    assert texts(log) == "a x c"


def test_what_comes_back_is_shown_as_it_comes() -> None:
    marked = user([{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}])
    log = log_of([A, B], [A])
    found = matched(log, [A, marked])
    assert (log.view[1].id, log.view[1].original, found.formed) == ("m2", marked, ("m2",))
    log = log_of([A, B], [A])
    assert matched(log, [A, B]).formed == (), "as it was recorded"


def test_words_behind_what_is_known_are_not_a_protected_message_that_was_left() -> None:
    log = log_of([A, {**B, "meta": {"protected": True}}, C], [A, C])
    matched(log, [X, C, B])
    assert (texts(log), dict(log.view[-1].meta)) == ("x c b", {})


def test_a_list_that_begins_otherwise_is_known_nowhere() -> None:
    log = log_of([A, B])
    prompt = summary_of(["m1"], log.view[1])
    matched(log, [*prompt.originals, C], prompt)
    assert log.known_start([X], prompt) == 0
    assert log.known_start([*prompt.originals, C, D], prompt) == 3


def test_an_item_belongs_to_the_entry_that_stands_there() -> None:
    known = KnownList()
    for n in (1, 2):
        known.add(X, (f"m{n}",), "")
    known.take_owner(read_entry({**X, "id": "m1"}, "messages[0]"))
    assert (known.owners, known.ours) == (["", ""], [0, 1]), "its text is another one"
    known.take_owner(log_of([X]).view[0])
    assert (known.owners, known.ours) == (["m1", ""], [1])


STUBBED = Shown(as_is=lambda i: i not in "m2 m3 m4", always_as_is=lambda i: i not in "m2 m3 m4")


def stubbed(log: Log) -> KnownList:
    """A prompt with stubs for the second to the fourth of five messages."""
    prompt = KnownList()
    prompt.add_entries(log.view[:1])
    for message in log.view[1:4]:
        prompt.add(user(f"[cleared {message.text}]"), (message.id,), "")
    prompt.add_entries(log.view[4:])
    return prompt


def test_the_whole_of_what_a_prompt_has_a_stub_for_is_no_new_message() -> None:
    """A list begins as a prompt, and goes on as the caller's own."""
    log = log_of([A, B, C, D, E])
    stubs, mixed = stubbed(log), [A, user("[cleared b]"), C, D, E]
    found = matched(log, mixed, stubs, shown=STUBBED)
    assert (found.new, found.left_ids, found.owners) == ((), (), ["m1", "", "", "", "m5"]), "the stubs still stand"
    assert log.known_start(mixed, stubs) == 5, "and the list is known"
    found = matched(log, [A, user("[cleared b]"), X, D, E], stubs, shown=STUBBED)
    assert (texts(log), found.left_ids) == ("a b x d e", ("m3",)), "what is another text is another message"


def test_the_whole_of_what_a_prompt_has_a_stub_for_is_asked_of_no_earlier_prompt() -> None:
    log, asked = log_of([A, B, C, D, E]), list[str]()
    stubs = stubbed(log)

    def earlier() -> list[KnownList]:
        asked.append("once")
        return []

    whole = [A, B, C, stubs.originals[3], E]
    found = matched(log, [*whole, X], stubs, shown=STUBBED, earlier=earlier)
    assert (texts(log), found.left_ids, asked) == ("a b c d e x", (), [])
    assert matched(log, [A, B, Y, stubs.originals[3], E, X], stubs, shown=STUBBED, earlier=earlier).left_ids == ("m3",)


def test_the_whole_of_what_a_prompt_has_a_stub_for_is_it_in_its_place_alone() -> None:
    log = log_of([A, B, C, D, E])
    matched(log, [A, D, user("[cleared c]"), B, E], stubbed(log), shown=STUBBED)
    assert texts(log) == "a d c b e"
    log = log_of([A, B, C, D, E])
    matched(log, [A, user("[cleared b]"), B, user("[cleared c]"), D, E], stubbed(log), shown=STUBBED)
    assert texts(log) == "a b b c d e", "it was said again"


def test_an_entry_that_was_left_forgets_its_form() -> None:
    log = log_of([A, CALL, RESULT, B], [A, CALL, CLEARED, B], [A])
    assert log.forms == {}
    matched(log, [A, CALL, RESULT])
    assert log.view[2].text == "the whole file"


SEVERAL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": '{"n": "' + "x" * 90 + '"}'}}
        for n in (1, 2)
    ],
}
SHORT = copy.deepcopy(SEVERAL)
SHORT["tool_calls"][0]["function"]["arguments"] = "{}"
RESULT_2, CLEARED_2 = ({**item, "tool_call_id": "c2"} for item in (RESULT, CLEARED))


@pytest.mark.parametrize(
    ("known", "items", "formed"),
    [
        ([CALL, RESULT], [CALL, CLEARED], ("m2",)),
        ([A, SEVERAL, RESULT, RESULT_2], [A, SEVERAL, CLEARED, CLEARED_2], ("m3", "m4")),
        ([A, SEVERAL, RESULT, RESULT_2], [A, SHORT, CLEARED, CLEARED_2], ("m2", "m3", "m4")),
        # Without its call, or with something unknown between both, it is not known whose answer it is.
        ([A, RESULT, B], [A, CLEARED, B], ()),
        ([A, RESULT, B, CALL, RESULT], [A, CLEARED, B, CALL, RESULT], ()),
        ([A, RESULT, B, CALL], [A, CLEARED, B, CALL], ()),
        ([A, RESULT, B, SEVERAL, RESULT_2], [A, CLEARED, B, SEVERAL, CLEARED_2], ("m5",)),
        ([A, CALL, B, RESULT, C], [A, CALL, X, CLEARED, C], ()),
    ],
)
def test_a_cleared_result_is_a_form_if_its_call_is_known(
    known: list[Wire], items: list[Wire], formed: tuple[str, ...]
) -> None:
    assert matched(log_of(known), items).formed == formed


TRY = {**RESULT, "content": "no"}


@pytest.mark.parametrize(
    ("before", "items", "ids"),
    [
        ([[A, CALL, RESULT]], [A, CALL, TRY], "m1 m2 m4"),
        ([[A, CALL, RESULT, B], [A]], [A, CALL, TRY], "m1 m2 m5"),
        ([[A, CALL, RESULT, B]], [A, CALL, TRY, B], "m1 m2 m3 m4"),
        ([[A, CALL, RESULT]], [A, CALL, {**RESULT, "content": "the whole"}], "m1 m2 m3"),
        ([[A, CALL, RESULT]], [A, CALL, CLEARED], "m1 m2 m3"),
        ([[A, CALL, RESULT, CALL, RESULT, B]], [A, CALL, TRY, CALL, RESULT, B], "m1 m2 m7 m4 m5 m6"),
        ([[A, CALL, RESULT, CALL, RESULT, B]], [A, CALL, CLEARED, CALL, RESULT, B], "m1 m2 m3 m4 m5 m6"),
    ],
    ids=[
        "tried again",
        "tried again after a rewind",
        "cleared",
        "cut short",
        "cleared, and says so",
        "of another call with that id",
        "cleared, and says so, of a call with that id",
    ],
)
def test_a_short_text_that_may_be_another_result_is_one_unless_it_says_that_it_was_cleared(
    before: list[list[Wire]], items: list[Wire], ids: str
) -> None:
    """What the model has not seen yet nobody clears; it was taken for the old result, and stood in no log."""
    log = log_of(*before)
    matched(log, items)
    assert log.view_ids == ids.split()


def test_a_changed_summary_does_not_hide_a_form_behind_it() -> None:
    log = log_of([A, B, CALL, RESULT])
    prompt = summary_of(["m1", "m2"], *log.view[2:])
    found = matched(log, [user("another summary"), CALL, CLEARED], prompt, shown=Shown(has_summary=True))
    assert found.formed == ("m4",)


def test_a_summary_goes_on_standing_for_what_a_list_has_lost() -> None:
    log = log_of([S, A, B, C, D])
    assert matched(log, [S, C, D, E], shown=Shown(has_summary=True)).left_ids == ()
    assert texts(log) == "be brief a b c d e"
    prompt = summary_of(["m2", "m3"], *log.view[3:])
    before = prompt.copy()
    whole = matched(log, [S, A, B, C, D, E], prompt, shown=Shown(has_summary=True))
    assert (whole.new, whole.branched) == ((), False), "and it may be whole again"
    assert prompt == before
    log = log_of([S, A, B, C, D])
    assert matched(log, [S, C, D, E]).left_ids == ("m2", "m3")


def test_a_prompt_that_comes_back_changed_leaves_the_callers_own_list_known() -> None:
    def never() -> Iterator[KnownList]:
        raise AssertionError("the list begins with the caller's own")

    log = log_of([A, B, CALL, RESULT])
    prompt = summary_of(["m1", "m2"], *log.view[2:])
    shown = Shown(has_summary=True)
    assert not matched(log, [*prompt.originals[:2], CLEARED, C], prompt, shown=shown).branched
    assert matched(log, [A, B, CALL, RESULT, C, D], prompt, shown=shown, earlier=never).owners == log.view_ids
    assert texts(log) == "a b  [cleared] c d"


def test_a_prompt_that_comes_back_edited_is_the_callers_list_from_then_on() -> None:
    log = log_of([A, B, C, D])
    prompt = summary_of(["m1", "m2"], *log.view[2:])
    edited = [prompt.originals[0], X, D]
    assert matched(log, edited, prompt, shown=Shown(has_summary=True)).left_ids == ("m3",)
    assert matched(log, edited, prompt, shown=Shown(has_summary=True)) == Match((), ["", "m5", "m4"])
    assert texts(log) == "a b x d"


def test_a_prompt_of_an_earlier_plan_is_known_where_the_newest_has_left_out_messages() -> None:
    """The first message that it has more stands where the newest prompt has its last: that is no edit."""
    log = log_of([A, B, C, D, E])
    newest, before = (summary_of(["m1", "m2"], *log.view[place:]) for place in (4, 2))
    shown = Shown(as_is=lambda i: i == "m5", always_as_is=lambda i: i == "m5", has_summary=True)
    match = matched(log, before.originals, newest, shown=shown, earlier=lambda: [before])
    assert match == Match((), ["", "m3", "m4", "m5"])
    assert texts(log) == "a b c d e"


# -- which lists are asked for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "shown", "is_asked"),
    [
        ([A, X, C, D], Shown(), False),
        ([A, X, C, D], NOT["m2"], True),
        ([A, X, C, Y], NOT["m2"], True),
        ([A, X, C, D], NOT["m1"], False),
        ([A, B], Shown(), False),
        ([A, B, C, D][:1], NOT["m1 m2"], False),
        ([A, C, D], Shown(), False),
        ([A, C, D], NOT["m2"], True),
        ([A, D], NOT["m2"], True),
        ([A, B, C, X], Shown(), True),
        ([A, B, C, X, D], Shown(), True),
        ([A, X, Y, D], Shown(), True),
        ([A, B, X, Y], Shown(), True),
        ([C, D], Shown(), False),
        ([C, D, E], Shown(), False),
        ([C, D, E], NOT["m1"], True),
        ([C, D, E], Shown(always_as_is=lambda i: i not in ("m1", "m2"), has_summary=True), False),
        ([X, Y], Shown(), True),
    ],
)
def test_prompts_of_earlier_plans_are_asked_for_if_the_list_may_be_one(
    items: list[Wire], shown: Shown, is_asked: bool
) -> None:
    asked: list[bool] = []
    matched(log_of([A, B, C, D]), items, shown=shown, earlier=lambda: asked.append(True) or ())
    assert bool(asked) is is_asked


def test_a_text_of_ours_that_is_not_as_it_was_may_be_that_of_an_earlier_plan() -> None:
    asked: list[bool] = []
    log = log_of([A, B, C])
    prompt = summary_of(["m1", "m2"], log.view[2])
    matched(log, [user("another"), C, D], prompt, earlier=lambda: asked.append(True) or ())
    assert asked


def test_nothing_is_changed_as_long_as_earlier_prompts_cannot_be_told() -> None:
    log = log_of([A, B])
    prompt = summary_of(["m1"], log.view[1])
    assert (
        log.match([X, Y], output=prompt, read=lambda item, place: read_entry(item, place), earlier=lambda: None) is None
    )
    assert (log.view_ids, len(log)) == (["m1", "m2"], 2)


def test_the_prompt_of_an_earlier_plan_is_known_among_others() -> None:
    log = log_of([A, B, C, D])

    def earlier() -> Iterator[KnownList]:
        other = KnownList()
        other.add(user("another summary"), ("m1", "m2", "m3"), "")
        yield other
        yield summary_of(["m1", "m2"], *log.view[2:])
        raise AssertionError("it was found: no more prompts are made")

    found = matched(log, [user("a summary"), C, D, E], earlier=earlier)
    assert ([entry.id for entry in found.new], found.left_ids, found.branched) == (["m5"], (), False)
    assert list(found.owners) == ["", "m3", "m4", "m5"]
    assert texts(log) == "a b c d e"


# -- other conversations ---------------------------------------------------------------------------------------------


def test_each_list_that_has_nothing_in_common_with_the_log_is_a_line_of_its_own() -> None:
    log = log_of([S, A, B])
    for number, items in enumerate(([S, X, Y], [S, user("p"), user("q")]), 1):
        found = matched(log, items)
        assert (found.is_new_line, found.branched, log.line) == (True, True, number)
        assert [entry.line for entry in found.new] == [number, number]
    assert texts(log) == "be brief p q"
    assert matched(log, [S, X, Y]).left_ids == ("m6", "m7")
    assert (log.line, len(log)) == (1, 7)
    assert not matched(log, [S, X, Z]).is_new_line
    assert not matched(log, [S, A, B]).is_new_line
    assert log.line == 0


def test_a_message_of_another_line_is_not_met_again_by_its_words() -> None:
    log = log_of([A, B], [X, Y])
    found = matched(log, [X, Y, B])
    assert (found.rejoined, [(entry.id, entry.line) for entry in found.new]) == (False, [("m5", 1)])


def test_what_another_conversation_has_said_too_is_no_return_to_it() -> None:
    log = log_of([A, B], [X, Y])
    found = matched(log, [X, B])
    assert (log.line, [(entry.id, entry.line) for entry in found.new]) == (1, [("m5", 1)])
    matched(log, [A, B])
    assert (log.line, log.view_ids) == (0, ["m1", "m5"]), "more of this list was said there"


def test_an_entry_that_was_written_anew_as_it_is_is_no_text_of_ours() -> None:
    """A repair does that to a result between two others: the caller's own list has more of what it sends."""
    log = log_of([A, B, C])
    prompt = KnownList()
    for n, item in enumerate((assistant("ours"), B, assistant("ours too")), 1):
        prompt.add(item, (f"m{n}",), "")
    found = matched(log, [X, B, C], output=prompt, shown=Shown(always_as_is=lambda i: False))
    assert (found.left_ids, texts(log)) == (("m1",), "x b c")


def test_what_lies_behind_something_that_a_list_has_was_not_trimmed() -> None:
    """The summary stands at the beginning of the prompt, for what came in the middle."""
    log = log_of([A, B, C, X])
    prompt = KnownList()
    prompt.add({"role": "assistant", "content": "ours"}, ("m2", "m3"), "")
    prompt.add_entries([log.recorded("m1"), log.recorded("m4")])
    found = matched(log, [A, X, Y], output=prompt, shown=Shown(has_summary=True))
    assert (found.left_ids, texts(log)) == (("m2", "m3"), "a x y")


def test_trimmed_messages_that_are_back_with_another_mark_are_there_once() -> None:
    marked = [{**item, "meta": {"protected": True}} for item in (A, B)]
    log = log_of([S, A, B, C, A, D])
    prompt = summary_of(["m2", "m3", "m4"], *log.view[4:])
    matched(log, [S, C, A, D], prompt, shown=Shown(has_summary=True))
    assert log.view_ids == ["m1", "m2", "m3", "m4", "m5", "m6"], "the summary goes on standing for them"
    found = matched(log, [S, *marked, C, X], prompt, shown=Shown(has_summary=True))
    assert (found.left_ids, log.view_ids) == (("m2", "m3", "m5", "m6"), ["m1", "m7", "m8", "m4", "m9"])
    assert [message.meta for message in log.view[1:3]] == [{"protected": True}] * 2


def test_what_was_trimmed_leaves_when_no_summary_stands_for_it() -> None:
    log = log_of([A, B, C, D])
    matched(log, [C, D, X], summary_of(["m1", "m2"], *log.view[2:]), shown=Shown(has_summary=True))
    assert texts(log) == "a b c d x"
    assert log.leave_trimmed() == ("m1", "m2")
    assert texts(log) == "c d x"
    assert log.leave_trimmed() == ()


def test_what_a_list_begins_with_that_is_cut_again_stands_behind_what_was_trimmed() -> None:
    """It takes the place of the first that leaves, not of what the summary goes on standing for."""
    log = log_of([A, B, C, X, Y, D, E])
    prompt = summary_of(["m1", "m2", "m3", "m4"], *log.view[4:])
    matched(log, [C, X, Y, D, E], prompt, shown=Shown(has_summary=True))
    matched(log, [Z, D, E], prompt, shown=Shown(has_summary=True))
    assert texts(log) == "a b z d e"


def test_what_stands_before_the_trimmed_is_passed_when_an_older_list_is_taken_up() -> None:
    """The line had another middle, which was cut away with its beginning; the beginning is there again."""
    log = log_of([A, B, C], [A, X, Y, Z])
    matched(log, [Y, Z, D], summary_of(["m1", "m4"], *log.view[2:]), shown=Shown(has_summary=True))
    assert texts(log) == "a x y z d"
    matched(log, [A, B, C, E], summary_of(["m1", "m4"], *log.view[2:]), shown=Shown(has_summary=True))
    assert texts(log) == "a b c e"


def test_a_trimmed_message_is_not_the_one_that_says_the_same_at_the_end() -> None:
    log = log_of([S, A, B, C])
    prompt = summary_of(["m2", "m3"], log.view[3])
    matched(log, [S, B, C], prompt, shown=Shown(has_summary=True))
    matched(log, [S, B, X, A], prompt, shown=Shown(has_summary=True))
    assert texts(log) == "be brief a b x a"


@pytest.mark.parametrize(
    ("known", "items", "line"),
    [
        ([S, A, B], [S, user("  a\n"), X], 0),
        ([S, A, B], [S, user(f"{SUMMARY_MARK}1>"), X], 0),
        ([S, A, B], [system("today"), S], 0),
        ([S, A, B], [X, system("b")], 1),
        ([S, system("x")], [system("today"), X, Y], 0),
        ([CALL], [X], 0),
        ([S, A, B], [S, Y, CALL], 1),
        ([S, A, B, CALL], [Y, {**CALL, "tool_calls": [{**CALL["tool_calls"][0], "id": "c7"}]}], 1),
    ],
)
def test_what_is_known_by_its_words_is_the_same_conversation(known: list[Wire], items: list[Wire], line: int) -> None:
    """Whatever the instructions say, and messages without words."""
    log = log_of(known)
    assert matched(log, items).is_new_line is bool(line)
    assert log.line == line


# -- lines that the caller has left ---------------------------------------------------------------------------------

OURS = assistant("ours")


def left_prompt(log: Log, *ids: str, stands_for: int) -> KnownList:
    """The prompt of a line that was left: text of ours for its first entries, the others as they are."""
    prompt = KnownList(left=LeftLine(ids, 7))
    prompt.add(OURS, ids[:stands_for], "")
    prompt.add_entries(log.now(message_id) for message_id in ids[stands_for:])
    return prompt


def test_a_list_that_goes_on_from_a_prompt_of_all_messages_is_the_callers_own() -> None:
    """It had sent a prompt with a summary before: that is a prompt of another line by now."""
    log = log_of([A, B, C, D])
    cut = [user("a summary"), C]
    matched(log, cut, summary_of(["m1", "m2"], *log.view[2:]))
    matched(log, [A, B, C, E])
    prompt = replace(summary_of(["m1", "m2"], log.now("m3")), left=LeftLine(("m1", "m2", "m3"), 7))
    found = matched(log, cut, earlier=lambda: [prompt])
    assert (found.returned_to, texts(log)) == (prompt.left, "a b c")


@pytest.mark.parametrize("stands_for", [1, 2])
def test_a_prompt_of_a_line_that_was_left_brings_it_back(stands_for: int) -> None:
    log = log_of([A, B, C], [A, X])
    prompt = left_prompt(log, "m1", "m2", "m3", stands_for=stands_for)
    items = [OURS, *[A, B, C][stands_for:], D]
    found = matched(log, items, earlier=lambda: [prompt])
    assert (log.view_ids, texts(log)) == (["m1", "m2", "m3", "m5"], "a b c d")
    assert [entry.id for entry in found.new] == ["m2", "m3", "m5"]
    assert (found.left_ids, found.branched, found.rejoined, found.returned_to) == (("m4",), True, True, prompt.left)
    assert [entry.id for entry in log.entries] == ["m1", "m2", "m3", "m4", "m5"]
    assert matched(log, items).new == (), "and it is known from then on"
    matched(log, [A, X])
    assert log.view_ids == ["m1", "m4"], "as the other one is"
    assert len(log) == 5


def test_a_prompt_from_before_an_insertion_brings_the_line_without_it_back() -> None:
    """The prompt of now has the same summary, and the list lacks what was inserted behind it."""
    log = log_of([A, B, C], [A, B, X, C])
    now = KnownList()
    now.add(OURS, ("m1", "m2"), "")
    now.add_entries([log.recorded("m4"), log.recorded("m3")])
    before = left_prompt(log, "m1", "m2", "m3", stands_for=2)
    found = matched(log, [OURS, C], now, earlier=lambda: [before])
    assert (found.returned_to, texts(log)) == (before.left, "a b c")


def test_a_list_without_text_of_ours_is_no_prompt_of_a_line_that_was_left() -> None:
    log, other, stub = log_of([A, B, C], [A, X]), KnownList(), assistant("stub")
    other.add(stub, ("m1",), "")
    other.add_entries([log.recorded("m4")])
    prompts = [left_prompt(log, "m1", "m2", "m3", stands_for=2), other]
    found = matched(log, [stub, X, C], earlier=lambda: prompts)
    assert (found.returned_to, log.view_ids) == (None, ["m1", "m4", "m3"])


def test_entries_have_their_forms_on_a_line_that_is_met_again() -> None:
    cleared = [A, CALL, CLEARED]
    log = log_of([A, CALL, RESULT, B], [*cleared, B], [*cleared, X])
    matched(log, [OURS, CALL, CLEARED, B, D], earlier=lambda: [left_prompt(log, "m1", "m2", "m3", "m4", stands_for=1)])
    assert (list(log.forms), texts(log)) == (["m3"], "a  [cleared] b d")
    log = log_of([A], [CALL, RESULT], [CALL, CLEARED])
    matched(log, [OURS, D], earlier=lambda: [left_prompt(log, "m1", stands_for=1)])
    assert (log.forms, texts(log)) == ({}, "a d")


def test_how_much_of_a_list_is_known_at_its_start() -> None:
    log, prompt = log_of([A, B]), KnownList()
    prompt.add(OURS, ("m1", "m2"), "")
    assert [log.known_start(items, prompt) for items in ([A, B, C], [OURS, C], [A], [X, Y])] == [2, 1, 0, 0]
    shorter = KnownList()
    shorter.add_entries([log.recorded("m1")])
    assert log.known_start([A, B, C], shorter) == 2


HIDDEN = Shown(as_is=lambda i: i != "m3")


def with_stub(log: Log) -> KnownList:
    """The prompt of a plan that has cleared a result."""
    prompt = KnownList()
    for entry in log.view:
        prompt.add({**RESULT, "content": "stub"} if entry.id == "m3" else entry.original, (entry.id,), "")
    return prompt


def test_a_result_that_is_what_it_was_before_an_edit_is_no_form_of_the_edited_one() -> None:
    """It is short, as a stub would be."""
    edited = {**RESULT, "content": "another file, and a longer one, " * 3}
    log = log_of([A, CALL, RESULT, B], [A, CALL, edited, B])
    assert (len(edited["content"]) > 2 * len(RESULT["content"]), log.view_ids) == (True, ["m1", "m2", "m5", "m4"])
    matched(log, [A, CALL, RESULT, B])
    assert (log.view_ids, log.forms) == (["m1", "m2", "m3", "m4"], {})
    matched(log, [A, CALL, {**RESULT, "content": "no"}, B])
    assert (log.view_ids, texts(log)) == (["m1", "m2", "m3", "m4"], "a  no b"), "as a stub for it does"


def test_a_form_that_is_not_seen_is_forgotten_with_its_entry_and_by_its_first_text() -> None:
    for items in ([A], [A, CALL, RESULT, B]):
        log = log_of([A, CALL, RESULT, B])
        matched(log, [A, CALL, CLEARED, B], with_stub(log), shown=HIDDEN)
        assert list(log.unseen) == ["m3"]
        matched(log, items, with_stub(log), shown=HIDDEN)
        assert log.unseen == {}


def test_a_form_that_is_not_seen_is_told_again_when_it_has_changed() -> None:
    log, shorter = log_of([A, CALL, RESULT, B]), {**RESULT, "content": "[removed]"}
    found = [matched(log, [A, CALL, form, B, C], with_stub(log), shown=HIDDEN) for form in (CLEARED, shorter)]
    assert [match.unseen for match in found] == [("m3",), ("m3",)]
    assert log.unseen["m3"].text == "[removed]"
    assert matched(log, [A, CALL, shorter, X, C], with_stub(log), shown=HIDDEN).unseen == (), "it is the same"


def test_a_form_that_an_entry_has_already_is_no_change() -> None:
    """The list is a prompt of an earlier plan, which has cleared the result itself."""
    log = log_of([A, CALL, RESULT, B], [A, CALL, CLEARED, B])
    prompt = with_stub(log)
    prompt.originals[0] = OURS
    found = matched(log, [OURS, CALL, CLEARED, B], earlier=lambda: [prompt])
    assert (found.formed, log.view_ids, log.view[2].text) == ((), ["m1", "m2", "m3", "m4"], "[cleared]")


def test_a_mark_that_an_entry_has_already_is_no_change() -> None:
    """The list is a prompt of an earlier plan, from before the mark moved there."""
    marked = {**A, "cache_control": {"type": "ephemeral"}}
    log = log_of([A, B], [marked, B])
    prompt = KnownList()
    prompt.add(A, ("m1",), "m1")
    prompt.add(OURS, ("m2",), "")
    found = matched(log, [marked, OURS, C], earlier=lambda: [prompt])
    assert (found.formed, log.forms["m1"].original, texts(log)) == ((), marked, "a b c")


def test_a_form_that_is_not_seen_stays_behind_with_its_line() -> None:
    log = log_of([A, B], [A, CALL, RESULT])
    cleared = [A, CALL, CLEARED]
    matched(log, cleared, shown=Shown(as_is=lambda i: i != "m4"))
    assert list(log.unseen) == ["m4"]
    matched(log, [OURS, B], earlier=lambda: [left_prompt(log, "m1", "m2", stands_for=1)])
    assert (log.unseen, texts(log)) == ({}, "a b")


def test_what_a_list_meets_again_belongs_to_its_conversation() -> None:
    """One with other first words began a line of its own; the caller goes on with messages of both."""
    log = log_of([S, A])
    matched(log, [S, X, B])
    matched(log, [S, A, C])
    matched(log, [S, X, B, A])
    assert (log.line, [entry.line for entry in log.view]) == (1, [0, 1, 1, 0])
    assert "".join(entry.text[0] for entry in filter(log.conversation(), log.entries)) == "baxb", "c is of the other"


def test_an_edit_behind_what_is_hidden_takes_the_place_of_what_it_changes() -> None:
    """The prompt shows nothing of b; in the line, b still stands before what was edited."""
    log = log_of([A, B, C, D])
    prompt = KnownList()
    prompt.add_entries([log.view[0], *log.view[2:]])
    matched(log, [A, X, D], prompt, shown=Shown(as_is=lambda i: i != "m2"))
    assert texts(log) == "a b x d"


def test_the_last_list_is_known_although_the_prompt_is_another_one_by_now() -> None:
    """It was a prompt with something behind it that looks otherwise in every prompt."""
    log = log_of([A, B, C])
    sent = summary_of(["m1", "m2"], log.view[2])
    back = [*sent.originals, D]
    matched(log, back, sent)
    again = matched(log, copy.deepcopy(back), summary_of(["m1", "m2", "m3", "m4"]))
    assert (again.new, again.branched, again.owners) == ((), False, ["", "m3", "m4"])
    longer = matched(log, [*back, E], summary_of(["m1", "m2", "m3", "m4"]))
    assert ([entry.text for entry in longer.new], texts(log)) == (["e"], "a b c d e")


def test_an_entry_that_was_left_is_met_again_in_another_form() -> None:
    marked = {**B, "content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]}
    log = log_of([A, marked], [A, C])
    back = matched(log, [A, B, D])
    assert (log.view_ids, back.formed, len(log)) == (["m1", "m2", "m4"], ("m2",), 4)
    assert log.view[1].original == B, "as the caller has it now"


def test_what_differs_beside_its_words_is_another_entry() -> None:
    """An answer of the model's that says nothing but has something beside it, and another one after a rewind."""
    first, second = ({"role": "assistant", "content": "ok", "native": {"items": [name]}} for name in ("one", "two"))
    log = log_of([A, first], [A, B])
    assert len(matched(log, [A, second, C]).new) == 2
    assert len(log) == 5


def test_what_was_left_keeps_its_meta_among_what_is_known() -> None:
    """A prompt has no `meta`, and one from before the first plan has nothing of ours that it could be known by."""
    kept = user("b", protected=True)
    log = log_of([A, kept, C, D], [A, C, D])
    match = matched(log, [A, B, C, D, E])
    assert (log.view_ids, match.rejoined) == (["m1", "m2", "m3", "m4", "m5"], True)
    assert [dict(message.meta) for message in log.view] == [{}, {"protected": True}, {}, {}, {}]
    assert matched(log, [A, B, C, D, E, X]).owners == ["m1", "m2", "m3", "m4", "m5", "m6"], "it is known as it came"


def test_marks_that_have_moved_make_no_new_messages() -> None:
    """Also at two places in a row, where other words would be another list; they stand where the caller has them."""
    log = log_of([A, marked(B), marked(C), D])
    match = matched(log, [A, B, C, marked(D), E])
    assert (match.owners, match.branched, len(log.entries)) == (["m1", "m2", "m3", "m4", "m5"], False, 5)
    assert [message.original for message in log.view] == [A, B, C, marked(D), E]
    assert matched(log, [A, B, C, marked(D), E, X]).new[0].id == "m6"


def marked(item: Wire) -> Wire:
    part = {"type": "text", "text": item["content"], "cache_control": {"type": "ephemeral"}}
    return {**item, "content": [part]}


def test_words_at_the_end_are_new_although_they_were_left_with_a_meta() -> None:
    log = log_of([A, user("b", protected=True), C], [A, C])
    matched(log, [A, C, B])
    matched(log, [X, C, B])
    assert not any(message.meta for message in log.view)
    assert len(log.entries) == 5


def test_what_was_left_is_met_again_with_its_keys_in_another_order() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:", "detail": "low"}}
    turned = {"image_url": {"detail": "low", "url": "data:"}, "type": "image_url"}
    log = log_of([A, {**B, "content": [image]}], [A, C])
    matched(log, [A, {**B, "content": [turned]}, D])
    assert log.view_ids == ["m1", "m2", "m4"]


def test_an_entry_is_not_met_again_as_an_object_of_another_kind() -> None:
    """The store writes down how a form differs from its entry: both must be of one kind."""
    log = log_of([A, B], [A, C])
    matched(log, [A, Message("user", "b"), D])
    assert (len(log), log.forms) == (5, {})


def test_no_message_takes_the_place_of_a_line_that_we_wrote() -> None:
    """The oldest were left out without another word; the caller has deleted them, and begins otherwise."""
    log = log_of([A, X, B, X, C, X, D])
    prompt = KnownList()
    for entry in log.view[3:]:
        prompt.add(user("[...]"), (), "")
        prompt.add_entries([entry])
    found = matched(log, [Y, X, C, X, D], prompt, shown=Shown(always_as_is=lambda message_id: False))
    assert (found.left_ids, log.view_ids) == (("m1", "m2", "m3"), ["m8", "m4", "m5", "m6", "m7"])


def test_a_call_that_went_back_to_a_line_is_made_again() -> None:
    """Another process knows the older prompt that it was cut from, and is on its line already."""
    log = log_of([A, B, C], [A, B, X], [A, B])
    prompt = left_prompt(log, "m1", "m2", "m3", stands_for=1)
    found = matched(log, [OURS, B], earlier=lambda: [prompt])
    assert (log.view_ids, found.new, found.branched) == (["m1", "m2"], (), False)
    assert (found.rejoined, found.returned_to, found.left_ids) == (False, None, ())


def test_what_follows_an_earlier_prompt_is_behind_all_that_it_hides() -> None:
    """The calls behind the last message that it shows are in the summary, and come before what is new."""
    log = log_of([A, B, CALL, RESULT])
    older = summary_of(["m1", "m3", "m4"], log.view[1])
    matched(log, [*older.originals, C], earlier=lambda: [older])
    assert log.view_ids == ["m1", "m2", "m3", "m4", "m5"]


@pytest.mark.parametrize(
    ("behind", "ids"),
    [
        ([], "m1 m2"),
        ([assistant("new")], "m1 m2 m7"),
        # Other words of the user, where the first of the lost ones stood: what is hidden before these stays.
        ([X], "m1 m2 m3 m4 m7"),
    ],
)
def test_a_rewound_prompt_leaves_what_it_hides_behind_its_end(behind: list[Wire], ids: str) -> None:
    log = log_of([A, B, CALL, RESULT, C, assistant("the rest")])
    prompt = summary_of(["m1", "m3", "m4", "m6"], log.view[1], log.view[4])
    matched(log, [*prompt.originals[:2], *behind], prompt, shown=Shown(always_as_is=lambda message_id: False))
    assert log.view_ids == ids.split()


def test_a_prompt_that_was_cut_behind_its_summary_keeps_what_that_stands_for() -> None:
    log = log_of([A, B, CALL, RESULT, C])
    prompt = summary_of(["m1", "m3", "m4"], log.view[1], log.view[4])
    matched(log, [prompt.originals[0], assistant("new")], prompt, shown=Shown(always_as_is=lambda message_id: False))
    assert log.view_ids == ["m1", "m3", "m4", "m6"]


def test_a_pinned_message_of_a_rewound_prompt_stays() -> None:
    """It stands before the summary, and comes behind the place that the caller goes back to."""
    log = log_of([A, B, CALL, RESULT, C, D])
    prompt = KnownList()
    prompt.add_entries(log.view[4:5])
    prompt.add(user("a summary"), ("m1", "m3", "m4"), "")
    prompt.add_entries([log.view[1], log.view[5]])
    items = [*prompt.originals[:3], assistant("new")]
    matched(log, items, prompt, shown=Shown(always_as_is=lambda message_id: False))
    assert log.view_ids == ["m1", "m2", "m5", "m7"]


def test_a_prompt_that_lost_nothing_at_its_end_hides_what_it_hid() -> None:
    log = log_of([A, B, CALL, RESULT, C])
    prompt = summary_of(["m1", "m3", "m4"], log.view[1], log.view[4])
    matched(log, [prompt.originals[0], X, C, D], prompt)
    assert log.view_ids == ["m1", "m6", "m3", "m4", "m5", "m7"]


# -- results that were cut, and are met again ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "items", "ids"),
    [
        ([A, CALL, RESULT, B], [A, CALL, CLEARED, B], "m1 m2 m3 m4"),
        ([A, CALL, RESULT, B], [A, CALL, {**RESULT, "content": "quite another file " * 9}, B], "m1 m2 m6 m4"),
        ([A, CALL, RESULT, B], [A, CALL, CLEARED, CLEARED], "m1 m2 m3 m6"),
        ([A, CALL], [A, CALL, CLEARED], "m1 m2 m4"),
        # The call is not the one that it answered.
        ([A, CALL, RESULT, B], [A, tool_exchange("c1", "", tool="other")[0], CLEARED], "m1 m6 m7"),
    ],
)
def test_a_cut_result_is_that_of_the_call_that_comes_back(before: list[Wire], items: list[Wire], ids: str) -> None:
    log = log_of(before, [X])
    found = matched(log, items)
    assert log.view_ids == ids.split()
    assert found.formed == (("m3",) if "m3" in ids else ())
    assert [message.original for message in log.view] == items


@pytest.mark.parametrize("results", [1, 2, 3])
def test_only_the_results_at_the_end_of_a_list_may_be_other_ones(results: int) -> None:
    calls = [tool_exchange(f"d{number}", "text") for number in range(results)]
    items = [A, RESULT, CALL, *(item for item, _ in calls), *(item for _, item in calls)]
    may_be_other = IncomingList(items, read_entry, Shown()).may_be_other_results()
    assert [place for place in range(len(items)) if may_be_other(place)] == [*range(len(items) - results, len(items))]


def test_results_of_an_id_that_is_used_again_may_be_other_ones() -> None:
    items = [A, CALL, RESULT, *tool_exchange("c2", "text"), CALL, RESULT, assistant("done")]
    may_be_other = IncomingList(items, read_entry, Shown()).may_be_other_results()
    results = [place for place, item in enumerate(items) if item["role"] == "tool"]
    assert [place for place in results if may_be_other(place)] == [2, 6]


@pytest.mark.parametrize(
    ("shown", "between", "hidden"),
    [
        ("m2 m5", [C, D], {2, 3}),
        # What is new there is new, and what is out of order as well.
        ("m2 m5", [X, D], {3}),
        ("m2 m5", [D, C], {2}),
        ("m2 m5", [C, C, D], {2, 4}),
        # What is hidden elsewhere is not hidden there.
        ("m2 m5", [A], set[int]()),
        ("m2 m5", [B], set[int]()),
        ("m2 m3", [C], set[int]()),
        ("m4 m2 m5", [D], set[int]()),
    ],
)
def test_what_a_summary_hides_between_two_entries_that_are_shown(
    shown: str, between: list[Wire], hidden: set[int]
) -> None:
    log = log_of([A, B, C, D, E])
    *first, before, after = shown.split()
    prompt = KnownList()
    prompt.add_entries([log.recorded(i) for i in first])
    prompt.add(user("a summary"), tuple(entry.id for entry in log.view if entry.id not in shown.split()), "")
    prompt.add_entries([log.recorded(before), log.recorded(after)])
    items = [user("a summary"), B, *between, E]
    places = [len(first), len(first) + 1, *(None for _ in between), len(first) + 2]
    assert hidden_in(items, places, prompt, log.view) == hidden


def test_each_of_equal_messages_is_hidden_once() -> None:
    log = log_of([A, B, C, C, E])
    prompt = summary_of(("m1", "m3", "m4"), log.recorded("m2"), log.recorded("m5"))
    items, places = [user("a summary"), B, C, C, C, E], [0, 1, None, None, None, 2]
    assert hidden_in(items, places, prompt, log.view) == {2, 3}


def test_nothing_is_hidden_before_the_first_or_behind_the_last_entry_that_is_shown() -> None:
    log = log_of([A, B, C, D, E])
    prompt = summary_of(("m1", "m3", "m5"), log.recorded("m2"), log.recorded("m4"))
    items, places = [user("a summary"), A, B, C, D, E], [0, None, 1, None, 2, None]
    assert hidden_in(items, places, prompt, log.view) == {3}


def test_a_prompt_that_goes_on_as_the_callers_own_list_before_its_last_message_has_nothing_new_there() -> None:
    """What the summary hides stands between an answer and the words that the prompt ends with."""
    history = [A, B, assistant("it is so"), C]
    log = log_of(history)
    prompt = summary_of(("m2", "m3"), log.recorded("m1"), log.recorded("m4"))
    found = matched(log, [user("a summary"), *history, D], prompt)
    assert ([entry.text for entry in found.new], found.left_ids) == (["d"], ())
    assert texts(log) == "a b it is so c d"


@pytest.mark.parametrize("edited", [X, A])
def test_a_last_message_that_was_edited_to_other_words_is_an_edit_though_it_is_said_again(edited: Wire) -> None:
    """So it is if these are words that the prompt shows."""
    log = log_of([A, B, assistant("it is so"), C])
    prompt = summary_of(("m2", "m3"), log.recorded("m1"), log.recorded("m4"))
    found = matched(log, [user("a summary"), A, edited, assistant("why?"), C], prompt)
    assert [entry.text for entry in found.new] == [edited["content"], "why?", "c"]
    assert found.left_ids == ("m4",)
