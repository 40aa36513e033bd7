"""How the tool `recall` is named and how its answers begin: for whoever writes them, and whoever knows them again."""

from __future__ import annotations

import re

from compact.core.messages.message import ROLES

# The tool that stubs and summaries name.
TOOL_NAME = "recall"
NOTHING_FOUND = "nothing in this session's log matches"
# Frameworks and MCP put a prefix before the name: `mcp__compact__recall`.
_NAME = re.compile(rf"(?:.*[^a-z])?{TOOL_NAME}", re.DOTALL)
# Not at the start of a line only: a framework may write an answer as JSON.
_HEADER = re.compile(rf"\[([^\n\[\]]{{1,200}}?), (?:{'|'.join(ROLES)}), entry \d+")
# An attachment that an answer brings back is shown at the end of the prompt: few providers take files from a tool.
_ATTACHED = re.compile(r"\[attached again: (art-[0-9a-f]{16})\b")
# Chosen: what frameworks put before an answer is shorter.
_HEAD_CHARS = 300


def is_recall(tool_name: str) -> bool:
    """Return True if a tool is `recall` by its name, whatever stands before it."""
    return _NAME.fullmatch(tool_name.lower()) is not None


def entry_header(message_id: str, role: str, seq: int, *, notes: str = "") -> str:
    """Return the line above an entry in an answer: `[m42, tool, entry 42]`."""
    return f"[{message_id}, {role}, entry {seq}{notes}]"


def attached_line(artifact_id: str, line: str) -> str:
    """Return the line that says that an attachment is shown again."""
    return f"[attached again: {artifact_id}, {line}; it is shown at the end of the prompt]"


def attached_ids(answer: str) -> list[str]:
    """Return the attachments that an answer brings back."""
    return _ATTACHED.findall(answer)


def recalled_ids(answer: str) -> list[str]:
    """Return the ids of the entries in an answer, the best first."""
    return _HEADER.findall(answer)


def is_recall_answer(text: str) -> bool:
    """Return True for a text that begins like an answer of `recall`."""
    head = text[:_HEAD_CHARS]
    return NOTHING_FOUND in head or _HEADER.search(head) is not None
