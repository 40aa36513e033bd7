"""The data files of constraints: every line is well formed and does something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compact.constraints.score import features, is_foreign
from compact.constraints.word_lists import Cue, english_cues, foreign_cues, one_of, word_class

EXAMPLES = Path(__file__).parents[2] / "benchmarks" / "constraint_examples"
CUES = (*english_cues(), *foreign_cues())


def tail_of(line: str) -> str:
    return line.partition("::")[2].strip()


def depth_of_alternatives(tail: str) -> int:
    """Return how deep in brackets the outermost `|` stands; 1 if there is none."""
    depth, least, in_class = 0, 1, False
    for mark in re.sub(r"\\.", "", tail):
        if in_class or mark == "[":
            in_class = mark != "]"
        elif mark in "()":
            depth += 1 if mark == "(" else -1
        elif mark == "|":
            least = min(least, depth)
    return least


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.name)
def test_every_line_of_a_cue_has_first_words_and_no_alternatives_outside_brackets(cue: Cue) -> None:
    """`a|b` without brackets would ask for the first words only before `a`."""
    assert cue.lines
    for line in cue.lines:
        assert line.partition("::")[0].split(), line
        assert line.count("::") <= 1, line
        assert depth_of_alternatives(tail_of(line)) == 1, line


def test_every_class_that_a_cue_names_has_words() -> None:
    named = {name for cue in CUES for line in cue.lines for name in re.findall(r"<([a-z-]+)>", line)}
    assert len(named) > 8
    assert all(word_class(name) for name in named)


def test_every_cue_is_found_in_some_example() -> None:
    lines = [line for path in sorted(EXAMPLES.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {feature for line in lines for feature in features(line) if feature.startswith("=")}
    assert {f"={cue.name}" for cue in english_cues()} <= found


@pytest.mark.parametrize(
    "text",
    [
        "ab jetzt nur noch Tee", "désormais en bleu", "de ahora en adelante", "d'ora in poi", "de agora em diante",
        "voortaan graag", "bundan sonra", "od teraz",
        "впредь так", "以后都这样", "今後はこれで", "앞으로 이렇게", "हमेशा",
    ],
)  # fmt: skip
def test_cues_of_other_languages_are_recognised(text: str) -> None:
    assert is_foreign(text)


def test_english_has_no_cue_of_another_language() -> None:
    lines = (EXAMPLES / "statements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if is_foreign(line)] == []


@pytest.mark.parametrize(
    ("file", "section"),
    [
        ("retractions", "withdraws"),
        ("retractions", "interjections"),
        ("retractions", "withdraws-previous"),
        ("retractions", "asks-nothing-new"),
        ("retractions", "required"),
        ("retractions", "change"),
        ("retractions", "names-a-constraint"),
        ("neighbours", "continues"),
        ("neighbours", "explains"),
        ("neighbours", "refers-back"),
        ("languages", "unspaced"),
    ],
)
def test_every_pattern_compiles_and_matches_no_empty_text(file: str, section: str) -> None:
    assert not re.compile(one_of(file, section)).match("")


def test_words_of_a_retraction_are_written_in_small_letters() -> None:
    """A sentence is searched for them in small letters: a capital would never be found."""
    assert not re.search(r"(?<!\\)[A-Z]", one_of("retractions", "required"))
