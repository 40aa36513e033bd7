"""The labels of kept constraints: given by hand, joined by hash, and enough of them wishes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from compact.constraints import LearnedConstraints

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import constraint_precision  # noqa: E402
import transcripts  # noqa: E402
from constraint_precision import KeptSentence, is_held_out, sentence_hash  # noqa: E402

DATA = Path(os.environ.get("COMPACT_DATA", ROOT.parent / "shared/data"))
LINES = [json.loads(line) for line in constraint_precision.LABELS.read_text(encoding="utf-8").splitlines()]


def test_every_label_says_where_what_and_why_and_none_holds_a_sentence() -> None:
    assert len(LINES) >= 300
    assert {tuple(line) for line in LINES} == {("source", "session", "message", "hash", "label", "reason")}
    assert {line["label"] for line in LINES} == {"wish", "noise"}
    assert all(re.fullmatch(r"[0-9a-f]{16}", line["hash"]) for line in LINES)
    assert all(len(line["reason"]) > 10 for line in LINES)


def test_no_sentence_is_labelled_twice() -> None:
    assert max(Counter((line["source"], line["hash"]) for line in LINES).values()) == 1


def test_a_reason_stands_for_one_label() -> None:
    labels: dict[str, set[str]] = {}
    for line in LINES:
        labels.setdefault(line["reason"], set()).add(line["label"])
    assert [reason for reason, found in labels.items() if len(found) > 1] == []


def test_both_halves_of_the_sessions_have_labels() -> None:
    halves = Counter(is_held_out(line["session"]) for line in LINES)
    assert min(halves.values()) > 100


def test_the_hash_of_a_sentence_depends_on_its_words_alone() -> None:
    assert sentence_hash("Never  push\nto main.") == sentence_hash("never push to main.")
    assert sentence_hash("never push to main.") != sentence_hash("never push to main")


def test_what_has_no_label_counts_as_noise_and_fails_the_check() -> None:
    kept = [KeptSentence("nowhere", "s", 0, "Never push to main.", True)]
    report = {**constraint_precision.measure(kept), "recall": 1.0}
    assert report["part"]["all"] == {"unlabelled": 1}
    assert constraint_precision.failures(report) == [
        "1 kept sentences have no label",
        "precision: 0.0%, floor 80%",
    ]


def test_a_folder_without_transcripts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["constraint_precision.py", "--data", str(tmp_path)])
    assert constraint_precision.main() == 2
    assert f"no transcripts in {tmp_path}" in capsys.readouterr().err


@pytest.mark.skipif(not any(DATA.glob("*.jsonl.gz")), reason=f"no transcripts in {DATA}")
def test_a_person_agrees_with_four_of_five_sentences_that_are_kept() -> None:
    kept = constraint_precision.kept_sentences(transcripts.read_transcripts(DATA), LearnedConstraints())
    counts = constraint_precision.measure(kept)["part"]
    assert sum(counts["all"].values()) > 200
    assert "unlabelled" not in counts["all"]
    assert constraint_precision.precision(counts["all"]) >= constraint_precision.MIN_PRECISION
    assert constraint_precision.precision(counts[constraint_precision.HELD_OUT]) > 0.6
