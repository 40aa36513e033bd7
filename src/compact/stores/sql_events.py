"""Events in the database: traces and spans, the newest of each tenant."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    text,
)

from compact.core.audit.trace_events import (
    EventKey,
    SpanTotals,
    StoredEvent,
    TraceEvent,
    TraceInfo,
    joined,
    key_of,
    trace_info,
    updated,
)
from compact.stores import schema
from compact.stores.database import Database
from compact.stores.event_text import read_event, restored, shortened

# Chosen: weeks of a busy agent; about a hundred megabytes, and never more than the second.
MAX_EVENTS = 100_000
MAX_BYTES = 256 * 1024 * 1024
# Chosen: looking for what is too old reads an index, so it is not done for every event.
_EVENTS_BETWEEN_REMOVALS, _SECONDS_BETWEEN_REMOVALS = 1_000, 600.0
# Databases limit how many values one query may name; 500 is below the limit of each.
_MAX_VALUES = 500

_EVENTS, _TRACES = schema.events, schema.event_traces
_COLUMNS = _EVENTS.c
_INSERT = insert(_EVENTS)
# A trace as far as it is of one session, and that session.
_Pair: TypeAlias = tuple[str, str]
_BY_KEY = select(_EVENTS).where(
    _COLUMNS.tenant_id == bindparam("tenant"), _COLUMNS.event_key.in_(bindparam("keys", expanding=True))
)
_REMOVE = delete(_EVENTS).where(_COLUMNS.number.in_(bindparam("numbers", expanding=True)))


class SqlEventStore:
    """The events of one tenant; an update takes the place of what it updates, under a new number."""

    def __init__(
        self,
        database: Database,
        *,
        tenant_id: str = "",
        clock: Callable[[], float] = time.time,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._database, self._tenant_id, self._clock = database, tenant_id, clock
        self._max_events, self._max_bytes = max_events, max_bytes
        self._added_since_removal = 0
        self._removed_at = float("-inf")

    def add(self, events: Sequence[TraceEvent], *, keep_seconds: float) -> tuple[StoredEvent, ...]:
        """Keep events, each joined with what it updates, all or none."""
        newest, now = joined(events), self._clock()
        with self._database.writing() as connection:
            _lock(connection, self._tenant_id)
            known = self._known(connection, list(newest))
            whole = {key: updated(_as_sent(known[key]), newest[key]) if key in known else newest[key] for key in newest}
            stored = {key: read_event(event, received_at=now) for key, event in whole.items()}
            _remove(connection, [event.number for event in known.values()])
            if stored:
                numbers = self._pair_numbers(connection, {_pair(event) for event in stored.values()})
                rows = [{"tenant_id": self._tenant_id, "trace": numbers[_pair(e)], **_row(e)} for e in stored.values()]
                connection.execute(_INSERT, rows)
            written = self._known(connection, list(stored))
            has_moved = any(_pair(event) != _pair(stored[key]) for key, event in known.items())
            if self._remove_old(connection, now, keep_seconds, len(stored)) or has_moved:
                connection.execute(_REMOVE_UNUSED, {"tenant": self._tenant_id})
        return tuple(written[key] for key in stored)

    def _pair_numbers(self, connection: Connection, wanted: set[_Pair]) -> dict[_Pair, int]:
        """Return the numbers of traces and sessions; those that are new get one."""
        traces = sorted({trace_id for trace_id, _ in wanted})
        found: dict[_Pair, int] = {}
        for is_known in (False, True):
            for start in range(0, len(traces), _MAX_VALUES):
                query = select(_TRACES).where(
                    self._own_traces, _TRACES.c.trace_id.in_(traces[start : start + _MAX_VALUES])
                )
                found.update({(row.trace_id, row.session_id): row.number for row in connection.execute(query)})
            new = [] if is_known else sorted(wanted - found.keys())
            if not new:
                break
            rows = [{"tenant_id": self._tenant_id, "trace_id": trace, "session_id": session} for trace, session in new]
            connection.execute(insert(_TRACES), rows)
        return found

    def _known(self, connection: Connection, keys: Sequence[EventKey]) -> dict[EventKey, StoredEvent]:
        found: dict[EventKey, StoredEvent] = {}
        for start in range(0, len(keys), _MAX_VALUES):
            digests = [_digest(key) for key in keys[start : start + _MAX_VALUES]]
            rows = connection.execute(_BY_KEY, {"tenant": self._tenant_id, "keys": digests}).all()
            found.update({event.key: event for event in _events(connection, rows)})
        return found

    def _remove_old(self, connection: Connection, now: float, keep_seconds: float, added: int) -> bool:
        """Remove what is too old, and the oldest of what there is no room for; return False if it is too soon."""
        self._added_since_removal += added
        is_due = now - self._removed_at >= _SECONDS_BETWEEN_REMOVALS
        if not is_due and self._added_since_removal < min(_EVENTS_BETWEEN_REMOVALS, self._max_events // 10 or 1):
            return False
        self._added_since_removal, self._removed_at = 0, now
        too_old = delete(_EVENTS).where(self._own, _COLUMNS.received_at < bindparam("before"))
        connection.execute(too_old, {"before": now - keep_seconds})
        last = self._last_without_room(connection)
        if last is not None:
            connection.execute(delete(_EVENTS).where(self._own, _COLUMNS.number <= last))
        return True

    def _last_without_room(self, connection: Connection) -> int | None:
        """Return the number of the newest event for which there is no room."""
        query = select(func.count(), func.coalesce(func.sum(_COLUMNS.size), 0)).where(self._own)
        events, size = connection.execute(query).one()
        if events <= self._max_events and size <= self._max_bytes:
            return None
        count = size = 0
        for row in connection.execute(
            select(_COLUMNS.number, _COLUMNS.size).where(self._own).order_by(_COLUMNS.number.desc())
        ):
            count, size = count + 1, size + row.size
            if count > self._max_events or size > self._max_bytes:
                return row.number
        return None

    # -- for readers ------------------------------------------------------------------------------------------------

    def after(self, number: int, limit: int) -> tuple[StoredEvent, ...]:
        """Return events that were added or updated after the one with this number."""
        query = select(_EVENTS).where(self._own, _COLUMNS.number > number).order_by(_COLUMNS.number).limit(limit)
        return self._read(query)

    def recent(self, limit: int) -> tuple[StoredEvent, ...]:
        """Return the newest events, oldest first."""
        query = select(_EVENTS).where(self._own).order_by(_COLUMNS.number.desc()).limit(limit)
        return self._read(query)[::-1]

    def spans(self, trace_id: str, *, before: int | None = None, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Return the newest spans of a trace, oldest first."""
        with self._database.reading() as connection:
            query = select(_EVENTS).where(_COLUMNS.trace.in_(self._numbers(connection, _TRACES.c.trace_id == trace_id)))
            query = query.where(_COLUMNS.type == "span")
            if before is not None:
                query = query.where(_COLUMNS.number < before)
            rows = connection.execute(query.order_by(_COLUMNS.number.desc()).limit(limit)).all()
            return tuple(_events(connection, rows))[::-1]

    def named(self, session_id: str, name: str) -> tuple[StoredEvent, ...]:
        """Return the spans of a session that have this name, oldest first."""
        # Of a long session there may be many events, and few of the name: they are not all held at once.
        with self._database.reading() as connection:
            numbers = self._numbers(connection, _TRACES.c.session_id == session_id)
            rows = connection.execute(select(_EVENTS).where(_COLUMNS.trace.in_(numbers)).order_by(_COLUMNS.number))
            named = (event for part in rows.partitions(_MAX_VALUES) for event in _events(connection, part))
            return tuple(event for event in named if name in event.text and event.has_name(name))

    def traces(
        self, *, session_id: str = "", with_errors: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[TraceInfo, ...]:
        """Return traces, the one updated last first."""
        query = _TOTALS.where(self._own_traces)
        if session_id:
            own = select(_TRACES.c.trace_id).where(self._own_traces, _TRACES.c.session_id == session_id)
            query = query.where(_TRACES.c.trace_id.in_(own))
        if with_errors:
            query = query.having(func.sum(_OF_PAIR.c.errors) > 0)
        query = query.order_by(func.max(_OF_PAIR.c.newest).desc()).offset(offset).limit(limit)
        with self._database.reading() as connection:
            return self._infos(connection, connection.execute(query).all())

    def trace(self, trace_id: str) -> TraceInfo | None:
        """Return what is known of one trace."""
        query = _TOTALS.where(self._own_traces, _TRACES.c.trace_id == trace_id)
        with self._database.reading() as connection:
            found = self._infos(connection, connection.execute(query).all())
        return found[0] if found else None

    def sessions_with_errors(self) -> frozenset[str]:
        """Return the sessions in which something failed."""
        failed = select(_COLUMNS.trace).where(self._own, _COLUMNS.is_error == 1)
        query = select(_TRACES.c.session_id).where(_TRACES.c.number.in_(failed), _TRACES.c.session_id != "")
        with self._database.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def count(self) -> int:
        """Return how many events there are."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).where(self._own)).scalar_one()

    def _read(self, query: Select[Any]) -> tuple[StoredEvent, ...]:
        with self._database.reading() as connection:
            return tuple(_events(connection, connection.execute(query).all()))

    def _numbers(self, connection: Connection, of: ColumnElement[bool]) -> Sequence[int]:
        return connection.execute(select(_TRACES.c.number).where(self._own_traces, of)).scalars().all()

    def _infos(self, connection: Connection, totals: Sequence[Row[*tuple[Any, ...]]]) -> tuple[TraceInfo, ...]:
        ids = [row.trace_id for row in totals]
        own_events = self._known(connection, [("trace", trace_id, "") for trace_id in ids])
        sessions: dict[str, list[str]] = {}
        for start in range(0, len(ids), _MAX_VALUES):
            wanted = and_(self._own_traces, _TRACES.c.trace_id.in_(ids[start : start + _MAX_VALUES]))
            for row in connection.execute(select(_TRACES).where(wanted, _TRACES.c.session_id != "")):
                sessions.setdefault(row.trace_id, []).append(row.session_id)
        return tuple(
            trace_info(trace_id, own_events.get(("trace", trace_id, "")), _totals(row), sessions.get(trace_id, ()))
            for trace_id, row in zip(ids, totals, strict=True)
        )

    @property
    def _own(self) -> ColumnElement[bool]:
        return _COLUMNS.tenant_id == self._tenant_id

    @property
    def _own_traces(self) -> ColumnElement[bool]:
        return _TRACES.c.tenant_id == self._tenant_id


def _lock(connection: Connection, tenant_id: str) -> None:
    """Let one process at a time add events: two that send the same are joined, and numbers go up for readers.

    Whoever deletes them takes the lock, too: a trace that goes is not one that another process adds an event to.
    """
    if connection.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(hashtext('compact_events'), hashtext(:tenant))")
        connection.execute(lock, {"tenant": tenant_id.replace("\0", " ")})


def delete_events(connection: Connection, tenant_id: str, session_ids: Sequence[str]) -> None:
    """Remove the events of sessions, and the traces that name no other."""
    own, named = _TRACES.c.tenant_id == tenant_id, _TRACES.c
    _lock(connection, tenant_id)
    found = connection.execute(select(named.number, named.trace_id).where(own, named.session_id.in_(session_ids))).all()
    _remove_pairs(connection, [row.number for row in found])
    traces = [row.trace_id for row in found]
    for start in range(0, len(traces), _MAX_VALUES):
        part = traces[start : start + _MAX_VALUES]
        left = connection.execute(select(_TRACES).where(own, named.trace_id.in_(part))).all()
        of_others = {row.trace_id for row in left if row.session_id}
        _remove_pairs(connection, [row.number for row in left if row.trace_id not in of_others])


def _remove_pairs(connection: Connection, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), _MAX_VALUES):
        part = numbers[start : start + _MAX_VALUES]
        connection.execute(delete(_EVENTS).where(_COLUMNS.trace.in_(part)))
        connection.execute(delete(_TRACES).where(_TRACES.c.number.in_(part)))


_IS_SPAN = _COLUMNS.type == "span"
_OF_PAIR = (
    select(
        _COLUMNS.trace,
        func.sum(case((_IS_SPAN, 1), else_=0)).label("spans"),
        func.sum(_COLUMNS.is_error).label("errors"),
        func.sum(case((and_(_IS_SPAN, _COLUMNS.ended_at.is_(None)), 1), else_=0)).label("open_spans"),
        func.min(case((_IS_SPAN, _COLUMNS.started_at))).label("first_start"),
        func.max(case((_IS_SPAN, _COLUMNS.ended_at))).label("last_end"),
        func.max(_COLUMNS.received_at).label("updated_at"),
        func.max(_COLUMNS.number).label("newest"),
    )
    .group_by(_COLUMNS.trace)
    .subquery()
)
_TOTALS = (
    select(
        _TRACES.c.trace_id,
        *(func.sum(_OF_PAIR.c[name]).label(name) for name in ("spans", "errors", "open_spans")),
        func.min(_OF_PAIR.c.first_start).label("first_start"),
        *(func.max(_OF_PAIR.c[name]).label(name) for name in ("last_end", "updated_at")),
    )
    .join_from(_TRACES, _OF_PAIR, _OF_PAIR.c.trace == _TRACES.c.number)
    .group_by(_TRACES.c.trace_id)
)
_REMOVE_UNUSED = delete(_TRACES).where(
    _TRACES.c.tenant_id == bindparam("tenant"),
    ~select(_COLUMNS.number).where(_COLUMNS.trace == _TRACES.c.number).correlate(_TRACES).exists(),
)


def _totals(row: Row[*tuple[Any, ...]]) -> SpanTotals:
    names = ("spans", "errors", "open_spans", "first_start", "last_end", "updated_at")
    return SpanTotals(**{name: getattr(row, name) for name in names})


def _remove(connection: Connection, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), _MAX_VALUES):
        connection.execute(_REMOVE, {"numbers": numbers[start : start + _MAX_VALUES]})


def _as_sent(event: StoredEvent) -> Mapping[str, Any]:
    return {**event.event(), "session_id": event.session_id}


def _digest(key: EventKey) -> str:
    """Return a key as a text of one length: ids may be longer than an index takes."""
    joined_key = "\0".join(f"{len(part)}:{part}" for part in key)
    return hashlib.sha256(joined_key.encode("utf-8", "surrogatepass")).hexdigest()[: schema.EVENT_KEY_CHARS]


def _row(event: StoredEvent) -> dict[str, Any]:
    return {
        "event_key": _digest(key_of({"type": event.type, "trace_id": event.trace_id, "span_id": event.span_id})),
        "type": event.type,
        "span_id": event.span_id,
        "kind": event.kind,
        "is_error": int(event.is_error),
        "started_at": event.started_at,
        "ended_at": event.ended_at,
        "received_at": event.received_at,
        "size": len(event.text),
        "body": shortened(event),
    }


def _pair(event: StoredEvent) -> _Pair:
    return event.trace_id, event.session_id


def _events(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> Iterator[StoredEvent]:
    """Yield the events of rows, with the traces and sessions that they name by numbers."""
    numbers = list({row.trace for row in rows})
    pairs: dict[int, _Pair] = {}
    for start in range(0, len(numbers), _MAX_VALUES):
        query = select(_TRACES).where(_TRACES.c.number.in_(numbers[start : start + _MAX_VALUES]))
        pairs.update({row.number: (row.trace_id, row.session_id) for row in connection.execute(query)})
    for row in rows:
        trace_id, session_id = pairs[row.trace]
        yield StoredEvent(
            text=restored(row.body, trace_id, session_id, row.span_id, row.started_at, row.ended_at),
            type=row.type,
            trace_id=trace_id,
            span_id=row.span_id,
            kind=row.kind,
            session_id=session_id,
            is_error=bool(row.is_error),
            started_at=row.started_at,
            ended_at=row.ended_at,
            received_at=row.received_at,
            number=row.number,
        )
