"""`compact sessions`: what is in the store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Store
from compact.cli.settings import open_store

if TYPE_CHECKING:
    from compact.core.audit.records import SessionInfo

_COLUMNS = ("last used", "messages", "calls", "plan", "tokens", "session")


def sessions(store: Store = None, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List the sessions in the store, the newest first.

    `plan` is the version in force, `tokens` what the last prompt took.
    """
    with open_store(config, store) as opened:
        found = opened.manager.sessions()
    if as_json:
        screen.write_json([session_data(info) for info in found])
    else:
        show_sessions(found)


def show_sessions(found: tuple[SessionInfo, ...]) -> None:
    """A table; the id comes last, because it may be long."""
    if not found:
        screen.line("no sessions yet")
        return
    rows = [
        (
            local_time(info.updated_at),
            info.messages,
            info.model_calls,
            info.plan_version,
            info.last_tokens,
            info.session_id,
        )
        for info in found
    ]
    screen.table(_COLUMNS, rows)


def session_data(info: SessionInfo) -> dict[str, Any]:
    """A session in a list, as data."""
    return {**asdict(info), "created_at": iso_time(info.created_at), "updated_at": iso_time(info.updated_at)}


def local_time(at: float) -> str:
    """A moment on the clock of whoever looks."""
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")


def iso_time(at: float) -> str:
    """The same for programs, with its distance from UTC."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
