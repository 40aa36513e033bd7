"""What the answers of all wires have in common: which calls of a round are hidden, and what waits for its end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from compact.adapters.support.recall import RECALL_NAME
from compact.core.json_data import is_mapping
from compact.proxy.recall.event_stream import StreamEvent

Fields = dict[str, Any]


@dataclass(slots=True)
class HiddenCall:
    """A call of the recall tool, as the model wrote it.

    `original` is the call, block or item as it came, without its arguments: it goes back with all that belongs to it,
    such as its id or a signature.
    """

    call_id: str
    arguments: str = ""
    original: Fields = field(default_factory=dict[str, Any])

    @property
    def input(self) -> Fields:
        """The arguments as data; empty if they are no JSON object."""
        return read_object(self.arguments or "{}") or {}

    @property
    def legal_arguments(self) -> str:
        """The arguments as they were written; an empty object for what is no JSON, which would be rejected."""
        return self.arguments if self.input else "{}"


@dataclass(slots=True)
class Round:
    """What one response had: the pieces that the agent was shown, and the calls that it was not."""

    # Texts, blocks or items, as the wire has them.
    shown: list[Any] = field(default_factory=list[Any])
    hidden: list[HiddenCall] = field(default_factory=list[HiddenCall])
    own_call_ids: list[str] = field(default_factory=list[str])
    # True if the model ended its answer in order to have its calls answered.
    ends_with_calls: bool = False
    # What is passed on when it is known that no other round follows.
    held: list[tuple[StreamEvent, Fields]] = field(default_factory=list[tuple[StreamEvent, Fields]])
    usage: Fields = field(default_factory=dict[str, Any])


class Answer(ABC):
    """One answer to the agent, made of one response or of several; a wire says how each is read and written."""

    def __init__(self) -> None:
        self.rounds: list[Round] = [Round()]
        self._hides = True

    @property
    def round(self) -> Round:
        """The round that is being read."""
        return self.rounds[-1]

    @property
    def is_changed(self) -> bool:
        """True if the agent gets something else than the provider sent."""
        return len(self.rounds) > 1 or bool(self.round.hidden)

    def begin_round(self, *, hides: bool = True) -> None:
        """Note that the next response begins; one to a request without the tool hides nothing."""
        self.rounds.append(Round())
        self._hides = hides

    def hides_call(self, name: object) -> bool:
        """Return True for a call of the tool that was offered."""
        return self._hides and name == RECALL_NAME

    @abstractmethod
    def feed(self, event: StreamEvent) -> bytes:
        """Take the next event of a response, and return what is passed on for it."""

    @abstractmethod
    def end(self) -> bytes:
        """Return what was held back until it was known that no other round follows."""

    @abstractmethod
    def take(self, body: Fields) -> None:
        """Take a whole response."""

    @abstractmethod
    def whole(self) -> Fields:
        """Return the whole response for the agent, after the last round."""

    @abstractmethod
    def model_items(self) -> list[Any]:
        """Return what the model said in this round, as items of the next request."""

    @abstractmethod
    def result_items(self, results: Mapping[str, str]) -> list[Any]:
        """Return the results of hidden calls, as items of the next request."""

    @abstractmethod
    def error(self, status: int, error: Fields) -> bytes:
        """Return how a stream says that it cannot go on."""


def number_of(usage: Mapping[str, Any], name: str) -> int:
    """Return a count of a usage report; 0 if it has none."""
    value = usage.get(name)
    return value if isinstance(value, int) else 0


def summed(usage: Fields, earlier: list[Fields], *names: str) -> Fields:
    """Return a report in which the named counts are those of all rounds."""
    total = {name: sum(number_of(each, name) for each in (*earlier, usage)) for name in names}
    return {**usage, **{name: count for name, count in total.items() if name in usage}}


def read_object(text: str | bytes) -> Fields | None:
    """Return the JSON object in a text; None if there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Fields", value) if isinstance(value, dict) else None


def listed(value: object) -> list[Any]:
    """Return a JSON array, empty for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, empty for anything else."""
    return value if is_mapping(value) else {}
