"""Events in the database: traces and spans, the newest of each tenant."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
from compact.stores.event_text import read_event

# Chosen: weeks of a busy agent; about a hundred megabytes, and never more than the second.
MAX_EVENTS = 100_000
MAX_BYTES = 256 * 1024 * 1024
# Chosen: looking for what is too old reads an index, so it is not done for every event.
_EVENTS_BETWEEN_REMOVALS, _SECONDS_BETWEEN_REMOVALS = 1_000, 600.0
# Databases limit how many values one query may name; 500 is below the limit of each.
_MAX_VALUES = 500

_EVENTS = schema.events
_COLUMNS = _EVENTS.c
_INSERT = insert(_EVENTS)
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
            self._lock(connection)
            known = self._known(connection, list(newest))
            whole = {key: updated(_as_sent(known[key]), newest[key]) if key in known else newest[key] for key in newest}
            stored = {key: read_event(event, received_at=now) for key, event in whole.items()}
            _remove(connection, [event.number for event in known.values()])
            if stored:
                connection.execute(_INSERT, [{"tenant_id": self._tenant_id, **_row(e)} for e in stored.values()])
            written = self._known(connection, list(stored))
            self._remove_old(connection, now, keep_seconds, len(stored))
        return tuple(written[key] for key in stored)

    def _lock(self, connection: Connection) -> None:
        """Let one process at a time add events: two that send the same are joined, and numbers go up for readers."""
        if connection.dialect.name == "postgresql":
            lock = text("SELECT pg_advisory_xact_lock(hashtext('compact_events'), hashtext(:tenant))")
            connection.execute(lock, {"tenant": self._tenant_id.replace("\0", " ")})

    def _known(self, connection: Connection, keys: Sequence[EventKey]) -> dict[EventKey, StoredEvent]:
        found: dict[EventKey, StoredEvent] = {}
        for start in range(0, len(keys), _MAX_VALUES):
            digests = [_digest(key) for key in keys[start : start + _MAX_VALUES]]
            rows = connection.execute(_BY_KEY, {"tenant": self._tenant_id, "keys": digests})
            found.update({event.key: event for event in map(_event, rows)})
        return found

    def _remove_old(self, connection: Connection, now: float, keep_seconds: float, added: int) -> None:
        """Remove what was received too long ago, and the oldest of what there is no room for."""
        self._added_since_removal += added
        is_due = now - self._removed_at >= _SECONDS_BETWEEN_REMOVALS
        if not is_due and self._added_since_removal < min(_EVENTS_BETWEEN_REMOVALS, self._max_events // 10 or 1):
            return
        self._added_since_removal, self._removed_at = 0, now
        too_old = delete(_EVENTS).where(self._own, _COLUMNS.received_at < bindparam("before"))
        connection.execute(too_old, {"before": now - keep_seconds})
        last = self._last_without_room(connection)
        if last is not None:
            connection.execute(delete(_EVENTS).where(self._own, _COLUMNS.number <= last))

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
        query = select(_EVENTS).where(self._own, _COLUMNS.trace_id == trace_id, _COLUMNS.type == "span")
        if before is not None:
            query = query.where(_COLUMNS.number < before)
        return self._read(query.order_by(_COLUMNS.number.desc()).limit(limit))[::-1]

    def named(self, session_id: str, name: str) -> tuple[StoredEvent, ...]:
        """Return the spans of a session that have this name, oldest first."""
        query = select(_EVENTS).where(self._own, _COLUMNS.session_id == session_id).order_by(_COLUMNS.number)
        # Of a long session there may be many events, and few of the name: they are not all held at once.
        with self._database.reading() as connection:
            found = (_event(row) for row in connection.execute(query) if name in row.body)
            return tuple(event for event in found if event.has_name(name))

    def traces(
        self, *, session_id: str = "", with_errors: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[TraceInfo, ...]:
        """Return traces, the one updated last first."""
        query = _TOTALS.where(self._own).group_by(_COLUMNS.trace_id)
        if session_id:
            own = select(_COLUMNS.trace_id).where(self._own, _COLUMNS.session_id == session_id)
            query = query.where(_COLUMNS.trace_id.in_(own))
        if with_errors:
            query = query.having(func.sum(_COLUMNS.is_error) > 0)
        query = query.order_by(func.max(_COLUMNS.number).desc()).offset(offset).limit(limit)
        with self._database.reading() as connection:
            return self._infos(connection, connection.execute(query).all())

    def trace(self, trace_id: str) -> TraceInfo | None:
        """Return what is known of one trace."""
        query = _TOTALS.where(self._own, _COLUMNS.trace_id == trace_id).group_by(_COLUMNS.trace_id)
        with self._database.reading() as connection:
            found = self._infos(connection, connection.execute(query).all())
        return found[0] if found else None

    def sessions_with_errors(self) -> frozenset[str]:
        """Return the sessions in which something failed."""
        query = select(_COLUMNS.session_id).where(self._own, _COLUMNS.is_error == 1, _COLUMNS.session_id != "")
        with self._database.reading() as connection:
            return frozenset(connection.execute(query.distinct()).scalars())

    def count(self) -> int:
        """Return how many events there are."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).where(self._own)).scalar_one()

    def _read(self, query: Select[Any]) -> tuple[StoredEvent, ...]:
        with self._database.reading() as connection:
            return tuple(_event(row) for row in connection.execute(query))

    def _infos(self, connection: Connection, totals: Sequence[Row[*tuple[Any, ...]]]) -> tuple[TraceInfo, ...]:
        own_events: dict[str, StoredEvent] = {}
        sessions: dict[str, set[str]] = {}
        ids = [row.trace_id for row in totals]
        for start in range(0, len(ids), _MAX_VALUES):
            wanted = and_(self._own, _COLUMNS.trace_id.in_(ids[start : start + _MAX_VALUES]))
            for row in connection.execute(select(_EVENTS).where(wanted, _COLUMNS.type == "trace")):
                own_events[row.trace_id] = _event(row)
            named = select(_COLUMNS.trace_id, _COLUMNS.session_id).where(wanted, _COLUMNS.session_id != "")
            for row in connection.execute(named.distinct()):
                sessions.setdefault(row.trace_id, set()).add(row.session_id)
        return tuple(
            trace_info(row.trace_id, own_events.get(row.trace_id), _totals(row), list(sessions.get(row.trace_id, ())))
            for row in totals
        )

    @property
    def _own(self) -> ColumnElement[bool]:
        return _COLUMNS.tenant_id == self._tenant_id


