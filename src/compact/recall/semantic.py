"""Find entries by what they mean, with vectors that a model makes of texts: for questions in other words.

Off by default. The vectors of a session are made when it is first asked about, and kept in the process.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import mul
from typing import TypeAlias

from compact.core.audit.records import StoredMessage
from compact.core.audit.store import SessionReader
from compact.core.errors import CompactError
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.attachments import text_with_attachments
from compact.core.messages.message import Message

# Makes a vector of each text; all of the same length. What comes back may be lists, tuples or rows of an array.
Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Iterable[float]]]

# Chosen: a vector of more text is a mean of too many things; of a longer entry its first passages are compared.
_PASSAGE_CHARS, _MAX_PASSAGES = 1000, 8
# Chosen: entries that are read and embedded at once, and sessions whose vectors are kept (10,000 entries take 20 MB).
_BATCH, _MAX_SESSIONS = 200, 8
# Chosen: an entry must be nearer to the question than the others are, by so many standard deviations.
_MIN_DEVIATIONS = 1.5


class SemanticSearch:
    """Finds the entries of a session whose vectors are nearest to that of a query.

    `is_open` says of a message whether `embed` may read it: a model may run elsewhere.
    """

    def __init__(self, embed: Embed, *, is_open: Callable[[Message], bool]) -> None:
        self._embed, self._is_open = embed, is_open
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Vectors] = OrderedDict()

    def search(self, session_id: str, query: str, reader: SessionReader, limit: int) -> list[StoredMessage]:
        """Return the entries that are nearest to a query, the nearest first."""
        if not query.strip():
            return []
        (sought,) = self._vectors([query[:_PASSAGE_CHARS]])
        with self._lock:
            vectors = self._sessions.setdefault(session_id, _Vectors())
            self._sessions.move_to_end(session_id)
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        # A model may take minutes for a long session: only who asks about the same one waits for it.
        with vectors.lock:
            self._add_new(vectors, session_id, reader)
            nearest = vectors.nearest(sought, limit)
        found = (reader.messages(session_id, after_seq=seq - 1, limit=1) for seq in nearest)
        return [entry for entries in found for entry in entries]

    def forget(self, session_id: str) -> None:
        """Remove the vectors of a session."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def _add_new(self, vectors: _Vectors, session_id: str, reader: SessionReader) -> None:
        while entries := reader.messages(session_id, after_seq=vectors.last_seq, limit=_BATCH):
            passages = [(e.seq, text) for e in entries if self._is_open(e.message) for text in _passages(e.message)]
            made = self._vectors([text for _, text in passages])
            vectors.add(zip((seq for seq, _ in passages), made, strict=True), last_seq=entries[-1].seq)

    def _vectors(self, texts: Sequence[str]) -> list[array[float]]:
        """Return vectors of length one; raise CompactError for an answer that is none."""
        if not texts:
            return []
        made = [_unit(vector) for vector in self._embed(texts)]
        if len(made) != len(texts) or len({len(vector) for vector in made}) != 1:
            lengths = sorted({len(vector) for vector in made})
            raise CompactError(
                f"embed returned {len(made)} vectors of {lengths} numbers for {len(texts)} texts",
                hint="return one vector a text, all of the same length",
            )
        return made


class _Vectors:
    """The vectors of one session's passages, by the place of their entry in the log; whoever uses them holds `lock`."""

    __slots__ = ("_passages", "last_seq", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last_seq = 0
        self._passages: list[tuple[int, array[float]]] = []

    def add(self, passages: Iterable[tuple[int, array[float]]], *, last_seq: int) -> None:
        """Add the passages of the next entries, up to a place in the log."""
        self._passages += passages
        self.last_seq = last_seq

    def nearest(self, sought: array[float], limit: int) -> list[int]:
        """Return the entries that stand out as near, the nearest first; of equals, the newest."""
        best: dict[int, float] = {}
        for seq, vector in self._passages:
            # A model that changes its mind about the length of its vectors is compared as far as that goes.
            best[seq] = max(best.get(seq, -1.0), sum(map(mul, vector, sought)))
        if not best:
            return []
        mean = sum(best.values()) / len(best)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in best.values()) / len(best))
        near = [(-value, -seq) for seq, value in best.items() if value >= mean + _MIN_DEVIATIONS * deviation > mean]
        return [-seq for _, seq in sorted(near)[:limit]]


def _unit(vector: Iterable[float]) -> array[float]:
    numbers = array("f", vector)
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    if not math.isfinite(length):
        raise CompactError("embed returned a vector with a number that is not finite", hint="return finite numbers")
    return array("f", (number / length for number in numbers)) if length else numbers


def _passages(message: Message) -> Iterator[str]:
    calls = (f"{call.name} {' '.join(argument_texts(call))}" for call in message.tool_calls)
    text = "\n".join(piece for piece in (text_with_attachments(message), *calls) if piece.strip())
    for start in range(0, min(len(text), _PASSAGE_CHARS * _MAX_PASSAGES), _PASSAGE_CHARS):
        yield text[start : start + _PASSAGE_CHARS]
