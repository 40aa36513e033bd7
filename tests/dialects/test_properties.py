"""What must hold in every dialect, over random conversations: compaction is legal, and nothing is lost on the way."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.core.messages.message import Message
from compact.dialects import DIALECTS, Dialect, detect
from compact.dialects.anthropic import check_anthropic
from compact.dialects.dialect import without_cache_marks
from compact.dialects.gemini import check_gemini
from compact.dialects.translation import Translator
from compact.testing import WordTokenizer, check_dialect
from conversations import SMALL_STRATEGIES
from dialect_conversations import PROTECTED, WRITERS, Step, Wire, conversations
from sizes import SCALE

pytestmark = pytest.mark.parametrize("name", WRITERS)
windows = st.sampled_from([260, 500, 1200])
modes = st.sampled_from(["raw", "copies", "sent back"])
few = settings(max_examples=10 * SCALE)


def manager_for(window: int, *, url: str = "memory:", **plugs: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 2},
        state={"url": url},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "strategies": SMALL_STRATEGIES, **plugs})


def bare(items: list[Wire]) -> list[Wire]:
    """Items as they go out: without what is ours."""
    return [{key: value for key, value in item.items() if key != "meta"} for item in items]


def violations(name: str, items: list[Wire], *, strictly: bool = True) -> list[Violation]:
    """What is wrong with a list, but for the fields that it was drawn with."""
    if strictly and name in ("anthropic", "gemini"):
        found = (check_anthropic if name == "anthropic" else check_gemini)(items, alternating=True)
    else:
        found = DIALECTS[name].check(items)
    # A caller that sends a prompt back with new messages may have two neighbours of one role: its own are left alone.
    tolerated = () if strictly else ("roles_alternate",)
    return [one for one in found if "x_unknown" not in one.detail and one.rule not in tolerated]


def log_of(manager: CompactManager, session: str = "s") -> list[object]:
    return [_in_parts(message.original) for message in manager.history(session)]


def entries_of(dialect: Dialect, items: list[Wire]) -> list[object]:
    """What should be in the log after a list was sent."""
    return [_in_parts(entry) for entry in Translator(dialect).entries(items)]


def _in_parts(entry: Any) -> object:
    """Words that the user adds to a turn of results are a part there, and a text where they are a turn of their own."""
    is_text = entry["role"] == "user" and isinstance(entry["content"], str)
    return {**entry, "content": [{"type": "text", "text": entry["content"]}]} if is_text else entry


def calls_in(steps: list[Step]) -> Iterator[int]:
    """Where the model is called: behind the user's words, and behind results."""
    return (end for end in range(1, len(steps) + 1) if steps[end - 1].role == "user" or steps[end - 1].calls)


def preflight(manager: CompactManager, items: list[Wire], name: str, session: str = "s") -> list[Wire]:
    try:
        return manager.preflight(session, items, dialect=name)
    except InsufficientBudget:
        assume(False)
        raise


def run(manager: CompactManager, steps: list[Step], name: str, mode: str) -> Iterator[tuple[int, list[Wire]]]:
    """Every prompt of a session, and the number of steps it was made for."""
    write, carried, done = WRITERS[name], list[Wire](), 0
    for end in calls_in(steps):
        if mode == "sent back":
            whole = carried + write(steps[done:end])
        else:
            whole = write(steps[:end])
            whole = copy.deepcopy(whole) if mode == "copies" else whole
        carried, done = preflight(manager, whole, name), end
        yield end, carried


@given(steps=conversations())
@few
def test_a_dialect_keeps_what_the_doors_rely_on(name: str, steps: list[Step]) -> None:
    """Items, entries, stored entries, items: the identity."""
    items = bare(WRITERS[name](steps))
    assume(not any(step.is_odd for step in steps) or name != "chat")
    assume(not DIALECTS[name].check(items))
    check_dialect(DIALECTS[name], items)


@given(steps=conversations())
@few
def test_below_the_trigger_the_callers_own_objects_come_back(name: str, steps: list[Step]) -> None:
    """A list that fits is the same list, object by object, as long as nothing of ours is in it."""
    items = WRITERS[name](steps)
    before = copy.deepcopy(items)
    manager = manager_for(1_000_000)
    for _ in range(2):
        out = manager.preflight("s", items, dialect=name)
        assert out == bare(items)
        assert all(a is b for a, b in zip(out, items, strict=True) if "meta" not in b)
    assert items == before
    assert log_of(manager) == entries_of(DIALECTS[name], before)


@given(steps=conversations(min_turns=2), window=windows, mode=modes)
@few
def test_every_prompt_is_legal_and_fits_whatever_was_compacted(
    name: str, steps: list[Step], window: int, mode: str
) -> None:
    """Several rounds: legal in the dialect, within the budget, one summary, nothing of ours in it, nothing lost."""
    manager, write = manager_for(window), WRITERS[name]
    for end, out in run(manager, steps, name, mode):
        assert violations(name, out, strictly=mode != "sent back") == []
        assert manager.status("s").used_tokens <= window - 10
        text = json.dumps(out, default=repr)
        assert text.count("<COMPACT-SUMMARY v") == (manager.current_plan("s").summary is not None)
        assert '"meta"' not in text
        assert '"native"' not in text
        assert log_of(manager) == entries_of(DIALECTS[name], write(steps[:end]))


