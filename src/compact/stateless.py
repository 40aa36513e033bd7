"""The same engine as plain functions, for loops that want no manager: estimate, decide, select, compact."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from compact.assembly import build_budget
from compact.config import CompactConfig
from compact.core.log.entries import read_entry
from compact.core.log.groups import group_messages
from compact.core.log.messages import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.renderer import summary_id, summary_message
from compact.dialects import CHAT, Block, detect
from compact.manager import CompactManager
from compact.tokens import get_tokenizer

_log = logging.getLogger("compact")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class CompactionSelection(Generic[M]):
    """Which messages would go, which stay, and the summary of the round before.

    A summary is known by its id, which only `Message` objects carry: providers reject an id on a plain dict.
    """

    messages_to_compact: list[M]
    messages_to_keep: list[M]
    previous_summary: str | None = None


@dataclass(frozen=True, slots=True)
class CompactedHistory(Generic[M]):
    """A compacted history, and what was done to it; `round` is 0 if nothing was."""

    compacted_messages: list[M]
    round: int
    tokens_before: int
    tokens_after: int
    summary_content: str
    compacted_message_ids: tuple[str, ...]


def estimate_tokens(text: str, config: CompactConfig | None = None) -> int:
    """Tokens of a text."""
    config = config or _default_config()
    return get_tokenizer(config.model, config.tokenizer).count_text(text) if text else 0


def estimate_messages_tokens(messages: Sequence[object], config: CompactConfig | None = None) -> int:
    """Tokens of a history, wire overhead included."""
    config = config or _default_config()
    count = get_tokenizer(config.model, config.tokenizer).count_message
    return sum(count(message) for message in _read(messages))


def should_compact(messages: Sequence[object], config: CompactConfig | None = None) -> bool:
    """True once a history has reached the trigger."""
    config = config or _default_config()
    budget = build_budget(config)
    return budget.is_triggered(estimate_messages_tokens(messages, config) + budget.fixed_tokens)


def select_messages_to_compact(messages: Sequence[M], keep_last: int = 10) -> CompactionSelection[M]:
    """Split a history so that at least the newest `keep_last` messages stay, and no call parts from its result."""
    blocks = _blocks(messages)
    entries = [entry for block in blocks for entry in block.entries]
    read = _entries(entries)
    rules = KeepRules()
    kept: set[int] = {index for index, message in enumerate(read) if rules.pins(message)}
    recent = 0
    for group in reversed(group_messages(read)):
        if recent >= keep_last:
            break
        kept.update(group.indices)
        recent += len(group.indices)
    summary = next((message for message in read if message.id.startswith(summary_id(0)[:-1])), None)
    to_compact: list[M] = []
    to_keep: list[M] = []
    place = 0
    for block in blocks:
        end = place + len(block.entries)
        (to_keep if not kept.isdisjoint(range(place, end)) else to_compact).extend(block.items)
        place = end
    return CompactionSelection(to_compact, to_keep, summary.text if summary else None)


def compact(
    messages: Sequence[M],
    session_id: str = "default",
    *,
    manager: CompactManager | None = None,
    target_tokens: int | None = None,
) -> CompactedHistory[M]:
    """Compact a history now; calls with one session id build on each other's rounds."""
    manager = manager or _default_manager()
    version_before = manager.current_plan(session_id).version
    compacted = manager.manual_compact(session_id, messages, target_tokens=target_tokens)
    plan = manager.current_plan(session_id)
    if plan.version == version_before:
        tokens = estimate_messages_tokens(compacted, manager.config)
        return CompactedHistory(compacted, 0, tokens, tokens, "", ())
    summary = summary_message(plan.summary).text if plan.summary else ""
    ids = tuple(dict.fromkeys(message_id for record in plan.records for message_id in record.span))
    return CompactedHistory(compacted, plan.version, plan.tokens_before, plan.tokens_after, summary, ids)


def safe_compact(
    messages: Sequence[M], session_id: str = "default", *, manager: CompactManager | None = None
) -> list[M]:
    """`compact`, but a failure leaves the history as it is and is logged."""
    try:
        return compact(messages, session_id, manager=manager).compacted_messages
    except Exception as error:
        _log.warning("compaction failed, going on without it: %s", error)
        return list(messages)


def _read(messages: Sequence[object]) -> list[Message]:
    return _entries([entry for block in _blocks(messages) for entry in block.entries])


def _blocks(messages: Sequence[object]) -> list[Block]:
    """A history in the blocks of whatever dialect it is in."""
    return list((detect(messages) or CHAT).read(messages, 0))


def _entries(entries: Sequence[object]) -> list[Message]:
    return [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]


@lru_cache(maxsize=1)
def _default_config() -> CompactConfig:
    return CompactConfig()


@lru_cache(maxsize=1)
def _default_manager() -> CompactManager:
    return CompactManager(_default_config())
