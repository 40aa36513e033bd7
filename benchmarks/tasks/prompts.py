"""What a reader sees of a prompt: its passages, the oldest first.

A passage is the text of one message, with the arguments of its calls written out. An answer of the recall tool is as
many passages as it shows entries: each says by its number when it was said. All of them are older than what the
prompt shows itself, because recall brings back what left it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Wire = dict[str, Any]

_ENTRY = re.compile(
    r"^\[[^\n\[\]]{1,200}?, (?:user|assistant|tool|system|developer), entry (\d+)[^\n]*\]$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, and how old it is: a larger age is newer."""

    age: tuple[int, int]
    text: str


def passages_of(prompt: Sequence[Wire]) -> list[Passage]:
    """Return everything that a prompt tells, the oldest first; what the system prompt says is not told."""
    found: list[Passage] = []
    for place, message in enumerate(prompt, 1):
        text = message_text(message)
        entries = list(_ENTRY.finditer(text)) if message["role"] == "tool" else []
        if not entries:
            found.append(Passage((place, 0), text))
        ends = [*(entry.start() for entry in entries[1:]), len(text)]
        for entry, end in zip(entries, ends, strict=False):
            found.append(Passage((0, int(entry.group(1))), text[entry.end() : end]))
    return sorted(found, key=lambda passage: passage.age)


def message_text(message: Wire) -> str:
    """Return what a message says and calls; arguments are written as lines, as they were before they were JSON."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(str(part.get("text", "")) for part in content)
    calls = (line for call in message.get("tool_calls") or () for line in _call_lines(call["function"]))
    return "\n".join([content, *calls] if content else calls)


def _call_lines(function: Wire) -> Iterator[str]:
    yield f"{function['name']}:"
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {"arguments": function["arguments"]}
    for name, value in arguments.items():
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
