"""Real transcripts as the benchmarks of standing wishes read them: a folder of *.jsonl.gz, a conversation a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.constraints.finder import standing_constraints
from compact.core.log.entries import read_entry
from compact.core.log.messages import Message

SHARE = 0.125  # of a conversation is what a compaction leaves here


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, what people typed in it, and how many characters it has without the system prompt."""

    source: str
    group: str
    messages: tuple[dict[str, Any], ...]
    typed: tuple[str, ...]
    chars: int


def read_transcripts(folder: Path) -> list[Transcript]:
    """All conversations of the folder, in a fixed order."""
    found: list[Transcript] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
        found += [_transcript(entry) for entry in entries if "messages" in entry]
    return found


def text_of(message: dict[str, Any]) -> str:
    """The text of a message in Chat Completions form."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def read(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """The messages as the product sees them."""
    return [read_entry(message, f"m{number}") for number, message in enumerate(messages)]


def false_alarms(transcript: Transcript) -> float:
    """The share of a compacted conversation that its list takes, when nothing was put into it."""
    typed = [m for m in transcript.messages if not (m["role"] == "user" and m.get("name"))]
    found = standing_constraints(read(typed))
    return sum(len(constraint.text) for constraint in found) / (SHARE * transcript.chars)


def _transcript(entry: dict[str, Any]) -> Transcript:
    messages = tuple(entry["messages"])
    # A name marks what a harness inserted in a person's place.
    typed = tuple(text_of(message) for message in messages if message["role"] == "user" and not message.get("name"))
    chars = sum(len(text_of(m)) + _argument_chars(m) for m in messages if m["role"] != "system")
    return Transcript(entry["source"], entry["group"], messages, typed, chars)


def _argument_chars(message: dict[str, Any]) -> int:
    return sum(len(call["function"]["arguments"]) for call in message.get("tool_calls") or ())
