"""What is remembered of a caller's items, so that they are known again: with and without marks, whole and in pieces."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from operator import is_
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, Message, ToolCall
from compact.dialects import DIALECTS
from compact.dialects.gateway import Gateway
from compact.dialects.translation import ShownList, Translator
from compact.dialects.turns import CLOSING, EMPTY_CONTENT
from compact.testing import WordTokenizer, assistant, dialogue, tool_exchange, user

Items = list[dict[str, Any]]
META = {"protected": True}


def manager_on(path: Path, window: int = 400) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
        state={"url": f"sqlite:///{path}/state.db"},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, tokenizer=WordTokenizer())


def test_items_that_are_known_are_the_same_entries() -> None:
    translator = Translator(DIALECTS["anthropic"])
    items: Items = [user("a"), assistant("b"), user("c")]
    first = translator.entries(items)
    again = translator.entries(copy.deepcopy(items))
    assert all(a is b for a, b in zip(first[:2], again[:2], strict=True))
    assert again == first


def test_an_item_changed_in_place_is_read_again() -> None:
    translator = Translator(DIALECTS["anthropic"])
    items: Items = [user("a"), assistant("b"), user("c")]
    translator.entries(items)
    items[1]["content"] = "changed"
    assert translator.entries(items)[1]["content"] == "changed"


def test_a_marked_run_of_several_items_is_known_without_its_mark() -> None:
    """The mark is on one item, and is that of all that the model made with it."""
    translator = Translator(DIALECTS["responses"])
    run: Items = [
        {"type": "reasoning", "id": "r", "summary": [], "meta": META},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    entries = translator.entries([user("a"), *run])
    out = translator.items(entries)
    assert "meta" not in out[1]
    assert entries[1]["meta"] == META
    assert translator.entries([*copy.deepcopy(out), user("b")])[:3] == entries[:3]


def test_an_item_that_only_looks_like_a_marked_one_is_not_marked() -> None:
    translator = Translator(DIALECTS["chat"])
    items: Items = [user("same", protected=True)]
    for new in (assistant("b"), user("same"), assistant("c"), user("same")):
        items.append(new)
        entries = translator.entries(items)
        assert [entry.get("meta") for entry in entries] == [META, *[None] * (len(items) - 1)]


def test_a_prompt_of_one_marked_message_is_known_when_it_comes_back() -> None:
    """Although what follows it equals a message of the list before, which the prompt has left out."""
    translator = Translator(DIALECTS["chat"])
    entries = translator.entries([user("again"), user("rule", protected=True)])
    out = translator.items(entries[1:])
    assert out == [user("rule")]
    assert [entry.get("meta") for entry in translator.entries([*out, user("again")])] == [META, None]


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "vercel", "ollama"])
def test_the_last_mark_is_not_lost_where_the_prompt_has_lost_a_message_before_it(name: str) -> None:
    """The list is long enough to be the last one with a few items changed where they stand."""
    history = [*dialogue(4), user("rule", protected=True)]
    with CompactManager() as manager:
        out = copy.deepcopy(manager.preflight("s", history, dialect=name))
        del out[-2]
        more = [assistant("yes"), user("go on")]
        manager.preflight("s", [*out, *more], dialect=name)
        logged = manager.history("s")
        assert [message.text for message in logged] == [item["content"] for item in [*history, *more]]
        assert [message.meta for message in logged[-3:]] == [META, {}, {}]


@pytest.mark.parametrize("change", ["edit", "delete"])
@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "vercel", "ollama"])
def test_the_last_mark_is_not_lost_where_a_prompt_came_back_before(name: str, change: str) -> None:
    """Then the caller's list has no mark, and the log has."""
    history = [*dialogue(4), user("rule", protected=True)]
    with CompactManager() as manager:
        out = copy.deepcopy(manager.preflight("s", history, dialect=name))
        manager.preflight("s", out, dialect=name)
        changed = [*out[:2], *([user("other words")] if change == "edit" else []), *out[3:]]
        manager.preflight("s", [*changed, assistant("yes"), user("go on")], dialect=name)
        logged = manager.history("s")
        assert len(logged) == len(history) + 2 + (change == "edit")
        assert [message.text for message in logged if message.meta] == ["rule"]


