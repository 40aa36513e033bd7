"""Search the log in the database's own index: it tells who holds a term, and `core.search.ranking` ranks them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, insert, select, text
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from compact.core.audit.records import StoredMessage
from compact.core.audit.store import StoreError
from compact.core.messages.message import Message
from compact.core.plurals import quantity
from compact.core.search.search_terms import EntryTerms, entry_terms, read_query
from compact.stores import schema
from compact.stores.database import Database, QuickStatement
from compact.stores.entry_text import load_message
from compact.waiting.progress import in_parts, note_progress

# Chosen: so many entries are indexed in some ten milliseconds, and other writers do not wait longer than that.
_BATCH = 100
# Chosen: so many take less than a second; more arrive at once only when a history is brought from elsewhere.
MAX_INDEXED_AT_ONCE = 5_000
# SQLite takes 999 values in a statement, or more in newer versions.
_READ_AT_ONCE = 500

_EXACT = schema.Exact()
# What a search asks of each database, by the terms that an entry must hold.
_MATCHING = {
    "sqlite": (
        # A CROSS JOIN goes from left to right: from what the index finds to its rows, never the other way round.
        "SELECT s.tenant_id, s.session_id, s.seq FROM compact_terms CROSS JOIN compact_search s "
        "WHERE compact_terms MATCH :terms AND s.number = compact_terms.rowid"
    ),
    "postgresql": (
        f"SELECT tenant_id, session_id, seq FROM compact_search WHERE {schema.TSVECTOR} @@ CAST(:terms AS tsquery)"
    ),
}
# PostgreSQL must not start from the session's rows and look into each of them; older versions of SQLite do not know
# the word, and do not need it.
_ONCE = {"sqlite": "", "postgresql": "MATERIALIZED"}
_OWN = "WHERE tenant_id = :tenant_id AND session_id = :session_id"
_HOLDERS = "WITH matching AS {once} ({matching}) SELECT seq FROM matching " + _OWN + " LIMIT :limit"
_NEWEST = "WITH matching AS {once} ({matching}) SELECT seq FROM matching " + _OWN + " ORDER BY seq DESC LIMIT :limit"
_SESSIONS = "WITH matching AS {once} ({matching}) SELECT DISTINCT session_id FROM matching WHERE tenant_id = :tenant_id"

_ADD_ROWS = QuickStatement(insert(schema.search), ("tenant_id", "session_id", "seq", "length", "words"))
_ROWS = schema.search.c
_TERMS = (
    select(_ROWS.seq, _ROWS.length, _ROWS.words)
    .where(_ROWS.tenant_id == bindparam("tenant_id"), _ROWS.session_id == bindparam("session_id"))
    .where(_ROWS.seq.in_(bindparam("seqs", expanding=True)))
)


class SqlTermIndex:
    """The index of one session; a TermIndex."""

    def __init__(self, connection: Connection, tenant_id: str, session_id: str, size: int) -> None:
        self.size = size
        self._connection, self._dialect = connection, connection.dialect.name
        self._own = {"tenant_id": tenant_id, "session_id": session_id}
        self._session_term = _session_term(tenant_id, session_id)
        _use_the_index(connection)

    def holders(self, term: str, limit: int) -> Sequence[int]:
        """Return the entries that hold a term."""
        return self._seqs(_HOLDERS, [term], limit)

    def newest_holders(self, terms: Sequence[str], limit: int) -> Sequence[int]:
        """Return the newest entries that hold one of the terms at least."""
        return self._seqs(_NEWEST, terms, limit)

    def terms_of(self, seqs: Sequence[int]) -> Mapping[int, EntryTerms]:
        """Return the terms of entries."""
        found: dict[int, EntryTerms] = {}
        for start in range(0, len(seqs), _READ_AT_ONCE):
            wanted = {**self._own, "seqs": seqs[start : start + _READ_AT_ONCE]}
            for seq, length, words in self._connection.execute(_TERMS, wanted):
                found[seq] = EntryTerms(f" {words} ", length)
        return found

    def _seqs(self, statement: str, terms: Sequence[str], limit: int) -> Sequence[int]:
        query = text(statement.format(once=_ONCE[self._dialect], matching=_MATCHING[self._dialect]))
        query = query.bindparams(*(bindparam(name, type_=_EXACT) for name in self._own))
        sought = _any_of(self._dialect, self._session_term, terms)
        return self._connection.execute(query, {**self._own, "terms": sought, "limit": limit}).scalars().all()


def search_sessions(connection: Connection, tenant_id: str, words: str) -> frozenset[str]:
    """Return the sessions that have a log entry with all the words in it."""
    sought = read_query(words).words
    if not sought:
        return frozenset()
    _use_the_index(connection)
    dialect = connection.dialect.name
    query = text(_SESSIONS.format(once=_ONCE[dialect], matching=_MATCHING[dialect]))
    query = query.bindparams(bindparam("tenant_id", type_=_EXACT))
    matching = {"tenant_id": tenant_id, "terms": _all_of(dialect, sought)}
    rows = connection.execute(query.columns(session_id=_EXACT), matching)
    return frozenset(row.session_id for row in rows)


def _use_the_index(connection: Connection) -> None:
    """Keep PostgreSQL from reading the whole table, as it does if it was never told how large the table is."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL enable_seqscan = off"))


