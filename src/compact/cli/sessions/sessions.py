"""`compact sessions`: the sessions of a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Store
from compact.cli.store import open_store

if TYPE_CHECKING:
    from compact.core.audit.records import SessionInfo

_COLUMNS = ("last used", "messages", "calls", "plan", "tokens", "session")


def sessions(store: Store = None, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List the sessions in the store, the newest first.

    `plan` is the current plan version, `tokens` the size of the last prompt.
    """
    with open_store(config, store) as opened:
        found = opened.manager.sessions()
    if as_json:
        screen.write_json([session_data(info) for info in found])
    else:
        show_sessions(found)


def show_sessions(found: tuple[SessionInfo, ...]) -> None:
    """Print sessions as a table; the id comes last, because it may be long."""
    if not found:
        screen.line("no sessions yet")
        return
    rows = [
        (
            screen.local_time(info.updated_at),
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
    """Return a session of the list as data."""
    times = {"created_at": screen.iso_time(info.created_at), "updated_at": screen.iso_time(info.updated_at)}
    return {**asdict(info), **times}
