"""Sends the shipped session through preflight, one call per model call, and checks every prompt."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from statistics import quantiles
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.audit.report import CompactionReport
    from compact.core.engine.events import CompactionEvent

SESSION = "demo"
WireMessage: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCompaction:
    """One compaction: at which message it happened, what it did, how long it took."""

    number: int
    message: int
    tokens_before: int
    tokens_after: int
    proposals: Mapping[str, int]
    milliseconds: float

    @property
    def work(self) -> str:
        """What each strategy did; a compaction without any strategy only shortened messages."""
        return ", ".join(f"{strategy} {count}" for strategy, count in self.proposals.items()) or "shorten"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCall:
    """One preflight: the size of the history that came in, and of the prompt that came out."""

    message: int
    turn: int
    history_tokens: int
    tokens_before: int
    sent_tokens: int
    milliseconds: float
    has_protected: bool
    extends_previous: bool
    compaction: DemoCompaction | None = None


@dataclass(slots=True)
class DemoResults:
    """The calls so far, and what they come to."""

    calls: list[DemoCall] = field(default_factory=list[DemoCall])

    def add(self, call: DemoCall) -> None:
        """Add the next call."""
        self.calls.append(call)

    @property
    def compactions(self) -> list[DemoCompaction]:
        """The compactions, oldest first."""
        return [call.compaction for call in self.calls if call.compaction]

    @property
    def largest_sent_tokens(self) -> int:
        """The size of the largest prompt."""
        return max(call.sent_tokens for call in self.calls)

    def milliseconds(self, percentile: int) -> float:
        """Return how long a preflight takes, by percentile."""
        return quantiles([call.milliseconds for call in self.calls], n=100)[percentile - 1]


def load_session() -> list[WireMessage]:
    """Return the session that comes with the package."""
    packed = files("compact.cli.demo").joinpath("session.jsonl.gz").read_bytes()
    return [json.loads(row) for row in gzip.decompress(packed).decode().splitlines()]


def protected_messages(history: Sequence[WireMessage]) -> list[WireMessage]:
    """Return the messages that must be in every prompt after they were given."""
    return [message for message in history if message.get("meta", {}).get("protected")]


def _without_meta(message: WireMessage) -> WireMessage:
    """Return a message as a provider gets it."""
    return {name: value for name, value in message.items() if name != "meta"}


class Replay:
    """The session on its way through a manager; iterating makes the calls."""

    def __init__(self, config: CompactConfig, history: list[WireMessage]) -> None:
        from compact.assembly import build_budget
        from compact.manager import CompactManager
        from compact.stateless import estimate_messages_tokens

        self.history = history
        self.budget = build_budget(config)
        self.call_places = [place for place, message in enumerate(history) if message["role"] == "assistant"]
        # Counting also loads the vocabulary, so that the first preflight does not have to.
        self.tokens = [estimate_messages_tokens([message], config) for message in history]
        self._events: list[CompactionEvent] = []
        self._manager = CompactManager(config, on_event=self._events.append)
        # A session that an earlier demo left would be taken for the beginning of this one.
        self._manager.delete(SESSION)

    def __iter__(self) -> Iterator[DemoCall]:
        previous: list[WireMessage] = []
        compactions = history_tokens = counted = 0
        for place in self.call_places:
            history_tokens += sum(self.tokens[counted:place])
            counted = place
            history = self.history[:place]
            self._events.clear()
            started = time.perf_counter()
            prompt = self._manager.preflight(SESSION, history)
            milliseconds = 1000 * (time.perf_counter() - started)
            compaction = self._compaction(compactions + 1, place, milliseconds)
            compactions += compaction is not None
            status = self._manager.status(SESSION)
            yield DemoCall(
                message=place,
                turn=status.turn_number,
                history_tokens=history_tokens,
                tokens_before=compaction.tokens_before if compaction else status.used_tokens,
                sent_tokens=status.used_tokens,
                milliseconds=milliseconds,
                has_protected=all(
                    message in prompt or _without_meta(message) in prompt for message in protected_messages(history)
                ),
                extends_previous=prompt[: len(previous)] == previous,
                compaction=compaction,
            )
            previous = prompt

    def reports(self) -> tuple[CompactionReport, ...]:
        """Return the reports of the compactions so far."""
        return self._manager.report(SESSION)

    def close(self) -> None:
        """Close the manager; the session stays in its store."""
        self._manager.close()

    def _compaction(self, number: int, place: int, milliseconds: float) -> DemoCompaction | None:
        """Return the compaction that the events of this call tell of, if there was one."""
        from compact.core.engine.events import CompactionCompletedEvent

        done = next((event for event in self._events if isinstance(event, CompactionCompletedEvent)), None)
        if done is None:
            return None
        return DemoCompaction(
            number=number,
            message=place,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            proposals=done.proposals,
            milliseconds=milliseconds,
        )
