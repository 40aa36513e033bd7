"""One session: its calls as a timeline, its plans, what was missed and its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from compact.core.audit.cost import CallCost, CompactionCost, by_number, by_version
from compact.core.audit.failures import call_failures, failures_data, plan_failures
from compact.core.audit.records import ModelCall, PlanVersion, StoredMessage, recorded_limits
from compact.core.messages.attachments import text_with_attachments
from compact.core.messages.message import Message
from compact.core.plan.parts import SENT_PARTS
from compact.core.plan.regret import count_regrets
from compact.viewer.source import DataSource

# Chosen: what a row of the log and a timeline of a screen can show; earlier calls are another page of it.
PREVIEW_CHARS = 300
CALLS_PER_PAGE = 2_000
_MAX_REGRETS = 6


def session_page(source: DataSource, session_id: str, *, until_call: int | None = None) -> dict[str, Any]:
    """Return a session without its messages: what the page draws first.

    Of a long session, the calls up to `until_call`, or the newest ones.
    """
    info = source.info(session_id)
    calls, plans = source.calls(session_id), source.plans(info)
    last = len(calls) if until_call is None else max(1, min(until_call, len(calls)))
    cost = source.cost(info, calls)
    costs = by_number(cost)
    newest = calls[-1] if calls else info.imported
    limits = recorded_limits(info, calls) or source.limits
    return {
        "id": session_id,
        "messages": info.messages,
        "turns": newest.turn_number if newest else 0,
        "imported": asdict(info.imported) if info.imported else None,
        "plan_version": info.plan_version,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "limits": limits,
        "decision": _decision(calls),
        "calls_total": len(calls),
        "calls_per_page": CALLS_PER_PAGE,
        "calls": [call_row(call, limits, costs[call.number]) for call in calls[max(0, last - CALLS_PER_PAGE) : last]],
        "plans": list(_plans(plans, calls, info.plan_version, by_version(cost))),
        "cost": cost.to_dict(),
    }


def _decision(calls: Sequence[ModelCall]) -> dict[str, Any] | None:
    """Return why the newest call compacted or did not, if that was recorded."""
    if not calls or not calls[-1].reason:
        return None
    before = calls[-2].plan_version if len(calls) > 1 else 0
    return {"triggered": calls[-1].plan_version > before, "reason": calls[-1].reason}


def calls_page(source: DataSource, session_id: str, *, offset: int, limit: int) -> dict[str, Any]:
    """Return a page of the calls, newest first."""
    calls = source.calls(session_id)
    info = source.info(session_id)
    costs, limits = by_number(source.cost(info, calls)), recorded_limits(info, calls) or source.limits
    page = calls[::-1][offset : offset + limit]
    return {"total": len(calls), "calls": [call_row(call, limits, costs[call.number]) for call in page]}


def call_row(call: ModelCall, limits: Mapping[str, int], cost: CallCost) -> dict[str, Any]:
    """Return a call as a row of a list."""
    parts = {part.value: call.parts.get(part.value, 0) for part in SENT_PARTS}
    window = (call.limits or limits)["window"]
    return {
        "number": call.number,
        "at": call.at,
        "turn": call.turn_number,
        "plan_version": call.plan_version,
        "summary_version": call.summary_version,
        "messages": call.messages,
        "evicted": call.evicted,
        "tokens": call.tokens_estimated,
        "reported": call.tokens_reported,
        "trigger": (call.limits or limits)["trigger"],
        "parts": {**parts, "free": max(0, window - sum(parts.values()))},
        "cost": cost.to_dict(),
        "failures": failures_data(call_failures(call)),
        "contents": call.details.get("contents", {}),
    }


def _plans(
    plans: Sequence[PlanVersion], calls: Sequence[ModelCall], current: int, costs: Mapping[int, CompactionCost]
) -> Iterator[dict[str, Any]]:
    first_calls: dict[int, int] = {}
    for call in calls:
        first_calls.setdefault(call.plan_version, call.number)
    for entry in plans:
        plan, actions = entry.plan, Counter[str]()
        for record in plan.records:
            actions[record.action.value] += len(record.span)
        yield {
            "version": plan.version,
            "at": entry.at,
            "reason": plan.reason,
            "tokens_before": plan.tokens_before,
            "tokens_after": plan.tokens_after,
            "restored_from": plan.origin,
            "is_current": plan.version == current,
            "first_call": first_calls.get(plan.version),
            "actions": dict(actions),
            "cost": costs[plan.version].to_dict() if plan.version in costs else None,
            "failures": failures_data(plan_failures(plan)),
        }


# -- what was missed ----------------------------------------------------------------------------------------------


def regrets_page(source: DataSource, session_id: str) -> dict[str, Any]:
    """Return what compactions removed and the agent asked for again: counted, and the newest ones."""
    regrets = source.regrets(source.info(session_id))
    counts = [
        {
            "source": count.source,
            "action": count.action,
            "by": count.strategy,
            "recalls": count.recalls,
            "rereads": count.rereads,
            "tokens": count.tokens,
        }
        for count in count_regrets(regrets)
    ]
    newest = [{"removed": regret.message_id, "found_in": regret.found_in} for regret in regrets[-_MAX_REGRETS:][::-1]]
    return {"total": len(regrets), "counts": counts, "newest": newest}


# -- messages -----------------------------------------------------------------------------------------------------


def tool_names(messages: Iterable[Message]) -> dict[str, str]:
    """Return the tool of each call, by the id that its result names."""
    return {call.id: call.name for message in messages for call in message.tool_calls}


def entry_row(entry: StoredMessage, tools: Mapping[str, str]) -> dict[str, Any]:
    """Return a log entry as a row of a list."""
    message = entry.message
    own = message.tool_calls[0].name if message.tool_calls else message.name or ""
    return {
        "id": message.id,
        "seq": entry.seq,
        "role": message.role,
        "tool": tools.get(message.tool_call_id, own) if message.tool_call_id else own,
        "tokens": entry.tokens,
        "preview": message_preview(message),
    }


def message_preview(message: Message) -> str:
    """Return the first characters of a message; of one that only calls tools, the calls."""
    text = text_with_attachments(message) or ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    return text[:PREVIEW_CHARS]


def tool_calls(message: Message) -> list[dict[str, str]]:
    """Return the tool calls of a message as data."""
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]


def content_types(message: Message) -> list[str]:
    """Return the types of a message's content, if it is a list; pictures are named, not shown."""
    if message.content is None or isinstance(message.content, str):
        return []
    return [str(block.get("type", "other")) for block in message.content]
