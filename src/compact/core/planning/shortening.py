"""Choose the lines that stay of messages: of those that are too large, and of cleared ones where there is room left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compact.core.facts.constraints import ConstraintFinder
from compact.core.facts.pieces import Origin, Piece
from compact.core.facts.selection import Selection
from compact.core.facts.text import cut_place, joined_ranges
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.message import Message
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.stubs import SHORTEN, render_cleared

_REASON = "too large"
# Chosen: what a message is left with at least; how often the choice of lines is corrected; and the room from which on
# the beginning and end of each message stay, whatever their score.
SMALLEST_TOKENS = 32
_ATTEMPTS = 12
_ROOM_FOR_ENDS = 200
# Chosen: room that is used so far is full; and how far below the room the next try aims.
_FULL_SHARE = 0.95
_NEARLY = 0.98
_NOTHING = Message("tool", "")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may be cut: its tokens in full, and as it stands in the prompt now."""

    message: Message
    tokens: int
    now: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The ranges that stay of a message: of its text, and of the texts in its tool-call arguments."""

    text: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    arguments: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Shortener:
    """Cuts messages; `around` is what stands in the prompt, against which lines are scored."""

    around: Sequence[Message]
    count_message: Callable[[Message], int]
    constraints: ConstraintFinder

    def shorten(
        self, candidates: Iterable[Candidate], excess_tokens: int, least_tokens: int = SMALLEST_TOKENS
    ) -> list[ClearRecord]:
        """Return records that cut messages until the excess is gone or each is down to so many tokens."""
        return self._shortened(_enough(candidates, excess_tokens, least_tokens), excess_tokens, least_tokens)

    def lengthen(
        self, candidates: Sequence[Candidate], standing: Mapping[str, ClearRecord], spare_tokens: int
    ) -> list[ClearRecord]:
        """Return records that keep more of messages that were cleared, as much as there is room for."""
        kept = {message_id: record.kept for message_id, record in standing.items()}
        lines = _Lines.of(self.around, candidates, self._count_text, self.constraints, kept=kept)
        room = spare_tokens
        for _ in range(_ATTEMPTS):
            chosen = lines.best(max(room, 0))
            longer = [
                self._cut(candidate, Kept([*chosen[message_id].text, *kept[message_id]]), standing[message_id])
                for candidate in candidates
                if (message_id := candidate.message.id) in chosen
            ]
            grown = sum(record.tokens_after - standing[record.span.first].tokens_after for record in longer)
            if grown <= spare_tokens:
                # One that keeps all of its text would be larger than the message itself.
                return [record for record in longer if record.tokens_after < record.tokens_before]
            room -= max(8, grown - spare_tokens)
        return []

    def _shortened(self, candidates: Sequence[Candidate], excess_tokens: int, least_tokens: int) -> list[ClearRecord]:
        if not candidates:
            return []
        total = sum(candidate.now for candidate in candidates)
        allowed = max(least_tokens * len(candidates), total - excess_tokens)
        records = [self._cut(candidate, kept) for candidate, kept in self._chosen(candidates, allowed)]
        spare = allowed - sum(record.tokens_after for record in records)
        now = {candidate.message.id: candidate.now for candidate in candidates}
        filled = self._filled(list(zip(candidates, records, strict=True)), spare)
        return [record for record in filled if record.tokens_after < now[record.span.first]]

    def _chosen(self, candidates: Sequence[Candidate], allowed_tokens: int) -> list[tuple[Candidate, Kept]]:
        """Choose the lines that stay from all of the messages at once, so that the best of them do."""
        room = allowed_tokens - sum(self._cut(candidate, Kept()).tokens_after for candidate in candidates)
        lines = _Lines.of(self.around, candidates, self._count_text, self.constraints)
        chosen: list[tuple[Candidate, Kept]] = []
        for _ in range(_ATTEMPTS):
            kept = lines.best(max(room, 0))
            chosen = [(candidate, kept[candidate.message.id]) for candidate in candidates]
            after = sum(self._cut(*pair).tokens_after for pair in chosen)
            if after <= allowed_tokens or room <= 0:
                break
            room -= max(8, after - allowed_tokens)
        return chosen

    def _filled(self, cut: Sequence[tuple[Candidate, ClearRecord]], spare_tokens: int) -> list[ClearRecord]:
        """Return records that keep more where room is left: of lines of which none was better than another, say.

        Each has its share, the shortest text first; what one cannot use is for the others.
        """
        filled: dict[str, ClearRecord] = {}
        for done, (candidate, record) in enumerate(sorted(cut, key=lambda pair: len(pair[0].message.text))):
            share = spare_tokens // (len(cut) - done)
            filled[record.span.first] = longer = self._with_more(candidate, record, share)
            spare_tokens -= longer.tokens_after - record.tokens_after
        return [filled[record.span.first] for _, record in cut]

    def _with_more(self, candidate: Candidate, record: ClearRecord, spare_tokens: int) -> ClearRecord:
        """Return a record that also keeps the beginning of what it leaves out, as far as there is room."""
        text, kept = candidate.message.text, record.kept
        arguments = "".join(f"{text}\n" for call in candidate.message.tool_calls for text in argument_texts(call))
        in_arguments = len(arguments) > len(text)
        if in_arguments:
            text, kept = arguments, record.kept_arguments or ()
        # A few words of what a person or the agent said are better than none; of data they say nothing.
        is_said = candidate.message.role != "tool" and not kept
        if spare_tokens < (SMALLEST_TOKENS // 4 if is_said else _ROOM_FOR_ENDS):
            return record
        left_out = len(text) - sum(end - start for start, end in kept)
        best, fits, too_many = record, 0, left_out + 1
        chars = min(left_out, spare_tokens * len(text) // max(1, candidate.tokens))
        for _ in range(_ATTEMPTS):
            if not fits < chars < too_many:
                break
            more = [*kept, *_beginning(text, kept, chars)]
            both = Kept([*record.kept], more) if in_arguments else Kept(more, [*(record.kept_arguments or ())])
            longer = self._cut(candidate, both)
            grown = longer.tokens_after - record.tokens_after
            if grown > spare_tokens:
                too_many = chars
            else:
                best, fits = longer, chars
                if grown >= _FULL_SHARE * spare_tokens:
                    break
            # As many as would fill the room if all were alike, or else half way to what is known.
            alike = int(chars * spare_tokens * _NEARLY / max(1, grown))
            chars = alike if fits < alike < too_many else (fits + too_many) // 2
        return best

    def _count_text(self, text: str) -> int:
        return self.count_message(Message("tool", text)) - self.count_message(_NOTHING)

    def _cut(self, candidate: Candidate, kept: Kept, standing: ClearRecord | None = None) -> ClearRecord:
        """Return a record that keeps ranges of a message; one that stands already stays whose it was."""
        record = standing or ClearRecord(
            span=SpanReference((candidate.message.id,)),
            strategy=SHORTEN,
            reason=_REASON,
            tokens_before=candidate.tokens,
        )
        record = replace(
            record,
            kept=joined_ranges(kept.text),
            kept_arguments=joined_ranges(kept.arguments) if candidate.message.tool_calls else None,
        )
        return replace(record, tokens_after=self.count_message(render_cleared(candidate.message, record)))


@dataclass(frozen=True, slots=True)
class _Lines:
    """The pieces of the messages that are cut (`mine`), among all pieces of the prompt, and the constraints in them."""

    selection: Selection
    ids: Sequence[str]
    mine: Sequence[int]
    constraint_pieces: Sequence[int]
    count_text: Callable[[str], int]

    @classmethod
    def of(
        cls,
        around: Sequence[Message],
        candidates: Sequence[Candidate],
        count_text: Callable[[str], int],
        constraints: ConstraintFinder,
        *,
        kept: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    ) -> _Lines:
        """Read what stands in the prompt once, however often it is chosen from; what is `kept` anyway stands there."""
        selection = Selection(around, count_text=count_text)
        pieces, ids = selection.pieces, [message.id for message in around]
        cut = {candidate.message.id for candidate in candidates}
        mine = [
            index
            for index, piece in enumerate(pieces)
            if ids[piece.place] in cut and not (kept and _overlaps(piece, kept.get(ids[piece.place], ())))
        ]
        ranges = {m.id: constraints.find(m.text) for m in around if m.id in cut and m.role != "tool"}
        constraint_pieces = [
            index for index in mine if _overlaps(pieces[index], ranges.get(ids[pieces[index].place], ()))
        ]
        return cls(selection, ids, mine, constraint_pieces, count_text)

    def best(self, max_tokens: int) -> dict[str, Kept]:
        """Return what stays of each message: its beginning and end if there is room, constraints, then by value."""
        pieces, mine = self.selection.pieces, set(self.mine)
        self.selection.reset(index for index in range(len(pieces)) if index not in mine)
        ends = _first_and_last(pieces, self.mine) if max_tokens > _ROOM_FOR_ENDS * self._messages else ()
        fixed: list[int] = []
        # Constraints may take half of the room: what looks like one in a long text may well be none. Chosen.
        reserve = max_tokens // 2
        for index in dict.fromkeys((*ends, *self.constraint_pieces)):
            cost = self.count_text(pieces[index].text) + 2
            if cost <= max_tokens - (0 if index in ends else reserve):
                fixed.append(index)
                max_tokens -= cost
        self.selection.mark_shown(fixed)
        kept: dict[str, Kept] = defaultdict(Kept)
        for index in (*fixed, *self.selection.choose(self.mine, max_tokens, label_tokens=2)):
            piece = pieces[index]
            mine_of = kept[self.ids[piece.place]]
            (mine_of.arguments if piece.origin is Origin.CALL else mine_of.text).append((piece.start, piece.end))
        return kept

    @property
    def _messages(self) -> int:
        return len({self.selection.pieces[index].place for index in self.mine})


def _beginning(text: str, kept: Iterable[tuple[int, int]], chars: int) -> list[tuple[int, int]]:
    """Return the first ranges of a text that are not kept, of so many characters together."""
    ranges: list[tuple[int, int]] = []
    place = 0
    for start, end in (*kept, (len(text), len(text))):
        if place < start:
            stop = start if start - place <= chars else cut_place(text, place, place + chars)
            ranges.append((place, stop))
            chars -= start - place
            if chars <= 0:
                break
        place = end
    return [(start, end) for start, end in ranges if start < end]


def _overlaps(piece: Piece, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(piece.start < end and start < piece.end for start, end in ranges)


def _first_and_last(pieces: Sequence[Piece], indices: Sequence[int]) -> list[int]:
    """Return how each message begins and ends: what it is, and how it went."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index in indices:
        first.setdefault(pieces[index].place, index)
        last[pieces[index].place] = index
    return sorted({*first.values(), *last.values()})


def _enough(candidates: Iterable[Candidate], excess_tokens: int, least_tokens: int) -> list[Candidate]:
    """Return the largest messages, as many as are needed to cut the excess and leave something of each."""
    chosen: list[Candidate] = []
    to_cut = 1.3 * excess_tokens
    for candidate in sorted(candidates, key=lambda candidate: -candidate.now):
        if to_cut <= 0 or candidate.now <= least_tokens:
            break
        chosen.append(candidate)
        to_cut -= candidate.now - least_tokens
    return chosen if excess_tokens > 0 else []
