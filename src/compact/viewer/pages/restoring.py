"""What an undo or a restore comes to: the tokens afterwards, and whether the next call compacts again."""

from __future__ import annotations

from typing import Any

from compact.core.audit.records import SessionInfo, recorded_limits, version_before_compaction
from compact.core.plan.plan import CompactionPlan
from compact.viewer.json_http import HttpError
from compact.viewer.source import DataSource


def restore_page(source: DataSource, session_id: str, version: int | None) -> dict[str, Any]:
    """Return what it comes to to restore a version, or without one to undo the last compaction; nothing is changed."""
    info = source.info(session_id)
    current = source.plan(info, info.plan_version).plan
    if version is None:
        version = version_before_compaction(current, source.plans(info))
        if version is None:
            raise HttpError(409, "no compaction is in force, so there is none to undo", "look at the session again")
    calls = source.store.recent_calls([session_id], 1)[session_id]
    limits = recorded_limits(info, calls) or source.limits
    tokens = tokens_under(source, info, source.plan(info, version).plan)
    return {
        "version": version,
        "from": info.plan_version,
        "tokens_now": tokens_under(source, info, current),
        "tokens": tokens,
        "window": limits["window"],
        "ceiling": limits["ceiling"],
        "trigger": limits["trigger"],
        # A plan that somebody restored stays in force above the trigger, up to what fits.
        "compacts_again": tokens > limits["ceiling"],
    }


def tokens_under(source: DataSource, info: SessionInfo, plan: CompactionPlan) -> int:
    """Return the tokens of the prompt that a plan makes of the log as it is now, with what is sent beside messages."""
    return source.rendered_tokens(info, plan) + source.tokens_beside_messages(info)
