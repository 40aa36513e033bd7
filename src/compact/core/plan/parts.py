"""The one division of a prompt: status, events, errors, caps, the store and the viewer all use these names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import ClearRecord, ExternalizationRecord, Record, SummarizationRecord
from compact.core.plan.stubs import SHORTEN


class PromptPart(StrEnum):
    """A part of what is sent, in the order of a prompt."""

    SYSTEM = "system"  # system messages, and instructions sent beside the messages
    DEVELOPER = "developer"
    TOOLS = "tools"  # tool schemas
    PINNED = "pinned"  # protected messages of other roles
    LEDGER = "ledger"  # the facts in the summary that code keeps verbatim
    SUMMARY = "summary"  # the rest of the summary
    DIALOGUE = "dialogue"  # what users and the agent said, with the agent's tool calls
    TOOL_RESULTS = "tool_results"
    STUBS = "stubs"  # what stands for cleared and externalised messages
    REHYDRATED = "rehydrated"  # artifacts shown again for this turn
    INJECTED = "injected"
    OVERHEAD = "overhead"  # what frames messages on the wire, and repairs
    RESERVED = "reserved"  # set aside for injectors; only in errors


# By name, in the order of a prompt: an enum is slow to go through, and this is done at every call.
_NAMES = {part: part.value for part in PromptPart}
# What is really sent, in its order: everything but what is only set aside.
SENT_PARTS = tuple(part for part in PromptPart if part is not PromptPart.RESERVED)
# What is of several roles or tools, and is told apart by them.
SAID_PARTS = (PromptPart.PINNED, PromptPart.DIALOGUE, PromptPart.TOOL_RESULTS, PromptPart.STUBS)
# The memory layers of `status`, as sums of parts.
LAYERS: Mapping[str, tuple[PromptPart, ...]] = {
    "pinned": (PromptPart.SYSTEM, PromptPart.DEVELOPER, PromptPart.PINNED),
    "summary": (PromptPart.LEDGER, PromptPart.SUMMARY),
    "recent": (PromptPart.DIALOGUE, PromptPart.TOOL_RESULTS, PromptPart.STUBS),
    "injected": (PromptPart.REHYDRATED, PromptPart.INJECTED),
}
_ROLES = {"system": PromptPart.SYSTEM, "developer": PromptPart.DEVELOPER, "tool": PromptPart.TOOL_RESULTS}


def part_of(message: Message, record: Record | None, rules: KeepRules) -> PromptPart:
    """Return the part that a message of a prompt belongs to; `record` is what the plan does to it."""
    match record:
        case SummarizationRecord():
            return PromptPart.SUMMARY
        case ExternalizationRecord() if not record.attachments:  # what is said beside attachments still stands
            return PromptPart.STUBS
        case ClearRecord() if record.strategy != SHORTEN:  # a shortened message still speaks for itself
            return PromptPart.STUBS
        case _:
            pass
    part = _ROLES.get(message.role, PromptPart.DIALOGUE)
    is_system = part in (PromptPart.SYSTEM, PromptPart.DEVELOPER)
    return part if is_system or not rules.pins(message) else PromptPart.PINNED


def source_of(message: Message, tools: Mapping[str, str]) -> str:
    """Return who a message of a prompt is from: its role, or for a result its tool; `tools` names those of calls."""
    if message.role != "tool":
        return message.role
    return tools.get(message.tool_call_id or "") or message.name or "tool"


def contents_in_order(tokens: Mapping[tuple[PromptPart, str], int]) -> dict[str, dict[str, int]]:
    """Return the tokens of each part by role or tool, in the order of a prompt and the largest first."""
    parts: dict[PromptPart, dict[str, int]] = {}
    for (part, source), count in sorted(tokens.items(), key=lambda item: (-item[1], item[0][1])):
        if count:
            parts.setdefault(part, {})[source] = count
    return {name: parts[part] for part, name in _NAMES.items() if part in parts}


def in_order(tokens: Mapping[PromptPart, int]) -> dict[str, int]:
    """Return the parts that there are, by name, in the order of a prompt."""
    return {name: tokens[part] for part, name in _NAMES.items() if tokens.get(part)}


def ledger_share(record: SummarizationRecord) -> float:
    """Return how much of a summary is its ledger, by characters: this is asked at every call."""
    summary = record.summary
    if summary is None:
        return 0.0
    ledger = sum(len(fact.subject) + len(fact.detail) for fact in summary.ledger)
    rest = len(summary.narrative) + sum(len(excerpt.text) for excerpt in summary.excerpts)
    rest += sum(len(outcome.outcome) for outcome in summary.tool_outcomes) + sum(map(len, summary.facts))
    rest += sum(len(decision.decision) + len(decision.rationale) for decision in summary.decisions)
    rest += sum(len(item.item) for item in summary.open_items)
    return ledger / (ledger + rest) if ledger else 0.0