@pytest.mark.parametrize("name", ["chat", "anthropic"])
def test_marks_are_not_lost_when_another_process_gets_the_list_back(name: str, tmp_path: Path) -> None:
    history = [user("never delete a booking", protected=True), *dialogue(3, words=20)]
    with manager_on(tmp_path) as manager:
        out = manager.preflight("s", history, dialect=name)
        assert "meta" not in out[0]
    with manager_on(tmp_path) as manager:
        again = manager.preflight("s", [*out, *dialogue(10, words=30), user("go on")], dialect=name)
        assert manager.current_plan("s").version == 1
        assert "never delete a booking" in str(again)
        assert [message.meta for message in manager.history("s")][:2] == [META, {}]
        assert len(manager.history("s")) == 7 + 21


def test_turns_that_were_put_together_are_known_in_pieces(tmp_path: Path) -> None:
    """Summary and words are one turn; who adds words of its own to the list has those in another."""
    history = [*dialogue(12, words=30), user("go on")]
    with manager_on(tmp_path) as manager:
        out = manager.preflight("s", history, dialect="anthropic")
        assert "<COMPACT-SUMMARY v1>" in str(out[0])
        out = manager.preflight("s", [*out, user("please")], dialect="anthropic")
        log = [message.original for message in manager.history("s")]
    with manager_on(tmp_path) as manager:
        manager.preflight("s", [*out, assistant("yes"), user("now")], dialect="anthropic")
        assert [message.original for message in manager.history("s")] == [*log, assistant("yes"), user("now")]


def test_a_list_that_got_shorter_is_looked_through_for_marks() -> None:
    """What comes back after a compaction is shorter than what was sent; new marks may stand anywhere in it."""
    gateway = Gateway()
    gateway.select_dialect(dialogue(10), None)
    gateway.to_entries()
    shorter = [*dialogue(2), user("rule", protected=True), *dialogue(20)]
    gateway.select_dialect(shorter, None)
    assert gateway.to_entries()[4]["meta"] == META
    assert all("meta" not in item for item in gateway.to_items(gateway.to_entries()))


def test_unknown_fields_and_kinds_come_back_from_the_store(tmp_path: Path) -> None:
    history: Items = [
        {"role": "user", "content": [{"type": "x_unknown", "deep": [{"y": None}]}], "x_field": 1},
        *tool_exchange("c1", "result"),
    ]
    with manager_on(tmp_path) as manager:
        assert manager.preflight("s", history, dialect="chat") == history
    with manager_on(tmp_path) as manager:
        assert [message.original for message in manager.history("s")] == history
        assert manager.preflight("s", history, dialect="chat") == history


@pytest.mark.parametrize("name", ["chat", "anthropic", "responses"])
def test_equal_copies_come_back_as_the_newest_objects(name: str) -> None:
    """A program may read its list anew at each call: it gets the objects of this call, in a compacted prompt too."""
    gateway = Gateway()

    def read(items: Items) -> list[Any]:
        gateway.select_dialect(items, name)
        return list(gateway.to_entries())

    first: Items = dialogue(3)
    read(first)
    copies = copy.deepcopy(first)
    entries = read(copies)
    assert all(map(is_, gateway.to_items(entries), copies))
    assert all(map(is_, gateway.to_items(entries[2:]), copies[2:]))
    newest: Items = [*copy.deepcopy(first), user("one more")]
    entries = read(newest)
    assert all(map(is_, gateway.to_items(entries[4:]), newest[4:]))
    newest[1]["content"] = "changed in place"
    assert read(newest)[1]["content"] != entries[1]["content"]


