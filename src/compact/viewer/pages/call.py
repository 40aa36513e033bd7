"""One model call: the exact prompt that went out, slot by slot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.core.audit.cost import by_number
from compact.core.audit.failures import call_failures, failures_data
from compact.core.messages.attachments import text_with_attachments
from compact.core.messages.message import Message
from compact.core.plan.plan import CompactionAction
from compact.viewer.pages.session import call_row, content_types, tool_calls
from compact.viewer.source import DataSource, RebuiltPrompt

# Chosen: longer texts are read one at a time, on the page of their message.
_MAX_CHARS = 20_000


def call_page(
    source: DataSource, session_id: str, number: int, *, offset: int, limit: int, part: str = "", sent_by: str = ""
) -> dict[str, Any]:
    """Return a page of the prompt, rendered again from the log and the plan of that time.

    With `part`, only the messages of that part, and with `sent_by` only those of a role or tool.
    """
    info = source.info(session_id)
    prompt = source.prompt(info, number)
    cost = by_number(source.cost(info, source.calls(session_id)))[number]
    call = prompt.sent.call
    limits = call.limits or source.limits
    every = list(prompt_messages(prompt))
    slots = [slot for slot in every if part in ("", slot[0]["part"]) and sent_by in ("", slot[0]["source"])]
    return {
        "number": number,
        "at": call.at,
        "turn": call.turn_number,
        "plan_version": call.plan_version,
        "tokens": call.tokens_estimated,
        "reported": call.tokens_reported,
        "reason": call.reason,
        "parts": dict(call.parts),
        "cost": cost.to_dict(),
        "failures": failures_data(call_failures(call)),
        "fixed_tokens": prompt.fixed_tokens,
        "limits": dict(limits),
        "listed": call_row(call, limits, cost),
        "calls_total": info.model_calls,
        "contents": prompt.contents,
        "messages_total": len(every),
        "slots_total": len(slots),
        "slots": [{**_message_data(message), **about} for about, message in slots[offset : offset + limit]],
    }


def prompt_messages(prompt: RebuiltPrompt) -> Iterator[tuple[dict[str, Any], Message]]:
    """Yield every message of the prompt, with its part, its tokens and the log entries it stands for.

    `action` is what the plan did to them; a message that stands for none was added to make the prompt legal.
    """
    plan = prompt.sent.plan
    entries = zip(prompt.slots, prompt.tokens, prompt.parts, prompt.sources, strict=True)
    for place, (slot, tokens, part, sender) in enumerate(entries):
        action = plan.get_action(slot.ids[0])[0] if slot.ids else CompactionAction.INCLUDE
        about = {"part": part.value, "action": action.value, "is_repair": not slot.ids}
        about |= {"source": sender, "place": place}
        yield {**about, "tokens": tokens, "ids": list(slot.ids)}, slot.message
    for place, (added, tokens) in enumerate(
        zip(prompt.sent.added, prompt.added_tokens, strict=True), len(prompt.slots)
    ):
        about = {"part": added.kind, "action": CompactionAction.INCLUDE.value, "is_repair": False}
        about |= {"source": added.message.role, "place": place}
        yield {**about, "tokens": tokens, "ids": []}, added.message


def _message_data(message: Message) -> dict[str, Any]:
    text = text_with_attachments(message)
    calls = tool_calls(message)
    is_cut = len(text) > _MAX_CHARS or any(len(call["arguments"]) > _MAX_CHARS for call in calls)
    return {
        "role": message.role,
        "text": text[:_MAX_CHARS],
        **({"cut": True} if is_cut else {}),
        "content_types": content_types(message),
        "tool_calls": [{**call, "arguments": call["arguments"][:_MAX_CHARS]} for call in calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
