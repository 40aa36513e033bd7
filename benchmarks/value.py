"""Fit the value of a token for what the agent goes on to write, by kind of content and age.

    python benchmarks/value.py --data FOLDER [--write]

Every transcript is cut at a few places. What the agent wrote after the cut is compressed (DEFLATE) with a part of what
stood before it as the dictionary: the more of it is there already, the shorter it gets. The task and the newest tokens
stand in every prompt, so each sample of a kind is measured beside them; one of the newest itself, beside what is newer
than it. The value of a kind at an age is the bytes saved for a thousand tokens. No model is asked, and it takes a
minute or two; docs/measurements.md has what comes of it before a model that reads the prompts.

Prints the table, and the share of the whole history's value that pieces chosen by it keep in an eighth of the room, on
sources that it was not fitted on, beside the newest pieces and pieces by chance. --write puts the table into the
product, with two kinds corrected by what a model that reads makes of them.
"""

from __future__ import annotations

import argparse
import lzma
import math
import random
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transcripts import Transcript, read, read_transcripts

from compact.core.facts.pieces import Origin, Piece, cut_into_pieces
from compact.core.facts.value import AGES, ContentKind, content_kind, value
from compact.core.messages.message import Message

TARGET = Path(__file__).parents[1] / "src/compact/core/facts/value_table.py"
CUTS = (0.3, 0.45, 0.6, 0.75)
CONTINUATION_CHARS = 6_000
MIN_CONTINUATION_CHARS = 600
MIN_BEFORE_CHARS = 10_000
MAX_BEFORE_CHARS = 240_000  # of which the choice on other sources is measured
TASK_CHARS = 10_000
STANDING_TOKENS = 500  # of the newest, which every compaction keeps
SAMPLE_CHARS = 800
SAMPLES = 6  # of one kind and age in one cut
SHARE = 0.125
DICTIONARY_CHARS = 32_000
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20}]
Table = dict[ContentKind, tuple[float, ...]]
# Chosen: where a model that reads differs most from compression (docs/measurements.md). What people typed says what is
# wanted, and little of it is written again word for word; words from the middle of a result are, often by chance.
READER_FACTORS = {ContentKind.TYPED: 2.5, ContentKind.REST: 0.5}


@dataclass(frozen=True, slots=True)
class Aged:
    """A piece of a history, what it is, and how many tokens stand behind it."""

    piece: Piece
    kind: ContentKind
    age: float

    @property
    def tokens(self) -> float:
        """Its size, roughly."""
        return len(self.piece.text) / 4 + 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A transcript that was cut: the task, the pieces before the cut but for the task, what the agent wrote after."""

    source: str
    task: str
    pieces: list[Aged]
    continuation: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """What a stretch of one kind saved."""

    source: str
    kind: ContentKind
    age: int
    saved: int
    tokens: float


def written_by_agent(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what the agent wrote, its calls included."""
    for message in messages:
        if message.role == "assistant":
            yield message.text
            yield from (call.arguments for call in message.tool_calls)


def chars_of(message: Message) -> int:
    """Return the size of a message."""
    return len(message.text) + sum(len(call.arguments) for call in message.tool_calls)


def cuts_of(transcript: Transcript) -> Iterator[Cut]:
    """Yield the cuts of a transcript: at a share of it, before a message of the agent."""
    messages = read(message for message in transcript.messages if message["role"] != "system")
    total, before, shares = sum(map(chars_of, messages)), 0, list(CUTS)
    for place, message in enumerate(messages):
        if shares and before >= shares[0] * total and message.role == "assistant":
            shares.pop(0)
            continuation = "\n".join(written_by_agent(messages[place:]))[:CONTINUATION_CHARS]
            if before >= MIN_BEFORE_CHARS and len(continuation) >= MIN_CONTINUATION_CHARS:
                yield cut_at(transcript.source, messages[:place], continuation)
        before += chars_of(message)


def cut_at(source: str, before: Sequence[Message], continuation: str) -> Cut:
    """Return what stands before a cut in pieces with their ages, the task apart."""
    pieces = cut_into_pieces(before)
    task = next((piece.place for piece in pieces if piece.origin is Origin.TYPED), -1)
    aged: list[Aged] = []
    behind = 0.0
    for piece in reversed(pieces):
        if piece.place != task:
            aged.append(Aged(piece, content_kind(piece), behind))
        behind += len(piece.text) / 4 + 1
    text = "\n".join(piece.text for piece in pieces if piece.place == task)
    return Cut(source, text[:TASK_CHARS], aged[::-1], continuation.encode())


def samples_of(cut: Cut, chance: random.Random) -> Iterator[Sample]:
    """Yield what stretches of each kind and age save."""
    stretches: defaultdict[tuple[ContentKind, int], list[list[Aged]]] = defaultdict(list)
    for aged in cut.pieces:
        mine = stretches[aged.kind, nearest_age(aged.age)]
        if not mine or sum(len(other.piece.text) for other in mine[-1]) >= SAMPLE_CHARS:
            mine.append([])
        mine[-1].append(aged)
    for (kind, age), found in stretches.items():
        for stretch in chance.sample(found, min(SAMPLES, len(found))):
            youngest = min(aged.age for aged in stretch)
            newer = [a.piece.text for a in cut.pieces if a.age < min(youngest, STANDING_TOKENS)]
            standing = "\n".join((cut.task, *newer))
            text = "\n".join(aged.piece.text for aged in stretch)
            saved = deflated(standing, cut.continuation) - deflated(f"{text}\n{standing}", cut.continuation)
            yield Sample(cut.source, kind, age, saved, sum(aged.tokens for aged in stretch))


