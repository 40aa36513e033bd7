"""`compact diff`: which messages two plan versions treat differently, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Limit, Session, Store
from compact.cli.store import OpenStore, open_store

if TYPE_CHECKING:
    from compact.core.audit.records import PlanVersion
    from compact.core.plan.plan import CompactionPlan

_COLUMNS = ("message", "role", "from → to", "by", "why")

Old = Annotated[
    int | None, typer.Argument(metavar="V1", min=0, help="A plan version; by default the one before the current one.")
]
New = Annotated[int | None, typer.Argument(metavar="V2", min=0, help="Another one; by default the current one.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MessageChange:
    """One message that two plans treat differently."""

    message_id: str
    role: str
    before: str
    after: str
    by: str
    why: str


def diff(
    session: Session,
    old: Old = None,
    new: New = None,
    limit: Limit = 30,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two plan versions, and why.

    Version 0 is the history without any compaction.
    """
    with open_store(config, store) as opened:
        current = opened.session(session).plan_version
        versions = [
            opened.plan_version(session, max(0, current - 1) if old is None else old),
            opened.plan_version(session, current if new is None else new),
        ]
        changes = list(_changes(opened, session, versions[0].plan, versions[1].plan))
        messages = len(opened.manager.history(session))
    if as_json:
        data = {name: _version_data(entry) for name, entry in zip(("from", "to"), versions, strict=True)}
        screen.write_json({**data, "messages": messages, "changes": [asdict(change) for change in changes]})
    elif not current:
        screen.line(f"nothing to compare: session {session!r} was never compacted")
    else:
        _show(versions, changes, messages, limit)


def _changes(opened: OpenStore, session: str, old: CompactionPlan, new: CompactionPlan) -> Iterator[_MessageChange]:
    for message in opened.manager.history(session):
        before, after = old.get_action(message.id)[0].value, new.get_action(message.id)[0].value
        if before != after:
            by, why = _decided(new, message.id)
            yield _MessageChange(message_id=message.id, role=message.role, before=before, after=after, by=by, why=why)


def _decided(plan: CompactionPlan, message_id: str) -> tuple[str, str]:
    """Return the strategy that decided about a message, and why; what a restored plan includes again, undo decided."""
    record = plan.get_action(message_id)[1]
    if record:
        return record.strategy, record.reason
    return ("undo", plan.reason) if plan.origin is not None else ("", f"version {plan.version} includes it unchanged")


def _version_data(entry: PlanVersion) -> dict[str, Any]:
    plan = entry.plan
    tokens = {"tokens_before": plan.tokens_before, "tokens_after": plan.tokens_after}
    return {"version": plan.version, "at": screen.iso_time(entry.at), **tokens, "reason": plan.reason}


def _show(versions: list[PlanVersion], changes: list[_MessageChange], messages: int, limit: int) -> None:
    for entry in versions:
        screen.line(_headline(entry))
    if changes:
        screen.heading("what changed, and why")
        if limit:
            screen.table(_COLUMNS, [_row(change) for change in changes[:limit]])
        if len(changes) > limit:
            screen.line(f"and {len(changes) - limit:,} more; --limit {len(changes)} lists them all")
    screen.heading("in all")
    counts = Counter(f"{change.before} → {change.after}" for change in changes)
    counts["as before"] = messages - len(changes)
    screen.table(("from → to", "messages"), list(counts.items()))
    summaries = [entry.plan.summary.version if entry.plan.summary else 0 for entry in versions]
    if summaries[0] != summaries[1]:
        names = [f"version {version}" if version else "none" for version in summaries]
        screen.line(f"the summary changed too: {' → '.join(names)}")


def _row(change: _MessageChange) -> tuple[object, ...]:
    # Long ids would leave no room for the reasons; --json has them whole.
    message_id = screen.truncate(change.message_id, 24)
    return message_id, change.role, f"{change.before} → {change.after}", change.by, change.why


def _headline(entry: PlanVersion) -> str:
    plan = entry.plan
    if not plan.version:
        return "version 0: the history without any compaction"
    tokens = f"{plan.tokens_before:,} → {plan.tokens_after:,} tokens"
    return f"version {plan.version}: {screen.local_time(entry.at)}, {tokens}; {plan.reason}"
