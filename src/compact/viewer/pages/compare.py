"""Two prompts side by side, of one session or of two: what both have, and what only one of them has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from compact.core.audit.cost import by_number
from compact.core.audit.records import SessionInfo
from compact.viewer.json_http import HttpError
from compact.viewer.pages.call import prompt_messages
from compact.viewer.pages.session import message_preview
from compact.viewer.source import DataSource

SIDES = ("a", "b")


class CallRef(NamedTuple):
    """A call of a session; without a number its newest."""

    session_id: str
    number: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareQuery:
    """Which two prompts to compare, and which rows of the comparison to return."""

    sides: tuple[CallRef, CallRef]
    offset: int = 0
    limit: int = 200
    only_changed: bool = True


class _Entry(NamedTuple):
    """A message of a prompt: what it says, by which two are found to be the same, and what is shown of it."""

    said: tuple[str, str, tuple[tuple[str, str], ...]]
    ids: tuple[str, ...]
    data: dict[str, Any]


def compare_page(source: DataSource, query: CompareQuery) -> dict[str, Any]:
    """Return two prompts, message by message, with the figures of both."""
    calls = [_call(source, ref) for ref in query.sides]
    left, right = (_entries(source, info, number) for info, number in calls)
    rows = list(_rows(left, right, of_one_session=query.sides[0].session_id == query.sides[1].session_id))
    same = [row for row in rows if row["change"] == "same"]
    start = _shared_start(left, right)
    wanted = [row for row in rows if not query.only_changed or row["change"] != "same"]
    return {
        **{side: _side(source, info, number) for side, (info, number) in zip(SIDES, calls, strict=True)},
        "same": {"messages": len(same), "tokens": sum(row["a"]["tokens"] for row in same)},
        "same_start": {"messages": start, "tokens": sum(entry.data["tokens"] for entry in left[:start])},
        "changed_total": len(rows) - len(same),
        "rows_total": len(wanted),
        "rows": wanted[query.offset : query.offset + query.limit],
    }


def _call(source: DataSource, ref: CallRef) -> tuple[SessionInfo, int]:
    """Return the session of a call, and its number."""
    info = source.info(ref.session_id)
    number = info.model_calls if ref.number is None else ref.number
    if not number:
        raise HttpError(404, f"session {ref.session_id!r} has made no call yet", "compare one that has")
    return info, number


def _side(source: DataSource, info: SessionInfo, number: int) -> dict[str, Any]:
    """Return what is known of one call and its session."""
    cost = source.cost(info, source.calls(info.session_id))
    call = source.prompt(info, number).sent.call
    return {
        "id": info.session_id,
        "call": number,
        "calls_total": info.model_calls,
        "at": call.at,
        "tokens": call.tokens_estimated,
        "messages": call.messages,
        "evicted": call.evicted,
        "plan_version": call.plan_version,
        "cost": by_number(cost)[number].to_dict(),
        "session": {
            "messages": info.messages,
            "compactions": sum(entry.plan.origin is None for entry in source.plans(info)),
            "cost": cost.to_dict(),
        },
    }


def _entries(source: DataSource, info: SessionInfo, number: int) -> list[_Entry]:
    entries: list[_Entry] = []
    for about, message in prompt_messages(source.prompt(info, number)):
        # Calls are numbered anew in every session: an id says nothing about what was said.
        calls = tuple((call.name, call.arguments) for call in message.tool_calls)
        data = {name: about[name] for name in ("place", "part", "action", "source", "tokens", "ids")}
        data |= {"role": message.role, "preview": message_preview(message)}
        entries.append(_Entry((message.role, message.text, calls), tuple(about["ids"]), data))
    return entries


def _shared_start(left: Sequence[_Entry], right: Sequence[_Entry]) -> int:
    """Return with how many equal messages both begin: what a provider's cache can serve."""
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a.said != b.said), min(len(left), len(right)))


def _rows(left: Sequence[_Entry], right: Sequence[_Entry], *, of_one_session: bool) -> Iterator[dict[str, Any]]:
    """Yield both prompts in their order; what is the same stands in one row."""
    matcher = SequenceMatcher(None, [e.said for e in left], [e.said for e in right], autojunk=False)
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if kind == "equal":
            pairs = zip(left[a_from:a_to], right[b_from:b_to], strict=True)
            yield from (_row("same", a, b) for a, b in pairs)
        else:
            yield from _changed_rows(left[a_from:a_to], right[b_from:b_to], of_one_session=of_one_session)


def _changed_rows(left: Sequence[_Entry], right: Sequence[_Entry], *, of_one_session: bool) -> Iterator[dict[str, Any]]:
    """Yield what differs at one place; a message of the log that both show in another form is one row."""
    places = {entry.ids: place for place, entry in enumerate(right) if of_one_session and entry.ids}
    shown = 0
    for entry in left:
        place = places.get(entry.ids, -1)
        if place < shown:
            yield _row("only_a", entry, None)
            continue
        yield from (_row("only_b", None, b) for b in right[shown:place])
        yield _row("changed", entry, right[place])
        shown = place + 1
    yield from (_row("only_b", None, b) for b in right[shown:])


def _row(change: str, a: _Entry | None, b: _Entry | None) -> dict[str, Any]:
    return {"change": change, "a": a.data if a else None, "b": b.data if b else None}
