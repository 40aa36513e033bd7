"""Makes very long runs of one character short without changing what they count.

Byte-pair merging turns the inside of such a run into equal tokens, so beyond its two edges every further
`PERIOD` characters cost the same. Counters need half a second for a megabyte of dashes; this makes it microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

# A multiple of every run token's length (powers of two) and of the three digits that go into one number token.
PERIOD = 3 * 4096
# Probing every STRIDE characters cannot miss a run of LONG or more.
LONG = 8 * PERIOD
STRIDE = LONG // 2


@dataclass(frozen=True, slots=True)
class Shortened:
    """A text with its long runs cut down, and how many periods of which character were cut out."""

    text: str
    cut_periods: tuple[tuple[str, int], ...]


def shorten(text: str) -> Shortened:
    """Cut long runs of one ASCII character by whole periods."""
    pieces: list[str] = []
    cuts: list[tuple[str, int]] = []
    done = probe = 0
    while probe + STRIDE <= len(text):
        char = text[probe]
        if text[probe + STRIDE - 1] != char or not char.isascii() or text.count(char, probe, probe + STRIDE) != STRIDE:
            probe += STRIDE
            continue
        start, end = _edges(text, done, probe)
        periods = (end - start) // PERIOD - 2
        if periods > 0:
            pieces.append(text[done : end - periods * PERIOD])
            cuts.append((char, periods))
            done = end
        probe = max(end, probe + STRIDE)
    pieces.append(text[done:])
    return Shortened("".join(pieces), tuple(cuts))


def _edges(text: str, floor: int, probe: int) -> tuple[int, int]:
    """Return where the run around `probe` starts, not before `floor`, and where it ends."""
    char = text[probe]
    start = floor + len(text[floor:probe].rstrip(char))
    return start, len(text) - len(text[probe:].lstrip(char))