def delete_events(connection: Connection, tenant_id: str, session_id: str) -> None:
    """Remove the events of a session, and the traces that name no other."""
    own, its_own = _COLUMNS.tenant_id == tenant_id, _COLUMNS.session_id == session_id
    # Not DISTINCT: SQLite would then go through the traces of all sessions, to have them in order.
    traces = list(dict.fromkeys(connection.execute(select(_COLUMNS.trace_id).where(own, its_own)).scalars()))
    connection.execute(delete(_EVENTS).where(own, its_own))
    for start in range(0, len(traces), _MAX_VALUES):
        wanted = and_(own, _COLUMNS.trace_id.in_(traces[start : start + _MAX_VALUES]))
        named = set(
            connection.execute(select(_COLUMNS.trace_id).where(wanted, _COLUMNS.session_id != "").distinct()).scalars()
        )
        left = [trace for trace in traces[start : start + _MAX_VALUES] if trace not in named]
        connection.execute(delete(_EVENTS).where(own, _COLUMNS.trace_id.in_(left)))


_IS_SPAN = _COLUMNS.type == "span"
_TOTALS = select(
    _COLUMNS.trace_id,
    func.sum(case((_IS_SPAN, 1), else_=0)).label("spans"),
    func.sum(_COLUMNS.is_error).label("errors"),
    func.sum(case((and_(_IS_SPAN, _COLUMNS.ended_at.is_(None)), 1), else_=0)).label("open_spans"),
    func.min(case((_IS_SPAN, _COLUMNS.started_at))).label("first_start"),
    func.max(case((_IS_SPAN, _COLUMNS.ended_at))).label("last_end"),
    func.max(_COLUMNS.received_at).label("updated_at"),
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
        "trace_id": event.trace_id,
        "span_id": event.span_id,
        "kind": event.kind,
        "session_id": event.session_id,
        "is_error": int(event.is_error),
        "started_at": event.started_at,
        "ended_at": event.ended_at,
        "received_at": event.received_at,
        "size": len(event.text),
        "body": event.text,
    }


def _event(row: Row[*tuple[Any, ...]]) -> StoredEvent:
    return StoredEvent(
        text=row.body,
        type=row.type,
        trace_id=row.trace_id,
        span_id=row.span_id,
        kind=row.kind,
        session_id=row.session_id,
        is_error=bool(row.is_error),
        started_at=row.started_at,
        ended_at=row.ended_at,
        received_at=row.received_at,
        number=row.number,
    )
