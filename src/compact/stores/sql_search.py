"""Search the log for words, in the database's own index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text

from compact.stores import schema
from compact.stores.entry_text import search_phrases

_EXACT = schema.Exact()
_ENTRIES = {
    "sqlite": (
        "SELECT m.seq, m.body, m.tokens FROM compact_words w JOIN compact_messages m ON m.rowid = w.rowid "
        "WHERE compact_words MATCH :words AND m.tenant_id = :tenant_id AND m.session_id = :session_id "
        "ORDER BY w.rank, m.seq DESC LIMIT :limit"
    ),
    "postgresql": (
        "SELECT seq, body, tokens FROM compact_messages, websearch_to_tsquery('simple', :words) q "
        f"WHERE {schema.TSVECTOR} @@ q AND tenant_id = :tenant_id AND session_id = :session_id "
        f"ORDER BY ts_rank_cd({schema.TSVECTOR}, q) DESC, seq DESC LIMIT :limit"
    ),
}
_SESSIONS = {
    "sqlite": (
        "SELECT DISTINCT m.session_id FROM compact_words w JOIN compact_messages m ON m.rowid = w.rowid "
        "WHERE compact_words MATCH :words AND m.tenant_id = :tenant_id"
    ),
    "postgresql": (
        "SELECT DISTINCT session_id FROM compact_messages, websearch_to_tsquery('simple', :words) q "
        f"WHERE {schema.TSVECTOR} @@ q AND tenant_id = :tenant_id"
    ),
}


def search_entries(
    connection: Connection, tenant_id: str, session_id: str, words: str, limit: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the log entries of a session that hold all the words, best first."""
    phrases = _phrases(words)
    if not phrases:
        return ()
    own = {"tenant_id": tenant_id, "session_id": session_id}
    query = text(_ENTRIES[connection.dialect.name]).bindparams(*(bindparam(name, type_=_EXACT) for name in own))
    return connection.execute(query, {**own, "words": phrases, "limit": limit}).all()


def search_sessions(connection: Connection, tenant_id: str, words: str) -> frozenset[str]:
    """Return the sessions that have a log entry with all the words in it."""
    phrases = _phrases(words)
    if not phrases:
        return frozenset()
    query = text(_SESSIONS[connection.dialect.name]).bindparams(bindparam("tenant_id", type_=_EXACT))
    rows = connection.execute(query.columns(session_id=_EXACT), {"tenant_id": tenant_id, "words": phrases})
    return frozenset(row.session_id for row in rows)


def _phrases(words: str) -> str:
    return " ".join(f'"{phrase}"' for phrase in search_phrases(words))
