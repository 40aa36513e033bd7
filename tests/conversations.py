"""Random conversations for Hypothesis: parallel calls, missing results, protected messages anywhere, odd text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from compact.strategies import (
    ClearStrategy,
    DeduplicateStrategy,
    DropStrategy,
    ExternalizeStrategy,
    SummarizeStrategy,
)

Wire = dict[str, Any]

# The usual strategies, for messages of a few words.
SMALL_STRATEGIES = (
    DeduplicateStrategy(min_tokens=20),
    ClearStrategy(min_tokens=20),
    ExternalizeStrategy(min_tokens=50, min_tokens_non_replayable=20),
    SummarizeStrategy(fills_target=True),
    DropStrategy(),
)

_words = st.sampled_from(
    [
        "alpha",
        "src/app/main.py",
        "берег",
        "漢字",
        "🧠",
        "id-4711",
        "error: no such file",
        "line\nbreak",
        "'ſ",
        "\ud800",
        "",
    ]
)
texts = st.lists(_words, max_size=12).map(" ".join)
long_texts = st.builds(lambda word, count: " ".join([word] * count), _words.filter(bool), st.integers(100, 400))
contents = st.one_of(texts, texts, texts, long_texts)
_tools = st.sampled_from(["read_file", "edit_file", "bash", "think", "ask_user"])


@st.composite
def exchanges(draw: st.DrawFn, *, legal: bool) -> list[Wire]:
    """An assistant message with one to three calls, and their results, sometimes not all, sometimes not there."""
    # Ids are drawn from few, so that they repeat across (and sometimes within) messages.
    ids = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=legal))
    calls = [
        {
            "id": f"call-{call_id}",
            "type": "function",
            "function": {"name": draw(_tools), "arguments": json.dumps({"path": draw(texts)})},
        }
        for call_id in ids
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(contents)} for call in calls]
    if not legal:
        results = draw(st.permutations(results)) if draw(st.booleans()) else results[: draw(st.integers(0, 3))]
    content = draw(st.one_of(st.none(), texts))
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]


@st.composite
def _plain(draw: st.DrawFn) -> list[Wire]:
    role = draw(st.sampled_from(["user"] * 6 + ["assistant"] * 6 + ["developer"]))
    message: Wire = {"role": role, "content": draw(contents)}
    if draw(st.integers(0, 14)) == 0:
        message["meta"] = {"protected": True, "label": "keep"}
    if draw(st.integers(0, 9)) == 0:
        message["content"] = [{"type": "text", "text": draw(texts)}, {"type": "custom", "x": [1, {"y": None}]}]
    if draw(st.integers(0, 19)) == 0:
        message["x_unknown"] = {"deep": [draw(texts)]}
    return [message]


def _broken() -> st.SearchStrategy[list[Wire]]:
    return st.sampled_from(
        [
            [{"role": "tool", "tool_call_id": "nobody", "content": "an orphan"}],
            [{"role": "assistant", "content": None}],
            [{"role": "user", "content": None, "id": "twice"}],
            [{"role": "user", "content": [], "id": "twice"}],
        ]
    )


def histories(*, legal: bool = False, min_size: int = 0, max_size: int = 25) -> st.SearchStrategy[list[Wire]]:
    """Whole conversations; legal ones are what a well-behaved framework sends."""
    chunks = [_plain(), _plain(), exchanges(legal=True)]
    if not legal:
        chunks += [exchanges(legal=False), _broken()]
    opening = st.sampled_from([[], [{"role": "system", "content": "you are careful"}]])
    body = st.lists(st.one_of(chunks), min_size=min_size, max_size=max_size)
    return st.builds(lambda start, rest: start + [m for chunk in rest for m in chunk], opening, body)
