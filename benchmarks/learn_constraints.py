"""Learns what each cue, word and pair of words weighs as a sign of a constraint, and writes it into the package.

    python benchmarks/learn_constraints.py [--data FOLDER] [--check] [--own-examples] [--output FILE] [--folds N]

Constraints are the lists `training` and `set_1` to `set_6` of constraint_examples/; `held_out` is for measuring. No
constraints are `one_off_requests`, `statements` and `chatter`. Half of the sessions in the transcripts of FOLDER (by
default the folder that COMPACT_DATA names, or shared/data beside the checkout) are learned from as well: what people
typed, as constraint_labels.jsonl labels it, and what agents said, which is never a constraint. The other half is held
out for `benchmarks/constraint_precision.py`. A logistic regression on `compact.constraints.score.features`; the same
input gives the same file, byte for byte.

A feature made of words gets a weight only if examples of several independent sources have it, and if the project's own
lists write each of its words in lower case: no name, address, host, path or number of a single transcript can get in.

--check compares with the file of the package instead of writing, --own-examples does without transcripts, --folds 0
leaves the cross-validated figures out.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from constraint_precision import LABELS, WISH, Label, is_held_out, read_labels, sentence_hash
from transcripts import Transcript, data_folder, false_alarm_share, read_transcripts, text_of, transcript_files

from compact.constraints import LearnedConstraints
from compact.constraints.score import BIAS, NAME_TOKEN, NUMBER_TOKEN, features, is_foreign, with_straight_quotes
from compact.constraints.sentences import typed_sentences
from compact.constraints.word_lists import word_class

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE / "constraint_examples"
DATA = HERE.parent / "src" / "compact" / "constraints" / "data"
TARGET = DATA / "weights.toml"
CONSTRAINT_LISTS = ("training", "set_1", "set_2", "set_3", "set_4", "set_5", "set_6")
OTHER_LISTS = ("one_off_requests", "statements", "chatter")
# The features of a sentence depend on these.
FEATURE_FILES = ("cues.toml", "languages.toml", "words.toml")
WORD_CLASSES = (
    "verb", "style-verb", "outputs", "output", "language", "style", "decoration", "unit", "number", "third-party",
    "lead-in", "function-word", "talk",
)  # fmt: skip
# tau2 is the successor of taubench, with the same customers and orders: together they are one source.
SAME_SOURCE = {"tau2": "taubench"}

# Measured by this command with 1 to 4: up to 3, recall and false alarms in held-out sources stay as they are; with 4,
# recall falls.
MIN_SOURCES = 3
# The inverse of the penalty on squared weights, and how much more other sentences weigh than constraints, which in
# what people type are one in fifty. Measured with 1.5, 3 and 6, and with 1, 2, 3, 5 and 10, by this command and
# `python benchmarks/constraint_precision.py`: more noise is kept with less, and constraints are lost with more.
STRENGTH = 6.0
OTHER_MASS = 2.0
# Chosen: what people really typed counts twice; an agent says much that no person would.
TYPED_WEIGHT = 2.0
AGENT_WEIGHT = 0.7
AGENT_SENTENCES = 60
# Chosen: smaller weights change no decision, and leaving them out halves the file.
MIN_WEIGHT = 0.2
STEPS = 400
RATE = 0.06

Features = frozenset[str]

_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")
# What stands before the first word of a sentence.
_BEGINNING = re.compile(r"(?:^|[.!?:\"“(])[\s\W]*$")
_SIGNS = frozenset({"?", NUMBER_TOKEN, NAME_TOKEN})


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with its features, the source it is from, and whether it is a constraint."""

    source: str
    sentence: str
    features: Features
    is_constraint: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What the weights do with examples that they were not learned from."""

    recall: float
    own_false_alarms: float
    found_per_100_messages: float
    prompt_share: float


def example_lines(name: str) -> list[str]:
    """Return the sentences of one of the project's lists."""
    lines = (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def own_examples() -> list[Example]:
    """Return the examples of the project's own lists."""
    return [
        example
        for name in (*CONSTRAINT_LISTS, *OTHER_LISTS)
        for example in _examples(name, example_lines(name), is_constraint=name in CONSTRAINT_LISTS)
    ]


def transcript_examples(transcripts: Sequence[Transcript]) -> list[Example]:
    """Return what people typed and what agents said in the sessions to learn from, each sentence once per source."""
    learned = [transcript for transcript in transcripts if not is_held_out(transcript.id)]
    return [*typed_examples(learned), *agent_examples(learned)]


def typed_examples(transcripts: Iterable[Transcript]) -> list[Example]:
    """Return what people typed, as it is labelled.

    What has no label is no constraint: people set few, and the labels are of all that could be one.
    """
    found: dict[tuple[str, str], Example] = {}
    for transcript in transcripts:
        for sentence, label in _typed(transcript):
            is_constraint = label is not None and label.label == WISH
            for example in _examples(source_of(transcript), [sentence], is_constraint=is_constraint):
                found[example.source, sentence.lower()] = replace(example, weight=TYPED_WEIGHT)
    return sorted(found.values(), key=lambda example: example.source)


def agent_examples(transcripts: Iterable[Transcript]) -> list[Example]:
    """Return what agents said: reports, plans and questions, never a constraint."""
    found: dict[tuple[str, str], Example] = {}
    for transcript in transcripts:
        for example in _examples(source_of(transcript), _said_by_agent(transcript), is_constraint=False):
            found[example.source, example.sentence.lower()] = replace(example, weight=AGENT_WEIGHT)
    return sorted(found.values(), key=lambda example: example.source)


def source_of(transcript: Transcript) -> str:
    """Return the independent source that a transcript belongs to."""
    return SAME_SOURCE.get(transcript.source, transcript.source)


def sources_of_features(examples: Iterable[Example]) -> dict[str, int]:
    """Return in how many independent sources each feature occurs."""
    found: dict[str, set[str]] = defaultdict(set)
    for example in examples:
        for feature in example.features:
            found[feature].add(example.source)
    return {feature: len(sources) for feature, sources in found.items()}


def is_allowed(feature: str, sources: int) -> bool:
    """Return True if a feature may have a weight: a cue, or words that are common and the project's own."""
    if feature.startswith("="):
        return True
    return sources >= MIN_SOURCES and all(
        word in _SIGNS or (word in own_words() and _PLAIN_WORD.fullmatch(word))
        for word in feature.removeprefix("^").split(" ")
    )


@cache
def own_words() -> frozenset[str]:
    """Return the words that the project's own lists write in lower case.

    Those that they write with a capital more often, other than at the beginning, are names and abbreviations.
    """
    lower, capital = Counter[str](), Counter[str]()
    for name in (*CONSTRAINT_LISTS, *OTHER_LISTS):
        for line in map(with_straight_quotes, example_lines(name)):
            for match in _WORD.finditer(line):
                word = match[0]
                if word == word.lower() or re.fullmatch(r"I(?:'\w+)?", word):
                    lower[word.lower()] += 1
                elif not _BEGINNING.search(line, 0, match.start()):
                    capital[word.lower()] += 1
    classes = frozenset().union(*map(word_class, WORD_CLASSES))
    return frozenset(word for word in lower.keys() | classes if lower[word] >= capital[word])


def learn(examples: Sequence[Example], allowed: Iterable[str]) -> dict[str, int]:
    """Return the weights, in tenths, that tell constraints from other sentences."""
    names = sorted({BIAS, *allowed})
    places = {feature: place for place, feature in enumerate(names)}
    # Sorted, because the order in which numbers are added up decides about their last digits.
    rows = [sorted(places[feature] for feature in example.features if feature in places) for example in examples]
    mass = {
        side: math.fsum(example.weight for example in examples if example.is_constraint is side)
        for side in (True, False)
    }
    # Constraints weigh as much together as half of the examples, other sentences `OTHER_MASS` times that.
    factors = {True: len(examples) / 2 / mass[True], False: OTHER_MASS * len(examples) / 2 / mass[False]}
    shares = [example.weight * factors[example.is_constraint] for example in examples]
    labels = [float(example.is_constraint) for example in examples]
    weights = _descend(rows, labels, shares, bias=places[BIAS], size=len(names))
    return {name: round(10 * weight) for name, weight in zip(names, weights, strict=True) if abs(weight) >= MIN_WEIGHT}


def _descend(
    rows: Sequence[Sequence[int]], labels: Sequence[float], shares: Sequence[float], *, bias: int, size: int
) -> list[float]:
    """Gradient descent over all rows at once, with Adam's step sizes; only the bias may grow without a penalty."""
    values, first, second = [0.0] * size, [0.0] * size, [0.0] * size
    for step in range(1, STEPS + 1):
        slopes = [value / STRENGTH for value in values]
        slopes[bias] = 0.0
        for row, label, share in zip(rows, labels, shares, strict=True):
            error = share * (1 / (1 + math.exp(-math.fsum([values[place] for place in row]))) - label)
            for place in row:
                slopes[place] += error
        rate = RATE * (1 - step / STEPS / 1.02)
        first_left, second_left = 1 - 0.9**step, 1 - 0.999**step
        for place, slope in enumerate(slopes):
            first[place] = 0.9 * first[place] + 0.1 * slope
            second[place] = 0.999 * second[place] + 0.001 * slope * slope
            values[place] -= rate * (first[place] / first_left) / (math.sqrt(second[place] / second_left) + 1e-9)
    return values


def train(examples: Sequence[Example]) -> dict[str, int]:
    """Return the weights of the features that may have one."""
    sources = sources_of_features(examples)
    return learn(examples, (feature for feature, count in sources.items() if is_allowed(feature, count)))


def cross_validated(own: Sequence[Example], transcripts: Sequence[Transcript], folds: int) -> Figures:
    """Return the figures for examples and whole sources that were held out, in turns."""
    typed = transcript_examples(transcripts)
    sources = sorted({source_of(transcript) for transcript in transcripts})
    found: list[bool] = []
    own_alarms: list[bool] = []
    alarms: list[int] = []
    shares: list[float] = []
    for fold in range(folds):
        out = set(sources[fold::folds])
        kept = [example for place, example in enumerate(own) if place % folds != fold]
        finder = LearnedConstraints(train([*kept, *(example for example in typed if example.source not in out)]))
        for example in own[fold::folds]:
            (found if example.is_constraint else own_alarms).append(bool(finder.find(example.sentence)))
        for transcript in transcripts:
            if source_of(transcript) in out:
                alarms += [len(finder.find(text)) for text in transcript.typed]
                shares.append(false_alarm_share(transcript, finder))
    return Figures(_mean(found), _mean(own_alarms), 100 * _mean(alarms), _mean(shares))


def file_text(
    weights: Mapping[str, int], examples: Sequence[Example], figures: Figures | None, transcript_hashes: Sequence[str]
) -> str:
    """Return the data file: where the weights come from, and each with the number of its sources."""
    sources = sources_of_features(examples)
    counts = Counter(example.is_constraint for example in examples)
    lines = [
        "# What each feature of a sentence weighs as a sign of a constraint. Written by the command below.",
        "# A line of [weights]: a weight, in tenths, the number of independent sources with the feature, the feature.",
        "",
        "[provenance]",
        f'command = "python benchmarks/learn_constraints.py{"" if transcript_hashes else " --own-examples"}"',
        f"constraints = {counts[True]}",
        f"other_sentences = {counts[False]}",
        f"sources = {len({example.source for example in examples})}",
        f"min_sources = {MIN_SOURCES}",
        f"regularisation = {1 / STRENGTH:.3f} # times half the square of each weight",
    ]
    lines += _figure_lines(figures, with_transcripts=bool(transcript_hashes)) if figures else []
    lines += ["", "[provenance.sha256]"]
    lines += [f'"{path.name}" = "{_sha256(path)}"' for path in input_files()]
    lines += ["transcripts = [", *(f'    "{digest}",' for digest in transcript_hashes), "]"]
    lines += ["", "[weights]"]
    for kind, members in _by_kind(weights).items():
        lines += [f"{kind} = '''", *(f"{weights[name]:+} {sources[name]} {name}" for name in members), "'''"]
    return "\n".join(lines) + "\n"


def _figure_lines(figures: Figures, *, with_transcripts: bool) -> list[str]:
    own = [
        "",
        "[provenance.held_out] # by examples and sources that were left out in turns",
        f"recall = {figures.recall:.3f}",
        f"own_false_alarms = {figures.own_false_alarms:.3f} # share of the project's other sentences",
    ]
    typed = [
        f"found_per_100_messages = {figures.found_per_100_messages:.1f} # in the transcripts",
        f"prompt_share = {figures.prompt_share:.4f} # of a compacted prompt that false alarms take, at most",
    ]
    return [*own, *typed] if with_transcripts else own


def input_files() -> list[Path]:
    """Return the files of the project that the weights are learned from."""
    lists = [EXAMPLES / f"{name}.txt" for name in (*CONSTRAINT_LISTS, *OTHER_LISTS)]
    return [*lists, LABELS, *(DATA / name for name in FEATURE_FILES)]


def _by_kind(weights: Mapping[str, int]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {"cues_and_shapes": [], "first_words": [], "words": [], "pairs": []}
    for feature in sorted(weights):
        if feature.startswith("="):
            kinds["cues_and_shapes"].append(feature)
        elif feature.startswith("^"):
            kinds["first_words"].append(feature)
        else:
            kinds["pairs" if " " in feature else "words"].append(feature)
    return kinds


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _typed(transcript: Transcript) -> Iterator[tuple[str, Label | None]]:
    """Yield the sentences that people typed with their labels; of what they pasted only what has one."""
    for text in transcript.typed:
        for one in typed_sentences(text):
            sentence = text[one.start : one.end]
            label = read_labels().get((transcript.source, sentence_hash(sentence)))
            if label or not one.pasted:
                yield sentence, label


def _said_by_agent(transcript: Transcript) -> list[str]:
    """Return some sentences of the agent, chosen by their hashes."""
    texts = (text_of(message) for message in transcript.messages if message["role"] == "assistant")
    found = {text[one.start : one.end] for text in texts for one in typed_sentences(text)}
    return sorted(found, key=lambda sentence: (sentence_hash(sentence), sentence))[:AGENT_SENTENCES]


def _examples(source: str, sentences: Iterable[str], *, is_constraint: bool) -> Iterator[Example]:
    """Yield the examples of a source; sentences that a cue of another language decides teach nothing."""
    for sentence in sentences:
        text = with_straight_quotes(sentence)
        if not is_foreign(text):
            yield Example(source, sentence, features(text), is_constraint)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def missing_transcripts(folder: Path) -> str:
    """Return what to say where there are no transcripts."""
    return (
        f"no transcripts in {folder}: the weights of the package were learned from transcripts too\n"
        "hint: set COMPACT_DATA to the folder that holds *.jsonl.gz, or use --own-examples to learn from the project's"
        " own lists alone; the result has more false alarms"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, and write or compare; 0 if there is nothing to complain about."""
    options = _parse(arguments)
    files = [] if options.own_examples else transcript_files(options.data)
    if not files and not options.own_examples:
        print(missing_transcripts(options.data), file=sys.stderr)
        return 2
    transcripts = [] if options.own_examples else read_transcripts(options.data)
    own = own_examples()
    examples = [*own, *transcript_examples(transcripts)]
    figures = cross_validated(own, transcripts, options.folds) if options.folds else None
    weights = train(examples)
    text = file_text(weights, examples, figures, sorted(map(_sha256, files)))
    print(f"{len(weights):,} features have a weight, learned from {len(examples):,} examples")
    if figures:
        print("\n".join(_figure_lines(figures, with_transcripts=bool(files))))
    if options.check:
        same = options.output.read_text(encoding="utf-8") == text
        print(f"{options.output.name} is {'the same' if same else 'different'}")
        return 0 if same else 1
    options.output.write_text(text, encoding="utf-8")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=data_folder(), help="a folder of transcripts, *.jsonl.gz")
    parser.add_argument("--output", type=Path, default=TARGET, help="the file to write, or to compare with")
    parser.add_argument("--check", action="store_true", help="compare instead of writing; 1 if the file differs")
    parser.add_argument("--own-examples", action="store_true", help="learn without transcripts")
    parser.add_argument("--folds", type=int, default=4, help="hold out examples and sources in so many turns")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
