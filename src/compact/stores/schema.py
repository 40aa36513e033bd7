"""The tables, and how an older database becomes today's."""

from __future__ import annotations

import json

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DefaultClause,
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
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from compact.core.audit.store import StoreError

SCHEMA_VERSION = 2
# PostgreSQL indexes words of up to 1 MB; a character of them takes four bytes at most, places included.
_INDEXED_CHARS = 250_000
_ESCAPED = "\x01"
metadata = MetaData()
_Key = BigInteger().with_variant(Integer, "sqlite")


class Exact(TypeDecorator[str]):
    """Text as it came; NUL and lone surrogates, which no database takes, make it JSON behind a mark."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as the database gets it."""
        return _ESCAPED + json.dumps(value) if value and _is_odd(value) else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it came."""
        return json.loads(value[1:]) if value and value.startswith(_ESCAPED) else value


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
)

messages = Table(
    "compact_messages",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("message_id", Exact, nullable=False),
    Column("body", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("words", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("tenant_id", "session_id", "message_id"),
)

# The line a caller is on is written only when it edits the past; otherwise it is the last one and all that came after.
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
    Column("body", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)

summaries = Table(
    "compact_summaries",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("span_key", String(64), primary_key=True),
    Column("version", Integer),
    Column("message_ids", Text),
    Column("body", Text),
    Column("claimed_at", Float, nullable=False),
    Column("finished_at", Float),
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
    Column("parts", Text, nullable=False),
    Column("branch", Integer, nullable=False, server_default="0"),
    # The thresholds as JSON; `null` marks a call of version 1, whose parts are tokens by role.
    Column("limits", Text, nullable=False, server_default="null"),
    Column("reason", Exact, nullable=False, server_default=""),
    Column("added", Text, nullable=False, server_default="[]"),
    Column("at", Float, nullable=False),
    Index("compact_model_calls_by_session", "tenant_id", "session_id", "number"),
)

# What stood behind the log in prompts; calls name it by its hash.
added = Table(
    "compact_added",
    metadata,
    Column("tenant_id", Exact, primary_key=True),
    Column("session_id", Exact, primary_key=True),
    Column("content_hash", String(64), primary_key=True),
    Column("body", Text, nullable=False),
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
    Column("content", Exact, nullable=False),
    Column("expires_at", Float),
    Column("created_at", Float, nullable=False),
)

summary_cache = Table(
    "compact_summary_cache",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("body", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)

# Everything that goes when a session goes; artifacts name their session `session_id`.
BY_SESSION = (messages, branches, plans, summaries, added, model_calls, sessions)

TSVECTOR = f"to_tsvector('simple', left(words, {_INDEXED_CHARS}))"
_FULL_TEXT = {
    "sqlite": (
        "CREATE VIRTUAL TABLE IF NOT EXISTS compact_words USING fts5("
        "words, content='compact_messages', content_rowid='rowid', tokenize='unicode61')",
        "CREATE TRIGGER IF NOT EXISTS compact_words_in AFTER INSERT ON compact_messages BEGIN "
        "INSERT INTO compact_words(rowid, words) VALUES (new.rowid, new.words); END",
        "CREATE TRIGGER IF NOT EXISTS compact_words_out AFTER DELETE ON compact_messages BEGIN "
        "INSERT INTO compact_words(compact_words, rowid, words) VALUES ('delete', old.rowid, old.words); END",
    ),
    "postgresql": (f"CREATE INDEX IF NOT EXISTS compact_words ON compact_messages USING gin ({TSVECTOR})",),
}


def prepare(connection: Connection) -> None:
    """Create or migrate the tables; a database from a newer version is refused."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        # Several processes may start at once: one creates, the others find it done.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('compact_schema'))"))
    found = _found_version(connection)
    if found > SCHEMA_VERSION:
        raise StoreError(
            f"the database has schema version {found}, this build knows {SCHEMA_VERSION}",
            hint="upgrade compact-context, or point state.url at another database",
        )
    if found == SCHEMA_VERSION:
        return
    metadata.create_all(connection)
    if found == 1:
        _migrate_calls(connection)
    for statement in _FULL_TEXT[dialect]:
        connection.execute(text(statement))
    if found:
        connection.execute(update(schema_version).values(version=SCHEMA_VERSION))
    else:
        connection.execute(insert(schema_version).values(version=SCHEMA_VERSION))


def _migrate_calls(connection: Connection) -> None:
    """Version 2 knows more of each call; the line it was on is the newest that was there when it was made."""
    for name in ("branch", "limits", "reason", "added"):
        column = model_calls.c[name]
        kind = column.type.compile(connection.dialect)
        default = str(column.server_default.arg) if isinstance(column.server_default, DefaultClause) else ""
        connection.execute(
            text(f"ALTER TABLE compact_model_calls ADD COLUMN {name} {kind} NOT NULL DEFAULT '{default}'")
        )
    at_that_time = (
        select(func.coalesce(func.max(branches.c.branch), 0))
        .where(branches.c.tenant_id == model_calls.c.tenant_id, branches.c.session_id == model_calls.c.session_id)
        .where(branches.c.created_at <= model_calls.c.at)
        .scalar_subquery()
    )
    connection.execute(update(model_calls).values(branch=at_that_time))


def _found_version(connection: Connection) -> int:
    if not inspect(connection).has_table(schema_version.name):
        return 0
    return connection.execute(select(schema_version.c.version)).scalar_one_or_none() or 0