@pytest.mark.parametrize("name", ["chat", "anthropic", "responses"])
def test_the_entries_are_nobody_elses(name: str) -> None:
    """Neither what a caller changes in its list nor what it changes in a prompt that it was given reaches the log."""
    gateway = Gateway()
    text = "input_text" if name == "responses" else "text"
    items: Items = [user("a"), {"role": "user", "content": [{"type": text, "text": "b"}], "meta": META}]
    gateway.select_dialect(items, name)
    entries = gateway.to_entries()
    before = copy.deepcopy(list(entries))
    for item in (*items, *gateway.to_items(entries), *gateway.to_items([{"role": "user", "content": "c"}, *entries])):
        item["content"] = "changed" if isinstance(item["content"], str) else item["content"]
        for part in item["content"] if isinstance(item["content"], list) else ():
            part["text"] = "changed"
    assert list(entries) == before


def anthropic_run(turns: int, first: int = 0) -> Items:
    """Results and the user's next words, which are neighbours of one role and apart."""
    items: Items = []
    for n in range(first, first + turns):
        call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"{n}.txt"}}
        items += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "line " * 20}]},
            {"role": "user", "content": [{"type": "text", "text": f"go on with {n + 1}"}]},
        ]
    return items


def test_neighbours_are_joined_alike_in_a_callers_own_list_and_in_a_prompt_that_comes_back(tmp_path: Path) -> None:
    """The same words in other items would cost a provider's cache."""
    history: Items = [{"role": "user", "content": [{"type": "text", "text": "begin"}]}, *anthropic_run(3)]
    with manager_on(tmp_path) as manager:
        assert manager.preflight("s", history, dialect="anthropic") == history, "nothing of ours: as it came"
        history += anthropic_run(20, 3)
        sent = manager.preflight("s", history, dialect="anthropic")
        version, new = manager.current_plan("s").version, anthropic_run(1, 23)
        assert version > 0
        joined = [result["content"][0]["type"] for result in sent if len(result["content"]) > 1]
        back = manager.preflight("s", [*copy.deepcopy(sent), *new], dialect="anthropic")
        own = manager.preflight("s", [*history, *copy.deepcopy(new)], dialect="anthropic")
        assert manager.current_plan("s").version == version
        assert joined
        assert back == own
        assert [block["type"] for block in back[-1]["content"]] == ["tool_result", "text"]
    with manager_on(tmp_path) as manager:
        assert manager.preflight("s", [*copy.deepcopy(sent), *new], dialect="anthropic") == back
        assert len(manager.history("s")) == 1 + 3 * 24


def test_a_list_in_which_there_is_nothing_to_join_is_given_back_itself(tmp_path: Path) -> None:
    history: Items = [{"role": "user", "content": "begin"}, *anthropic_run(20)]
    with manager_on(tmp_path) as manager:
        sent = manager.preflight("s", history, dialect="anthropic")
        back = [*sent, assistant("done"), user("thanks")]
        assert all(map(is_, manager.preflight("s", back, dialect="anthropic"), back))
        back += [assistant("yes"), user("and now?")]
        assert all(map(is_, manager.preflight("s", back, dialect="anthropic"), back))