def _any_of(dialect: str, session_term: str, terms: Sequence[str]) -> str:
    """Return what an entry of a session must hold, as the database writes it: one of the terms."""
    if dialect == "sqlite":
        return f"{_all_of(dialect, [session_term])} AND ({' OR '.join(_quoted(dialect, terms))})"
    return f"{_all_of(dialect, [session_term])} & ({' | '.join(_quoted(dialect, terms))})"


def _all_of(dialect: str, terms: Sequence[str]) -> str:
    return (" AND " if dialect == "sqlite" else " & ").join(_quoted(dialect, terms))


def _quoted(dialect: str, terms: Sequence[str]) -> list[str]:
    """Return the terms in quotes; they are letters, digits and `_`, so there is nothing to escape."""
    quote = '"' if dialect == "sqlite" else "'"
    return [f"{quote}{term}{quote}" for term in terms]


def _session_term(tenant_id: str, session_id: str) -> str:
    """Return a term that all entries of a session hold.

    With it the index finds the entries of a session alone, however many others hold a word. Two sessions may share
    one by chance, or by a text that holds it: which session an entry belongs to is said by its columns.
    """
    name = f"{tenant_id}\0{session_id}".encode(errors="surrogatepass")
    return f"session_{hashlib.blake2b(name, digest_size=8).hexdigest()}"


# -- writing --------------------------------------------------------------------------------------------------------


def index_rows(database: Database, keys: Mapping[str, str], stored: Sequence[StoredMessage]) -> Sequence[Any] | None:
    """Return what the index gets of new entries; None if they are so many that they wait until somebody searches.

    Reading the words of a message takes longer than all else that is done to store it: no turn waits for those of
    thousands. It is done before the transaction: no other writer waits for it.
    """
    if len(stored) > MAX_INDEXED_AT_ONCE:
        return None
    tenant_id, session_id = keys["tenant_id"], keys["session_id"]
    rows = [_row(tenant_id, session_id, entry.seq, entry.message) for part in in_parts(stored) for entry in part]
    return _ADD_ROWS.prepared(rows, database)


def add_to_index(connection: Connection, keys: Mapping[str, str], rows: Sequence[Any] | None) -> None:
    """Put what `index_rows` returned into the index, or note that a session is to be indexed."""
    if rows:
        _ADD_ROWS.execute_prepared(connection, rows)
    elif rows is None:
        new = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
        connection.execute(new(schema.unindexed).on_conflict_do_nothing(), dict(keys))


def index_waiting_entries(database: Database, tenant_id: str, session_id: str | None = None) -> None:
    """Put entries into the index that were not when they came: of a session, or of all that have some.

    A former version wrote them, or they were too many at once.
    """
    table = schema.unindexed.c
    waiting = select(table.session_id).where(table.tenant_id == bindparam("tenant"))
    if session_id is not None:
        waiting = waiting.where(table.session_id == bindparam("session"))
    with database.reading() as connection:
        found = connection.execute(waiting, {"tenant": tenant_id, "session": session_id}).scalars().all()
    if found and database.is_read_only:
        raise StoreError(
            f"not in the index yet: {quantity(len(found), 'session')}, long or of a former version",
            hint="search once without --read-only",
        )
    for name in found:
        last_seq: int | None = 0
        while last_seq is not None:
            with database.writing() as connection:
                last_seq = _index_batch(connection, {"tenant": tenant_id, "session": name}, last_seq)
            note_progress()


def _index_batch(connection: Connection, own: Mapping[str, str], after_seq: int) -> int | None:
    """Index the next entries of a session, and return the place of the last one; None once all are in the index."""
    # Whoever deletes the session locks its row first, too: what is written here goes with it.
    locked = select(schema.sessions.c.last_seq).where(_is_own(schema.sessions)).with_for_update()
    connection.execute(locked, own)
    table = schema.messages.c
    next_entries = select(table.seq, table.body).where(_is_own(schema.messages), table.seq > bindparam("after_seq"))
    entries = connection.execute(next_entries.order_by(table.seq).limit(_BATCH), {**own, "after_seq": after_seq}).all()
    if not entries:
        connection.execute(delete(schema.unindexed).where(_is_own(schema.unindexed)), own)
        return None
    rows = [_row(own["tenant"], own["session"], seq, load_message(body)) for seq, body in entries]
    # Entries that came since the upgrade are there already, and so are those that another process just added.
    new = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
    connection.execute(new(schema.search).on_conflict_do_nothing(), rows)
    return entries[-1].seq


def _is_own(table: Table) -> ColumnElement[bool]:
    return and_(table.c.tenant_id == bindparam("tenant"), table.c.session_id == bindparam("session"))


def _row(tenant_id: str, session_id: str, seq: int, message: Message) -> dict[str, Any]:
    terms = entry_terms(message)
    words = f"{_session_term(tenant_id, session_id)}{terms.words.rstrip()}"
    return {"tenant_id": tenant_id, "session_id": session_id, "seq": seq, "length": terms.length, "words": words}
