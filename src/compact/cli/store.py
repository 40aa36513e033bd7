"""Opens the store that a command works on: one that does not exist is an error, and is not created."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from compact.cli.settings import load_config, without_side_effects
from compact.core.audit.records import PlanVersion, SessionInfo, find_version
from compact.core.audit.store import StoreError
from compact.core.errors import UnknownSession
from compact.core.plan.plan import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Generator

    from compact.core.engine.events import CompactionEvent
    from compact.manager import CompactManager

_OTHER_STORE = "run this where the agent runs, or name its store with --store URL"


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store behind a manager that archives and exports nothing; `events` is what the manager emitted."""

    manager: CompactManager
    events: list[CompactionEvent]

    def session(self, session_id: str) -> SessionInfo:
        """Return a session of the store; the error for an unknown one names the nearest id."""
        known = {info.session_id: info for info in self.manager.sessions()}
        if session_id in known:
            return known[session_id]
        error = UnknownSession(session_id)
        nearest = get_close_matches(session_id, known, n=1)
        listed = "`compact sessions` lists them all" if known else "the store has no sessions yet"
        error.hint = f"did you mean {nearest[0]!r}? {listed}" if nearest else listed
        raise error

    def plan_version(self, session_id: str, version: int) -> PlanVersion:
        """Return one plan version of a session; version 0 is the history without any compaction."""
        plans = self.manager.plans(session_id)
        if version == 0:
            return PlanVersion(CompactionPlan(session_id), self.session(session_id).created_at)
        return find_version(plans, version, session_id)


def check_store_url(store: str | None) -> None:
    """Raise if what `--store` names is not the URL of a store."""
    if store is not None and not store.startswith(("sqlite:///", "postgresql://")):
        hint = "use sqlite:///PATH or postgresql://USER@HOST/NAME"
        raise StoreError(f"--store {store!r} is not the URL of a store", hint=hint)


@contextmanager
def open_store(
    path: Path | None, store: str | None, *, may_be_new: bool = False, read_only: bool = False
) -> Generator[OpenStore]:
    """Open the store that `--store` or the settings name; with `read_only`, without ever writing to it.

    With `may_be_new`, the configured store may not exist yet; one named with `--store` must: it may be misspelt.
    """
    check_store_url(store)
    config = without_side_effects(load_config(path, store=store))
    if not (may_be_new and store is None and _is_missing_file(config.state.url)):
        _check_exists(config.state.url)
    from compact.assembly.storage import build_store
    from compact.manager import CompactManager

    events: list[CompactionEvent] = []
    opened = build_store(config, read_only=read_only)
    with CompactManager(config, store=opened, on_event=events.append) as manager:
        yield OpenStore(manager, events)


def _is_missing_file(url: str) -> bool:
    """Return True for a SQLite file that does not exist yet."""
    from sqlalchemy.engine import make_url

    return url.startswith("sqlite") and not Path(make_url(url).database or "").exists()


def _check_exists(url: str) -> None:
    """Raise if there is no store: opening would create a missing file, or put our tables into another database."""
    if url == "memory:":
        raise StoreError("state.url is `memory:`: such a store ends with its process", hint=_OTHER_STORE)
    if not url.startswith("sqlite"):
        return
    import sqlite3
    from urllib.parse import quote

    from sqlalchemy.engine import make_url

    file = Path(make_url(url).database or "")
    if not file.is_file():
        raise StoreError(f"there is no store at {file}", hint=_OTHER_STORE)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection:
            is_ours = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'compact_schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot read {file}: {error}", hint="check that it is a SQLite database and that you may read it"
        ) from None
    if not is_ours:
        raise StoreError(f"{file} is a database, but not a Compact store", hint=_OTHER_STORE)
