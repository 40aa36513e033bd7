"""A database of schema version 1 becomes today's, with all that is in it."""

from __future__ import annotations

import json

from sqlalchemy import inspect, text

from compact import CompactConfig, CompactManager
from compact.injection import Injector
from compact.stores import schema
from compact.stores.database import Database
from compact.testing import dialogue, tool_run, user

CALL_COLUMNS_OF_VERSION_1 = [
    "number",
    "tenant_id",
    "session_id",
    "turn_number",
    "plan_version",
    "summary_version",
    "last_seq",
    "messages",
    "evicted",
    "tokens_estimated",
    "tokens_reported",
    "parts",
    "at",
]


def manager_on(url: str) -> CompactManager:
    quiet = {"storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}, "tokenizer": "simple"}
    config = CompactConfig(max_context_tokens=6_000, state={"url": url}, **quiet)
    return CompactManager(config, injectors=[Injector("note", 50, lambda _: "a note")])


def fill(url: str) -> list[int]:
    """Two calls, an edited past, and two calls more; returns their numbers."""
    history = [*tool_run(12, words=120), *dialogue(3)]
    with manager_on(url) as manager:
        for messages in (
            history[:6],
            history,
            [*history[:8], user("else")],
            [*history[:8], user("else"), user("more")],
        ):
            manager.preflight("s", messages)
        return [call.number for call in manager.model_calls("s")]


def downgrade(url: str) -> None:
    """What version 1 would have written."""
    database = Database(url)
    with database.writing() as connection:
        for name in ("branch", "limits", "reason", "added"):
            connection.execute(text(f"ALTER TABLE compact_model_calls DROP COLUMN {name}"))
        connection.execute(text("DROP TABLE compact_added"))
        roles = json.dumps({"system": 5, "user": 7, "tool": 11, "injected": 13})
        connection.execute(
            text("UPDATE compact_model_calls SET parts = :roles, tokens_estimated = 40"), {"roles": roles}
        )
        connection.execute(text("UPDATE compact_schema SET version = 1"))
        # Each commit has a time of its own; here they may be too close to each other to tell.
        connection.execute(text("UPDATE compact_model_calls SET at = 1000 + number"))
        connection.execute(
            text("UPDATE compact_branches SET created_at = (SELECT max(at) - 1 FROM compact_model_calls)")
        )
        assert [column["name"] for column in inspect(connection).get_columns("compact_model_calls")] == (
            CALL_COLUMNS_OF_VERSION_1
        )
    database.close()


def test_a_database_of_version_1_is_taken_over(url: str) -> None:
    numbers = fill(url)
    with manager_on(url) as manager:
        history, plans = manager.history("s"), manager.plans("s")
    downgrade(url)
    with manager_on(url) as manager:
        calls = manager.model_calls("s")
        assert [call.number for call in calls] == numbers
        assert manager.history("s") == history
        assert manager.plans("s") == plans
        # The line that each call was on is found by its time.
        assert [call.branch for call in calls] == [0, 0, 1, 1]
        # Tokens by role become parts of the prompt; instructions and schemas are the rest of the estimate.
        assert calls[0].parts == {"system": 9, "dialogue": 18, "injected": 13}
        assert (calls[0].limits, calls[0].reason) == ({}, "")
        assert manager._store.sent("s", numbers[0]).added == ()  # type: ignore[union-attr]
        manager.preflight("s", [user("a new beginning")])
        newest = manager.model_calls("s")[-1]
        assert newest.limits["window"] == 6_000
        assert newest.branch == 2
        sent = manager._store.sent("s", newest.number)
        assert sent is not None
        assert [entry.message.text.splitlines()[-1] for entry in sent.added] == ["a note"]
    database = Database(url)
    with database.reading() as connection:
        assert connection.execute(text("SELECT version FROM compact_schema")).scalar_one() == schema.SCHEMA_VERSION
    database.close()


def test_what_is_migrated_looks_like_what_is_new(url: str) -> None:
    fill(url)
    database = Database(url)
    with database.reading() as connection:
        new = {column["name"]: str(column["type"]) for column in inspect(connection).get_columns("compact_model_calls")}
    downgrade(url)
    database.close()
    migrated = Database(url)
    with migrated.reading() as connection:
        found = {
            column["name"]: str(column["type"]) for column in inspect(connection).get_columns("compact_model_calls")
        }
    migrated.close()
    assert found == new


def test_what_stood_beside_the_log_goes_with_its_session(url: str) -> None:
    fill(url)
    with manager_on(url) as manager:
        manager.delete("s")
    database = Database(url)
    with database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM compact_added")).scalar_one() == 0
    database.close()


def test_the_same_note_is_written_once(url: str) -> None:
    numbers = fill(url)
    database = Database(url)
    with database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM compact_added")).scalar_one() == 1
    database.close()
    with manager_on(url) as manager:
        assert all(len(sent.added) == 1 for number in numbers if (sent := manager._store.sent("s", number)))
