"""Marks for a provider's cache move from message to message: they are no part of the conversation."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.dialects import get_dialect
from compact.dialects.dialect import without_cache_marks
from compact.testing import WordTokenizer

MARK = {"type": "ephemeral"}
Items = list[dict[str, Any]]


def anthropic_session(turns: int) -> Items:
    items: Items = [{"role": "user", "content": [{"type": "text", "text": "Port the billing service."}]}]
    for n in range(turns):
        use = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"src/part_{n}.py"}}
        printed = [{"type": "text", "text": f"part {n} " + "word " * 60}]
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": printed}
        items.append({"role": "assistant", "content": [{"type": "text", "text": f"I read part {n}."}, use]})
        asked = [{"type": "text", "text": f"go on with {n}"}] if n % 3 == 0 else []
        items.append({"role": "user", "content": [result, *asked]})
    return items


def converse_session(turns: int) -> Items:
    items: Items = []
    for n in range(turns):
        items.append({"role": "user", "content": [{"text": f"question {n} " + "word " * 40}]})
        items.append({"role": "assistant", "content": [{"text": f"answer {n} " + "word " * 40}]})
    return items


def chat_session(turns: int) -> Items:
    items: Items = []
    for n in range(turns):
        items.append({"role": "user", "content": [{"type": "text", "text": f"question {n} " + "word " * 40}]})
        items.append({"role": "assistant", "content": f"answer {n} " + "word " * 40})
    return items


def plain_text_session(turns: int) -> Items:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"message {n} " + "word " * 50, **{}}
        for n in range(2 * turns)
    ]


def with_marks(items: Items) -> Items:
    """Return a copy with marks on the last two messages of the user, a plain text in a list of its own."""
    marked = copy.deepcopy(items)
    for item in [item for item in marked if item["role"] == "user"][-2:]:
        parts: list[Any] = item["content"]
        if isinstance(item["content"], str):
            parts = item["content"] = [{"type": "text", "text": item["content"]}]
        if "type" in parts[-1]:
            parts[-1]["cache_control"] = MARK
        else:
            parts.append({"cachePoint": {"type": "default"}})
    return marked


def marks_in(items: Items) -> int:
    return str(items).count("cache_control") + str(items).count("cachePoint")


def run(session: Items, dialect: str, folder: Path, *, moves: bool) -> tuple[CompactManager, list[Items]]:
    config = CompactConfig(
        max_context_tokens=2_000,
        policy={"hard_cap_buffer": 0},
        state={"url": f"sqlite:///{folder / 'compact.db'}"},
        storage={"path": str(folder / "archive")},
        telemetry={"exporter": "none"},
    )
    manager = CompactManager(config, tokenizer=WordTokenizer())
    prompts: list[Items] = []
    for length in range(1, len(session) + 1, 2):
        items = with_marks(session[:length]) if moves else copy.deepcopy(session[:length])
        prompts.append(manager.preflight("s", items, dialect=dialect))
        if moves:
            assert prompts[-1][-1] is items[-1], "the newest message goes out with its mark"
    return manager, prompts


@pytest.mark.parametrize(
    ("session", "dialect"),
    [
        (anthropic_session(40), "anthropic"),
        (chat_session(40), "chat"),
        (plain_text_session(40), "anthropic"),
        (converse_session(40), "converse"),
    ],
    ids=["anthropic", "chat", "plain text", "converse"],
)
def test_moving_marks_cost_nothing(session: Items, dialect: str, tmp_path: Path) -> None:
    (tmp_path / "still").mkdir()
    (tmp_path / "moved").mkdir()
    still, expected = run(session, dialect, tmp_path / "still", moves=False)
    moved, prompts = run(session, dialect, tmp_path / "moved", moves=True)
    with still, moved:
        assert len(moved.plans("s")) == len(still.plans("s")) > 1
        assert len(moved.history("s")) == len(still.history("s"))
        assert len(moved.recall("s", "part 3").entries) == len(still.recall("s", "part 3").entries)
        for prompt, plain in zip(prompts, expected, strict=True):
            assert len(prompt) == len(plain)
            assert marks_in(prompt) <= 2
            assert not get_dialect(dialect).check(prompt)
    sizes = [(tmp_path / folder / "compact.db").stat().st_size for folder in ("still", "moved")]
    assert sizes[1] <= 1.2 * sizes[0]


def test_a_mark_that_stays_where_it_is_goes_out_with_every_prompt(tmp_path: Path) -> None:
    session = anthropic_session(3)
    session[0]["content"][0]["cache_control"] = MARK
    _, prompts = run(session, "anthropic", tmp_path, moves=False)
    assert all(marks_in(prompt) == 1 for prompt in prompts)


def test_only_marks_are_taken_off() -> None:
    text = {"type": "text", "text": "x"}
    other = {"type": "text", "text": "cache_control"}
    result = {"type": "tool_result", "tool_use_id": "c"}
    marked = {**result, "content": [{**text, "cache_control": MARK}], "cache_control": MARK}
    plain = {**result, "content": [text]}
    item = {"role": "user", "content": [marked, other]}
    assert without_cache_marks(item) == {"role": "user", "content": [plain, other]}
    unmarked = {"role": "user", "content": [text]}
    assert without_cache_marks(unmarked) is unmarked
