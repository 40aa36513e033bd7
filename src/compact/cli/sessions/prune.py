"""`compact prune`: deletes a session, or all that were not used for some time."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Store, Yes, confirm
from compact.cli.sessions.sessions import session_data, show_sessions
from compact.cli.settings import load_config
from compact.cli.store import open_store
from compact.core.audit.store import PruningStore, ShrinkingStore
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.audit.records import SessionInfo
    from compact.manager import CompactManager

# Chosen: after so many the bar moves on.
_AT_ONCE = 250
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60}

OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than", metavar="AGE", help="Not used for this long: 30d (days), 12h (hours) or 90m (minutes)."
    ),
]
OneSession = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Only this session, however new it is.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would be deleted, and delete nothing.")]


def prune(
    older_than: OlderThan = None,
    session: OneSession = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete a session, or all that were not used for some time.

    Their log, plans, calls, summaries and artifacts are deleted for good; archived transcripts are not. Name
    --older-than or --session.
    """
    if (older_than is None) == (session is None):
        raise CompactError("prune needs either --older-than or --session", hint="--dry-run lists what would be deleted")
    seconds = _seconds(older_than) if older_than is not None else None
    before = time.time() - seconds if seconds is not None else 0.0
    with open_store(config, store) as opened:
        found = (opened.session(session),) if session is not None else _unused(opened.manager, before)
        deleted: list[SessionInfo] = []
        if found and not dry_run:
            _ask(found, f", not used for {older_than}" if older_than else f": {session}", yes)
            if session is None:
                deleted = _delete(opened.manager, found, before)
            else:
                deleted = [info for info in found if opened.manager.delete(info.session_id)]
            if isinstance(opened.manager.store, ShrinkingStore):
                opened.manager.store.shrink()
    if as_json:
        listed = [session_data(info) for info in (found if dry_run else deleted)]
        asked = {"older_than_seconds": seconds, "session_id": session}
        screen.write_json({**asked, "dry_run": dry_run, "deleted": len(deleted), "sessions": listed})
    elif not found:
        screen.line(f"nothing to delete: every session was used in the last {older_than}")
    elif dry_run:
        show_sessions(found)
        screen.line(f"would delete {_amount(found)}")
    else:
        screen.line(f"deleted {_amount(deleted)}")
    if deleted:
        _show_archived(deleted, load_config(config))


def _show_archived(deleted: list[SessionInfo], settings: CompactConfig) -> None:
    """Say where deleted sessions are still archived, as far as it is a folder of this machine."""
    from compact.archive.names import folder_name, tenant_place

    root = Path(settings.storage.path, tenant_place(settings.state.tenant_id))
    left = [folder for info in deleted if (folder := root / folder_name(info.session_id)).is_dir()]
    if settings.storage.adapter == "fs" and left:
        more = f" and {len(left) - 1:,} more beside it" if len(left) > 1 else ""
        screen.notice(
            f"archived transcripts are still in {left[0]}{more}: delete them yourself", label="note", style="yellow"
        )


def _seconds(age: str) -> int:
    """Return an age in seconds; strict, because a slip here deletes what is still needed."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})([dhm])", age)
    if match is None:
        hint = "use a whole number from 1 with its unit: 30d (days), 12h (hours), 90m (minutes)"
        raise CompactError(f"--older-than {age!r} is not an age", hint=hint)
    return int(match[1]) * _SECONDS[match[2]]


def _unused(manager: CompactManager, before: float) -> tuple[SessionInfo, ...]:
    return tuple(info for info in manager.sessions() if info.updated_at < before)


def _delete(manager: CompactManager, found: tuple[SessionInfo, ...], before: float) -> list[SessionInfo]:
    """Delete sessions and return them; one that was used while the question was open stays."""
    if not isinstance(manager.store, PruningStore):
        return [info for info in _unused(manager, before) if manager.delete(info.session_id)]
    gone: set[str] = set()
    with screen.progress("deleting sessions", len(found)) as advance:
        for start in range(0, len(found), _AT_ONCE):
            part = [info.session_id for info in found[start : start + _AT_ONCE]]
            gone |= manager.store.delete_unused(part, before=before)
            advance(len(part), "deleting sessions")
    return [info for info in found if info.session_id in gone]


def _ask(found: tuple[SessionInfo, ...], which: str, yes: bool) -> None:
    question = f"Delete {_amount(found)}{which}, for good?"
    if not confirm(question, yes):
        screen.notice("nothing was deleted")
        raise typer.Exit(1)


def _amount(sessions: list[SessionInfo] | tuple[SessionInfo, ...]) -> str:
    messages = sum(info.messages for info in sessions)
    return f"{screen.quantity(len(sessions), 'session')} with {screen.quantity(messages, 'message')}"
