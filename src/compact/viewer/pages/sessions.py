"""The list of sessions: searched, filtered, sorted, a page at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.audit.records import ModelCall, SessionInfo, recorded_limits
from compact.viewer.pages.costs import CostFinder
from compact.viewer.pages.losses import LossFinder
from compact.viewer.source import DataSource

STATES = ("all", "compacted", "never", "loss", "errors")
# Chosen: as many points as a chart of the size of a word shows, and how long an agent may think between two calls.
_SPARKLINE_CALLS = 40
_LIVE_SECONDS = 30.0
_SORT_KEYS: dict[str, Callable[[SessionInfo], Any]] = {
    "updated": lambda info: -info.updated_at,
    "tokens": lambda info: -info.last_tokens,
    "messages": lambda info: -info.messages,
}
SORTS = tuple(_SORT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Which sessions to list: by words, by state, in which order, and which page of them."""

    words: str = ""
    state: str = "all"
    sort: str = "updated"
    offset: int = 0
    limit: int = 50


def list_sessions(source: DataSource, losses: LossFinder, costs: CostFinder, query: SessionQuery) -> dict[str, Any]:
    """Return a page of the list; losses and costs are found in the background.

    `pending` is how many losses are not known yet; `cost` is the sum of the sessions on this page whose cost is known.
    """
    matching = _matching(source, query.words)
    with_errors = source.events.sessions_with_errors()
    if query.state == "errors":
        costs.request(matching)
        with_errors = with_errors | {info.session_id for info in matching if _failures(costs, info)}
    found = [info for info in matching if _has_state(info, query.state, losses, with_errors)]
    found.sort(key=lambda info: (_SORT_KEYS[query.sort](info), info.session_id))
    page = found[query.offset : query.offset + query.limit]
    losses.request(page)
    costs.request(page)
    calls = source.store.recent_calls([info.session_id for info in page], _SPARKLINE_CALLS)
    now = time.time()
    return {
        "total": len(found),
        "pending": losses.pending,
        "sessions": [
            {
                **_row(source, info, calls[info.session_id], losses, with_errors, now),
                "compactions": _compactions(costs, info),
                "cost": costs.cost(info),
                "failures": _failures(costs, info),
            }
            for info in page
        ],
        "cost": _total(list(filter(None, map(costs.cost, page)))),
    }


def _compactions(costs: CostFinder, info: SessionInfo) -> int | None:
    """Return how often a session was compacted; an undo makes a plan version, too, so the plans must have been read."""
    cost = costs.cost(info)
    return cost["compactions"] if cost else None if info.plan_version else 0


def _failures(costs: CostFinder, info: SessionInfo) -> list[str]:
    """Return what is known to have failed in a session."""
    cost = costs.cost(info)
    return cost["failures"] if cost else []


def _total(costs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums over sessions; those without any known price are counted apart."""
    priced = [cost for cost in costs if cost["usd"] is not None]
    return {
        "sessions": len(priced),
        "unpriced": len(costs) - len(priced),
        "usd": sum(cost["usd"] for cost in priced) if priced else None,
        "usd_saved": sum(cost["usd_saved"] for cost in priced) if priced else None,
    }


def _matching(source: DataSource, words: str) -> Sequence[SessionInfo]:
    """Return the sessions whose id or log contains the words."""
    infos = source.sessions()
    if not words.strip():
        return infos
    wanted, with_words = words.strip().casefold(), source.store.sessions_with(words)
    return [info for info in infos if wanted in info.session_id.casefold() or info.session_id in with_words]


def _has_state(info: SessionInfo, state: str, losses: LossFinder, with_errors: frozenset[str]) -> bool:
    match state:
        case "compacted":
            return info.plan_version > 0
        case "never":
            return info.plan_version == 0
        case "loss":
            losses.request([info])
            return losses.has_loss(info)
        case "errors":
            return info.session_id in with_errors
        case _:
            return True


def _row(
    source: DataSource,
    info: SessionInfo,
    calls: Sequence[ModelCall],
    losses: LossFinder,
    with_errors: frozenset[str],
    now: float,
) -> dict[str, Any]:
    limits = recorded_limits(info, calls) or source.limits
    return {
        "id": info.session_id,
        "messages": info.messages,
        "calls": info.model_calls,
        "plan_version": info.plan_version,
        "last_tokens": info.last_tokens,
        "window_tokens": limits["window"],
        "trigger_tokens": limits["trigger"],
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "spark": [call.tokens_estimated for call in calls],
        "has_loss": losses.has_loss(info),
        "has_error": info.session_id in with_errors,
        "is_live": now - info.updated_at < _LIVE_SECONDS,
    }
