"""The names of the archive: exact where they are promised, safe for any session id, and never shared."""

from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.archive.names import folder_name, free_names, summary_name, transcript_name

ANY_TEXT = st.text(st.characters(exclude_categories=()))
SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def test_names_are_the_promised_ones() -> None:
    assert transcript_name(1) == "transcript-pre-compact-001.jsonl"
    assert summary_name(12) == "summary-012.json"
    assert transcript_name(1000) == "transcript-pre-compact-1000.jsonl"


@pytest.mark.parametrize("plain", ["session-abc-123", "a", "_x", "2024.01.02", "A" * 100, "console", "a--b", "nul-1"])
def test_plain_ids_stand_for_themselves(plain: str) -> None:
    assert folder_name(plain) == plain


@pytest.mark.parametrize(
    ("session_id", "readable"),
    [
        ("../../x", "x"), ("/etc/passwd", "etc-passwd"), ("", "session"), ("   ", "session"), ("..", "session"),
        ("nul\0byte", "nul-byte"), ("Grüße", "Gr-e"), ("世界", "session"), ("CON", "CON"), ("aux.txt", "aux-txt"),
        ("com7", "com7"), ("end.", "end"), ("-rf", "rf"), (".git", "git"), ("user@example.org", "user-example-org"),
        ("x" * 101, "x" * 40), ("plain\n", "plain"),
    ],
)  # fmt: skip
def test_other_ids_get_a_readable_name_and_a_hash(session_id: str, readable: str) -> None:
    name, _, digest = folder_name(session_id).rpartition("--")
    assert name == readable
    assert re.fullmatch(r"[a-z2-7]{24}", digest)


@pytest.mark.parametrize("change", [str, str.upper])
def test_an_id_that_looks_like_a_mapped_name_is_mapped_itself(change: type[str]) -> None:
    mapped = change(folder_name("../../x"))
    assert folder_name(mapped).lower() != mapped.lower()


@given(ANY_TEXT)
def test_every_name_is_safe(session_id: str) -> None:
    name = folder_name(session_id)
    assert SAFE.fullmatch(name)
    assert not name.endswith(".")
    assert not re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name, re.IGNORECASE)


@given(st.sets(ANY_TEXT | st.from_regex(SAFE, fullmatch=True), max_size=20))
def test_no_two_ids_share_a_name(ids: set[str]) -> None:
    ids |= {folder_name(each) for each in ids}
    ids |= {folder_name(each) for each in ids}
    assert len({folder_name(each) for each in ids}) == len(ids)


@pytest.mark.parametrize(
    ("one", "other"), [("\ud800", "\ud801"), ("a/b", "a b"), ("é", "e\u0301"), ("", " "), ("a\0", "a")]
)
def test_ids_that_look_alike_do_not_share_a_name(one: str, other: str) -> None:
    assert folder_name(one) != folder_name(other)


def test_taken_names_are_numbered_and_in_the_end_unique() -> None:
    names = list(islice(free_names("summary-001.json"), 25))
    assert names[:3] == ["summary-001.json", "summary-001-2.json", "summary-001-3.json"]
    assert len(set(names)) == 25
    assert re.fullmatch(r"summary-001-[0-9a-f]{16}\.json", names[-1])
