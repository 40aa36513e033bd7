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
    from compact.core.audit.why import Sighting

Phrase = Annotated[
    str, typer.Argument(metavar="PHRASE", help="Words as they stand in a message; upper and lower case are alike.")
]


def why(
    session: Session, phrase: Phrase, store: Store = None, config: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Find out whether the model still sees a phrase, and why not.

    For every message that contains it: where it is now, since when, why, and which model calls went out without it.
    The exit code is 1 if no message contains it.
    """
    if not phrase.strip():
        raise CompactError("the phrase is empty", hint="give some words of the message you look for")
    with open_store(config, store) as opened:
        opened.session(session)
        sightings = opened.manager.why(session, phrase)
        calls = [call.number for call in opened.manager.model_calls(session)]
    if as_json:
        data = [_as_data(sighting) for sighting in sightings]
        screen.write_json({"phrase": phrase, "calls": len(calls), "sightings": data})
    elif not sightings:
        screen.line(f"not found: no message of session {session!r} contains {phrase!r}")
    else:
        _show(sightings, calls)
    if not sightings:
        raise typer.Exit(1)


def _as_data(sighting: Sighting) -> dict[str, Any]:
    since = screen.iso_time(sighting.since_at) if sighting.since_at else None
    return {**asdict(sighting), "since_at": since}


def _show(sightings: Sequence[Sighting], calls: Sequence[int]) -> None:
    containing = screen.quantity(len(sightings), "message contains", "messages contain")
    seen = sum(sighting.is_visible for sighting in sightings)
    screen.line(f"{containing} it; the model sees it in {seen:,}")
    for sighting in sightings:
        screen.heading(f"{sighting.message_id}, {sighting.role}, entry {sighting.seq}")
        for topic, text in _topics(sighting, calls):
            screen.line(f"{topic:<9}{text}")


def _topics(sighting: Sighting, calls: Sequence[int]) -> Iterator[tuple[str, str]]:
    yield "text", sighting.excerpt
    seen = "the model sees the words" if sighting.is_visible else "the model does not see the words"
    yield "now", f"{sighting.state}; {seen}"
    if sighting.since_at:
        yield "since", f"{screen.local_time(sighting.since_at)}, plan version {sighting.since_version}"
    if sighting.strategy:
        yield "because", f"{sighting.strategy}: {sighting.reason}"
    missing = sighting.calls_without
    if missing:
        without = "call" if len(missing) == 1 else "calls"
        yield "without", f"{without} {number_ranges(missing, calls)}: {len(missing):,} of {len(calls):,}"
    elif sighting.is_visible:  # of words that are gone, only the calls that are known to lack them can be named
        yield "without", "no call went out without the words"


def number_ranges(numbers: Sequence[int], calls: Sequence[int]) -> str:
    """Return call numbers as ranges; calls of other sessions may lie between two calls of this one."""
    wanted = set(numbers)
    ranges: list[list[int]] = []
    is_open = False
    for call in calls:
        if call in wanted:
            if is_open:
                ranges[-1].append(call)
            else:
                ranges.append([call])
        is_open = call in wanted
    return ", ".join(str(found[0]) if len(found) == 1 else f"{found[0]}–{found[-1]}" for found in ranges)
