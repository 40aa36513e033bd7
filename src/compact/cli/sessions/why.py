"""`compact why`: whether the model sees a phrase, and if not, since when and which strategy decided it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.store import open_store
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.core.audit.why import CallRange, PhraseTrace, Sighting

Phrase = Annotated[
    str, typer.Argument(metavar="PHRASE", help="Words as they are in a message; upper and lower case are the same.")
]
Limit = Annotated[int, typer.Option(min=1, metavar="N", help="The most messages to show.")]

# Chosen: as many as fit on a line or two.
_MAX_RANGES = 8
_MAX_PLACES = 6
_EXCERPT_CHARS = 88


def why(
    session: Session,
    phrase: Phrase,
    limit: Limit = 20,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Find out whether the model still sees a phrase, and why not.

    Says first whether the newest prompt has it, how often and where, and which model calls were sent without it. Then
    lists every message that contains it: where it is now, since when, and what removed it. The exit code is 1 if no
    message ever contained it.
    """
    if not phrase.strip():
        raise CompactError("the phrase is empty", hint="give some words of the message you look for")
    with open_store(config, store) as opened:
        opened.session(session)
        trace = opened.manager.why(session, phrase)
    if as_json:
        screen.write_json(_as_data(trace))
    elif not trace.is_known:
        screen.line(f"not found: no message and no prompt of session {session!r} contains {phrase!r}")
    else:
        _show(trace, limit)
    if not trace.is_known:
        raise typer.Exit(1)


def _as_data(trace: PhraseTrace) -> dict[str, Any]:
    return {
        "phrase": trace.phrase,
        "is_in_prompt": trace.is_in_prompt,
        "count": trace.count,
        "newest_call": trace.newest_call,
        "newest_call_count": trace.newest_call_count,
        "is_changed_since_call": trace.is_changed_since_call,
        "places": [asdict(place) for place in trace.places],
        "calls": trace.calls_total,
        "calls_without": [asdict(found) for found in trace.calls_without],
        "sightings": [
            {**asdict(sighting), "since_at": screen.iso_time(sighting.since_at) if sighting.since_at else None}
            for sighting in trace.sightings
        ],
    }


# -- for people -----------------------------------------------------------------------------------------------------


def _show(trace: PhraseTrace, limit: int) -> None:
    verdict, *rest = trace_lines(trace, limit)
    screen.line(verdict, style="bold")
    for number, text in enumerate(rest):
        is_title = number > 0 and not rest[number - 1]
        screen.line(text, style="bold" if is_title else "")
    if trace.sightings_total > limit:
        screen.line()
        screen.line(f"{limit:,} of {screen.quantity(trace.sightings_total, 'message')} shown; --limit shows more")


def trace_lines(trace: PhraseTrace, limit: int) -> Iterator[str]:
    """Yield what is known of a phrase: whether the model sees it, then each message that has it, under its title."""
    yield _verdict(trace)
    for topic, text in _trace_topics(trace):
        yield f"{topic:<9}{text}"
    for sighting in trace.sightings[:limit]:
        yield ""
        yield f"{sighting.message_id}, {sighting.role}, entry {sighting.seq}"
        for topic, text in _topics(sighting, trace):
            yield f"{topic:<9}{text}"


def _verdict(trace: PhraseTrace) -> str:
    if not trace.is_in_prompt:
        return "not in the newest prompt"
    return f"in the newest prompt, {screen.quantity(trace.count, 'time')}"


def _trace_topics(trace: PhraseTrace) -> Iterator[tuple[str, str]]:
    if trace.places:
        named = [_place(place.kind, place.message_id) for place in trace.places[:_MAX_PLACES]]
        more = trace.places_total - len(named)
        yield "in", ", ".join(named) + (f" and {more:,} more" if more else "")
    if trace.is_changed_since_call and trace.count != trace.newest_call_count:
        had = f"had it {screen.quantity(trace.newest_call_count, 'time')}" if trace.newest_call_count else "lacked it"
        yield "but", f"call {trace.newest_call} {had}: the plan or the history was changed since"
    if trace.sightings_total:
        yield "log", f"{screen.quantity(trace.sightings_total, 'message contains', 'messages contain')} it"
    if trace.calls_without:
        yield "without", _calls_without(trace.calls_without, trace.calls_total)
    elif trace.calls_total:
        yield "without", "no call went out without it"


def _place(kind: str, message_id: str) -> str:
    match kind:
        case "message":
            return message_id
        case "stub":
            return f"the stub of {message_id}"
        case "summary":
            return "the summary"
        case _:
            return f"{kind} content"


def _topics(sighting: Sighting, trace: PhraseTrace) -> Iterator[tuple[str, str]]:
    yield "text", screen.truncate(sighting.excerpt, _EXCERPT_CHARS)
    yield "now", f"{sighting.state}; {_seen(sighting, is_in_prompt=trace.is_in_prompt)}"
    if sighting.since_at:
        yield "since", f"{screen.local_time(sighting.since_at)}, plan version {sighting.since_version}"
    if sighting.strategy:
        yield "because", f"{sighting.strategy}: {sighting.reason}"


def _seen(sighting: Sighting, *, is_in_prompt: bool) -> str:
    """Return whether the model sees the words, and by what."""
    match sighting.seen_in:
        case "message":
            return "the model sees the words"
        case "stub":
            return "the model sees the words in what is left of it"
        case "summary":
            return "the model sees the words in the summary"
        case _ if is_in_prompt:
            return "the model sees the words, but not through this message"
        case _:
            return "the model does not see the words"


def _calls_without(ranges: Sequence[CallRange], calls_total: int) -> str:
    total = sum(found.calls for found in ranges)
    named = ", ".join(map(str, ranges[:_MAX_RANGES]))
    more = f" and {screen.quantity(len(ranges) - _MAX_RANGES, 'more range')}" if len(ranges) > _MAX_RANGES else ""
    return f"{'call' if total == 1 else 'calls'} {named}{more}: {total:,} of {calls_total:,}"
