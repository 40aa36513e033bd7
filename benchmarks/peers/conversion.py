"""What the frameworks share: messages that are found again by a mark, and a summary that stands in for a model's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

from compact.core.messages.entries import read_entry
from compact.measuring.histories import SYSTEM_ROLES, SessionHistory
from compact.measuring.recordings import Wire
from compact.measuring.stand_in import SUMMARY_TOKENS, summarize_offline

T = TypeVar("T")
MARK = "m"


def mark(place: int) -> str:
    """The id under which a framework gets the message at a place."""
    return f"{MARK}{place}"


def unmark(identity: str | None) -> int | None:
    """The place of a message, if its id is a mark."""
    digits = (identity or "").removeprefix(MARK)
    return int(digits) if identity and identity.startswith(MARK) and digits.isdigit() else None


def spoken(history: SessionHistory, start: int, end: int) -> list[int]:
    """The places of messages that are no system prompt: frameworks hold that apart."""
    return [place for place in range(start, end) if history.messages[place]["role"] not in SYSTEM_ROLES]


def pinned(history: SessionHistory, end: int) -> list[Wire]:
    """The system prompts of a call."""
    return [history.messages[place] for place in history.pinned if place < end]


def arguments_of(call: Wire) -> dict[str, Any]:
    """The arguments of a tool call as a mapping, which frameworks want; the recorded ones may be no JSON."""
    text = call["function"]["arguments"]
    try:
        found = json.loads(text)
    except ValueError:
        return {"arguments": text}
    return found if isinstance(found, dict) else {"arguments": found}


class TextCounter:
    """Counts texts as we do, each once: a framework that counts the same text at every call does not pay for ours."""

    def __init__(self, history: SessionHistory) -> None:
        self._count = history.sizes.tokenizer.count_text
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = self._count(text)
        return self._known[text]

    def count_tokens(self, text: str) -> int:
        """The same, by the name that agent-framework calls."""
        return self(text)


@dataclass(slots=True)
class StandIn:
    """Writes summaries by code where a framework asks a model, and counts what it would have read and written.

    `seconds` is the CPU time of all summaries in this process: it is ours, and no framework's.
    """

    seconds: ClassVar[float] = 0.0
    history: SessionHistory
    read_tokens: int = 0
    written_tokens: int = 0

    def write(self, wires: Sequence[Wire]) -> str:
        """A summary of messages, at most as long as a model's."""
        started, sizes = time.process_time(), self.history.sizes
        entries = [read_entry(wire, "message") for wire in wires]
        text = summarize_offline(entries, sizes.tokenizer.count_text, SUMMARY_TOKENS)
        self.read_tokens += sum(map(sizes, wires))
        self.written_tokens += sizes.tokenizer.count_text(text)
        StandIn.seconds += time.process_time() - started
        return text

    def take(self) -> tuple[int, int]:
        """What was read and written since the last time."""
        spent = self.read_tokens, self.written_tokens
        self.read_tokens = self.written_tokens = 0
        return spent


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process: a program that has a framework's agent in it has one, and no new one for each call."""
    return asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run what a framework only offers to event loops.

    Not by `asyncio.run`: it would make a loop for each call, and some versions of Python write down all that a task
    gave back when it ends, which takes longer than the work.
    """
    return _loop().run_until_complete(work)
