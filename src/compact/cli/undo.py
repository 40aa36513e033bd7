"""`compact undo`: brings an earlier plan back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store, Yes, confirmed
from compact.cli.settings import OpenStore, open_store
from compact.core.errors import CompactError
from compact.core.plan.plan import CompactionPlan

if TYPE_CHECKING:
    from compact.core.engine.status import SessionStatus

To = Annotated[
    int | None,
    typer.Option("--to", metavar="VERSION", min=0, help="Which version; 0 is the history without any compaction."),
]


def undo(
    session: Session,
    to: To = None,
    yes: Yes = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Take the last compaction back, or go to any other version.

    Nothing is lost: the plan that is in force now stays among the versions, and can be brought back just so.
    """
    with open_store(config, store) as opened:
        opened.session(session)
        now = opened.manager.current_plan(session)
        wanted = _stands_for(now) - 1 if to is None else to
        is_done = wanted < 0 or wanted in (now.version, _stands_for(now))
        plan = now if is_done else _restored(opened, now, wanted, yes)
        status = opened.manager.status(session)
    if as_json:
        changed = {"session_id": session, "changed": not is_done, "version": plan.version}
        screen.write_json({**changed, "restored_from": plan.origin, "used_tokens": status.used_tokens})
    elif is_done:
        screen.line(_nothing_to_do(now, session, to))
    else:
        screen.line(f"version {wanted} is in force again, as version {plan.version}: {_size(status)}")
        _advise(session, now, status)


def _stands_for(plan: CompactionPlan) -> int:
    """The version that a plan brought back, or its own."""
    return plan.version if plan.origin is None else plan.origin


def _nothing_to_do(now: CompactionPlan, session: str, to: int | None) -> str:
    if not now.version:
        return f"nothing to undo: session {session!r} was never compacted"
    if to is None:
        return "nothing to undo: every compaction was taken back already"
    return f"nothing to do: version {to} is in force already"


def _restored(opened: OpenStore, now: CompactionPlan, wanted: int, yes: bool) -> CompactionPlan:
    session = now.session_id
    earlier = opened.version(session, wanted).plan
    ids = [message.id for message in opened.manager.history(session)]
    before, after = (sum(plan.get_action(i)[1] is not None for i in ids) for plan in (now, earlier))
    effect = f"{before:,} of {screen.counted(len(ids), 'message')} compacted now, {after:,} then"
    if not confirmed(f"Bring back version {wanted} of session {session!r} ({effect})?", yes):
        screen.remark("nothing was changed")
        raise typer.Exit(1)
    plan = opened.manager.restore(session, wanted)
    # A manager whose store fails goes on with what it has in memory, and ours ends here.
    if opened.manager.plans(session)[-1].plan != plan:
        hint = "try again; `compact show` lists the versions"
        raise CompactError(f"version {wanted} was not brought back: the session was written to meanwhile", hint=hint)
    return plan


def _size(status: SessionStatus) -> str:
    compacted = sum(count for action, count in status.actions.items() if action != "include")
    return (
        f"{status.used_tokens:,} tokens, {compacted:,} of {screen.counted(status.messages_in_log, 'message')} compacted"
    )


def _advise(session: str, before: CompactionPlan, status: SessionStatus) -> None:
    screen.remark(f"compact undo {session} --to {before.version} takes this back")
    ceiling = status.thresholds["ceiling"]
    if status.used_tokens > ceiling:
        text = f"that is more than the {ceiling:,} tokens that fit: the next call compacts again"
        screen.remark(text, label="note", style="yellow")
