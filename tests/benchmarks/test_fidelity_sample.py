"""The fidelity floors hold on the project's own conversations, and a worse value function falls below them."""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compact.core.facts import selection
from compact.core.facts.pieces import Piece
from compact.core.facts.score import HistoryScores
from compact.core.facts.value import ContentKind
from compact.core.facts.value_table import VALUES
from compact.strategies import span

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from fidelity import command
from fidelity.chained import chains_of
from fidelity.floors import SAMPLE_FLOORS, shortfalls
from fidelity.running import load
from fidelity.sample.rows import KINDS, SESSIONS, sample_folder, sample_rows
from fidelity.transcripts import DOMAINS, domain_of, token_counts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for everything that the benchmark writes: the sample, its facts, the figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("sample")))
        yield Path(tempfile.gettempdir())


def measure(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Run the command on the sample: its exit code, and the figures of each share of the prefix."""
    file = folder / "figures.json"
    code = command.main(["--sample", "--check", "--jobs", "1", "--json", str(file), *options])
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert figures["gates"] == {}
    return code, figures["recall"]


def below(figures: Mapping[str, Any]) -> set[tuple[float, str]]:
    """The floors that were not reached: at which share of the prefix, and in which column."""
    return {
        (share, line.split()[0])
        for share, floors in SAMPLE_FLOORS.items()
        for line in shortfalls(figures[str(share)]["compact"]["mean"], floors)
    }


def test_the_sample_reaches_its_floors_and_what_others_do_does_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No gate fails, every floor holds, and neither a window nor cleared results come near them."""
    code, figures = measure(folder, "--systems", "compact,recency,clear-keep-3")
    assert (code, below(figures)) == (0, set()), capsys.readouterr().out
    assert "all floors reached" in capsys.readouterr().out
    for share, floors in SAMPLE_FLOORS.items():
        for other in ("recency", "clear-keep-3"):
            reached = figures[str(share)][other]["mean"]
            assert all(reached[column] < floor for column, floor in floors.items()), (share, other, reached)


def _in_reverse(values: Mapping[ContentKind, tuple[float, ...]]) -> dict[ContentKind, tuple[float, ...]]:
    """What was worth most is worth least: among kinds of content, and among ages."""
    kinds = sorted(values, key=lambda kind: sum(values[kind]))
    return {kind: values[other][::-1] for kind, other in zip(kinds, reversed(kinds), strict=True)}


class _InReverse(HistoryScores):
    """Names and words that are needed most score least."""

    def __init__(self, pieces: list[Piece]) -> None:
        super().__init__(pieces)
        self.string_scores = {string: 1 / (0.01 + score) for string, score in self.string_scores.items()}
        self.word_scores = {word: 1 / (0.01 + score) for word, score in self.word_scores.items()}


def test_values_in_reverse_order_fall_below_the_floors(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wrong messages stay, so whole lines are lost that the agent writes again."""
    for module in (selection, span):
        monkeypatch.setattr(module, "VALUES", _in_reverse(VALUES))
    code, figures = measure(folder, "--systems", "compact")
    assert code == 1
    assert {share for share, _ in below(figures)} == set(SAMPLE_FLOORS)
    assert (6.25, "lines") in below(figures)
    assert "below the floor: at 12.5 %: " in capsys.readouterr().out


def test_scores_of_names_in_reverse_order_fall_below_the_floors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary tells the wrong names, at both sizes."""
    monkeypatch.setattr(selection, "HistoryScores", _InReverse)
    code, figures = measure(folder, "--systems", "compact")
    assert code == 1
    wanted = {(share, column) for share in SAMPLE_FLOORS for column in ("recall", "linked", "rare_words")}
    assert wanted <= below(figures)


def test_values_that_do_not_differ_fall_below_the_floors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any opinion on what is worth more, words are lost."""
    for module in (selection, span):
        monkeypatch.setattr(module, "VALUES", dict.fromkeys(VALUES, (1.0,) * 9))
    code, figures = measure(folder, "--systems", "compact", "--budget", "6.25")
    assert code == 1
    assert shortfalls(figures["6.25"]["compact"]["mean"], SAMPLE_FLOORS[6.25])[-1].startswith("rare_words")


@pytest.mark.usefixtures("folder")
def test_constraints_stay_over_eight_rounds() -> None:
    """Each was said once, in passing, during the first round."""
    rounds = [one for chain in chains_of(sample_folder())[:3] for one in chain()]
    assert [one.constraints_lost for one in rounds] == [0] * 24
    assert max(one.tokens_before for one in rounds) > 5 * max(one.tokens_after for one in rounds)


@pytest.mark.usefixtures("folder")
def test_every_conversation_has_something_of_each_kind_to_keep() -> None:
    """Long enough that a cut hurts; a column without needs would measure nothing."""
    transcripts, facts = load(sample_folder())
    assert {domain_of(transcript.source) for transcript in transcripts} == set(DOMAINS)
    assert len(facts) == SESSIONS * len(KINDS)
    for transcript, one in zip(transcripts, facts, strict=True):
        assert 10_000 <= sum(token_counts(transcript.messages)) <= 30_000
        assert len(one.needs) >= 10
        assert all((one.rare_words, one.lines, one.typed_lines))
    last_said = {need.last_role for one in facts for need in one.needs}
    assert last_said == {"user", "assistant", "arguments", "tool"}


def test_the_sample_is_the_same_everywhere() -> None:
    """The floors were measured on these very conversations: whoever changes them measures again."""
    rows = [row for kind in KINDS for row in sample_rows(kind)]
    assert rows == [row for kind in KINDS for row in sample_rows(kind)]
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16] == "25cb1155fc87c4c9"


def test_the_sample_has_no_summaries_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured is refused."""
    with pytest.raises(SystemExit):
        command.main(["natural", "--sample"])
    assert "the sample has no summaries" in capsys.readouterr().err
