"""Learns what each word and cue is worth as a sign of a standing wish, and writes it into the product.

    python benchmarks/learn_wishes.py --data FOLDER [--write] [--folds 4]

Wishes are wishes/learned.txt, first.txt, second.txt, third.txt and fresh.txt; last.txt is left out, for measuring.
What is no wish are wishes/errands.txt and the sentences of people in the transcripts of FOLDER. A logistic
regression, both sides weighted alike, on the features of compact.constraints.score; the same input gives the same
weights. With --folds, false alarms are counted in transcripts that were held out, in turns.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from transcripts import Transcript, false_alarms, read_transcripts

from compact.constraints.finder import find_constraints
from compact.constraints.score import features, is_foreign
from compact.constraints.text import sentences_of
from compact.constraints.weights import WEIGHTS

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/compact/core/wishes/weights.py"
LEARNED = ("learned", "first", "second", "third", "fresh")
RARE = 3
SMALL = 0.2
STRENGTH = 0.8  # how far weights may go: the inverse of the penalty on their squares
STEPS = 400
RATE = 0.06

ALWAYS_THERE = "=always-there"

Features = frozenset[str]


def wishes(name: str) -> list[str]:
    """The lines of a set of wishes."""
    lines = (HERE / "wishes" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def own_sentences(transcript: Transcript) -> Iterator[str]:
    """What people wrote themselves in a transcript, a sentence at a time."""
    for text in transcript.typed:
        yield from (text[item.start : item.end] for item in sentences_of(text) if not item.pasted)


def plain_features(sentences: Iterable[str]) -> list[Features]:
    """The features of the sentences whose language the weights are about."""
    plain = (sentence.replace("’", "'") for sentence in sentences)
    return [features(sentence) for sentence in plain if not is_foreign(sentence)]


def learn(wished: Sequence[Features], said: Sequence[Features]) -> dict[str, int]:
    """Weights, in tenths, that tell the two apart."""
    counts = Counter(feature for found in (*wished, *said) for feature in found)
    names = sorted(feature for feature, count in counts.items() if count >= RARE)
    places = {feature: place for place, feature in enumerate(names)}
    rows = [[places[feature] for feature in found if feature in places] for found in (*wished, *said)]
    total = len(rows)
    sides = [(1.0, total / 2 / len(wished))] * len(wished) + [(0.0, total / 2 / len(said))] * len(said)
    weights = _descend(rows, sides, free=places[ALWAYS_THERE], size=len(names))
    return {name: round(10 * weight) for name, weight in zip(names, weights, strict=True) if abs(weight) >= SMALL}


def _descend(rows: list[list[int]], sides: list[tuple[float, float]], *, free: int, size: int) -> list[float]:
    """Gradient descent with Adam's step sizes over all rows at once; only the free weight may grow without penalty."""
    values, first, second = [0.0] * size, [0.0] * size, [0.0] * size
    for step in range(1, STEPS + 1):
        slopes = [value / STRENGTH for value in values]
        slopes[free] = 0.0
        for row, (label, share) in zip(rows, sides, strict=True):
            error = share * (1 / (1 + math.exp(-sum(values[place] for place in row))) - label)
            for place in row:
                slopes[place] += error
        rate = RATE * (1 - step / STEPS / 1.02)
        for place, slope in enumerate(slopes):
            first[place] = 0.9 * first[place] + 0.1 * slope
            second[place] = 0.999 * second[place] + 0.001 * slope * slope
            seen = first[place] / (1 - 0.9**step), second[place] / (1 - 0.999**step)
            values[place] -= rate * seen[0] / (math.sqrt(seen[1]) + 1e-9)
    return values


def write(weights: dict[str, int]) -> str:
    """The module that holds the weights: words by their weight."""
    by_weight: dict[int, list[str]] = {}
    for feature, weight in weights.items():
        by_weight.setdefault(weight, []).append(feature)
    lines = "\n".join(_wrapped(weight, words) for weight, words in sorted(by_weight.items(), reverse=True))
    return f'''"""What each word and cue is worth; written by benchmarks/learn_wishes.py, not by hand.

A line is a weight, in tenths, and the words that have it; whole numbers add up to the same in any order. `=name` is a
cue or a size, `#` a word with a digit in it.
"""

from __future__ import annotations

_BY_WEIGHT = """
{lines}
"""

WEIGHTS: dict[str, int] = {{
    word: int(line.split()[0]) for line in _BY_WEIGHT.strip().splitlines() for word in line.split()[1:]
}}
'''


def _wrapped(weight: int, words: list[str]) -> str:
    lines, line = [], f"{weight:+d}"
    for word in sorted(words):
        if len(line) + len(word) >= 118:
            lines.append(line)
            line = f"{weight:+d}"
        line += f" {word}"
    return "\n".join([*lines, line])


def held_out(transcripts: Sequence[Transcript], wished: Sequence[Features], said: list[Features], folds: int) -> None:
    """Print what false alarms cost in transcripts that were not learned from, and the share of last wishes found."""
    groups = sorted({transcript.group for transcript in transcripts})
    costs: list[float] = []
    found: list[bool] = []
    for fold in range(folds):
        out = set(groups[fold::folds])
        kept = plain_features(s for t in transcripts if t.group not in out for s in own_sentences(t))
        WEIGHTS.clear()
        WEIGHTS.update(learn(wished, [*said, *kept]))
        costs += [false_alarms(transcript) for transcript in transcripts if transcript.group in out]
        found += [bool(find_constraints(wish)) for wish in wishes("last")]
    print(
        f"held out: {sum(costs) / len(costs):.2%} false alarms, {sum(found) / len(found):.1%} of the last wishes found"
    )


def main() -> None:
    """Learn, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of transcripts, *.jsonl.gz")
    parser.add_argument("--write", action="store_true", help="write the weights into the product")
    parser.add_argument("--folds", type=int, default=0, help="measure on held-out transcripts, in so many turns")
    options = parser.parse_args()
    transcripts = read_transcripts(options.data)
    wished = plain_features(sentence for name in LEARNED for sentence in wishes(name))
    said = plain_features(wishes("errands")) * 2
    if options.folds:
        held_out(transcripts, wished, said, options.folds)
    weights = learn(wished, [*said, *plain_features(s for t in transcripts for s in own_sentences(t))])
    module = write(weights)
    print(f"{len(weights):,} features, {module.count(chr(10))} lines")
    if options.write:
        TARGET.write_text(module, encoding="utf-8")


if __name__ == "__main__":
    main()