def deflated(before: str, text: bytes) -> int:
    """Return the bytes that a text takes for somebody who has read something."""
    dictionary = before[-DICTIONARY_CHARS:].encode()[-DICTIONARY_CHARS:]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return len(packer.compress(text) + packer.flush())


def nearest_age(age: float) -> int:
    """Return which age of the table is nearest, on a scale that doubles."""
    return min(range(len(AGES)), key=lambda index: abs(math.log((age + 1) / AGES[index])))


def fitted(samples: Iterable[Sample]) -> Table:
    """Return the bytes that a thousand tokens save, by kind and age."""
    sums: defaultdict[tuple[ContentKind, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample in samples:
        sums[sample.kind, sample.age][0] += sample.saved
        sums[sample.kind, sample.age][1] += sample.tokens
    return {kind: smoothed([sums[kind, age] for age in range(len(AGES))]) for kind in ContentKind}


def smoothed(cells: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return one value for each age, none above a younger one's; what is thin leans on the mean of its kind."""
    lean = 2_000.0  # tokens
    mean = sum(saved for saved, _ in cells) / (sum(tokens for _, tokens in cells) or 1.0)
    values = [(saved + mean * lean) / (tokens + lean) for saved, tokens in cells]
    return tuple(round(1000 * item) for item in falling(values, [tokens + lean for _, tokens in cells]))


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the nearest values that never rise: neighbours that do are replaced by their mean."""
    blocks: list[tuple[float, float, int]] = []
    for item, weight in zip(values, weights, strict=True):
        block = (item, weight, 1)
        while blocks and blocks[-1][0] < block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / total, total, before[2] + block[2])
        blocks.append(block)
    return [item for item, _, count in blocks for _ in range(count)]


def kept(cut: Cut, order: Callable[[Aged], float]) -> float:
    """Return the share of the history's value that the first pieces of an order keep in an eighth of the room."""
    room = SHARE * sum(aged.tokens for aged in cut.pieces)
    chosen: list[Aged] = []
    for aged in sorted(cut.pieces, key=order):
        if aged.tokens <= room:
            room -= aged.tokens
            chosen.append(aged)
    chosen.sort(key=lambda aged: -aged.age)
    none, some, everything = (
        packed("\n".join((cut.task, *(aged.piece.text for aged in pieces))), cut.continuation)
        for pieces in ([], chosen, cut.pieces)
    )
    return (none - some) / max(1, none - everything)


def packed(before: str, text: bytes) -> int:
    """Return the bytes that a text adds behind something, in a window that holds all of it."""
    lead = before[-MAX_BEFORE_CHARS:].encode()
    return _lzma(lead + b"\n" + text) - _lzma(lead)


def _lzma(data: bytes) -> int:
    return len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=FILTERS))


def cross_validated(cuts: Sequence[Cut], samples: Sequence[Sample]) -> Iterator[tuple[str, list[float]]]:
    """Yield for each source what choices keep of it: by a table fitted on all others, by age, and by chance."""
    for source in sorted({cut.source for cut in cuts}):
        table = fitted(sample for sample in samples if sample.source != source)
        own = [cut for cut in cuts if cut.source == source]
        yield source, [100 * sum(kept(cut, order) for cut in own) / len(own) for order in orders(table)]


def orders(table: Mapping[ContentKind, Sequence[float]]) -> Iterator[Callable[[Aged], float]]:
    """Yield the choices that are compared."""
    chance = random.Random(7)
    yield lambda aged: -value(aged.kind, aged.age, table)
    yield lambda aged: aged.age
    yield lambda aged: chance.random()


def corrected(table: Table) -> Table:
    """Return the table with what compression cannot see."""
    return {
        kind: tuple(round(item * READER_FACTORS.get(kind, 1.0)) for item in values) for kind, values in table.items()
    }


def source_text(table: Table, cuts: Sequence[Cut], transcripts: int) -> str:
    """Return the module that the product reads."""
    places, sources = len(cuts), len({cut.source for cut in cuts})
    rows = "".join(f"    ContentKind.{kind.name}: {values},\n" for kind, values in table.items())
    return f'''"""The value of a thousand tokens for what the agent goes on to write, by kind of content and age.

Made by `python benchmarks/value.py --data FOLDER --write`, which says how, at {places} places of {transcripts} public
sessions of coding and service agents from {sources} sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from compact.core.facts.value import ContentKind

VALUES: Mapping[ContentKind, tuple[float, ...]] = {{
{rows}}}
'''


def main() -> int:
    """Print the fit, and write it if told so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of *.jsonl.gz, a conversation a line")
    parser.add_argument("--write", action="store_true", help="write the table into the product")
    options = parser.parse_args()
    transcripts, chance = read_transcripts(options.data), random.Random(3)
    cuts = [cut for transcript in transcripts for cut in cuts_of(transcript)]
    samples = [sample for cut in cuts for sample in samples_of(cut, chance)]
    table = fitted(samples)
    print(f"{'bytes by 1,000 tokens':24s}" + "".join(f"{age:>8,}" for age in AGES) + "  tokens old")
    for kind, values in table.items():
        print(f"{kind.value:24s}" + "".join(f"{item:8.0f}" for item in values))
    print(f"\n{'kept of':24s}{'by value':>9s}{'newest':>8s}{'chance':>8s}  % in {100 * SHARE:g} % of the room")
    rows = list(cross_validated(cuts, samples))
    means = [sum(column) / len(rows) for column in zip(*(shares for _, shares in rows), strict=True)]
    for source, shares in (*rows, ("mean", means)):
        print(f"{source:24s}{shares[0]:9.1f}" + "".join(f"{share:8.1f}" for share in shares[1:]))
    if options.write:
        TARGET.write_text(source_text(corrected(table), cuts, len(transcripts)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
