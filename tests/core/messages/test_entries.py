"""Reading items into entries, and writing them back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compact.core.errors import InvalidHistory
from compact.core.messages.entries import read_entry, read_own_entry, write_entry


def test_an_entry_shares_nothing_with_the_item_it_was_read_from() -> None:
    item: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "as it was"}], "extra": {"a": [1]}}
    before = copy.deepcopy(item)
    entry = read_entry(item, "messages[0]")
    item["content"][0]["text"] = "changed by the caller"
    item["extra"]["a"].append(2)
    assert write_entry(entry, like=None) == before


def test_an_item_that_is_nested_too_deeply_is_named_with_its_place() -> None:
    content: list[Any] = []
    for _ in range(100_000):
        content = [content]
    with pytest.raises(InvalidHistory, match="nested too deeply") as caught:
        read_entry({"role": "user", "content": content}, "messages[7]")
    assert "messages[7]" in str(caught.value)


@pytest.mark.parametrize("role", [None, "", "oracle", 7])
def test_a_role_that_no_provider_knows_is_refused(role: object) -> None:
    """Whether the item is the caller's or our own."""
    for read in (read_entry, read_own_entry):
        with pytest.raises(InvalidHistory, match="role") as caught:
            read({"role": role, "content": "x"}, "messages[3]")
        assert "messages[3]" in str(caught.value)
