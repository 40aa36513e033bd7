"""What others do, in a few lines each: text in, text of the allowed size out.

Coverage and prototype choose with the very extractor that measures them, and the oracle even with the future: they
show what there is to gain, not what a product may do.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compact.measuring.needs import SessionNeeds
from compact.measuring.recordings import Wire, content_text, is_typed, message_text, text_of
from compact.measuring.specifics import find_bounded, specific_strings

CLEARED = "[tool result cleared]"
HEAD_SHARE = 0.25
TAIL_SHARE = TYPED_SHARE = 0.3
TOOL_WEIGHT = 0.15
PIECE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be compacted, and the room there is."""

    messages: Sequence[Wire]
    chars: int
    facts: SessionNeeds


@dataclass(frozen=True, slots=True)
class Piece:
    """A line of a message, the strings it carries and what each is worth."""

    text: str
    strings: frozenset[str]
    weight: float


def recency(job: Job) -> str:
    """The newest text."""
    return _tail(text_of(job.messages), job.chars)


def clear_keep_3(job: Job) -> str:
    """Tool results but the newest three cleared, then head and tail."""
    return _head_and_tail(_cleared(job.messages, keep=3), job.chars)


def mask(job: Job) -> str:
    """All tool results cleared, then head and tail."""
    return _head_and_tail(_cleared(job.messages, keep=0), job.chars)


def head_tail(job: Job) -> str:
    """The beginning and the end."""
    return _head_and_tail(text_of(job.messages), job.chars)


def coverage(job: Job) -> str:
    """Lines that together carry the most specific strings, dialogue before results, and a tail."""
    chars = job.chars
    tail = _tail(text_of(job.messages), int(chars * TAIL_SHARE))
    chosen = cover(_pieces(job.messages, tool_weight=TOOL_WEIGHT, newer=1), chars - len(tail), specific_strings(tail))
    return "\n".join([*chosen, tail])


def prototype(job: Job) -> str:
    """What people typed, first message and newest first; a tail; the rest by coverage, dialogue before results."""
    chars = job.chars
    typed = _typed(job.messages, int(chars * TYPED_SHARE))
    tail = _tail(text_of(job.messages), int(chars * TAIL_SHARE))
    known = specific_strings(typed) | specific_strings(tail)
    chosen = cover(_pieces(job.messages, tool_weight=TOOL_WEIGHT, newer=1), chars - len(typed) - len(tail), known)
    return "\n".join([typed, *chosen, tail])


def oracle(job: Job) -> str:
    """The lines that carry most of what the future needs."""
    needs = [need.string for need in job.facts.needs]
    pieces = [
        Piece(piece.text, frozenset(string for string in needs if find_bounded(string, piece.text) >= 0), 1)
        for piece in _pieces(job.messages)
    ]
    return "\n".join(cover(pieces, job.chars, set()))


BASELINES: dict[str, Callable[[Job], str]] = {
    "recency": recency,
    "clear-keep-3": clear_keep_3,
    "mask": mask,
    "head-tail": head_tail,
    "coverage": coverage,
    "prototype": prototype,
    "oracle": oracle,
}


def cover(pieces: Sequence[Piece], chars: int, known: set[str]) -> list[str]:
    """Greedy: always the piece with the most new strings for its size, until the room is used; in their own order."""
    covered, chosen, room = set(known), [], chars
    heap = [(-_gain(piece, covered), place) for place, piece in enumerate(pieces)]
    heapq.heapify(heap)
    while heap and heap[0][0] < 0:
        _, place = heapq.heappop(heap)
        piece = pieces[place]
        gain = _gain(piece, covered)
        if heap and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, place))
        elif gain > 0 and len(piece.text) < room:
            room -= len(piece.text) + 1
            covered |= piece.strings
            chosen.append(place)
    return [pieces[place].text for place in sorted(chosen)]


def _gain(piece: Piece, covered: set[str]) -> float:
    return piece.weight * len(piece.strings - covered) / (len(piece.text) + 8)


def _pieces(messages: Sequence[Wire], *, tool_weight: float = 1, newer: float = 0) -> list[Piece]:
    pieces: list[Piece] = []
    for place, message in enumerate(messages):
        weight = (tool_weight if message["role"] == "tool" else 1) * (1 + newer * place / len(messages))
        for line in message_text(message).splitlines():
            for start in range(0, len(line), PIECE_CHARS):
                text = line[start : start + PIECE_CHARS]
                pieces.append(Piece(text, frozenset(specific_strings(text)), weight))
    return pieces


def _typed(messages: Sequence[Wire], chars: int) -> str:
    texts = [content_text(message) for message in messages if is_typed(message)]
    order = [*range(min(1, len(texts))), *reversed(range(1, len(texts)))]
    kept: dict[int, str] = {}
    for place in order:
        if chars > 0:
            kept[place] = texts[place][:chars]
            chars -= len(kept[place]) + 1
    return "\n".join(kept[place] for place in sorted(kept))


def _cleared(messages: Sequence[Wire], *, keep: int) -> str:
    results = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    cleared = set(results[: len(results) - keep])
    return "\n".join(CLEARED if place in cleared else message_text(m) for place, m in enumerate(messages))


def _tail(text: str, chars: int) -> str:
    return text[max(0, len(text) - chars) :]


def _head_and_tail(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    head = int(chars * HEAD_SHARE)
    return f"{text[:head]}\n{_tail(text, chars - head)}"
