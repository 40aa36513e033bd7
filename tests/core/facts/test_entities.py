"""Specific strings: what is one, what is a plain word, and where each stands."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.entities import EntityKind, entity_kinds, find_entities, kind_of


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.kind.value, entity.text) for entity in find_entities(text)]


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("https://example.org/a/b#c", EntityKind.URL),
        ("www.example.org", EntityKind.URL),
        ("src/compact/core/plan/plan.py", EntityKind.PATH),
        ("/etc/hosts", EntityKind.PATH),
        ("~/.ssh/config", EntityKind.PATH),
        ("../lib/x", EntityKind.PATH),
        ("main.py", EntityKind.PATH),
        ("README.MD", EntityKind.PATH),
        ("archive.tar.gz", EntityKind.PATH),
        (r"C:\Users\me\notes.txt", EntityKind.PATH),
        ("FileNotFoundError", EntityKind.ERROR),
        ("sqlite3.OperationalError", EntityKind.ERROR),
        ("RemovedInDjango50Warning", EntityKind.ERROR),
        ("ENOENT", EntityKind.ERROR),
        ("TS2307", EntityKind.ERROR),
        ("E501", EntityKind.ERROR),
        ("--dry-run", EntityKind.FLAG),
        ("-rf", EntityKind.FLAG),
        ("2024-05-15", EntityKind.DATE),
        ("2026-06-25T15:12:18.6+02:00", EntityKind.DATE),
        ("24.12.2025", EntityKind.DATE),
        ("17:28", EntityKind.DATE),
        ("1,299", EntityKind.NUMBER),
        ("0.0128", EntityKind.NUMBER),
        ("142ms", EntityKind.NUMBER),
        ("28.1KB", EntityKind.NUMBER),
        ("find_entities", EntityKind.IDENTIFIER),
        ("camelCase", EntityKind.IDENTIFIER),
        ("CompactManager", EntityKind.IDENTIFIER),
        ("self.plan.version", EntityKind.IDENTIFIER),
        ("std::vector", EntityKind.IDENTIFIER),
        ("JSON", EntityKind.IDENTIFIER),
        ("838878cc", EntityKind.ID),
        ("HAT011", EntityKind.ID),
        ("gpt-4o", EntityKind.ID),
        ("gpt-4.1-mini", EntityKind.ID),
        ("v2.3.1", EntityKind.ID),
        ("#4711", EntityKind.ID),
        ("me@example.org", EntityKind.ID),
    ],
)
def test_a_shape_says_what_a_string_is(token: str, kind: EntityKind) -> None:
    assert kind_of(token) is kind
    assert (kind.value, token) in found(f"look at {token}, please")


@pytest.mark.parametrize(
    "text",
    [
        "plain words. And More of them",
        "it took 12 of 99",
        "you must NEVER do that",
        "use -n here",
        "3/4 of it",
        "</closing_tag>",
        "Missing/empty, IDLE/ENDED and/or both",
    ],
)
def test_plain_words_small_counts_and_markup_are_not_specific(text: str) -> None:
    assert found(text) == []


def test_escaped_line_ends_part_what_stands_beside_them() -> None:
    assert found(r'{"cmd": "cat a/settings.ts\nsed -i b/main.go\t\u001bcd"}') == [
        ("path", "a/settings.ts"),
        ("path", "b/main.go"),
    ]


def test_punctuation_around_a_string_is_not_part_of_it() -> None:
    assert found("(see src/a/b.py.) **run_it** [id: ORD-4711]; $1,299.00!") == [
        ("path", "src/a/b.py"),
        ("identifier", "run_it"),
        ("id", "ORD-4711"),
        ("number", "1,299.00"),
    ]


def test_names_and_values_are_told_apart() -> None:
    assert found("max_tokens=4096 path:src/x.py --level=debug_all") == [
        ("identifier", "max_tokens"),
        ("number", "4096"),
        ("path", "src/x.py"),
        ("flag", "--level"),
        ("identifier", "debug_all"),
    ]


def test_the_line_of_a_file_is_not_part_of_its_path() -> None:
    assert found("cmd/main.go:12 cmd/main.go-761 cmd/main.go:120") == [
        ("path", "cmd/main.go"),
        ("path", "cmd/main.go"),
        ("path", "cmd/main.go"),
        ("number", "120"),
    ]


def test_a_quoted_phrase_is_one_string_and_what_stands_between_two_is_none() -> None:
    phrases = [text for kind, text in found('say "good morning all" or "not yet" today') if kind == "quoted"]
    assert phrases == ["good morning all", "not yet"]
    assert ("quoted", "git push --force") in found("never `git push --force` here")


def test_a_quoted_phrase_is_found_without_its_place_too() -> None:
    text = 'It says "the harbour is closed" and "closed".'
    assert entity_kinds(text) == {entity.text: entity.kind for entity in find_entities(text)}
    assert entity_kinds(text)["the harbour is closed"] is EntityKind.QUOTED
    assert "closed" not in entity_kinds(text)


def test_plain_words_hide_nothing_beside_them() -> None:
    text = "Say I read a.py\nthe End src/b.py and theN n4me A1b2 as C:\\x\\y do it\tor 1,000 not\n\n x_y"
    expected = ["a.py", "src/b.py", "theN", "n4me", "A1b2", "C:\\x\\y", "1,000", "x_y"]
    assert list(entity_kinds(text)) == [entity.text for entity in find_entities(text)] == expected


def test_data_is_no_name() -> None:
    assert found("a" * 50 + "B1" * 200) == []


@given(st.text(alphabet=st.sampled_from(list("aB1_-./\\:=&\"'`(,) \n#@$%é漢")), max_size=80))
def test_every_string_stands_where_it_says(text: str) -> None:
    entities = list(find_entities(text))
    for entity in entities:
        assert text[entity.start : entity.end] == entity.text
    assert entity_kinds(text).keys() == {entity.text for entity in entities}


@pytest.mark.parametrize("piece", ['"', "'a b ", "\\", "a/", "1,000", "C:\\a", "a_", "A.", "=", "`x y"])
def test_hostile_text_takes_no_longer_than_any_other(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    assert sum(1 for _ in find_entities(text)) >= 0
    assert time.process_time() - start < 10


def test_little_stays_in_memory_after_a_large_session() -> None:
    text = "\n".join(f"src/part{number}/file_{number}.py id-{number:08x}" for number in range(60_000))
    data = "\n".join(f"{number:06d}" + "QUJD" * 20_000 for number in range(50))  # long runs, as base64 has them
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert len(entity_kinds(text)) > 100_000
        assert sum(1 for _ in find_entities(data)) == 0
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert left < 5_000_000
