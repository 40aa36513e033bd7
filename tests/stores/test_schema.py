"""The tables: created once, refused if they are of another version, and what prompts had behind the log in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from compact import CompactConfig, CompactManager
from compact.core.audit.store import StoreError
from compact.core.engine.events import CompactionErrorEvent
from compact.injection import Injector
from compact.stores import schema
from compact.stores.database import Database
from compact.testing import dialogue, tool_run, user
from stores.worker import finish, history, manager_on, prepare, start


@pytest.mark.parametrize(
    ("version", "advice"), [(99, "upgrade compact-context"), (0, "use the version of compact-context that made it")]
)
def test_a_database_of_another_version_is_refused_and_left_alone(url: str, version: int, advice: str) -> None:
    other = Database(url)
    with other.writing() as connection:
        connection.execute(text("UPDATE compact_schema SET version = :version"), {"version": version})
        tables = connection.execute(text("SELECT count(*) FROM compact_sessions")).scalar_one()
    other.close()
    database = Database(url)
    with pytest.raises(StoreError) as refused, database.reading():
        pass
    database.close()
    assert f"schema version {version}, this build knows {schema.SCHEMA_VERSION}" in str(refused.value)
    assert f"hint: {advice}, or point state.url at another database" in str(refused.value)
    manager, sink = manager_on(url)
    with manager:
        assert manager.preflight("s", history(4)) == history(4), "the turn goes on"
    assert f"schema version {version}" in sink.of(CompactionErrorEvent)[0].message
    assert tables == 0


def test_several_processes_may_create_a_database_at_once(make_url: Callable[[], str]) -> None:
    urls = [make_url() for _ in range(5)]
    processes = [start(prepare, urls=urls, name=f"s-{number}") for number in range(4)]
    for _ in urls:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
    for process in processes:
        finish(process)
    for url in urls:
        database = Database(url)
        with database.reading() as connection:
            versions = connection.execute(text("SELECT version FROM compact_schema")).scalars().all()
            assert versions == [schema.SCHEMA_VERSION]
            assert connection.execute(text("SELECT count(*) FROM compact_sessions")).scalar_one() == 4
        database.close()


def test_a_database_without_a_version_row_is_prepared_again(url: str) -> None:
    """A process killed between creating the tables and noting the version leaves no trap."""
    first = Database(url)
    with first.writing() as connection:
        connection.execute(text("DELETE FROM compact_schema"))
    first.close()
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(4))
        assert len(manager.history("s")) == 4


def test_a_database_of_version_5_goes_on_with_its_events_and_takes_imports(url: str) -> None:
    """It had no place for what is on record of an import."""
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
        manager.flush()
        events = manager.store.events.count()
    database = Database(url)
    with database.writing() as connection:
        connection.execute(text("ALTER TABLE compact_sessions DROP COLUMN imported"))
        connection.execute(text("UPDATE compact_schema SET version = 5"))
    database.close()
    with manager_on(url)[0] as manager:
        assert manager.store.events.count() == events > 0
        manager.add_history("old", history(8))
        imported = {info.session_id: info.imported is not None for info in manager.sessions()}
        assert imported == {"s": False, "old": True}
        assert len(manager.model_calls("s")) == 1


def manager_with_a_note(url: str) -> CompactManager:
    quiet = {"storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}, "tokenizer": "simple"}
    config = CompactConfig(max_context_tokens=6_000, state={"url": url}, **quiet)
    return CompactManager(config, injectors=[Injector("note", 50, lambda _: "a note")])


def fill(url: str) -> list[int]:
    """Two calls, an edited past, and two calls more; returns their numbers."""
    history = [*tool_run(12, words=120), *dialogue(3)]
    with manager_with_a_note(url) as manager:
        for messages in (
            history[:6],
            history,
            [*history[:8], user("else")],
            [*history[:8], user("else"), user("more")],
        ):
            manager.preflight("s", messages)
        calls = manager.model_calls("s")
    assert [call.branch for call in calls] == [0, 0, 1, 1]
    assert all(call.limits["window"] == 6_000 for call in calls)
    return [call.number for call in calls]


def added_rows(url: str) -> int:
    database = Database(url)
    with database.reading() as connection:
        rows = connection.execute(text("SELECT count(*) FROM compact_added")).scalar_one()
    database.close()
    return rows


def test_what_stood_behind_the_log_goes_with_its_session(url: str) -> None:
    fill(url)
    assert added_rows(url) == 1
    with manager_with_a_note(url) as manager:
        manager.delete("s")
    assert added_rows(url) == 0


def test_the_same_note_is_written_once(url: str) -> None:
    numbers = fill(url)
    assert added_rows(url) == 1
    with manager_with_a_note(url) as manager:
        sent = [manager._store.sent("s", number) for number in numbers]
    assert [[entry.message.text.splitlines()[-1] for entry in prompt.added] for prompt in sent] == [["a note"]] * 4
