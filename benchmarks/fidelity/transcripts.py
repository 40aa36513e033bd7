"""Real transcripts: where they are, what their messages say, and where each is cut."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from compact.core.log.entries import read_entry
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.tokens import get_tokenizer

Wire = dict[str, Any]

MODEL = "gpt-4o"
CUT_SHARE = 0.60
NOT_TYPED = ("injected", "compact_summary")
# What a harness puts into a person's mouth: commands and their output, notices.
_NOT_TYPED_OPENINGS = ("<command-", "<local-command", "<bash-", "<task-notification", "<system-reminder", "[Request ")
NATURAL = "natural_compactions"
DOMAINS = ("coding", "swe-bench", "service")
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One recorded session; the system prompt is held apart, outside budget and metric."""

    id: str
    source: str
    system: str
    messages: tuple[Wire, ...]

    @property
    def domain(self) -> str:
        """Which of the three means it belongs to."""
        return domain_of(self.source)


def data_folder() -> Path:
    """Where the transcripts are: `COMPACT_DATA`, or beside the checkout."""
    return Path(os.environ.get("COMPACT_DATA") or _ROOT.parent / "shared" / "data")


def domain_of(source: str) -> str:
    """The domain of a source."""
    if source.startswith(("minisweagent", "sample-shell")):
        return "swe-bench"
    if source.startswith(("tau", "agentdojo", "sample-service")):
        return "service"
    return "coding"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All lines of a data file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def transcript_files(folder: Path) -> list[Path]:
    """The files that hold transcripts, in a fixed order."""
    return [path for path in sorted(folder.glob("*.jsonl.gz")) if not path.name.startswith(NATURAL)]


def load_transcripts(folder: Path) -> list[Transcript]:
    """Every transcript of the folder."""
    return [transcript_of(row) for path in transcript_files(folder) for row in read_rows(path)]


def transcript_of(row: dict[str, Any]) -> Transcript:
    """A transcript from one line of a data file."""
    messages: list[Wire] = row["messages"]
    return Transcript(
        id=row["id"],
        source=row["source"],
        system="\n".join(content_text(m) for m in messages if m["role"] in ("system", "developer")),
        messages=tuple(m for m in messages if m["role"] not in ("system", "developer")),
    )


def content_text(message: Wire) -> str:
    """The text of a message, without its tool calls."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content or ""


def argument_values(message: Wire) -> Iterator[str]:
    """The values of a message's tool calls, names left out."""
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        try:
            yield from _leaves(json.loads(arguments))
        except ValueError:
            yield arguments


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def message_text(message: Wire) -> str:
    """Everything a message says: its text and the values of its arguments."""
    return "\n".join(part for part in (content_text(message), *argument_values(message)) if part)


def text_of(messages: Iterable[Wire]) -> str:
    """Everything a list of messages says."""
    return "\n".join(message_text(message) for message in messages)


def interface_names(messages: Iterable[Wire]) -> set[str]:
    """The names of tools and of their arguments: the agent knows them from its schemas."""
    names: set[str] = set()
    for message in messages:
        for call in message.get("tool_calls") or ():
            names.add(call["function"]["name"])
            try:
                names.update(_keys(json.loads(call["function"]["arguments"])))
            except ValueError:
                continue
    return names


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def is_typed(message: Wire) -> bool:
    """Whether a person typed it."""
    if message["role"] != "user" or message.get("name") in NOT_TYPED:
        return False
    return not content_text(message).lstrip().startswith(_NOT_TYPED_OPENINGS)


def token_counts(messages: Sequence[Wire]) -> list[int]:
    """Tokens of each message, as the product counts them."""
    tokenizer = _tokenizer()
    return [tokenizer.count_message(read_entry(message, "messages")) for message in messages]


def text_tokens(text: str) -> int:
    """Tokens of a text."""
    return _tokenizer().count_text(text) if text else 0


@lru_cache(maxsize=1)
def _tokenizer() -> ProviderAwareTokenizer:
    return get_tokenizer(MODEL, "auto")


def cut_place(messages: Sequence[Wire], counts: Sequence[int], share: float = CUT_SHARE) -> int:
    """The first place behind that share of the tokens at which no tool call is open."""
    wanted, passed = share * sum(counts), 0
    place = len(messages)
    for index, count in enumerate(counts):
        if passed >= wanted:
            place = index
            break
        passed += count
    while place < len(messages) and messages[place]["role"] == "tool":
        place += 1
    return place