def test_a_result_of_ours_is_known_apart_from_what_it_was_joined_with(tmp_path: Path) -> None:
    """After a restart, and where a mark for the cache has moved on."""
    mark = {"cache_control": {"type": "ephemeral"}}
    long = {"type": "tool_result", "tool_use_id": "c1", "content": "\n".join(f"line {n}" for n in range(400)), **mark}
    history: Items = [
        {"role": "user", "content": "begin"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
        {"role": "user", "content": [long]},
    ]
    with manager_on(tmp_path) as manager:
        sent = copy.deepcopy(manager.preflight("s", history, dialect="anthropic"))
        assert "shortened" in str(sent[-1])
        sent[-1]["content"][0].pop("cache_control", None)
        asked: Items = [*sent, {"role": "user", "content": [{"type": "text", "text": "and now?", **mark}]}]
        prompt = manager.preflight("s", asked, dialect="anthropic")
        version = manager.current_plan("s").version
    with manager_on(tmp_path) as manager:
        assert manager.preflight("s", copy.deepcopy(asked), dialect="anthropic") == prompt
        assert (manager.current_plan("s").version, len(manager.history("s"))) == (version, 4)


def test_a_protected_message_that_comes_back_without_its_mark_for_the_cache_is_still_protected(tmp_path: Path) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    history: Items = [{"role": "user", "content": "begin"}, *anthropic_run(2)]
    asked = {"role": "user", "content": [{"type": "text", "text": "Never touch the harbour.", **mark}], "meta": META}
    with manager_on(tmp_path) as manager:
        sent = copy.deepcopy(manager.preflight("s", [*history, assistant("done"), asked], dialect="anthropic"))
        del sent[-1]["content"][0]["cache_control"]
        prompt = manager.preflight("s", [*sent, *anthropic_run(20, 2)], dialect="anthropic")
        assert manager.current_plan("s").version > 0
        assert "Never touch the harbour." in str(prompt)
        assert [message.text for message in manager.history("s") if message.meta.get("protected")] == [
            "Never touch the harbour."
        ]


def test_a_turn_that_says_nothing_is_known_beside_neighbours_that_are_apart() -> None:
    """It was sent as a placeholder, and comes back in a list whose last two items the dialect would join."""
    texts = ("", EMPTY_CONTENT)
    silent, filled = ({"role": "assistant", "content": [{"type": "text", "text": text}]} for text in texts)
    raw: Items = [user("begin"), silent, user("a"), assistant("b"), user("c"), user("d")]
    own = Translator(DIALECTS["anthropic"]).entries(raw)
    translator = Translator(DIALECTS["anthropic"])
    translator.learn(ShownList([user("another prompt"), assistant("b"), user("c")], ["", "m4", "m5"]))
    back = [raw[0], filled, *raw[2:]]
    assert all(map(is_, translator.entries(back, [ShownList(own)]), own))


def test_what_is_new_may_equal_a_part_of_an_item_that_was_sent() -> None:
    """Two of the user's messages went out in one item; one of them is said again, alone."""
    sent = [user("begin"), assistant("b"), user("c"), user("d")]
    back = [sent[0], sent[1], {"role": "user", "content": [text("c"), text("d")]}, assistant("new"), user("c")]
    translator = Translator(DIALECTS["anthropic"])
    translator.learn(ShownList([user("another prompt"), assistant("b"), user("c")], ["", "m2", "m3"]))
    later = [*sent[:3], user("d, cut")]
    entries = translator.entries(back, [ShownList(shown, ["m1", "m2", "m3", "m4"]) for shown in (later, sent)])
    assert len(entries) == 6
    assert all(map(is_, entries[:4], sent))


def test_neighbours_that_are_together_here_and_apart_there_are_known() -> None:
    """Equal messages: some were sent in one item, and others are apart, as the caller has added them."""
    own = [user("begin"), assistant("b"), user("ok"), user("ok"), assistant("b"), user("ok"), user("ok"), user("end")]
    back = [own[0], own[1], {"role": "user", "content": [text("ok"), text("ok")]}, *own[4:]]
    translator = Translator(DIALECTS["anthropic"])
    translator.learn(ShownList([user("another prompt"), assistant("b"), user("end")], ["", "m2", "m8"]))
    entries = translator.entries(back, [ShownList(own, [f"m{n}" for n in range(1, 9)])])
    assert len(entries) == len(own)
    assert all(map(is_, entries, own))


SAID = {"a": "yes", "b": "continue", "c": "zk_002 delta alpha delta sigma beta", "d": "long " * 30}


def said(letters: str) -> Items:
    """Return what a user and an agent say in turn: the same few things again and again."""
    return [(user, assistant)[number % 2](SAID[letter]) for number, letter in enumerate(letters)]


def test_a_prompt_from_before_an_edit_is_known_by_our_summary_however_often_the_rest_was_said() -> None:
    """It was taken for another list that had more of the same words, and the summary for the user's."""
    config = CompactConfig(
        max_context_tokens=600,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 1},
        state={"url": "memory:"},
        telemetry={"exporter": "none"},
        summarizer={"prefetch": "never"},
    )
    with CompactManager(config) as manager:
        prompt = manager.preflight("s", said("cdcdcddaabaddbdcacdcbdcdbbdcd"), dialect="anthropic")
        manager.preflight("s", said("adcdcddaabcddbdcacdcbdcdbbdcdddcdadbdad"), dialect="anthropic")
        manager.preflight("s", [*prompt, assistant(SAID["c"]), user(SAID["c"])], dialect="anthropic")
        assert not any("<COMPACT-SUMMARY" in message.text for message in manager.history("s"))


