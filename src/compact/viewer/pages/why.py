"""Where a phrase is: one verdict for the newest prompt, the calls without it, and each message that has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compact.core.audit.why import LEFT_BEHIND, CallRange, PhrasePlace, PhraseTrace, SearchCancelled, Sighting
from compact.viewer.json_http import HttpError
from compact.viewer.source import DataSource

# Chosen: more than anybody reads; each total counts all.
_MAX_PLACES = 50
_MAX_RANGES = 50
_MAX_RANGES_OF_MESSAGE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyQuery:
    """The words that somebody looks for, the page of messages that is asked for, and whether it still is."""

    phrase: str
    offset: int
    limit: int
    should_stop: Callable[[], bool]


def why_page(source: DataSource, session_id: str, query: WhyQuery) -> dict[str, Any]:
    """Return whether the newest prompt has a phrase, which calls lacked it, and a page of the messages that have it."""
    if not query.phrase.strip():
        raise HttpError(400, "the phrase is empty", "give some words of the message you look for")
    page = {"offset": query.offset, "limit": query.limit}
    try:
        trace = source.phrases.find(session_id, query.phrase, **page, should_stop=query.should_stop)
    except SearchCancelled:
        # Nobody reads this: the connection is gone. The status is the one that nginx made usual for it.
        raise HttpError(499, "the search was cancelled") from None
    return {
        "phrase": trace.phrase,
        "is_known": trace.is_known,
        "verdict": _verdict(trace),
        "calls": _calls(trace),
        "sightings_total": trace.sightings_total,
        "sightings": [_sighting(sighting) for sighting in trace],
    }


def _verdict(trace: PhraseTrace) -> dict[str, Any]:
    """Return whether the newest prompt has the phrase, and in what."""
    return {
        "is_in_prompt": trace.is_in_prompt,
        "count": trace.count,
        "places_total": trace.places_total,
        "place_counts": dict(trace.place_counts),
        "places": [_place(place) for place in trace.places[:_MAX_PLACES]],
        "newest_call": trace.newest_call,
        "newest_call_count": trace.newest_call_count,
        "is_changed_since_call": trace.is_changed_since_call,
    }


def _calls(trace: PhraseTrace) -> dict[str, Any]:
    """Return which calls went out without the phrase."""
    return {
        "total": trace.calls_total,
        "last_with": trace.last_call_with,
        "without": trace.calls_without_total,
        "ranges_total": len(trace.calls_without),
        "ranges": _ranges(trace.calls_without, _MAX_RANGES),
    }


def _place(place: PhrasePlace) -> dict[str, Any]:
    return {
        "kind": place.kind,
        "message_id": place.message_id,
        "seq": place.seq,
        "role": place.role,
        "count": place.count,
        "excerpt": _pieces(place.excerpt.text, place.excerpt.marks),
    }


def _sighting(sighting: Sighting) -> dict[str, Any]:
    return {
        "message_id": sighting.message_id,
        "seq": sighting.seq,
        "role": sighting.role,
        "count": sighting.count,
        "excerpt": _pieces(sighting.excerpt, sighting.marks),
        "state": sighting.state,
        "action": _ACTIONS.get(sighting.state, "include"),
        "is_visible": sighting.is_visible,
        "seen_in": sighting.seen_in,
        "by": sighting.strategy,
        "reason": sighting.reason,
        "since_version": sighting.since_version,
        "since_at": sighting.since_at or None,
        "calls_without": sum(found.calls for found in sighting.calls_without),
        "ranges_total": len(sighting.calls_without),
        "ranges": _ranges(sighting.calls_without, _MAX_RANGES_OF_MESSAGE),
    }


def _ranges(ranges: Sequence[CallRange], most: int) -> list[dict[str, int]]:
    return [asdict(found) for found in ranges[:most]]


def _pieces(text: str, marks: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return an excerpt as pieces, so that the page need not count characters as we do."""
    pieces: list[dict[str, Any]] = []
    place = 0
    for start, end in (*marks, (len(text), len(text))):
        pieces += [{"text": text[place:start]}] if start > place else []
        pieces += [{"text": text[start:end], "is_match": True}] if end > start else []
        place = end
    return pieces


_ACTIONS = {
    "cleared": "clear",
    "summarised": "summarize",
    "externalised": "externalize",
    "dropped": "drop",
    LEFT_BEHIND: "left",
}
