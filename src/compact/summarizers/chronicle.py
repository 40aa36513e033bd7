"""The story of a span in chosen pieces: each stands in the step it belongs to, and the steps in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from compact.core.facts.pieces import Origin, Piece, Step
from compact.core.facts.tool_calls import call_subjects
from compact.core.messages.message import Message
from compact.core.summary.summary import GAP_LABEL, RESULT_LABEL, Excerpt, call_label

# Punctuation that belongs to what stood before a piece.
_LEADING_PUNCTUATION = " ,;:)}]"
# Chosen: so many calls in a row are noted when none of them is shown, with so many names of tools.
_MIN_GAP = 3
_MAX_NAMES_IN_GAP = 4
# Chosen: an id, a date, a path; what looks like code has a line of its own.
_WORD = re.compile(r"[\w.:/@#+-]{0,39}[\w#+-]")


def leads(pieces: Sequence[Piece], messages: Sequence[Message]) -> Mapping[int, int]:
    """Return for each piece of a result, and each argument, the argument that says what was asked.

    A line of a result says nothing without the call that it answers: the file that was read, the command that was run.
    """
    by_step: dict[Step, int] = {}
    for (place, which), arguments in groupby(range(len(pieces)), key=lambda index: pieces[index].step):
        called = [index for index in arguments if pieces[index].origin is Origin.CALL]
        if called:
            subject = call_subjects(messages[place])[messages[place].tool_calls[which].id]
            telling = subject.path or subject.command
            by_step[place, which] = next((index for index in called if pieces[index].text in telling), called[0])
    of_calls = (Origin.CALL, Origin.RESULT)
    return {
        index: by_step[piece.step]
        for index, piece in enumerate(pieces)
        if piece.origin in of_calls and piece.step in by_step
    }


def told(
    pieces: Sequence[Piece], chosen: Iterable[int], messages: Sequence[Message], *, gaps_in: Iterable[int] = ()
) -> tuple[Excerpt, ...]:
    """Return chosen pieces step by step: what was said, what was called, and behind each call its result.

    For the messages at the places `gaps_in`, a line says how many calls were left out where they are a few in a row.
    """

    def part(index: int) -> tuple[Step, bool, int]:
        return pieces[index].step, pieces[index].origin is Origin.RESULT, pieces[index].place

    excerpts: list[tuple[Step, Excerpt]] = []
    called: set[Step] = set()
    for (step, is_result, _), group in groupby(sorted(chosen, key=lambda index: (part(index), index)), key=part):
        parts = [pieces[index] for index in group]
        label = RESULT_LABEL if is_result and step in called else _label(parts[0], messages)
        excerpts.append((step, Excerpt(label, _joined(parts), messages[parts[0].place].id)))
        called.add(step)
    in_order = sorted((*excerpts, *_gaps(called, messages, gaps_in)), key=lambda item: item[0])
    return tuple(excerpt for _, excerpt in in_order)


def _label(piece: Piece, messages: Sequence[Message]) -> str:
    place, which = piece.step
    match piece.origin:
        case Origin.RESULT:
            return f"{messages[place].tool_calls[which].name if which >= 0 else 'tool'} {RESULT_LABEL}"
        case Origin.CALL:
            return call_label(messages[place].tool_calls[which].name)
        case Origin.AGENT:
            return "agent:"
        case Origin.TYPED | Origin.INSERTED:
            return f"{messages[place].role}:"


def _gaps(
    shown: Collection[Step], messages: Sequence[Message], places: Iterable[int]
) -> Iterator[tuple[Step, Excerpt]]:
    """Yield a line for each run of calls that are not shown, where a reader would miss them."""
    calls = ((place, which) for place in places for which in range(len(messages[place].tool_calls)))
    for is_shown, run in groupby(calls, key=lambda step: step in shown):
        steps = list(run)
        if not is_shown and len(steps) >= _MIN_GAP:
            names = Counter(messages[place].tool_calls[which].name for place, which in steps)
            text = ", ".join(f"{name} ×{count}" for name, count in names.most_common(_MAX_NAMES_IN_GAP))
            yield steps[0], Excerpt(GAP_LABEL, f"{len(steps)} more calls: {text}")


def _joined(pieces: Sequence[Piece]) -> str:
    """Return pieces as they stood; where something between them is left out, a new line begins.

    Arguments that are single words, such as ids, share a line.
    """
    text = pieces[0].text.lstrip(_LEADING_PUNCTUATION)
    for before, piece in pairwise(pieces):
        if piece.gap is None and _is_word(before) and _is_word(piece):
            text += ", " + piece.text
        elif before.order + 1 != piece.order or piece.gap is None:
            text += "\n" + piece.text.lstrip(_LEADING_PUNCTUATION)
        else:
            text += piece.gap + piece.text
    return text


def _is_word(piece: Piece) -> bool:
    return piece.origin is Origin.CALL and _WORD.fullmatch(piece.text) is not None