# -- calls without ids ----------------------------------------------------------------------------------------------


def without_ids(name: str, rounds: Iterable[tuple[str, Sequence[str]]]) -> Items:
    """Return questions, each with an answer that calls functions at once, and their results, which all say the same."""
    if name == "gemini":
        return [
            content
            for question, called in rounds
            for content in (
                gemini("user", question),
                {"role": "model", "parts": [{"functionCall": {"name": f, "args": {}}} for f in called]},
                *(
                    {"role": "user", "parts": [{"functionResponse": {"name": f, "response": {"output": "ok"}}}]}
                    for f in called
                ),
            )
        ]
    return [
        message
        for question, called in rounds
        for message in (
            user(question),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": f, "arguments": {}}} for f in called],
            },
            *({"role": "tool", "tool_name": f, "content": "ok"} for f in called),
        )
    ]


ROUNDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("name", ["ollama", "gemini"])
@settings(max_examples=200)
@given(ROUNDS, ROUNDS, st.integers(0, 3), st.integers(0, 3))
def test_results_without_ids_belong_to_their_calls_whatever_the_list_was_before(
    name: str, before: list[tuple[str, list[str]]], now: list[tuple[str, list[str]]], cut: int, tail: int
) -> None:
    """They have the numbers that they have in a list that nobody has seen before."""
    translator, items = Translator(DIALECTS[name]), without_ids(name, now)
    lists = [without_ids(name, before)[cut:], items, without_ids(name, [*before, *now])[tail:], items]
    for given_items in lists:
        shown = translator.items(translator.entries(given_items))
        assert [belongs(entry) for entry in translator.entries(given_items)] == [
            belongs(entry) for entry in Translator(DIALECTS[name]).entries(given_items)
        ]
        assert shown == given_items


def belongs(entry: dict[str, Any]) -> tuple[object, ...]:
    calls = entry.get("tool_calls") or ()
    return (entry["role"], entry.get("tool_call_id"), *((call["id"], call["function"]["name"]) for call in calls))


@pytest.mark.parametrize("name", ["ollama", "gemini"])
def test_a_result_that_has_another_beside_it_after_an_edit_is_that_of_the_other_call(name: str) -> None:
    """It was taken for the result that it was before: that of a call that is gone, and its own call had none."""
    config = CompactConfig(max_context_tokens=32_000, state={"url": "memory:"}, telemetry={"exporter": "none"})
    with CompactManager(config) as manager:
        for rounds in ([("Look.", ["f"])], [("Look at both.", ["g", "f"])]):
            items = without_ids(name, rounds)
            assert manager.preflight("s", items, dialect=name) == items


