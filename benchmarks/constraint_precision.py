"""How many of the constraints that are kept in real transcripts a person agrees with, by labels given by hand.

    python benchmarks/constraint_precision.py [--data FOLDER] [--show kept|noise|unlabelled] [--check] [--json]

Every transcript of FOLDER (by default the folder that COMPACT_DATA names, or shared/data beside the checkout) is read
as the product reads it, after each message that a person typed. Each sentence that is kept at one of these moments
counts once per source, and at most `CAP` of a session count. constraint_labels.jsonl says of each, by its hash, whether
it is a wish (an instruction or a limit that should hold for what the agent does later) or noise, and why; the sentences
themselves stay where the transcripts are. Precision is the share of wishes, of all sentences and of three parts: what
people typed in the sessions that the weights are learned from, what they typed in the others, and what their harness
put in in their place (guides, skills), from which nothing is learned.

Recall is the share of the 440 constraints of `benchmarks/constraints.py` that are found, in all its cases. --check
fails if precision is below 80 % or recall below 97 %, or if a sentence that is kept has no label.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from transcripts import Transcript, data_folder, read, read_transcripts, transcript_files

from compact.constraints import LearnedConstraints
from compact.constraints.sentences import typed_sentences
from compact.core.facts.constraints import Constraint
from compact.core.messages.message import Message

LABELS = Path(__file__).resolve().parent / "constraint_labels.jsonl"
WISH, NOISE = "wish", "noise"
LEARNED, HELD_OUT, LOADED = "typed, learned from", "typed, held out", "put in by a harness"
MIN_PRECISION = 0.8
MIN_RECALL = 0.97
# The name of a message that stands for a compaction by another agent: nobody said it.
PRIOR_SUMMARY = "compact_summary"
# Chosen: no session may decide the figure.
CAP = 30
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Label:
    """What a person says of a sentence: a wish or noise, and why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeptSentence:
    """A sentence that is kept as a constraint, and where it was said."""

    source: str
    session: str
    message: int
    text: str
    typed: bool

    @property
    def part(self) -> str:
        """Which part of the sentences it belongs to: nothing is learned from any but the first."""
        if not self.typed:
            return LOADED
        return HELD_OUT if is_held_out(self.session) else LEARNED

    @property
    def key(self) -> tuple[str, str]:
        """Its source and its hash: labels are found by these."""
        return self.source, sentence_hash(self.text)


def sentence_hash(text: str) -> str:
    """Return the hash by which a sentence is labelled; case and white space do not count."""
    return hashlib.sha256(" ".join(text.lower().split()).encode()).hexdigest()[:_HASH_DIGITS]


def is_held_out(session: str) -> bool:
    """Return True if nothing may be learned from a session: its labels are for measuring."""
    return hashlib.sha256(session.encode()).digest()[0] % 2 == 1


@cache
def read_labels() -> Mapping[tuple[str, str], Label]:
    """Return the labels by source and hash."""
    lines = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    return {(line["source"], line["hash"]): Label(line["label"], line["reason"]) for line in lines}


def kept_sentences(transcripts: Sequence[Transcript], finder: LearnedConstraints) -> list[KeptSentence]:
    """Return the sentences that are kept, each once per source, at most `CAP` of a session."""
    found: dict[tuple[str, str], KeptSentence] = {}
    for transcript in transcripts:
        new = {one.key: one for one in _kept_in(transcript, finder)}
        chosen = sorted(new.keys() - found.keys())[:CAP] if len(new) > CAP else new.keys() - found.keys()
        found |= {key: one for key, one in new.items() if key in chosen}
    return list(found.values())


def _kept_in(transcript: Transcript, finder: LearnedConstraints) -> Iterator[KeptSentence]:
    """Yield what is kept after each message that a person typed, sentence by sentence."""
    messages = transcript.messages
    history = [
        (place, replace(message, id=str(place)))
        for place, message in enumerate(read(messages))
        if message.name != PRIOR_SUMMARY
    ]
    texts = {message.id: message.text for _, message in history}
    for moment in [place for place, message in history if message.role == "user"]:
        for constraint in finder.standing(_until(history, moment + 1)):
            for sentence in _sentences_of(constraint, texts[constraint.source_id]):
                place = int(constraint.source_id)
                typed = not messages[place].get("name")
                yield KeptSentence(transcript.source, transcript.id, place, sentence, typed)


