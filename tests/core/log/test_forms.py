"""The forms of an entry: which changes say nothing new, and how they are written down."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

import pytest

from compact.core.log.forms import EntryForm, differs_in_time, identity_of, is_reduced, unmarked, what_is_said
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message, ToolCall, with_id
from compact.testing import assistant, tool_exchange, user

CALL, RESULT = tool_exchange("c1", "text")
# 62 characters, none of them twice.
TEXT = string.ascii_letters + string.digits
LONG = TEXT * 40


def read(item: object) -> Message:
    return read_entry(item, "messages[0]")


def result(text: str, **fields: Any) -> Message:
    return Message("tool", text, tool_call_id="c1", **fields)


THINKING, POINT = {"type": "thinking", "thinking": "so"}, {"cachePoint": {"type": "default"}}


@pytest.mark.parametrize(
    ("marked", "bare"),
    [
        ({"beside": [POINT], "order": "pb"}, {}),
        ({"beside": [{"type": "block", "block": POINT}], "order": "pb"}, {}),
        ({"beside": [THINKING, POINT], "order": "bpb"}, {"beside": [THINKING]}),
        ({"beside": [POINT, THINKING], "order": "bpb"}, {"beside": [THINKING], "order": "pb"}),
        ({"beside": [POINT]}, {}),
    ],
)
def test_a_mark_beside_the_content_says_nothing_wherever_it_stands(marked: Any, bare: Any) -> None:
    item = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    assert what_is_said({**item, "native": marked}) == what_is_said({**item, "native": bare} if bare else item)


def test_the_order_of_what_stands_beside_the_content_says_something() -> None:
    item = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    before, behind = ({**item, "native": {"beside": [THINKING], "order": order}} for order in ("bp", "pb"))
    assert what_is_said(before) != what_is_said(behind)


@pytest.mark.parametrize(
    ("item", "identity"),
    [
        (CALL, ("assistant", ("c1",))),
        (RESULT, ("tool", "c1")),
        (read(CALL), ("assistant", ("c1",))),
        (read(RESULT), ("tool", "c1")),
        ({"role": "assistant", "tool_calls": [{"id": "a"}, "no call", {"name": "f"}]}, ("assistant", ("a", ""))),
        ({"role": "assistant", "tool_calls": [{"name": "f"}]}, None),
        ({"role": "assistant", "tool_calls": None}, None),
        ({"role": "user", "tool_call_id": "c1", "tool_calls": [{"id": "a"}]}, None),
        ({"role": "tool", "content": "x"}, None),
        (user("a"), None),
        (assistant("a"), None),
        ("no message", None),
    ],
)
def test_what_an_item_is_known_by(item: object, identity: tuple[object, ...] | None) -> None:
    assert identity_of(item) == identity


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, TEXT[5:20]),
        # Cut at its end or in its middle, with a word about it that is no longer than what is left.
        (TEXT, f"{TEXT[:40]}-----"),
        (TEXT[:60], f"{TEXT[:40]}-----"),
        (TEXT, f"{TEXT[:20]}{'-' * 20}"),
        (TEXT, f"{TEXT[:15]}...{TEXT[-30:]}"),
        # Half as long as it was, or less.
        (TEXT, "-" * 31),
        (LONG, "-" * 400),
        # However long, if it says so.
        (TEXT, "this was cleared by somebody in the past, or so it seems, long ago"),
    ],
)
def test_a_result_may_be_cut_or_cleared(before: str, after: str) -> None:
    assert is_reduced(result(before), result(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, f"{TEXT[:19]}{'-' * 21}"),
        (TEXT, f"{TEXT[:40]}{'-' * 22}"),
        (TEXT, "-" * 32),
        (LONG, "-" * 401),
        # Too short to be cut: it is another value.
        (TEXT[:59], f"{TEXT[:40]}-----"),
        ('{"q": "booking"}', '{"q": "widget"}'),
        # What was put in is longer than any word about it, though it ends as the text before it does.
        ("abcxyz", f"abc{'it was cleared '.rjust(400, '-')}cxyz"),
    ],
)
def test_a_result_that_says_something_else_is_another(before: str, after: str) -> None:
    assert not is_reduced(result(before), result(after))


@pytest.mark.parametrize(
    ("after", "is_known"),
    [
        (TEXT[:40], True),
        (f"{TEXT[:40]}-----", True),
        (f"{TEXT[:40]}... 3 more", True),
        (f"{TEXT[:15]}[3 lines]{TEXT[-30:]}", True),
        # No word was put in: those behind it are the end of the text before.
        (f"{TEXT[:15]}-----{TEXT[-30:]}", True),
        ("this was cleared", True),
        (f"{TEXT[:40]}3", False),
        (f"{TEXT[:15]}3 lines{TEXT[-30:]}", False),
        ("-" * 31, False),
        ("3 passed", False),
    ],
)
def test_what_may_be_another_result_has_to_say_that_something_was_taken_away(after: str, is_known: bool) -> None:
    assert is_reduced(result(TEXT), result(after))
    assert is_reduced(result(TEXT), result(after), may_be_other=True) == is_known


def test_only_what_is_the_same_message_has_less() -> None:
    assert is_reduced(result(TEXT), result("ab"))
    assert not is_reduced(result(TEXT, name="f"), result("ab"))
    assert not is_reduced(result(TEXT, meta={"protected": True}), result("ab"))
    assert not is_reduced(result(TEXT), Message("tool", "ab", tool_call_id="c2"))
    assert not is_reduced(Message("user", TEXT), Message("assistant", TEXT))
    assert not is_reduced(Message("user", TEXT), Message("user", "ab")), "words of people are not cut"


def called(*calls: tuple[str, str], text: str = "") -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(f"c{n}", *call) for n, call in enumerate(calls)))


def test_the_arguments_of_calls_may_be_cleared_and_their_names_may_not() -> None:
    before = called(("write", LONG), ("read", "{}"), text=TEXT)
    assert is_reduced(before, called(("write", "[cleared]"), ("read", "{}"), text=TEXT[:5]))
    assert not is_reduced(before, called(("write", LONG), ("read", "{}"), text="[cleared]")), "what a model said is cut"
    assert not is_reduced(before, called(("append", LONG), ("read", "{}"), text=TEXT))
    assert not is_reduced(before, called(("write", LONG), ("read", f"{LONG} and more"), text=TEXT))
    assert not is_reduced(before, called(("write", LONG), ("delete", "{}"), text=TEXT))


@pytest.mark.parametrize("after", ["", TEXT[:5], "short", "2 files"])
def test_a_number_is_no_id(after: str) -> None:
    """Dialects that have no ids for calls number them, so that others have the same number."""
    before, now = (Message("tool", text, tool_call_id="read#1") for text in (TEXT, after))
    assert is_reduced(result(TEXT), result(after))
    assert is_reduced(before, now) is (after == TEXT[:5]), "it has to say something of the same"
    assert is_reduced(before, replace(now, content=f"{after} [cleared]")), "or that something was taken away"
    assert is_reduced(replace(before, tool_call_id="#1 read"), replace(now, tool_call_id="#1 read"))


def test_a_call_with_a_number_keeps_its_words() -> None:
    def looks(call_id: str, text: str) -> Message:
        return Message("assistant", text, tool_calls=(ToolCall(call_id, "read", "{}"),))

    assert not is_reduced(looks("read#1", "let me look"), looks("read#1", ""))
    assert is_reduced(looks("read#1", ""), looks("read#1", ""))
    assert is_reduced(looks("c1", "let me look"), looks("c1", ""))


def parts(*texts: str) -> tuple[dict[str, Any], ...]:
    return tuple({"type": "text", "text": text} if text else {"type": "thinking"} for text in texts)


def test_a_message_may_lose_parts_that_are_no_text() -> None:
    whole, stripped = Message("assistant", parts("a", "")), Message("assistant", parts("a"))
    assert is_reduced(whole, stripped)
    assert is_reduced(whole, whole)
    assert not is_reduced(stripped, whole)
    assert not is_reduced(whole, Message("assistant", parts("b")))
    nothing, empty = Message("assistant", None), Message("assistant", "")
    assert is_reduced(empty, nothing)
    assert not is_reduced(nothing, empty)
    assert is_reduced(stripped, Message("assistant", "a")), "a text is one part"
    assert not is_reduced(Message("assistant", "a"), whole)


def test_a_message_that_differs_in_its_time_alone() -> None:
    morning, evening = Message("user", "It is 9:15."), Message("user", "It is 21:15:07.")
    assert differs_in_time(morning, evening)
    assert not differs_in_time(morning, Message("user", "It was 9:15."))
    assert not differs_in_time(morning, Message("system", evening.content))
    assert not differs_in_time(morning, Message("user", evening.content, meta={"protected": True}))
    assert not differs_in_time(morning, Message("user", parts("It is 21:15:07.")))
    assert not differs_in_time(result("at 9:15"), result("at 9:16")), "a result says what it says"
    call = called(("f", "{}"), text="at 9:15")
    assert not differs_in_time(call, Message("assistant", "at 9:16"))
    assert not differs_in_time(Message("assistant", "at 9:16"), call)


def test_a_time_is_not_much_longer_than_another() -> None:
    short = Message("user", "at 09:15:07.0 or later")
    for more, expected in ((64, True), (65, False)):
        long = Message("user", f"at 09:15:07.{'0' * (more + 1)} or later")
        assert differs_in_time(short, long) is differs_in_time(long, short) is expected


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ("abcdef", "abcXdef", "X"),
        ("abcXdef", "abcdef", ""),
        ("abcdef", "abXYef", "XY"),
        ("abcdef", "", ""),
        ("", "abc", "abc"),
        ("aaa", "aa", ""),
        ("aa", "aaa", "a"),
        ("abcd", "abcd", ""),
    ],
)
@pytest.mark.parametrize("as_dict", [True, False])
def test_a_form_is_what_differs_and_gives_the_form_back(before: str, after: str, between: str, as_dict: bool) -> None:
    def entry(text: str) -> Message:
        call = ToolCall("c1", "f", '{"a": 1}')
        own: Any = Message("assistant", text, tool_calls=(call,), meta={"k": 1}, id="own")
        if as_dict:
            calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
            own = {"role": "assistant", "content": text, "tool_calls": calls, "x_trace": [7]}
        return with_id(read(own), "m4", 2)

    form = EntryForm.between(entry(before), entry(after), 9)
    assert (form.text, form.tokens) == (between, 9)
    assert EntryForm(*form.to_list()) == form
    applied = form.applied(entry(before))
    assert applied == entry(after)
    assert (applied.original, applied.id, applied.line) == (entry(after).original, "m4", 2)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, "a"),
        ({"type": "text", "text": "a", "citations": []}, [{"type": "text", "text": "a", "citations": []}]),
        ({"type": "quote", "text": "a"}, [{"type": "quote", "text": "a"}]),
    ],
    ids=["a text", "with a mark", "with more than a text", "another type"],
)
def test_only_a_text_that_is_alone_is_the_text_itself(part: dict[str, Any], content: object) -> None:
    assert unmarked({"role": "user", "content": [part]}) == {"role": "user", "content": content}
