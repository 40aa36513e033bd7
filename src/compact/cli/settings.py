"""Finds the settings a command works with, says where each came from, and opens the store they name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compact.cli.screen import remark
from compact.core.audit.records import PlanVersion, SessionInfo
from compact.core.audit.store import StoreError
from compact.core.errors import CompactError, ConfigError, UnknownSession
from compact.core.plan.plan import CompactionPlan

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.engine.events import CompactionEvent
    from compact.manager import CompactManager

FOUND_NAMES = ("compact.yaml", "compact.yml", "compact.json")
_ELSEWHERE = "run this where the agent runs, or name its store with --store URL"


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store that is there, behind a manager that archives and exports nothing."""

    manager: CompactManager
    events: list[CompactionEvent]

    def session(self, session_id: str) -> SessionInfo:
        """A session that is in the store; the error for any other names the nearest one."""
        known = {info.session_id: info for info in self.manager.sessions()}
        if session_id in known:
            return known[session_id]
        error = UnknownSession(session_id)
        nearest = get_close_matches(session_id, known, n=1)
        listed = f"`compact sessions` lists {'all there are' if known else 'none yet'}"
        error.hint = f"did you mean {nearest[0]!r}? {listed}" if nearest else listed
        raise error

    def version(self, session_id: str, version: int) -> PlanVersion:
        """One plan version of a session; version 0 is the history without any compaction."""
        plans = self.manager.plans(session_id)
        if version == 0:
            return PlanVersion(CompactionPlan(session_id), self.session(session_id).created_at)
        found = next((entry for entry in plans if entry.plan.version == version), None)
        if found is None:
            newest = plans[-1].plan.version if plans else 0
            hint = f"its versions are 0 to {newest}" if newest else "it was never compacted: there is only version 0"
            raise CompactError(f"session {session_id!r} has no plan version {version}", hint=hint)
        return found


def config_file(path: Path | None) -> Path | None:
    """The file that was named, or the one that lies in the current directory."""
    return path or next((Path(name) for name in FOUND_NAMES if Path(name).is_file()), None)


def load_config(
    path: Path | None = None, *, model: str | None = None, window: int | None = None, store: str | None = None
) -> CompactConfig:
    """The configuration of a command: its options over the environment over a file over the defaults."""
    from compact.config import CompactConfig

    state = None if store is None else {"url": store}
    options: dict[str, Any] = {"model": model, "max_context_tokens": window, "state": state}
    given = {name: value for name, value in options.items() if value is not None}
    file = config_file(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = CompactConfig.load(file, **given) if file else CompactConfig(**given)
        except ConfigError as error:
            raise _with_origin(error, file) from None
    for warning in caught:
        remark(str(warning.message), label="note", style="yellow")
    return config


def quiet(config: CompactConfig, *, enabled: bool | None = None) -> CompactConfig:
    """The same settings for a transcript that is only looked at: no exporter, no store, no archive.

    `enabled` overrules the policy's.
    """
    update: dict[str, Any] = {"state": config.state.model_copy(update={"url": "memory:"})}
    if enabled is not None:
        update["policy"] = config.policy.model_copy(update={"enabled": enabled})
    return _unheard(config).model_copy(update=update)


@contextmanager
def open_store(path: Path | None, store: str | None, *, may_be_new: bool = False) -> Iterator[OpenStore]:
    """The store that the settings name, or that `--store` does; one that is not there is an error, not created.

    Whoever waits for what is to come (`may_be_new`) gets an empty one, unless it was named: a name may be misspelt.
    """
    if store is not None and not store.startswith(("sqlite:///", "postgresql://")):
        hint = "use sqlite:///PATH or postgresql://USER@HOST/NAME"
        raise StoreError(f"--store {store!r} is not the URL of a store", hint=hint)
    config = _unheard(load_config(path, store=store))
    if not (may_be_new and store is None and _is_missing(config.state.url)):
        _check_is_there(config.state.url)
    from compact.manager import CompactManager

    events: list[CompactionEvent] = []
    with CompactManager(config, on_event=events.append) as manager:
        yield OpenStore(manager, events)


def _unheard(config: CompactConfig) -> CompactConfig:
    """The same settings without exporter, archive and model: looking leaves no trace, and needs no package for it."""
    telemetry = config.telemetry.model_copy(update={"exporter": ("none",)})
    storage = config.storage.model_copy(update={"adapter": "none"})
    summarizer = config.summarizer.model_copy(update={"kind": "extractive"})
    return config.model_copy(update={"telemetry": telemetry, "storage": storage, "summarizer": summarizer})


def _is_missing(url: str) -> bool:
    """True for a store that will be there once an agent writes to it."""
    from sqlalchemy.engine import make_url

    return url.startswith("sqlite") and not Path(make_url(url).database or "").exists()


def _check_is_there(url: str) -> None:
    """Opening would create a missing SQLite file, and put our tables into somebody else's."""
    if url == "memory:":
        raise StoreError("state.url is `memory:`, and such a store ends with its process", hint=_ELSEWHERE)
    if not url.startswith("sqlite"):
        return
    import sqlite3
    from urllib.parse import quote

    from sqlalchemy.engine import make_url

    file = Path(make_url(url).database or "")
    if not file.is_file():
        raise StoreError(f"there is no store at {file}", hint=_ELSEWHERE)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection:
            is_ours = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'compact_schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot read {file}: {error}", hint="check that it is a database, and yours to read"
        ) from None
    if not is_ours:
        raise StoreError(f"{file} is a database of something else: it has no sessions", hint=_ELSEWHERE)


def environment_settings() -> Iterator[tuple[str, str]]:
    """The settings that the environment overrules: the dotted field, and the variable that does it."""
    from compact.config import CompactConfig
    from compact.config_sources import environment_names

    for names, path, _ in environment_names(CompactConfig):
        variable = next((name for name in names if name in os.environ), None)
        if variable:
            yield ".".join(path), variable


def _with_origin(error: ConfigError, file: Path | None) -> ConfigError:
    """Say where a wrong value was set: people look in the file while a variable overrules it."""
    variable = dict(environment_settings()).get(error.field)
    if variable:
        return ConfigError(error.message, field=error.field, hint=f"the environment variable {variable} sets it")
    if file and error.field:
        return ConfigError(f"{file}: {error.message}", field=error.field, hint=error.hint)
    return error
