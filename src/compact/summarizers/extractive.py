"""A summary without a model: the pieces of a history that are worth most for the rest of the task, verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from compact.core.ledger import REQUIRED, FactKind, Ledger
from compact.core.messages import Message
from compact.core.pieces import Piece
from compact.core.selection import Selection
from compact.core.summary import Excerpt, StructuredSummary, SummaryRequest, fit_summary, render_summary_text

# What the summary message costs beyond its text, and what a speaker costs in it.
_FRAMING_TOKENS = 8
_SPEAKER_TOKENS = 3
# The most that the task may take of a summary in full; a longer one is chosen from like everything else.
_TASK_SHARE = 0.3
# Punctuation of what stood before a piece.
_LEFT_OVER = " ,;:)}]"


def extractive_summary(request: SummaryRequest) -> StructuredSummary:
    """Keep what must stay, then fill the room by value."""
    messages = (*request.span, *request.kept)
    ledger = _opening(request)
    in_full = {fact.source_ids[0] for fact in ledger if fact.kind is not FactKind.CONSTRAINT}
    selection = Selection(messages, count_text=request.count_text)
    candidates: list[int] = []
    for index, piece in enumerate(selection.pieces):
        if piece.place >= len(request.span) or messages[piece.place].id in in_full:
            selection.show((index,))
        else:
            candidates.append(index)
    return _filled(request, StructuredSummary(ledger=ledger), selection, candidates)


def _filled(
    request: SummaryRequest, base: StructuredSummary, selection: Selection, candidates: Sequence[int]
) -> StructuredSummary:
    """The summary with as many pieces as fit."""

    def excess(candidate: StructuredSummary) -> int:
        text = render_summary_text(candidate, version=request.version, messages=len(request.span))
        return request.count_text(text) + _FRAMING_TOKENS - request.max_tokens

    chosen: list[int] = []
    summary = base
    # The tokens of parts do not add up exactly: what is left over after a round is used in the next.
    for _ in range(3):
        rest = [index for index in candidates if index not in set(chosen)]
        chosen += selection.choose(rest, -excess(summary), speaker_tokens=_SPEAKER_TOKENS)
        summary = replace(base, excerpts=_excerpts(selection.pieces, chosen, request.span))
        while excess(summary) > 0 and chosen:
            over = excess(summary)
            while over > 0 and chosen:
                over -= request.count_text(selection.pieces[chosen.pop()].text)
            summary = replace(base, excerpts=_excerpts(selection.pieces, chosen, request.span))
    return fit_summary(summary, lambda candidate: excess(candidate) <= 0)


def _opening(request: SummaryRequest) -> Ledger:
    """The facts that stand in any case: constraints, and task and latest ask as far as they are short."""
    allowed = request.max_tokens * _TASK_SHARE
    return Ledger(
        tuple(
            fact
            for fact in request.ledger
            if fact.kind is FactKind.CONSTRAINT
            or (fact.kind in REQUIRED and request.count_text(fact.subject) <= allowed)
        )
    )


def _excerpts(pieces: Sequence[Piece], chosen: Sequence[int], messages: Sequence[Message]) -> tuple[Excerpt, ...]:
    """Chosen pieces in the order of the history, those of one voice of a message together."""

    def heading(index: int) -> tuple[int, str]:
        return pieces[index].place, pieces[index].speaker

    return tuple(
        Excerpt(speaker, _joined([pieces[index] for index in group]), messages[place].id)
        for (place, speaker), group in groupby(sorted(chosen), key=heading)
    )


def _joined(pieces: Sequence[Piece]) -> str:
    """Pieces as they stood; where something between them is left out, a new line begins."""
    text = pieces[0].text.lstrip(_LEFT_OVER)
    for before, piece in pairwise(pieces):
        if before.line != piece.line or before.order + 1 != piece.order:
            text += "\n" + piece.text.lstrip(_LEFT_OVER)
        else:
            text += (" " if before.end < piece.start else "") + piece.text
    return text
