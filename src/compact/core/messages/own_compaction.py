"""Agents that compact their own history: the message by which one of them is recognised.

They replace what they had by a summary of their own, which begins with a sentence that is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compact.core.messages.message import Message

# Chosen: such a sentence stands at the beginning, and what it introduces is longer than a remark.
_HEAD_CHARS = 600
_MIN_CHARS = 300
# How the summaries of common agents and middlewares begin (2026).
_OPENINGS = re.compile(
    r"session is being continued from a previous conversation"  # Claude Code
    r"|another language model started to solve this problem"  # Codex
    r"|<state_snapshot>"  # Gemini CLI, Qwen Code
    r"|here is a summary of the conversation to date"  # LangChain
    r"|conversation history before this point was compacted"  # pi
    r"|(?:summary|recap) of (?:the|our|this) (?:previous |earlier |prior )?(?:conversation|session|discussion)"
    r"|(?:conversation|session|context|history) (?:so far )?(?:was|has been|is) (?:summari[sz]ed|compacted|condensed)",
    re.IGNORECASE,
)


def find_own_summary(new: Iterable[Message]) -> Message | None:
    """Return the message that an agent has put in place of its own history, if there is one."""
    for message in new:
        if message.role not in ("user", "assistant") or message.tool_calls:
            continue
        text = message.text
        if len(text) >= _MIN_CHARS and _OPENINGS.search(text[:_HEAD_CHARS]):
            return message
    return None