@pytest.mark.parametrize("name", ["ollama", "gemini"])
def test_a_result_that_was_missing_is_that_of_its_call(name: str) -> None:
    """The agent was interrupted between two results, and puts the second in where it belongs."""
    whole, translator = (
        without_ids(name, [("Look at both.", ["f", "f"]), ("Go on.", ["g"])]),
        Translator(DIALECTS[name]),
    )
    translator.entries([*whole[:3], whole[4]])
    translator.items(translator.entries([*whole[:3], whole[4]]))
    assert list(map(belongs, translator.entries(whole))) == list(
        map(belongs, Translator(DIALECTS[name]).entries(whole))
    )


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def gemini(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def test_a_line_of_ours_stays_where_it_was_sent(tmp_path: Path) -> None:
    """Gemini wants the user to speak last; what stands there for that comes back in the middle of a list."""
    history = [gemini(role, f"{role} {n} " + "word " * 12) for n in range(14) for role in ("user", "model")]
    with manager_on(tmp_path) as manager:
        sent = copy.deepcopy(manager.preflight("s", history, dialect="gemini"))
        assert sent[-1]["parts"][0]["text"] == CLOSING
        version = manager.current_plan("s").version
        for new in ([gemini("model", "m")], [gemini("user", "u"), gemini("model", "n")], [gemini("model", "o")]):
            prompt = manager.preflight("s", [*copy.deepcopy(sent), *new], dialect="gemini")
            assert manager.current_plan("s").version == version
            before, now = ([part for item in items for part in item["parts"]] for items in (sent, prompt))
            assert now[: len(before)] == before
            sent = copy.deepcopy(prompt)


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "converse"])
def test_neighbours_are_known_apart_in_a_list_that_begins_with_the_assistant(dialect: str, tmp_path: Path) -> None:
    """A line of ours before it makes the list as long as the neighbours make it shorter."""
    key, agent = ("parts", "model") if dialect == "gemini" else ("content", "assistant")

    def write(role: str, text: str) -> dict[str, Any]:
        return {"role": role, key: text if dialect == "anthropic" else [{"text": text}]}

    history = [write(agent, "hi"), write("user", "q2"), {**write("user", "keep"), "meta": META}, write(agent, "ok")]
    with manager_on(tmp_path) as manager:
        sent = copy.deepcopy(manager.preflight("s", [*history, write("user", "q3")], dialect=dialect))
    with manager_on(tmp_path) as manager:
        manager.preflight("s", sent, dialect=dialect)
        assert [message.text for message in manager.history("s")] == ["hi", "q2", "keep", "ok", "q3"]


# -- our own messages beside dicts -------------------------------------------------------------------------------------


def mixed(turns: int) -> list[Any]:
    """Return a protected dict among messages of ours."""
    history: list[Any] = [Message("system", "Be brief."), user("Keep this.", **META)]
    for number in range(turns):
        call = ToolCall(f"c{number}", "read", '{"path": "a.py"}')
        history += [
            Message("assistant", None, tool_calls=(call,)),
            Message("tool", f"line {number} " * 30, tool_call_id=f"c{number}"),
            Message("assistant", f"I have read line {number}."),
            Message("user", f"And line {number + 1}?"),
        ]
    return history


@pytest.mark.parametrize("sends", ["history", "prompt"])
def test_a_protected_dict_may_stand_among_our_own_messages(sends: str, tmp_path: Path) -> None:
    with manager_on(tmp_path) as manager:
        prompt = list[Any]()
        for turns in range(1, 13):
            new = mixed(turns)[2 + 4 * (turns - 1) :] if turns > 1 else mixed(1)
            prompt = manager.preflight("s", [*prompt, *new] if sends == "prompt" else mixed(turns))
            assert manager.preflight("s", copy.deepcopy(prompt)) == prompt
        assert manager.current_plan("s").summary
        assert len(manager.history("s")) == len(mixed(12))
        # What a plan has changed is a message of ours, too.
        kept, summary = (item for item in prompt if not isinstance(item, Message))
        assert kept == user("Keep this.")
        assert "<COMPACT-SUMMARY" in summary["content"]
    with manager_on(tmp_path) as again:
        assert again.preflight("s", prompt) == prompt
        assert len(again.history("s")) == len(mixed(12))
