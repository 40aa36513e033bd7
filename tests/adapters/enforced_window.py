"""Many turns against a model server that enforces its window: input and the room for the answer together.

Each turn is a question, a tool call, a result and an answer; results grow. The manager is told no model and no window.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, NoticeEvent, TokenEstimateEvent
from compact.testing import RecordingSink, ScriptedModel, call_tool, say
from compact.tokens import get_tokenizer
from sizes import SOAK

# The more turns, the longer the clients of providers take themselves: each looks through the whole list at each call.
TURNS = 60 if SOAK else 36
TOOL = "read_page"
INSTRUCTIONS = "You read a register page by page. Call the tool once for each question, then answer in one sentence."


@dataclass(frozen=True, slots=True)
class Register:
    """A register whose pages grow: `tokens` is about what all of them have together."""

    tokens: int

    def page(self, number: int) -> str:
        """Return a page: plain lines, none of them twice."""
        lines = round(self.tokens / TURNS * (0.5 + number / TURNS) / 26)
        return "\n".join(
            f"Page {number}, line {line}: parcel {number * 7919 + line} of {line * 31 % 977} kg, to depot {line % 89}."
            for line in range(max(1, lines))
        )


def question(number: int) -> str:
    """What the user says in a turn."""
    return f"Read page {number} of the register and say how many parcels it has."


@dataclass(frozen=True, slots=True)
class Enforced:
    """A server that enforces the window of a model, a manager that knows neither, and what happened."""

    model: ScriptedModel
    manager: CompactManager
    sink: RecordingSink
    register: Register

    def check(self, model: str, *, output_tokens: int = 0, always_with_tools: bool = True) -> None:
        """All turns went out, nothing was refused, and it was compacted for this model and such an answer."""
        assert not self.model.rejections, self.model.rejections[:3]
        assert len(self.model.requests) == 2 * TURNS
        assert not self.sink.of(CompactionErrorEvent)
        assert not (high := [event.message for event in self.sink.of(NoticeEvent) if event.severity == "high"]), high
        assert self.sink.of(CompactionCompletedEvent), "everything fitted"
        estimates = self.sink.of(TokenEstimateEvent)
        assert {event.model for event in estimates} == {model}
        assert all(event.breakdown["system"] for event in estimates)
        with_tools = [bool(event.breakdown["tools_schema"]) for event in estimates]
        assert all(with_tools) if always_with_tools else sum(with_tools) >= TURNS
        reserves = {held.session.budget.output_reserve for held in self.manager._sessions if held.session.budget}
        assert reserves == {output_tokens}


@contextmanager
def enforced(
    window_tokens: int, *, counted_as: str, register_tokens: int, told_window: int | None = None
) -> Generator[Enforced, None, None]:
    """Serve a window, counted by the vocabulary of a model; the script is many turns of one tool call each.

    With `told_window` the manager is told the window, for a model whose own is larger.
    """
    steps = [
        step
        for number in range(1, TURNS + 1)
        for step in (call_tool(TOOL, f"call_{number}", page=number), say(f"Page {number} is read."))
    ]
    count = lru_cache(maxsize=4096)(get_tokenizer(counted_as).count_text)
    sink = RecordingSink()
    window = {} if told_window is None else {"max_context_tokens": told_window}
    config = CompactConfig(telemetry={"exporter": "none"}, **window)
    with (
        ScriptedModel(*steps, window_tokens=window_tokens, count=count) as model,
        CompactManager(config, on_event=sink) as manager,
    ):
        yield Enforced(model, manager, sink, Register(register_tokens))
