"""The tables of the database, and the version of them that this build reads."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Dialect,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
    update,
)

from compact.core.audit.store import StoreError
from compact.stores.packing import packed, unpacked

SCHEMA_VERSION = 6
_ESCAPED = "\x01"
metadata = MetaData()
_Key = BigInteger().with_variant(Integer, "sqlite")


class Exact(TypeDecorator[str]):
    """Text that comes back exactly: one with NUL or lone surrogates, which no database takes, is JSON behind a mark."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as the database gets it."""
        return _ESCAPED + json.dumps(value) if value and _is_odd(value) else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it came."""
        return json.loads(value[1:]) if value and value.startswith(_ESCAPED) else value


class Packed(Exact):
    """Text that comes back exactly, and that SQLite keeps packed."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Return the text as the database gets it."""
        if value and dialect.name == "sqlite" and isinstance(small := packed(value), bytes):
            return small
        return super().process_bind_param(value, dialect)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text as it came."""
        return unpacked(value) if isinstance(value, bytes) else super().process_result_value(value, dialect)


class Hex(Exact):
    """Text that comes back exactly, and that SQLite keeps as half as many bytes if it is hexadecimal digits."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Return the text as the database gets it."""
        if value and dialect.name == "sqlite" and (raw := _raw(value)) is not None:
            return raw
        return super().process_bind_param(value, dialect)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text as it came."""
        return value.hex() if isinstance(value, bytes) else super().process_result_value(value, dialect)


def _raw(digits: str) -> bytes | None:
    """Return the bytes that a text is the hexadecimal digits of, as we write them; None if it is anything else."""
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        return None
    return raw if raw.hex() == digits else None


def _is_odd(text: str) -> bool:
    if text.isascii():
        return "\0" in text or text.startswith(_ESCAPED)
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\0" in text or text.startswith(_ESCAPED)


schema_version = Table("compact_schema", metadata, Column("version", Integer, nullable=False))

sessions = Table(
    "compact_sessions",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("last_seq", Integer, nullable=False, default=0),
    Column("plan_version", Integer, nullable=False, default=0),
    Column("branch", Integer, nullable=False, default=0),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False, index=True),
    # What is on record of a history that was imported: no call is.
    Column("imported", Text),
)

messages = Table(
    "compact_messages",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("message_id", Exact, nullable=False),
    Column("body", Packed, nullable=False),
    Column("content_hash", Hex, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("tenant_id", "session_id", "message_id"),
)

# What searches compare of each log entry: made from `messages`, and made again from it if it is missing.
search = Table(
    "compact_search",
    metadata,
    Column("number", _Key, primary_key=True, autoincrement=True),
    Column("tenant_id", Exact, nullable=False),
    Column("session_id", Exact, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("length", Integer, nullable=False),
    Column("words", Packed, nullable=False),
    UniqueConstraint("tenant_id", "session_id", "seq"),
)

# Sessions whose entries are not all in the index, until somebody searches them: written by a former version, or
# thousands at once.
unindexed = Table(
    "compact_unindexed",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
)

# The view of a caller is written only when it edits the past; otherwise it is the last one and all that came after.
branches = Table(
    "compact_branches",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("branch", Integer, primary_key=True),
    Column("after_seq", Integer, nullable=False),
    Column("view_ids", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)

plans = Table(
    "compact_plans",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("body", Packed, nullable=False),
    Column("created_at", Float, nullable=False),
)

summaries = Table(
    "compact_summaries",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("span_key", String(64), primary_key=True),
    Column("version", Integer),
    Column("message_ids", Packed),
    Column("body", Packed),
    Column("claimed_at", Float, nullable=False),
    Column("finished_at", Float),
    # The process that writes it, by `compact.waiting.processes`; empty for a claim that outlives its process.
    Column("owner", String(80), nullable=False, server_default=""),
)

model_calls = Table(
    "compact_model_calls",
    metadata,
    Column("number", _Key, primary_key=True, autoincrement=True),
    Column("tenant_id", Exact, nullable=False),
    Column("session_id", Exact, nullable=False),
    Column("turn_number", Integer, nullable=False),
    Column("plan_version", Integer, nullable=False),
    Column("summary_version", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("evicted", Integer, nullable=False),
    Column("tokens_estimated", Integer, nullable=False),
    Column("tokens_reported", Integer),
    Column("parts", Packed, nullable=False),
    Column("branch", Integer, nullable=False),
    Column("limits", Packed, nullable=False),
    Column("reason", Packed, nullable=False),
    Column("added", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("details", Packed, nullable=False, server_default="{}"),
    Index("compact_model_calls_by_session", "tenant_id", "session_id", "number"),
)

# What stood behind the log in prompts; calls name it by its hash.
added = Table(
    "compact_added",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("content_hash", String(64), primary_key=True),
    Column("body", Packed, nullable=False),
    Column("created_at", Float, nullable=False),
)

artifacts = Table(
    "compact_artifacts",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("artifact_id", Exact, primary_key=True),
    Column("session_id", Exact, nullable=False, index=True),
    Column("message_id", Exact, nullable=False),
    Column("sensitivity", String, nullable=False),
    Column("tool_name", Exact, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("content", Packed, nullable=False),
    Column("expires_at", Float, index=True),
    Column("created_at", Float, nullable=False),
)

summary_cache = Table(
    "compact_summary_cache",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("tenant_id", Exact, nullable=False),
    Column("session_id", Exact, nullable=False),
    Column("body", Packed, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
    Index("compact_summary_cache_by_session", "tenant_id", "session_id"),
)

# Which traces and sessions there are events of: an event names both by one number. Nobody adds to it without the lock
# of those who add events, so each pair is there once.
event_traces = Table(
    "compact_event_traces",
    metadata,
    Column("number", _Key, primary_key=True, autoincrement=True),
    Column("tenant_id", Exact, nullable=False),
    Column("trace_id", Exact, nullable=False),
    Column("session_id", Exact, nullable=False),
    Index("compact_event_traces_by_trace", "tenant_id", "trace_id"),
    Index("compact_event_traces_by_session", "tenant_id", "session_id"),
    sqlite_autoincrement=True,
)

# Traces and spans. An update takes the place of what it updates, under a new number, which is never used twice.
events = Table(
    "compact_events",
    metadata,
    Column("number", _Key, primary_key=True, autoincrement=True),
    Column("tenant_id", Exact, nullable=False),
    Column("trace", _Key, nullable=False),
    Column("event_key", Hex, nullable=False),
    Column("type", String, nullable=False),
    Column("span_id", Hex, nullable=False),
    Column("kind", Exact, nullable=False),
    Column("is_error", Integer, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("received_at", Float, nullable=False),
    Column("size", Integer, nullable=False),
    Column("body", Packed, nullable=False),
    Index("compact_events_by_key", "tenant_id", "event_key", unique=True),
    Index("compact_events_of_trace", "trace", "number"),
    # All that is asked of old events, so that none of them is read.
    Index("compact_events_by_number", "tenant_id", "number", "size", "received_at"),
    sqlite_autoincrement=True,
)

# Everything that goes when a session goes, but for its events, which may take whole traces along. The session itself is
# first: whoever writes to it locks its row first, too, so nothing is added to a session while it goes.
BY_SESSION = (
    sessions, artifacts, summary_cache, messages, search, unindexed, branches, plans, summaries, added, model_calls,
)  # fmt: skip

# Terms are compared as they are: what a word is, and its stem, is decided by us and not by the database.
TSVECTOR = "array_to_tsvector(string_to_array(words, ' '))"
# Half a SHA-256: enough to tell events apart, and it stands in two places for each.
EVENT_KEY_CHARS = 32
# What SQLite calls to read a packed text; every connection that writes has it.
UNPACK = "compact_unpacked"
# What it calls to read hexadecimal digits, when it brings a store up to date.
UNHEX = "compact_unhex"
_FULL_TEXT = {
    "sqlite": (
        "CREATE VIRTUAL TABLE IF NOT EXISTS compact_terms USING fts5("
        "words, content='compact_search', content_rowid='number', detail='none', columnsize=0, "
        "tokenize=\"ascii tokenchars '_'\")",
        "CREATE TRIGGER IF NOT EXISTS compact_terms_in AFTER INSERT ON compact_search BEGIN "
        f"INSERT INTO compact_terms(rowid, words) VALUES (new.number, {UNPACK}(new.words)); END",
        "CREATE TRIGGER IF NOT EXISTS compact_terms_out AFTER DELETE ON compact_search BEGIN "
        "INSERT INTO compact_terms(compact_terms, rowid, words) "
        f"VALUES ('delete', old.number, {UNPACK}(old.words)); END",
    ),
    "postgresql": (f"CREATE INDEX IF NOT EXISTS compact_terms ON compact_search USING gin (({TSVECTOR}))",),
}
# The number of an event is never used twice, whatever becomes of its table.
_SAME_NUMBERS = {
    "sqlite": (
        "UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'compact_events_4') "
        "WHERE name = 'compact_events'"
    ),
    "postgresql": (
        "SELECT setval(pg_get_serial_sequence('compact_events', 'number'), "
        "nextval(pg_get_serial_sequence('compact_events_4', 'number')), false)"
    ),
}
# Version 1 had the words of an entry beside it, and an index of them.
_WITHOUT_FORMER_WORDS = {
    "sqlite": (
        "DROP TRIGGER compact_words_in",
        "DROP TRIGGER compact_words_out",
        "DROP TABLE compact_words",
        "ALTER TABLE compact_messages RENAME TO compact_messages_1",
    ),
    "postgresql": ("DROP INDEX compact_words", "ALTER TABLE compact_messages DROP COLUMN words"),
}


def prepare(connection: Connection) -> None:
    """Create the tables unless they are there, bring those of former versions up to date, and refuse any other."""
    if connection.dialect.name == "postgresql":
        # Several processes may start at once: one creates, the others find it done.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('compact_schema'))"))
    found = _found_version(connection)
    if found == SCHEMA_VERSION:
        return
    if found is None:
        _create(connection)
        connection.execute(insert(schema_version).values(version=SCHEMA_VERSION))
    elif found in (1, 2, 3, 4, 5):
        with _former_events(connection) if found < 5 else nullcontext():
            if found == 1:
                _migrate_from_1(connection)
            metadata.create_all(connection)
        if found < 3:
            _migrate_from_2(connection)
        if found < 4:
            _migrate_from_3(connection)
        _migrate_from_5(connection)
        connection.execute(update(schema_version).values(version=SCHEMA_VERSION))
    else:
        raise _unknown_version(found)


def check_readable(connection: Connection) -> None:
    """Raise StoreError unless the tables can be read as they are; nothing is created or brought up to date."""
    found = _found_version(connection)
    if found is None:
        raise StoreError("the database is no Compact store", hint="point state.url, or --store, at the agent's own")
    if found > SCHEMA_VERSION or found < 1:
        raise _unknown_version(found)
    if found < SCHEMA_VERSION:
        raise StoreError(
            f"the database has schema version {found}, which cannot be read without bringing it up to date",
            hint="open it once without --read-only, or read a copy of it",
        )


def _unknown_version(found: int) -> StoreError:
    advice = "upgrade compact-context" if found > SCHEMA_VERSION else "use the version of compact-context that made it"
    return StoreError(
        f"the database has schema version {found}, this build knows {SCHEMA_VERSION}",
        hint=f"{advice}, or point state.url at another database",
    )


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    for statement in _FULL_TEXT[connection.dialect.name]:
        connection.execute(text(statement))


def _migrate_from_1(connection: Connection) -> None:
    """Take the former index away; entries get into the new one when their session is searched, not now.

    Nothing is computed here: an agent's turn may be waiting for it.
    """
    dialect = connection.dialect.name
    for statement in _WITHOUT_FORMER_WORDS[dialect]:
        connection.execute(text(statement))
    _create(connection)
    if dialect == "sqlite":
        # Written anew, because older versions of SQLite cannot drop a column.
        columns = ", ".join(column.name for column in messages.columns)
        copy = f"INSERT INTO compact_messages ({columns}) SELECT {columns} FROM compact_messages_1 ORDER BY rowid"
        connection.execute(text(copy))
        connection.execute(text("DROP TABLE compact_messages_1"))
    known = select(sessions.c.tenant_id, sessions.c.session_id)
    connection.execute(insert(unindexed).from_select(["tenant_id", "session_id"], known))


def _migrate_from_2(connection: Connection) -> None:
    """Add what is recorded of a call beside its size; of the calls until now it is not known."""
    connection.execute(text("ALTER TABLE compact_model_calls ADD COLUMN details TEXT NOT NULL DEFAULT '{}'"))


def _migrate_from_3(connection: Connection) -> None:
    """Note whose a claim is, and read packed words; all else stays as it is written."""
    # Of the claims until now it is not known; they go by the clock alone.
    if "owner" not in {column["name"] for column in inspect(connection).get_columns(summaries.name)}:
        connection.execute(text("ALTER TABLE compact_summaries ADD COLUMN owner VARCHAR(80) NOT NULL DEFAULT ''"))
    expiry = "CREATE INDEX IF NOT EXISTS ix_compact_artifacts_expires_at ON compact_artifacts (expires_at)"
    connection.execute(text(expiry))
    if connection.dialect.name == "sqlite":
        for name in ("compact_terms_in", "compact_terms_out"):
            connection.execute(text(f"DROP TRIGGER IF EXISTS {name}"))
        for statement in _FULL_TEXT["sqlite"]:
            connection.execute(text(statement))


def _migrate_from_5(connection: Connection) -> None:
    """Add what is on record of an import; the sessions until now have a call instead."""
    if "imported" not in {column["name"] for column in inspect(connection).get_columns(sessions.name)}:
        connection.execute(text("ALTER TABLE compact_sessions ADD COLUMN imported TEXT"))


@contextmanager
def _former_events(connection: Connection) -> Generator[None]:
    """Put events of version 4 and before aside, and into the new tables once those are there.

    Each named its trace and its session in full, in two indexes, too. Their texts stay as they are written.
    """
    if not inspect(connection).has_table(events.name):
        yield
        return
    connection.execute(text("ALTER TABLE compact_events RENAME TO compact_events_4"))
    yield
    key = f"substr(event_key, 1, {EVENT_KEY_CHARS})"
    dialect = connection.dialect.name
    own = ("number", "tenant_id", "trace", "event_key")
    others = [column.name for column in events.columns if column.name not in own]
    for statement in (
        "INSERT INTO compact_event_traces (tenant_id, trace_id, session_id) "
        "SELECT DISTINCT tenant_id, trace_id, session_id FROM compact_events_4",
        f"INSERT INTO compact_events ({', '.join((*own, *others))}) "
        f"SELECT e.number, e.tenant_id, t.number, {f'{UNHEX}({key})' if dialect == 'sqlite' else key}, "
        f"{', '.join(f'e.{name}' for name in others)} FROM compact_events_4 e JOIN compact_event_traces t "
        "ON t.tenant_id = e.tenant_id AND t.trace_id = e.trace_id AND t.session_id = e.session_id ORDER BY e.number",
        _SAME_NUMBERS[dialect],
        "DROP TABLE compact_events_4",
    ):
        connection.execute(text(statement))


def _found_version(connection: Connection) -> int | None:
    """Return the version of the tables; None if they were never created, or not to the end."""
    if not inspect(connection).has_table(schema_version.name):
        return None
    return connection.execute(select(schema_version.c.version)).scalar_one_or_none()
