"""`compact why`: did the model see this, and if not, since when and who decided?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.sessions import iso_time, local_time
from compact.cli.settings import open_store
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.core.audit.why import Sighting

Phrase = Annotated[
    str, typer.Argument(metavar="PHRASE", help="Words as they stand in a message; upper and lower case are alike.")
]


def why(
    session: Session, phrase: Phrase, store: Store = None, config: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Say where a phrase is now, since when, and why.

    For every message that holds it; with the model calls that went out without it. Exit code 1 if it was never there.
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
        screen.line(f"never there: no message of session {session!r} holds {phrase!r}")
    else:
        _show(sightings, calls)
    if not sightings:
        raise typer.Exit(1)


def _as_data(sighting: Sighting) -> dict[str, Any]:
    since = iso_time(sighting.since_at) if sighting.since_at else None
    return {**asdict(sighting), "since_at": since}


def _show(sightings: Sequence[Sighting], calls: Sequence[int]) -> None:
    holding = screen.counted(len(sightings), "message holds", "messages hold")
    seen = sum(sighting.is_visible for sighting in sightings)
    screen.line(f"{holding} it; the model sees it in {seen:,}")
    for sighting in sightings:
        screen.heading(f"{sighting.message_id}, {sighting.role}, entry {sighting.seq}")
        for topic, text in _topics(sighting, calls):
            screen.line(f"{topic:<9}{text}")


def _topics(sighting: Sighting, calls: Sequence[int]) -> Iterator[tuple[str, str]]:
    yield "text", sighting.excerpt
    seen = "the model sees the words" if sighting.is_visible else "the model does not see the words"
    yield "now", f"{sighting.state}; {seen}"
    if sighting.since_at:
        yield "since", f"{local_time(sighting.since_at)}, plan version {sighting.since_version}"
    if sighting.strategy:
        yield "because", f"{sighting.strategy}: {sighting.reason}"
    missing = sighting.calls_without
    if missing:
        without = "call" if len(missing) == 1 else "calls"
        yield "without", f"{without} {number_ranges(missing, calls)}: {len(missing):,} of {len(calls):,}"
    elif sighting.is_visible:  # of what is gone, only the calls that are known to have missed it can be told
        yield "without", "no call went out without the words"


def number_ranges(numbers: Sequence[int], calls: Sequence[int]) -> str:
    """Numbers as ranges of calls that follow each other in their session: other sessions count on the same clock."""
    wanted = set(numbers)
    runs: list[list[int]] = []
    is_open = False
    for call in calls:
        if call in wanted:
            if is_open:
                runs[-1].append(call)
            else:
                runs.append([call])
        is_open = call in wanted
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
