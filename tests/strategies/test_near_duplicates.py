"""Near duplicates: what a later result repeats almost word for word goes, and nothing that only the older one says."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.plan.durability import ToolDurability, ToolDurabilityPolicy
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import Goal
from compact.core.planning.coordinator import CompactionCoordinator
from compact.strategies import DeduplicateStrategy
from compact.strategies.near_duplicates import LaterTexts, aligned
from compact.testing import Wire, WordTokenizer, check_strategy, dialogue, tool_exchange, tool_run, user
from conversations import histories

EVERYTHING = Goal(target_tokens=0, settle_tokens=10**9, ceiling_tokens=10**9)
LISTING = [f"-rw-r--r-- 1 app app {1000 + n} file_{n}.py" for n in range(40)]


def read(history: list[Wire]) -> list[Message]:
    entries = (read_entry(item, "x") for item in history)
    return [replace(message, id=f"m{place}") for place, message in enumerate(entries, 1)]


def shown(history: list[Wire], **settings: Any) -> dict[str, str]:
    """The results as a prompt shows them, by their call."""
    messages = read(history)
    count = WordTokenizer().count_message
    result = CompactionCoordinator([DeduplicateStrategy(**{"near_duplicates": True, **settings})]).coordinate(
        messages,
        CompactionPlan("s"),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(recent_turns=1, tool_io_pairs=1),
        goal=EVERYTHING,
    )
    rendered = PromptRenderer().render(messages, result.plan).messages
    return {message.tool_call_id or "": message.text for message in rendered if message.role == "tool"}


def twice(old: str, new: str, *, tool: str = "bash", **settings: Any) -> dict[str, str]:
    first, second = (tool_exchange(i, text, tool=tool, run=i) for i, text in (("old", old), ("new", new)))
    return shown([user("go"), *first, *second, *tool_run(1)], **settings)


def test_a_listing_with_a_new_timestamp_is_told_once() -> None:
    old, new = ["as of 12:03", *LISTING], ["as of 14:55", *LISTING]
    results = twice("\n".join(old), "\n".join(new))
    assert results["new"] == "\n".join(new)
    assert results["old"].splitlines()[0] == "as of 12:03"
    assert "the later bash result m5 has the same, but for what is kept here" in results["old"]
    assert "file_20.py" not in results["old"]


def test_a_file_read_by_another_call_after_a_small_edit_keeps_the_line_as_it_was() -> None:
    code = [f"    step_{n}(order, {n})" for n in range(60)]
    edited = [*code[:30], "    step_30(order, limit=99)", *code[31:]]
    results = twice("\n".join(code), "\n".join(edited))
    assert "    step_29(order, 29)\n    step_30(order, 30)" in results["old"]
    assert "with 1 line between not here" in results["old"]
    assert len(results["old"]) < 200


@pytest.mark.parametrize("flag", [False, True])
def test_it_is_off_by_default(flag: bool) -> None:
    text = "\n".join(LISTING)
    assert ("has the same" in twice(text, text, near_duplicates=flag)["old"]) == flag
    assert not CompactConfig().strategies.deduplicate.near_duplicates


def test_the_setting_reaches_a_session() -> None:
    config = CompactConfig(
        max_context_tokens=2_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
        strategies={"enabled": ["deduplicate"], "deduplicate": {"near_duplicates": True}},
        state={"url": "memory:"},
        telemetry={"exporter": "none"},
    )
    text = "\n".join(LISTING)
    history = [user("go"), *tool_exchange("a", text, tool="bash"), *tool_exchange("b", f"{text}\ndone", tool="bash")]
    history += [*tool_exchange("c", "word " * 900, tool="bash"), *dialogue(2, words=200)]
    manager = CompactManager(config, tokenizer=WordTokenizer())
    prompt = manager.preflight("s", history)
    assert "the later bash result m5 has the same" in str(prompt)
    assert text in str(manager.recall("s", "m3"))


# -- what must not be taken for the same --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [("refund limit: 500 EUR", "refund limit: 50 EUR"), ("status: approved", "status: denied"), ("x = 1", "x = -1")],
)
def test_two_results_that_differ_in_one_value_are_both_readable(old: str, new: str) -> None:
    page = [f"paragraph {n} of the policy says the same as ever" for n in range(50)]
    results = twice("\n".join([*page[:20], old, *page[20:]]), "\n".join([*page[:20], new, *page[20:]]))
    assert f"{page[19]}\n{old}" in results["old"], "with the line before it, that says where it was"
    assert new in results["new"]
    assert old not in results["new"]


def test_a_value_in_json_on_one_line_is_readable_with_the_field_before_it() -> None:
    def order(price: float) -> str:
        items = [{"item_id": f"IT-{n}", "price": price if n == 7 else 10.0 + n, "in_stock": True} for n in range(20)]
        return json.dumps({"order_id": "W123", "items": items})

    results = twice(order(499.0), order(49.0))
    assert '{"item_id": "IT-7", "price": 499.0' in " ".join(results["old"].split())
    assert "has the same" in results["old"]
    assert '"price": 49.0' in results["new"]


def test_the_same_lines_in_another_order_are_another_thing() -> None:
    """Two prices that were exchanged: as sets of lines both texts are the same."""
    rows = [line for n in range(30) for line in (f"item {n}", f"price {n * 10}")]
    swapped = list(rows)
    swapped[11], swapped[41] = rows[41], rows[11]
    old = twice("\n".join(rows), "\n".join(swapped))["old"]
    assert "item 5\nprice 50" in old
    assert "item 20\nprice 200" in old


def test_a_choice_of_lines_out_of_a_longer_text_stays() -> None:
    """The errors of a log, and then all of it: that these are all of its errors only the older result says."""
    log = [f"{'ERROR' if n % 5 == 0 else 'info'} event {n} was handled by worker {n % 3}" for n in range(200)]
    errors = [line for line in log if "ERROR" in line]
    assert twice("\n".join(errors), "\n".join(log))["old"] == "\n".join(errors)
    part = "\n".join(log[100:150])
    assert "has the same" in twice(part, "\n".join(log))["old"], "a part of it, whole"


def test_what_has_little_in_common_and_what_is_of_another_tool_stays() -> None:
    text, other = "\n".join(LISTING), "\n".join([*LISTING[:25], *(f"other {n}" for n in range(30))])
    assert twice(text, other)["old"] == text
    first, second = tool_exchange("old", text, tool="bash"), tool_exchange("new", text, tool="ssh")
    assert shown([user("go"), *first, *second, *tool_run(1)])["old"] == text


def test_results_that_may_never_be_cleared_stay() -> None:
    text = "\n".join(LISTING)
    assert twice(text, text, tool="ask_user")["old"] == text
    assert twice(text, text, tool="customer_record", never_evict=("customer_*",))["old"] == text
    durable = {"ledger_*": ToolDurabilityPolicy(durability=ToolDurability.NON_REPLAYABLE)}
    assert twice(text, text, tool="ledger_rows", policies=durable)["old"] == text
    # A read that is repeated by the same call, too.
    again = [user("go"), *tool_exchange("old", text, path="a"), *tool_exchange("new", text, path="a"), *tool_run(1)]
    assert "was called again" in shown(again)["old"]
    assert shown(again, never_evict=("read_file",))["old"] == text


def test_pictures_with_the_same_text_are_not_the_same() -> None:
    def screenshot(data: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": "\n".join(LISTING)}, {"type": "image_url", "image_url": {"url": data}}]

    history = [user("go"), *tool_exchange("old", "", tool="look"), *tool_exchange("new", "", tool="look"), *tool_run(1)]
    history[2]["content"], history[4]["content"] = screenshot("data:image/png;base64,AA"), screenshot("data:,B")
    assert "has the same" not in shown(history)["old"]


def test_each_stub_names_a_result_that_stands() -> None:
    """Not the next one, which may be a stub itself."""
    exchanges = [tool_exchange(f"c{n}", "\n".join([f"run {n}", *LISTING]), tool="bash", run=n) for n in range(5)]
    results = shown([user("go"), *(message for exchange in exchanges for message in exchange), *tool_run(1)])
    assert [f"run {n}" in results[f"c{n}"] for n in range(5)] == [True] * 5
    assert ["bash result m11 has" in results[f"c{n}"] for n in range(5)] == [True] * 4 + [False]


# -- properties ---------------------------------------------------------------------------------------------------

lines = st.lists(st.sampled_from("abcdefg") | st.text("xyz,; ", min_size=1, max_size=4), max_size=30)


@given(lines, lines)
def test_places_rise_in_both_texts_and_have_the_same_pieces(old: list[str], new: list[str]) -> None:
    matched = sorted(aligned(old, new).items())
    assert all(old[place] == new[other] for place, other in matched)
    assert all(a[1] < b[1] for a, b in pairwise(matched))
    assert len(aligned(old, old)) == len(old)


@given(st.lists(lines, min_size=1, max_size=4), lines)
def test_every_line_that_the_later_text_lacks_is_kept(later: list[list[str]], old: list[str]) -> None:
    texts = LaterTexts(min_similarity=0.1)
    for number, new in enumerate(later):
        texts.add(str(number), "\n".join(new))
    text = "\n".join(old)
    found = texts.find(text)
    if found is not None:
        kept = [line for start, end in found.differing for line in text[start:end].split("\n")]
        assert {line.rstrip() for line in old} - {line.rstrip() for line in later[int(found.later_id)]} <= {
            line.rstrip() for line in kept
        } | {""}


@given(history=histories(max_size=20))
def test_the_strategy_passes_the_suite(history: list[Wire]) -> None:
    strategy = DeduplicateStrategy(min_tokens=1, near_duplicates=True, min_similarity=0.5)
    check_strategy(strategy, read(history))


def test_long_texts_take_no_longer_a_line() -> None:
    """The worst cases: nothing in order, nothing once, everything on one line."""
    count = 60_000
    rising = [f"line {n}" for n in range(count)]
    started = time.process_time()
    aligned(rising, rising[::-1])
    aligned(["x", "y"] * (count // 2), ["y", "x"] * (count // 2))
    texts = LaterTexts(0.8)
    for number in range(4):
        texts.add(str(number), ", ".join([*rising, str(number)]))
    assert texts.find(", ".join(rising)) is not None
    assert time.process_time() - started < 10
