"""Real transcripts, as the benchmarks of constraints read them: a folder of *.jsonl.gz, a conversation a line."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.constraints import LearnedConstraints
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message

SHARE = 0.125  # of a conversation is what a compaction leaves here


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, what people typed in it, and how many characters it has without the system prompt."""

    source: str
    messages: tuple[dict[str, Any], ...]
    typed: tuple[str, ...]
    chars: int
    id: str = ""


def data_folder() -> Path:
    """Return where the transcripts are: `COMPACT_DATA`, or beside the checkout."""
    return Path(os.environ.get("COMPACT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def transcript_files(folder: Path) -> list[Path]:
    """Return the files of the folder that hold transcripts, in a fixed order."""
    return [path for path in sorted(folder.glob("*.jsonl.gz")) if not path.name.startswith("natural_compactions")]


def read_transcripts(folder: Path) -> list[Transcript]:
    """Return all conversations of the folder, in a fixed order."""
    found: list[Transcript] = []
    for path in transcript_files(folder):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines]
        found += [_transcript(entry) for entry in entries]
    return found


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message in Chat Completions form."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def read(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """Return the messages as the product sees them."""
    return [read_entry(message, f"m{number}") for number, message in enumerate(messages)]


def without_harness(transcript: Transcript) -> list[dict[str, Any]]:
    """Return the messages without those that a harness inserted in a person's place; a name marks these."""
    return [message for message in transcript.messages if not (message["role"] == "user" and message.get("name"))]


def false_alarm_share(transcript: Transcript, finder: LearnedConstraints) -> float:
    """Return the share of a compacted conversation that its constraints take, when none was put into it."""
    found = finder.standing(read(without_harness(transcript)))
    return sum(len(constraint.text) for constraint in found) / (SHARE * transcript.chars)


def _transcript(entry: dict[str, Any]) -> Transcript:
    messages = tuple(entry["messages"])
    typed = tuple(text_of(message) for message in messages if message["role"] == "user" and not message.get("name"))
    chars = sum(len(text_of(m)) + _argument_chars(m) for m in messages if m["role"] != "system")
    return Transcript(entry["source"], messages, typed, chars, entry["id"])


def _argument_chars(message: dict[str, Any]) -> int:
    return sum(len(call["function"]["arguments"]) for call in message.get("tool_calls") or ())
