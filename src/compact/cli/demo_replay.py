"""Replays the shipped session through preflight, one call per model call, and checks each prompt on the way."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from statistics import quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.audit.report import CompactionReport
    from compact.core.engine.events import CompactionEvent

SESSION = "demo"
Wire = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One compaction: where it happened, what it did, how long it took."""

    number: int
    message: int
    tokens_before: int
    tokens_after: int
    proposals: Mapping[str, int]
    milliseconds: float

    @property
    def work(self) -> str:
        """What each strategy did; a round without any only cut what was too large."""
        return ", ".join(f"{strategy} {count}" for strategy, count in self.proposals.items()) or "shorten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One preflight: what came in, and what would be sent."""

    message: int
    turn: int
    seen_tokens: int
    arrived_tokens: int
    sent_tokens: int
    milliseconds: float
    has_protected: bool
    extends_last: bool
    round: Round | None = None


@dataclass(slots=True)
class Tally:
    """What the steps came to."""

    steps: list[Step] = field(default_factory=list[Step])

    def add(self, step: Step) -> None:
        """Count one more step."""
        self.steps.append(step)

    @property
    def rounds(self) -> list[Round]:
        """The compactions, oldest first."""
        return [step.round for step in self.steps if step.round]

    @property
    def largest_sent_tokens(self) -> int:
        """The largest prompt that was ever sent."""
        return max(step.sent_tokens for step in self.steps)

    def milliseconds(self, percentile: int) -> float:
        """How long a preflight takes, by percentile."""
        return quantiles([step.milliseconds for step in self.steps], n=100)[percentile - 1]


def load_session() -> list[Wire]:
    """The session that comes with the package."""
    packed = files("compact.cli").joinpath("demo_session.jsonl.gz").read_bytes()
    return [json.loads(row) for row in gzip.decompress(packed).decode().splitlines()]


def protected_messages(history: Sequence[Wire]) -> list[Wire]:
    """The messages that must be in every prompt after they were given."""
    return [message for message in history if message.get("meta", {}).get("protected")]


def _as_sent(message: Wire) -> Wire:
    """A message as a provider gets it: what we know about it is not for them."""
    return {name: value for name, value in message.items() if name != "meta"}


class Replay:
    """The session on its way through a manager."""

    def __init__(self, config: CompactConfig, history: list[Wire]) -> None:
        from compact.assembly import build_budget
        from compact.manager import CompactManager
        from compact.stateless import estimate_messages_tokens

        self.history = history
        self.budget = build_budget(config)
        self.call_places = [place for place, message in enumerate(history) if message["role"] == "assistant"]
        # Counting also loads the vocabulary, so that the first preflight is not charged for it.
        self.tokens = [estimate_messages_tokens([message], config) for message in history]
        self._events: list[CompactionEvent] = []
        self._manager = CompactManager(config, on_event=self._events.append)
        # What an earlier demo left behind would be taken for the beginning of this one.
        self._manager.delete(SESSION)

    def __iter__(self) -> Iterator[Step]:
        last: list[Wire] = []
        rounds = seen_tokens = seen = 0
        for place in self.call_places:
            seen_tokens += sum(self.tokens[seen:place])
            seen = place
            history = self.history[:place]
            self._events.clear()
            started = time.perf_counter()
            prompt = self._manager.preflight(SESSION, history)
            milliseconds = 1000 * (time.perf_counter() - started)
            done = self._round(rounds + 1, place, milliseconds)
            rounds += done is not None
            status = self._manager.status(SESSION)
            yield Step(
                message=place,
                turn=status.turn_number,
                seen_tokens=seen_tokens,
                arrived_tokens=done.tokens_before if done else status.used_tokens,
                sent_tokens=status.used_tokens,
                milliseconds=milliseconds,
                has_protected=all(
                    message in prompt or _as_sent(message) in prompt for message in protected_messages(history)
                ),
                extends_last=prompt[: len(last)] == last,
                round=done,
            )
            last = prompt

    def reports(self) -> tuple[CompactionReport, ...]:
        """What became of everything that the compactions so far took out."""
        return self._manager.report(SESSION)

    def close(self) -> None:
        """Leave the session to whoever wants to look at it."""
        self._manager.close()

    def _round(self, number: int, place: int, milliseconds: float) -> Round | None:
        """What the events of this call say about a compaction, if there was one."""
        from compact.core.engine.events import CompactionCompletedEvent

        done = next((event for event in self._events if isinstance(event, CompactionCompletedEvent)), None)
        if done is None:
            return None
        return Round(
            number=number,
            message=place,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            proposals=done.proposals,
            milliseconds=milliseconds,
        )
