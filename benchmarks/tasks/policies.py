"""What is sent of a history: all of it, Compact's prompt, or what others do.

Every policy gets the whole history before each call of the model, as from a framework, and returns the prompt. The
others' ways are given the same tokens as Compact: its ceiling, the window less its reserve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol

from compact import CompactConfig, CompactManager
from compact.core.messages.entries import read_entry
from compact.recall.tool import answer_tool_call
from compact.tokens import get_tokenizer
from tasks.prompts import Wire

MODEL = "gpt-4o"
# Chosen: small, so that a task of ordinary length is compacted several times.
WINDOW_TOKENS = 8000
RESERVE_TOKENS = 1500
KEPT_RESULTS = 3
CLEARED = "[old tool result cleared]"
_NOWHERE = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}


class Policy(Protocol):
    """One way to fit a history into a window, for one task."""

    compactions: int

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        """Return what is sent to the model."""
        ...

    def recall(self, arguments: str) -> str | None:
        """Return the answer of the recall tool, or None if the agent has no such tool."""
        ...


class TokenCounter:
    """Counts tokens of messages; what says the same is counted once."""

    def __init__(self) -> None:
        self._count, self._known = get_tokenizer(MODEL).count_message, dict[object, int]()

    def __call__(self, message: Wire) -> int:
        functions = (call["function"] for call in message.get("tool_calls") or ())
        key = message["role"], message.get("content"), *((f["name"], f["arguments"]) for f in functions)
        if key not in self._known:
            self._known[key] = self._count(read_entry(message, "messages"))
        return self._known[key]

    def all(self, messages: Sequence[Wire]) -> int:
        """Return the tokens of a list."""
        return sum(map(self, messages))


@dataclass(slots=True)
class Everything:
    """No compaction: the reference, as if the window had no end."""

    window_tokens: int
    compactions: int = 0

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        return list(history)

    def recall(self, arguments: str) -> str | None:
        return None


class Compacted:
    """Compact with its default settings; with the recall tool, with reminders, or with neither."""

    def __init__(
        self, window_tokens: int, *, has_recall: bool, reserve_tokens: int = RESERVE_TOKENS, reminder_tokens: int = 0
    ) -> None:
        reserve, recall = {"hard_cap_buffer": reserve_tokens}, {"reminder_tokens": reminder_tokens}
        config = CompactConfig(model=MODEL, max_context_tokens=window_tokens, policy=reserve, recall=recall, **_NOWHERE)
        self._manager, self._has_recall = CompactManager(config), has_recall

    @property
    def compactions(self) -> int:
        """How often the prompt was made anew."""
        return self._manager.status("task").plan_version

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        return self._manager.preflight("task", history)

    def recall(self, arguments: str) -> str | None:
        if not self._has_recall:
            return None
        return answer_tool_call(lambda query: self._manager.recall("task", query), arguments)


@dataclass(slots=True)
class Newest:
    """The system prompt and the newest messages that fit, at every call."""

    window_tokens: int
    compactions: int = 0
    reserve_tokens: int = RESERVE_TOKENS
    _count: TokenCounter = field(default_factory=TokenCounter)
    _left_out: int = 0

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        return self._fitted(list(history))

    def recall(self, arguments: str) -> str | None:
        return None

    def _fitted(self, history: list[Wire]) -> list[Wire]:
        room = self.window_tokens - self.reserve_tokens
        if self._count.all(history) <= room:
            return history
        pinned = {place for place, message in enumerate(history) if message["role"] == "system"}
        room -= sum(self._count(history[place]) for place in pinned)
        kept = set(pinned)
        for group in reversed(list(_groups(history))):
            new = [place for place in group if place not in pinned]
            room -= sum(self._count(history[place]) for place in new)
            if room < 0:
                break
            kept.update(new)
        left_out = len(history) - len(kept)
        self.compactions += left_out > self._left_out
        self._left_out = left_out
        return [message for place, message in enumerate(history) if place in kept]


@dataclass(slots=True)
class Cleared(Newest):
    """At the window's end old tool results are cleared but the newest three; then the newest messages that fit."""

    _cleared: int = 0

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        shown = self._with_stubs(history)
        if self._count.all(shown) > self.window_tokens - self.reserve_tokens:
            results = [place for place, message in enumerate(history) if message["role"] == "tool"]
            self.compactions += 1
            self._cleared = (results or [0])[: -KEPT_RESULTS or None][-1] + 1
            shown = self._with_stubs(history)
        return self._fitted(shown)

    def _with_stubs(self, history: Sequence[Wire]) -> list[Wire]:
        old = history[: self._cleared]
        return [*({**m, "content": CLEARED} if m["role"] == "tool" else m for m in old), *history[self._cleared :]]


class LangChainTrim:
    """LangChain's `trim_messages`, as its documentation shows it: the newest that fit, from a person's message on."""

    def __init__(self, window_tokens: int) -> None:
        from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

        self.compactions, self._count, self._left_out = 0, TokenCounter(), 0
        self._convert, self._back, self._trim = convert_to_messages, convert_to_openai_messages, trim_messages
        self._room = window_tokens - RESERVE_TOKENS
        self._converted: list[Any] = []

    def prompt(self, history: Sequence[Wire]) -> list[Wire]:
        new = ({**message, "content": message.get("content") or ""} for message in history[len(self._converted) :])
        self._converted += self._convert(list(new))
        own = {id(theirs): message for theirs, message in zip(self._converted, history, strict=True)}
        kept = self._trim(
            self._converted,
            max_tokens=self._room,
            token_counter=lambda messages: self._count.all([own[id(message)] for message in messages]),
            strategy="last",
            include_system=True,
            start_on="human",
        )
        left_out = len(history) - len(kept)
        self.compactions += left_out > self._left_out
        self._left_out = left_out
        return [own.get(id(message)) or self._back([message])[0] for message in kept]

    def recall(self, arguments: str) -> str | None:
        return None


def _groups(history: Sequence[Wire]) -> Iterator[range]:
    """Yield what has to stay together: a message, with the results of its calls."""
    starts = [place for place, message in enumerate(history) if message["role"] != "tool"]
    yield from map(range, starts, [*starts[1:], len(history)])


REFERENCE, WITH_RECALL, WITHOUT_RECALL = "no compaction", "Compact, with recall", "Compact, without recall"
REMINDED = "Compact, with reminders"
# Chosen: an entry or two, and a twelfth of what the prompt may have.
REMINDER_TOKENS = 500


def policies() -> dict[str, Callable[[int], Policy]]:
    """Return every policy by its name; each makes a policy for one task."""
    found: dict[str, Callable[[int], Policy]] = {
        REFERENCE: Everything,
        WITH_RECALL: lambda window: Compacted(window, has_recall=True),
        WITHOUT_RECALL: lambda window: Compacted(window, has_recall=False),
        REMINDED: lambda window: Compacted(window, has_recall=False, reminder_tokens=REMINDER_TOKENS),
        "newest messages that fit": Newest,
        "old tool results cleared": Cleared,
    }
    if find_spec("langchain_core"):
        found["LangChain trim_messages"] = LangChainTrim
    return found
