"""Real transcripts: where they are, how large they are, and where each is cut."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from compact.core.messages.entries import read_entry
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.measuring.recordings import Recording, Wire, recording_of
from compact.tokens import get_tokenizer

MODEL = "gpt-4o"
CUT_SHARE = 0.60
NATURAL = "natural_compactions"
DOMAINS = ("coding", "swe-bench", "service")
_ROOT = Path(__file__).resolve().parents[2]


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


def load_transcripts(folder: Path) -> list[Recording]:
    """Every transcript of the folder."""
    return [transcript_of(row) for path in transcript_files(folder) for row in read_rows(path)]


def transcript_of(row: dict[str, Any]) -> Recording:
    """A transcript from one line of a data file."""
    return recording_of(row["id"], row["source"], row["messages"])


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
