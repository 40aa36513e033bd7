"""One model call: the exact prompt that went out, slot by slot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.core.log.messages import Message, Slot
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.viewer.session_view import part_kinds, tool_calls
from compact.viewer.source import Prompt, Source

_MOST_CHARS = 20_000
_KINDS = {CompactionAction.CLEAR: "cleared", CompactionAction.EXTERNALIZE: "externalized"}


def call_page(source: Source, session_id: str, number: int, *, offset: int, limit: int) -> dict[str, Any]:
    """A page of the prompt, made again from the log and the plan of that time."""
    prompt = source.prompt(source.info(session_id), number)
    call = prompt.sent.call
    slots = list(_slots(prompt))
    return {
        "number": number,
        "at": call.at,
        "turn": call.turn_number,
        "plan_version": call.plan_version,
        "tokens": call.tokens_estimated,
        "reported": call.tokens_reported,
        "reason": call.reason,
        "parts": dict(call.parts),
        "fixed_tokens": prompt.fixed_tokens,
        "slots_total": len(slots),
        "slots": [_shown(*slot) for slot in slots[offset : offset + limit]],
    }


def _slots(prompt: Prompt) -> Iterator[tuple[str, Message, int, tuple[str, ...]]]:
    plan = prompt.sent.plan
    for slot, tokens in zip(prompt.slots, prompt.tokens, strict=True):
        yield kind_of(slot, plan), slot.message, tokens, slot.ids
    for entry, tokens in zip(prompt.sent.added, prompt.added_tokens, strict=True):
        yield "injected", entry.message, tokens, ()


def kind_of(slot: Slot, plan: CompactionPlan) -> str:
    """What stands in a place of a prompt."""
    if not slot.ids:
        return "repair"
    summary = plan.summary
    if summary and slot.ids == summary.span.message_ids:
        return "summary"
    action = plan.get_action(slot.ids[0])[0]
    if action in _KINDS:
        return _KINDS[action]
    is_pinned = slot.ids[0] in plan.pinned or slot.message.role in ("system", "developer")
    return "pinned" if is_pinned or slot.message.meta.get("protected") else "message"


def _shown(kind: str, message: Message, tokens: int, ids: tuple[str, ...]) -> dict[str, Any]:
    text = message.text
    calls = tool_calls(message)
    is_cut = len(text) > _MOST_CHARS or any(len(call["arguments"]) > _MOST_CHARS for call in calls)
    return {
        "role": message.role,
        "kind": kind,
        "tokens": tokens,
        "text": text[:_MOST_CHARS],
        **({"cut": True} if is_cut else {}),
        "parts": part_kinds(message),
        "tool_calls": [{**call, "arguments": call["arguments"][:_MOST_CHARS]} for call in calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "ids": list(ids),
    }
