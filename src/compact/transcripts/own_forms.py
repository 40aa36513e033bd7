"""Transcripts in our own form that have an agent's compactions in them: the summary stands among the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.core.messages.message import Message
from compact.core.messages.own_compaction import find_own_summary
from compact.transcripts.logs import AgentLog, OwnCompaction
from compact.transcripts.parts import mapping_of, text_of

# The name that marks a summary; without it, one is known by how it begins.
_SUMMARY = "compact_summary"


def as_agent_log(messages: Sequence[Any], *, source: str = "") -> AgentLog:
    """Return Chat Completions messages as a log: summaries are taken out, and are its compactions.

    Args:
        messages: The messages.
        source: The name of their file.
    """
    kept: list[dict[str, Any]] = []
    compactions: list[OwnCompaction] = []
    for number, item in enumerate(messages):
        fields = mapping_of(item)
        if _is_summary(fields):
            compactions.append(OwnCompaction(len(kept), text_of(fields.get("content")), place=f"item {number + 1}"))
        elif fields:
            kept.append(dict(fields))
    return AgentLog(agent="", messages=kept, compactions=tuple(compactions), source=source)


def _is_summary(fields: Any) -> bool:
    if fields.get("name") == _SUMMARY:
        return True
    if fields.get("role") != "user":
        return False
    return find_own_summary([Message("user", text_of(fields.get("content")))]) is not None