def _until(history: Sequence[tuple[int, Message]], place: int) -> list[Message]:
    return [message for index, message in history if index < place]


def _sentences_of(constraint: Constraint, text: str) -> Iterator[str]:
    first, last = constraint.start, constraint.start + len(constraint.text)
    for sentence in typed_sentences(text):
        start, end = max(sentence.start, first), min(sentence.end, last)
        if start < end:
            yield text[start:end]


def measure(kept: Sequence[KeptSentence]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of wishes, noise and sentences without a label, by source and by part."""
    labels = read_labels()
    by_source: dict[str, Counter[str]] = defaultdict(Counter)
    by_part: dict[str, Counter[str]] = {part: Counter() for part in (LEARNED, HELD_OUT, LOADED, "all")}
    for one in kept:
        label = labels[one.key].label if one.key in labels else "unlabelled"
        for counter in (by_source[one.source], by_part["all"], by_part[one.part]):
            counter[label] += 1
    return {"source": {k: dict(v) for k, v in by_source.items()}, "part": {k: dict(v) for k, v in by_part.items()}}


def precision(counts: Mapping[str, int]) -> float:
    """Return the share of wishes; what has no label counts as noise."""
    return counts.get(WISH, 0) / max(sum(counts.values()), 1)


def recall(transcripts: Sequence[Transcript]) -> float:
    """Return the share of the 440 constraints that are found, over all cases."""
    from constraints import SETS, cases, is_found

    found = [is_found(case) for case in cases(SETS, transcripts)]
    return sum(found) / len(found)


def show(report: Mapping[str, Any]) -> None:
    """Print the figures as text."""
    print(f"labels: {report['labels']:,}, of them {report['label_counts'][WISH]:,} wishes")
    print(f"kept sentences: {sum(report['part']['all'].values()):,}")
    for name, counts in [*report["source"].items(), *report["part"].items()]:
        print(
            f"  {name:22} {precision(counts):6.1%}  {counts.get(WISH, 0)} wishes, {counts.get(NOISE, 0)} noise,"
            f" {counts.get('unlabelled', 0)} without a label"
        )
    print(f"recall of the 440 constraints: {report['recall']:.1%}")


def failures(report: Mapping[str, Any]) -> list[str]:
    """Return what misses its floor."""
    counts = report["part"]["all"]
    found = [f"{counts['unlabelled']} kept sentences have no label"] if counts.get("unlabelled") else []
    if precision(counts) < MIN_PRECISION:
        found.append(f"precision: {precision(counts):.1%}, floor {MIN_PRECISION:.0%}")
    if report["recall"] < MIN_RECALL:
        found.append(f"recall: {report['recall']:.1%}, floor {MIN_RECALL:.0%}")
    return found


def print_sentences(kept: Sequence[KeptSentence], which: str) -> None:
    """Print the sentences that are kept, those that are noise, or those without a label."""
    labels = read_labels()
    for one in kept:
        label = labels.get(one.key)
        name = label.label if label else "unlabelled"
        if which in ("kept", name):
            place = {"source": one.source, "session": one.session, "message": one.message, "hash": one.key[1]}
            print(json.dumps({**place, "label": name, "reason": label.reason if label else "", "sentence": one.text}))


def main() -> int:
    """Measure and print; 0 if there is nothing to complain about."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=data_folder(), help="a folder of transcripts, *.jsonl.gz")
    parser.add_argument("--show", choices=("kept", "noise", "unlabelled"), help="print sentences instead of figures")
    parser.add_argument("--check", action="store_true", help="fail below the floors")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    if not transcript_files(options.data):
        print(f"no transcripts in {options.data}: the labels refer to sentences of theirs by hash", file=sys.stderr)
        return 2
    transcripts = read_transcripts(options.data)
    kept = kept_sentences(transcripts, LearnedConstraints())
    if options.show:
        print_sentences(kept, options.show)
        return 0
    labels = Counter(label.label for label in read_labels().values())
    report = {"labels": labels.total(), "label_counts": labels, **measure(kept), "recall": recall(transcripts)}
    print(json.dumps(report, indent=1)) if options.json else show(report)
    failed = failures(report) if options.check else []
    if failed:
        print("below the floor:\n  " + "\n  ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
