"""The learned weights: what they were learned from is on record, and nothing personal is in them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from compact.constraints.word_lists import english_cues, learned_weights

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import learn_constraints  # noqa: E402
import transcripts  # noqa: E402

DATA = Path(os.environ.get("COMPACT_DATA", ROOT.parent / "shared/data"))
HAS_TRANSCRIPTS = any(DATA.glob("*.jsonl.gz"))
FILE = ROOT / "src/compact/constraints/data/weights.toml"


def provenance() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))["provenance"]


def words_of(feature: str) -> list[str]:
    return [] if feature.startswith("=") else feature.removeprefix("^").split(" ")


def weighted_words() -> set[str]:
    return {word for feature in learned_weights() for word in words_of(feature)}


def test_every_weighted_word_is_common_to_several_sources() -> None:
    assert provenance()["min_sources"] >= 3
    counted = [weight.sources for feature, weight in learned_weights().items() if words_of(feature)]
    assert len(counted) > 500
    assert min(counted) >= provenance()["min_sources"]


def test_no_weighted_word_has_the_shape_of_an_address_a_host_a_path_an_id_or_a_number() -> None:
    shape = re.compile(r"[a-z]+(?:['-][a-z]+)*")
    assert [word for word in weighted_words() - {"?", "#", "@"} if not shape.fullmatch(word)] == []


def test_every_weighted_word_is_one_that_the_projects_own_lists_write_in_lower_case() -> None:
    assert weighted_words() - {"?", "#", "@"} <= learn_constraints.own_words()


def test_names_in_the_projects_own_lists_get_no_weight() -> None:
    names = {"bob", "priya", "dana", "marta", "ravi", "harrow", "lumen", "firefox", "google"}
    text = " ".join(
        line for name in learn_constraints.CONSTRAINT_LISTS for line in learn_constraints.example_lines(name)
    )
    assert {"Marta", "Harrow", "Lumen"} <= set(re.findall(r"\w+", text))
    assert not names & weighted_words()


def test_every_cue_has_a_weight() -> None:
    cues = {f"={cue.name}" for cue in english_cues()}
    weighted = {feature for feature in learned_weights() if feature.startswith("=")}
    assert len(cues) > 15
    assert cues <= weighted


def test_the_file_says_what_it_was_learned_from() -> None:
    """If this fails, a list or a cue was changed since: run `python benchmarks/learn_constraints.py` again."""
    digests = provenance()["sha256"]
    files = learn_constraints.input_files()
    assert digests.keys() == {"transcripts", *(path.name for path in files)}
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} == {
        name: digest for name, digest in digests.items() if name != "transcripts"
    }


@pytest.mark.skipif(not HAS_TRANSCRIPTS, reason=f"no transcripts in {DATA}; set COMPACT_DATA")
def test_the_transcripts_have_every_weighted_feature_in_as_many_sources_as_the_file_says() -> None:
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in transcripts.transcript_files(DATA)]
    assert sorted(digests) == provenance()["sha256"]["transcripts"]
    typed = learn_constraints.transcript_examples(transcripts.read_transcripts(DATA))
    sources = learn_constraints.sources_of_features([*learn_constraints.own_examples(), *typed])
    assert {feature: weight.sources for feature, weight in learned_weights().items()} == {
        feature: sources[feature] for feature in learned_weights()
    }


@pytest.mark.skipif(not HAS_TRANSCRIPTS, reason=f"no transcripts in {DATA}; set COMPACT_DATA")
def test_no_weighted_word_is_written_like_a_name_in_the_transcripts() -> None:
    """A name has a capital inside sentences, nearly always, and few sources know it."""
    capital: dict[str, set[str]] = {}
    lower: set[str] = set()
    for example in learn_constraints.typed_examples(transcripts.read_transcripts(DATA)):
        for word in re.findall(r"(?<=[a-z,] )[A-Za-z]+(?:['-][A-Za-z]+)*\b(?![.@_/]\w)", example.sentence):
            if word[0].isupper():
                capital.setdefault(word.lower(), set()).add(example.source)
            else:
                lower.add(word)
    names = {word for word, sources in capital.items() if word not in lower and len(sources) < 3}
    assert len(names) > 50
    # Common words that two of these transcripts happen to write with a capital.
    assert names & weighted_words() <= {"i've", "i'll", "examples", "json", "url", "windows", "city", "reproduce"}


def learned(output: Path, seed: str) -> bytes:
    """Return what a process with this order of sets writes, after few steps and without transcripts."""
    program = (
        "import sys; sys.path.insert(0, 'benchmarks'); import learn_constraints; learn_constraints.STEPS = 40; "
        f"learn_constraints.main(['--own-examples', '--folds', '0', '--output', {str(output)!r}])"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    return output.read_bytes()


def test_learning_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = learned(tmp_path / "1.toml", "1"), learned(tmp_path / "2.toml", "2")
    assert first == second
    assert len(tomllib.loads(first.decode())["weights"]["words"].splitlines()) > 100


def test_without_transcripts_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = FILE.read_bytes()
    assert learn_constraints.main(["--data", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert f"no transcripts in {tmp_path}" in message
    assert "COMPACT_DATA" in message
    assert "--own-examples" in message
    assert FILE.read_bytes() == before