@given(steps=conversations(min_turns=2), window=windows, mode=modes)
@few
def test_protected_items_come_out_as_they_went_in(name: str, steps: list[Step], window: int, mode: str) -> None:
    """Every block of a protected item is in every prompt, and its mark is known however the list comes back.

    Marks for a provider's cache stay as long as nothing else of their turn was written anew.
    """
    manager = manager_for(window)
    for end, out in run(manager, steps, name, mode):
        pinned = [message for message in manager.history("s") if message.meta.get("protected")]
        shown = {id(slot.message) for slot in manager.prompt("s").slots}
        assert all(id(message) in shown for message in pinned)
        marked = [item for item in WRITERS[name](steps[:end]) if item.get("meta") == PROTECTED]
        assert len(pinned) >= len(marked)
        there = list(pieces(list(map(without_cache_marks, bare(out)))))
        assert all(piece in there for piece in pieces(list(map(without_cache_marks, bare(marked)))))


def pieces(items: list[Wire]) -> Iterator[Any]:
    """What items are made of: merged turns have the pieces of each."""
    for item in items:
        inner = item.get("content", item.get("parts"))
        if isinstance(inner, list):
            yield from inner
        elif isinstance(inner, str):
            yield {"type": "text", "text": inner}
        else:
            yield item


@given(steps=conversations(min_turns=2), window=windows)
@few
def test_twice_is_once_and_between_compactions_each_prompt_extends_the_last(
    name: str, steps: list[Step], window: int
) -> None:
    manager, previous, version = manager_for(window), list[Wire](), 0
    for _, out in run(manager, steps, name, "raw"):
        is_same_plan = manager.current_plan("s").version == version
        # What is new may have joined the turn before it: the user's words the results, the model's calls its words.
        assert not is_same_plan or out[: max(0, len(previous) - 2)] == previous[:-2]
        previous, version = out, manager.current_plan("s").version
        assert preflight(manager, copy.deepcopy(out), name) == out
        assert manager.current_plan("s").version == version


@given(steps=conversations(min_turns=2), window=windows, mode=modes)
@settings(few, max_examples=6 * SCALE)
def test_a_session_goes_on_in_another_process(name: str, steps: list[Step], window: int, mode: str) -> None:
    """Every call is made by a new manager on one database, and by one that stays: they say the same."""
    stays, write = manager_for(window), WRITERS[name]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/state.db"
        carried, done = list[Wire](), 0
        for end, wanted in run(stays, steps, name, mode):
            whole = carried + write(steps[done:end]) if mode == "sent back" else write(steps[:end])
            with manager_for(window, url=url) as manager:
                carried, done = preflight(manager, whole, name), end
                assert carried == wanted
                assert log_of(manager) == entries_of(DIALECTS[name], write(steps[:end]))


@given(steps=conversations(min_turns=2), window=windows)
@few
def test_undo_gives_the_items_back(name: str, steps: list[Step], window: int) -> None:
    """Version 0 of the plan is the history as it was; what comes back then is what was sent."""
    items = WRITERS[name](steps)
    manager = manager_for(1_000_000)
    out = manager.manual_compact("s", items, dialect=name)
    assume(manager.current_plan("s").version > 0)
    assert violations(name, out) == []
    manager.restore("s", 0)
    restored = manager.preflight("s", items, dialect=name)
    assert restored == bare(items)
    assert all(a is b for a, b in zip(restored, items, strict=True) if "meta" not in b)
    manager.restore("s", 1)
    assert manager.preflight("s", items, dialect=name) == out


@given(steps=conversations(min_turns=2), window=windows)
@few
def test_injected_content_is_legal_and_leaves_no_trace(name: str, steps: list[Step], window: int) -> None:
    """What injectors add stands in the prompt of one call, also if the list comes back with it."""
    from compact import Injector

    said = Injector("clock", 20, lambda context: f"it is step {len(context.messages)}")
    manager = manager_for(window, injectors=[said])
    for mode in ("raw", "sent back"):
        for end, out in run(manager, steps, name, mode):
            assert violations(name, out, strictly=mode == "raw") == []
            assert "it is step" in json.dumps(out[-1], default=repr)
            assert json.dumps(out, default=repr).count("it is step") == 1
            if mode == "raw":
                assert log_of(manager) == entries_of(DIALECTS[name], WRITERS[name](steps[:end]))


@given(steps=conversations(min_turns=2))
@few
def test_the_dialect_of_a_list_is_found_out(name: str, steps: list[Step]) -> None:
    if name == "ollama":  # users of Chat Completions have such messages, too: it must be named
        return
    items = WRITERS[name](steps)
    found = detect(items)
    assert found is None or found.name == name
    assert found or name in ("chat", "anthropic", "responses", "vercel")


@given(steps=conversations(min_turns=1, max_turns=3))
@few
def test_entries_are_json_and_legal_chat_completions(name: str, steps: list[Step]) -> None:
    """The log has one form, whatever the dialect: calls have their results, nothing is empty, all can be stored."""
    entries = entries_of(DIALECTS[name], WRITERS[name](steps))
    assert json.loads(json.dumps(entries)) == entries
    read = [read_entry(entry, "entry") for entry in entries]
    assert check_chat(read) == ()
    said = [step.text for step in steps if step.text] + [call.result for step in steps for call in step.calls]
    told = "\n".join(message.text for message in read)
    assert all(isinstance(message, Message) and text in told for message in read for text in said)


def test_the_properties_reach_compaction(name: str) -> None:
    """The generator is worth nothing if no drawn conversation is ever compacted."""
    versions: list[int] = []

    @given(conversations(min_turns=3))
    @settings(max_examples=8, database=None)
    def measure(steps: list[Step]) -> None:
        manager = manager_for(500)
        for _ in run(manager, steps, name, "raw"):
            pass
        versions.append(manager.current_plan("s").version)

    measure()
    assert sum(versions) >= 4
