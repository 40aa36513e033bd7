"""`compact undo`: restores an earlier plan version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store, Yes, confirm
from compact.cli.sessions.show import status_as_it_ran
from compact.cli.store import OpenStore, open_store
from compact.core.errors import CompactError
from compact.core.plan.plan import CompactionPlan

if TYPE_CHECKING:
    from compact.core.engine.status import SessionStatus

To = Annotated[
    int | None,
    typer.Option("--to", metavar="VERSION", min=0, help="The version to restore; 0 is the history as it came."),
]


def undo(
    session: Session,
    to: To = None,
    yes: Yes = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Undo the last compaction, or restore any plan version.

    Nothing is lost: the plan in force now stays among the versions, and can be restored in the same way.
    """
    from compact.core.audit.records import recorded_limits, version_before_compaction

    with open_store(config, store) as opened:
        info = opened.session(session)
        current = opened.manager.current_plan(session)
        version = version_before_compaction(current, opened.manager.plans(session)) if to is None else to
        is_done = version is None or version in (current.version, _content_version(current))
        plan = current if version is None or is_done else _restore(opened, current, version, yes)
        # What fits is what the agent's own settings say, and not those of this command.
        status = status_as_it_ran(
            opened.manager.status(session), recorded_limits(info, opened.manager.model_calls(session))
        )
    if as_json:
        changed = {"session_id": session, "changed": not is_done, "version": plan.version}
        screen.write_json({**changed, "restored_from": plan.origin, "used_tokens": status.used_tokens})
    elif is_done:
        screen.line(_why_nothing_changed(current, session, to))
    else:
        screen.line(f"version {version} is in force again, as version {plan.version}: {_size(status)}")
        _show_advice(session, current, status)


def _content_version(plan: CompactionPlan) -> int:
    """Return the version that a plan restored, or its own."""
    return plan.version if plan.origin is None else plan.origin


def _why_nothing_changed(current: CompactionPlan, session: str, to: int | None) -> str:
    if not current.version:
        return f"nothing to undo: session {session!r} was never compacted"
    if to is None:
        return "nothing to undo: every compaction is undone already"
    return f"nothing to do: version {to} is in force already"


def _restore(opened: OpenStore, current: CompactionPlan, version: int, yes: bool) -> CompactionPlan:
    session = current.session_id
    earlier = opened.plan_version(session, version).plan
    ids = [message.id for message in opened.manager.history(session)]
    before, after = (sum(plan.get_action(i)[1] is not None for i in ids) for plan in (current, earlier))
    effect = f"{before:,} of {screen.quantity(len(ids), 'message')} compacted now, {after:,} then"
    if not confirm(f"Restore version {version} of session {session!r} ({effect})?", yes):
        screen.notice("nothing was changed")
        raise typer.Exit(1)
    plan = opened.manager.restore(session, version)
    # A manager whose store fails goes on with what it has in memory, and this process ends here.
    if opened.manager.plans(session)[-1].plan != plan:
        hint = "try again; `compact show` lists the versions"
        raise CompactError(f"version {version} was not restored: the session was changed meanwhile", hint=hint)
    return plan


def _size(status: SessionStatus) -> str:
    compacted = sum(count for action, count in status.actions.items() if action != "include")
    messages = screen.quantity(status.messages_in_log, "message")
    return f"{screen.quantity(status.used_tokens, 'token')}, {compacted:,} of {messages} compacted"


def _show_advice(session: str, before: CompactionPlan, status: SessionStatus) -> None:
    """Print how to undo the undo, and a warning if the restored plan does not fit."""
    screen.notice(f"compact undo {session} --to {before.version} reverses this")
    ceiling = status.thresholds["ceiling"]
    if status.used_tokens > ceiling:
        text = f"that is more than the {ceiling:,} tokens that fit: the next call compacts again"
        screen.notice(text, label="note", style="yellow")
