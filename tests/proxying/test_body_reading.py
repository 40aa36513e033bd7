"""Bodies of conversations that grow: read as JSON is read, with the objects of before where the text is the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact import CompactConfig
from compact.adapters.support.endpoints import CHAT_COMPLETIONS
from compact.proxy.bodies import reading
from compact.proxy.bodies.reading import BodyMemory, ReadBody, UnreadBody
from compact.proxy.compaction import IncomingBody, RequestCompactor, capture_event
from compact.proxy.managers import Managers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.sampled_from(["model", "tools", "n", "stream"]), VALUES, max_size=3)


def taken_in(memory: BodyMemory, raw: bytes, caller: str = "a", session_id: str = "s") -> ReadBody | None:
    """Read a body as the proxy does."""
    unread = memory.find(caller, raw)
    body = unread.read("messages") if unread else None
    if unread and body:
        memory.keep(caller, session_id, body)
    return body


def plainly(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def written(before: dict[str, Any], items: Any, after: dict[str, Any], indent: int | None) -> bytes:
    after = {name: value for name, value in after.items() if name not in before}
    return json.dumps({**before, "messages": items, **after}, indent=indent, ensure_ascii=False).encode()


@given(st.data())
def test_a_body_is_read_as_json_is_whatever_was_read_before(data: st.DataObject) -> None:
    memory, before, after = BodyMemory(), data.draw(FIELDS), data.draw(FIELDS)
    items = data.draw(st.lists(VALUES, max_size=4))
    for _ in range(4):
        raw = written(before, items, after, data.draw(st.sampled_from([None, 1])))
        for text in (raw, data.draw(st.sampled_from([raw + b" ", raw[:-1], raw + b"}", raw.replace(b"1", b"12")]))):
            body, wanted = taken_in(memory, text), plainly(text)
            assert (body.fields if body else None) == wanted
            assert body is None or list(body.fields) == list(wanted), "in its order"
        cut = data.draw(st.integers(0, len(items)))
        items = (
            items[:cut] + data.draw(st.lists(VALUES, max_size=3)) + items[cut : data.draw(st.sampled_from([cut, 9]))]
        )
        after = data.draw(st.sampled_from([after, data.draw(FIELDS)]))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"messages": []}',
        b'{"messages": [1,]}',
        b'{"messages": "text"}',
        b'{"messages": [1], "messages": [2]}',
        b'{"n": 1, "messages": [1], "n": 2}',
        b"{1: 2}",
        b'{"messages": [1] "n": 2}',
        b'{"messages": [1]} {}',
        b'{"messages": [NaN]}',
        b"\xff\xfe{",
        b"\xef\xbb\xbf{}",
        '{"messages": ["\u00fc"]}'.encode("utf-16"),
        b'{"messages": [' + b"[" * 100_000,
    ],
)
def test_what_no_client_sends_is_read_as_json_is(raw: bytes) -> None:
    memory = BodyMemory()
    taken_in(memory, b'{"messages": [1, {"a": 1}]}')
    body = taken_in(memory, raw)
    wanted = repr(plainly(raw))
    assert repr(body.fields if body else None) == (wanted if wanted.startswith("{") else "None")


def turns(count: int, name: str = "a") -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"{name} {n}"} for n in range(count)]


def test_what_was_read_before_is_not_read_again() -> None:
    memory = BodyMemory()
    tools = [{"name": "f"}]
    first = taken_in(memory, written({"model": "m"}, turns(3), {"tools": tools}, None))
    raw = written({"model": "m"}, turns(5), {"tools": tools}, None)
    unread = memory.find("a", raw)
    assert first
    assert unread
    assert unread.shared == 3
    assert unread.new_size < len(raw) - len(first.start) + 1
    again = unread.read("messages")
    assert again
    assert all(a is b for a, b in zip(again.fields["messages"][:3], first.fields["messages"], strict=True))
    assert again.fields["tools"] is first.fields["tools"]
    assert len(first.fields["messages"]) == 3, "the list of before is as it was"


def test_an_item_that_changes_is_read_again_with_all_behind_it() -> None:
    memory = BodyMemory()
    first = taken_in(memory, written({}, turns(4), {}, None))
    other = turns(4)
    other[2]["cache_control"] = {"type": "ephemeral"}
    again = taken_in(memory, written({}, other, {}, None))
    assert first
    assert again
    pairs = zip(again.fields["messages"], first.fields["messages"], strict=True)
    assert [one is other for one, other in pairs] == [True, True, False, False]
    assert again.fields["messages"] == other


def test_conversations_that_begin_alike_do_not_put_one_another_out() -> None:
    memory, system = BodyMemory(), {"role": "system", "content": "Be brief."}
    for _ in range(2):
        for name in "ab":
            taken_in(memory, written({}, [system, *turns(8, name)], {}, None), session_id=name)
    for name in "ab":
        unread = memory.find("a", written({}, [system, *turns(9, name)], {}, None))
        assert unread
        assert unread.shared == 9
    other = memory.find("b", written({}, [system, *turns(9)], {}, None))
    assert other == UnreadBody(other.text if other else ""), "each caller has its own"


def test_the_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_BYTES", 1_100)
    memory, large = BodyMemory(), [{"role": "user", "content": "x" * 300}]
    for caller in "abcdef":
        taken_in(memory, written({}, large, {}, None), caller)
    known = [bool(found.earlier) for c in "abcdef" if (found := memory.find(c, written({}, large, {}, None)))]
    assert known == [False, False, False, False, True, True]
    taken_in(memory, written({}, [{"role": "user", "content": "x" * 2_000}], {}, None), "g")
    found = memory.find("f", written({}, large, {}, None))
    assert found
    assert not found.earlier


def test_a_session_that_leaves_memory_leaves_nothing_there() -> None:
    memory = BodyMemory()
    for name in "ab":
        taken_in(memory, written({}, turns(8, name), {}, None), session_id=name)
    memory.forget("a")
    memory.forget("a")
    found = [memory.find("a", written({}, turns(9, name), {}, None)) for name in "ab"]
    assert [each.shared if each else None for each in found] == [0, 8]
    memory.forget("b")
    assert (memory._size, len(memory._bodies)) == (0, 0)


def test_a_character_counts_for_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text with one emoji takes four times the memory."""
    monkeypatch.setattr(reading, "_MOST_BYTES", 3_000)
    memory = BodyMemory()
    for caller, text in (("plain", "x" * 1_000), ("with an emoji", "x" * 1_000 + "\N{ANCHOR}\N{FLEXED BICEPS}")):
        taken_in(memory, written({}, [text], {}, None), caller)
        found = memory.find(caller, written({}, [text], {}, None))
        assert bool(found and found.earlier) is (caller == "plain")


def test_nobody_changes_what_was_read() -> None:
    """A session with compactions, repairs and marks: what the memory has is still what its text says."""
    small = CompactConfig(max_context_tokens=4_000, policy={"hard_cap_buffer": 100}, state={"url": "memory:"})

    async def play() -> None:
        managers = Managers(small, on_event=capture_event)
        compactor, items, plans = RequestCompactor(managers.for_model), list[dict[str, Any]](), set[int]()
        for number in range(60):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            items += [
                {"role": "user", "content": [{"type": "text", "text": f"Question {number}."}]},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number}\n" * 40},
            ]
            raw = json.dumps({"model": "gpt-4o", "messages": items}).encode()
            incoming = IncomingBody(endpoint=CHAT_COMPLETIONS, raw=raw, path="/v1/chat/completions")
            outcome = await compactor.compact(incoming)
            plans.add(outcome.plan)
            if outcome.stored:
                await outcome.stored
            (of_caller,) = compactor._bodies._bodies.values()  # pyright: ignore[reportPrivateUsage]
            (known,) = of_caller.values()
            assert known.fields == json.loads(raw)
        assert max(plans) > 2
        await asyncio.to_thread(managers.close)

    asyncio.run(play())
