"""Messages as JSON lines: the wire form exactly, and no content that cannot be written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compact.archive.json_lines import message_record, to_line, transcript_lines
from compact.core.messages.message import Message

# Two halves that happen to stand side by side are one character in JSON, so such texts are left out.
TEXT = st.text(st.characters(exclude_categories=()), max_size=12).filter(
    lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text)
)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(LEAF, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=6)


@given(st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=3))
def test_wire_forms_come_back_exactly_one_a_line(wires: list[dict[str, Any]]) -> None:
    data = transcript_lines([Message("user", original=wire) for wire in wires])
    lines = data.decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == wires


def test_readable_text_stays_readable_beside_a_half_surrogate() -> None:
    good, bad = transcript_lines([Message("user", "größer 世界"), Message("user", "\ud800")]).splitlines()
    assert "größer 世界" in good.decode()
    assert b"\\ud800" in bad


def test_what_is_not_json_is_written_as_near_as_possible() -> None:
    @dataclass
    class Point:
        x: int

    event = {
        "bytes": b"\xff\x00",
        "nan": float("nan"),
        "proxy": MappingProxyType({"a": 1}),
        "point": Point(3),
        "path": Path("/x"),
        1: (1, 2),
        ("k", 1): {7},
    }
    expected = {
        "bytes": "/wA=", "nan": "nan", "proxy": {"a": 1}, "point": {"x": 3}, "path": "/x", "1": [1, 2], "('k', 1)": [7],
    }  # fmt: skip
    assert json.loads(to_line(event)) == expected  # type: ignore[arg-type]


def test_data_that_contains_itself_is_cut() -> None:
    event: dict[str, Any] = {"name": "loop"}
    event["self"] = event
    assert json.loads(to_line(event))["self"]["self"]["name"] == "loop"


def test_the_callers_dict_is_used_even_if_it_differs_and_anything_else_is_not() -> None:
    assert message_record(Message("user", "x", original={"role": "user", "n": 1})) == {"role": "user", "n": 1}
    assert message_record(Message("user", "x", original=["opaque"])) == {"role": "user", "content": "x"}
