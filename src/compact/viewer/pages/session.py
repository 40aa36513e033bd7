"""One session: its calls as a timeline, its plans, what was missed, its log, and where a phrase is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compact.core.audit.cost import CallCost, CompactionCost, by_number, by_version
from compact.core.audit.failures import call_failures, failures_data, plan_failures
from compact.core.audit.records import ModelCall, PlanVersion, StoredMessage
from compact.core.audit.why import Sighting
from compact.core.errors import UnknownSession
from compact.core.log.messages import Message
from compact.core.plan.parts import SENT_PARTS
from compact.core.plan.regret import count_regrets
from compact.viewer.json_http import HttpError
from compact.viewer.source import DataSource

# Chosen: what a row of the log and a timeline of a screen can show.
PREVIEW_CHARS = 300
_MAX_CALLS = 2_000
_MAX_SIGHTINGS = 500
_MAX_REGRETS = 6
# Chosen: how many entries before a page are read to find the call that its first results answer.
_ENTRIES_BEFORE = 40


def session_page(source: DataSource, session_id: str) -> dict[str, Any]:
    """Return a session without its messages: what the page draws first."""
    info = source.info(session_id)
    calls, plans = source.calls(session_id), source.plans(info)
    cost = source.cost(info, calls)
    costs = by_number(cost)
    newest = calls[-1] if calls else None
    limits = newest.limits if newest and newest.limits else source.limits
    return {
        "id": session_id,
        "messages": info.messages,
        "turns": newest.turn_number if newest else 0,
        "plan_version": info.plan_version,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "limits": limits,
        "decision": _decision(calls),
        "calls_total": len(calls),
        "calls": [_call(call, limits, costs[call.number]) for call in calls[-_MAX_CALLS:]],
        "plans": list(_plans(plans, calls, info.plan_version, by_version(cost))),
        "cost": cost.to_dict(),
    }


def _decision(calls: Sequence[ModelCall]) -> dict[str, Any] | None:
    """Return why the newest call compacted or did not, if that was recorded."""
    if not calls or not calls[-1].reason:
        return None
    before = calls[-2].plan_version if len(calls) > 1 else 0
    return {"triggered": calls[-1].plan_version > before, "reason": calls[-1].reason}


def _call(call: ModelCall, limits: Mapping[str, int], cost: CallCost) -> dict[str, Any]:
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


# -- the log ------------------------------------------------------------------------------------------------------


def messages_page(source: DataSource, session_id: str, *, offset: int, limit: int) -> dict[str, Any]:
    """Return a page of the log, each entry with what the plan in force does to it."""
    total = source.store.head(session_id).last_seq
    if not total:
        raise UnknownSession(session_id)
    before = min(offset, _ENTRIES_BEFORE)
    entries = source.store.messages(session_id, after_seq=offset - before, limit=limit + before)
    plan = source.store.get_current_plan(session_id)[0]
    tools = tool_names(entry.message for entry in entries)
    rows = [
        {**entry_row(entry, tools), "action": plan.get_action(entry.message.id)[0].value}
        for entry in itertools.islice(entries, before, None)
    ]
    return {"total": total, "messages": rows}


def message_page(source: DataSource, session_id: str, message_id: str) -> dict[str, Any]:
    """Return one log entry, whole."""
    entry = source.store.message(session_id, message_id)
    if entry is None:
        source.info(session_id)
        raise HttpError(404, f"session {session_id!r} has no message {message_id!r}", "its log lists every message")
    message, plan = entry.message, source.store.get_current_plan(session_id)[0]
    return {
        "id": message.id,
        "seq": entry.seq,
        "role": message.role,
        "tokens": entry.tokens,
        "text": message.text,
        "content_types": content_types(message),
        "tool_calls": tool_calls(message),
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "meta": dict(message.meta),
        "action": plan.get_action(message.id)[0].value,
    }


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
        "preview": _preview(message),
    }


def _preview(message: Message) -> str:
    """Return the first characters of a message; of one that only calls tools, the calls."""
    text = message.text or ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    return text[:PREVIEW_CHARS]


def tool_calls(message: Message) -> list[dict[str, str]]:
    """Return the tool calls of a message as data."""
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]


def content_types(message: Message) -> list[str]:
    """Return the types of a message's content, if it is a list; pictures are named, not shown."""
    if message.content is None or isinstance(message.content, str):
        return []
    return [str(block.get("type", "other")) for block in message.content]


# -- a phrase -----------------------------------------------------------------------------------------------------


def why_page(source: DataSource, session_id: str, phrase: str) -> dict[str, Any]:
    """Return where a phrase is now, since when, and how many calls went out without it."""
    if not phrase.strip():
        raise HttpError(400, "the phrase is empty", "give some words of the message you look for")
    sightings = source.manager.why(session_id, phrase)
    return {
        "phrase": phrase,
        "sightings_total": len(sightings),
        "sightings": [_sighting(sighting) for sighting in sightings[-_MAX_SIGHTINGS:]],
    }


def _sighting(sighting: Sighting) -> dict[str, Any]:
    seen = "the model sees the words" if sighting.is_visible else "the model does not see the words"
    return {
        "message_id": sighting.message_id,
        "seq": sighting.seq,
        "role": sighting.role,
        "preview": sighting.excerpt,
        "where": f"{sighting.state}; {seen}",
        "is_visible": sighting.is_visible,
        "action": _ACTIONS.get(sighting.state, "include"),
        "by": sighting.strategy,
        "reason": sighting.reason,
        "since_version": sighting.since_version,
        "since_at": sighting.since_at or None,
        "calls_without": len(sighting.calls_without),
        "first_call_without": sighting.calls_without[0] if sighting.calls_without else None,
    }


_ACTIONS = {"cleared": "clear", "summarised": "summarize", "externalised": "externalize", "dropped": "drop"}
