"""Runs the shipped session as an agent would, one preflight per model call, and checks every prompt."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from statistics import quantiles
from typing import TYPE_CHECKING, Any, TypeAlias

from compact.cli.demo.scripted_model import SUMMARY_MODEL, DemoModel, build_summarizer, load_script
from compact.core.plan.strategy import SUMMARIZE

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.audit.cost import SessionCost
    from compact.core.audit.records import PlanVersion
    from compact.core.audit.report import CompactionReport
    from compact.core.engine.events import CompactionEvent
    from compact.core.facts.outcomes import ToolUse
    from compact.core.plan.plan import StepFailure

SESSION = "demo"
# Chosen: a turn begins here, with two thirds of the window in use; a turn later, what left it then still fits.
_ASKED_AT = 303
_UNDONE_AT = 335
_NOTE = "the tickets about tides and berths come next"
WireMessage: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCompaction:
    """One compaction: at which message it happened, what it did, how long it took, and what failed in it."""

    number: int
    message: int
    tokens_before: int
    tokens_after: int
    proposals: Mapping[str, int]
    milliseconds: float
    is_manual: bool = False
    failure: StepFailure | None = None

    @property
    def has_summary(self) -> bool:
        """True if a summary was asked for."""
        return SUMMARIZE in self.proposals

    @property
    def work(self) -> str:
        """What each strategy did; a compaction without any strategy only shortened messages."""
        return ", ".join(f"{strategy} {count}" for strategy, count in self.proposals.items()) or "shorten"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoUndo:
    """A compaction that was taken back, before the call at this message."""

    number: int
    message: int
    tokens_before: int
    tokens_after: int


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
    missing_constraints: tuple[str, ...] = ()
    compaction: DemoCompaction | None = None
    undo: DemoUndo | None = None


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
    def changes(self) -> list[DemoCompaction | DemoUndo]:
        """The compactions and what was taken back, oldest first."""
        return [change for call in self.calls for change in (call.undo, call.compaction) if change]

    @property
    def undos(self) -> list[DemoUndo]:
        """What was taken back, oldest first."""
        return [call.undo for call in self.calls if call.undo]

    @property
    def failures(self) -> list[DemoCompaction]:
        """The compactions in which something failed."""
        return [compaction for compaction in self.compactions if compaction.failure]

    @property
    def missing_constraints(self) -> Mapping[str, int]:
        """How many prompts lacked each constraint that was not in all of them."""
        found: dict[str, int] = {}
        for constraint in (text for call in self.calls for text in call.missing_constraints):
            found[constraint] = found.get(constraint, 0) + 1
        return found

    @property
    def has_kept_all(self) -> bool:
        """True if every prompt had what was protected, and every constraint that had been given."""
        return not self.missing_constraints and all(call.has_protected for call in self.calls)

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


def agent_tools() -> list[WireMessage]:
    """Return the schemas of the agent's tools, as they go with each request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": {
                    "type": "object",
                    "properties": {
                        name: {"type": "string", "description": text} for name, text in tool["parameters"].items()
                    },
                    "required": list(tool["parameters"]),
                },
            },
        }
        for tool in load_script()["tools"]
    ]


def protected_messages(history: Sequence[WireMessage]) -> list[WireMessage]:
    """Return the messages that must be in every prompt after they were given."""
    return [message for message in history if message.get("meta", {}).get("protected")]


def given_constraints(history: Sequence[WireMessage]) -> dict[str, int]:
    """Return what the person of the session asked to hold, each with the place of the message that says so."""
    asked = [(place, message["content"]) for place, message in enumerate(history) if message["role"] == "user"]
    return {text: place for text in load_script()["constraints"] for place, words in reversed(asked) if text in words}


def _without_meta(message: WireMessage) -> WireMessage:
    """Return a message as a provider gets it."""
    return {name: value for name, value in message.items() if name != "meta"}


def _with_script(config: CompactConfig) -> CompactConfig:
    """Return settings under which the script tells the same story every time, whatever else is configured."""
    summarizer = {
        "model": SUMMARY_MODEL,
        "prefetch": "never",  # a summary that a thread writes is ready sooner or later, as it happens
        "cache": False,  # the summaries of an earlier demo
        "on_failure": "prune",
    }
    return config.model_copy(update={"summarizer": config.summarizer.model_copy(update=summarizer)})


class Replay:
    """The session on its way through a manager; iterating makes the calls.

    `with_failure`, the person once asks for a compaction just when the model that writes summaries is down, and an
    operator takes it back some calls later.
    """

    def __init__(self, config: CompactConfig, history: list[WireMessage], *, with_failure: bool = True) -> None:
        from compact.assembly.budget import build_budget
        from compact.assembly.storage import build_store
        from compact.manager import CompactManager
        from compact.pricing import model_prices
        from compact.stateless import estimate_messages_tokens

        self.history = history
        self.budget = build_budget(config)
        self.constraints = given_constraints(history)
        self.call_places = [place for place, message in enumerate(history) if message["role"] == "assistant"]
        # Counting also loads the vocabulary, so that the first preflight does not have to; prices likewise.
        self.tokens = [estimate_messages_tokens([message], config) for message in history]
        model_prices(config.model)
        self._tools = agent_tools()
        fails = with_failure and config.policy.enabled
        self._asked_at, self._undone_at = (_ASKED_AT, _UNDONE_AT) if fails else (None, None)
        self._model = DemoModel()
        self._events: list[CompactionEvent] = []
        self._manager = CompactManager(
            _with_script(config),
            # Raises if it cannot be written: the demo must know.
            store=build_store(config),
            summarizer=build_summarizer(self._model, lambda event: self._manager.emit(event)),
            on_event=self._events.append,
        )
        # A session that an earlier demo left would be taken for the beginning of this one.
        self._manager.delete(SESSION)

    def __iter__(self) -> Iterator[DemoCall]:
        previous: list[WireMessage] = []
        history_tokens = counted = compactions = 0
        for place in self.call_places:
            history_tokens += sum(self.tokens[counted:place])
            counted = place
            undo = self._undo(compactions, place) if place == self._undone_at else None
            history = self.history[:place]
            self._events.clear()
            started = time.perf_counter()
            prompt = self._prompt(history)
            milliseconds = 1000 * (time.perf_counter() - started)
            compaction = self._compaction(compactions + 1, place, milliseconds)
            compactions += compaction is not None
            turn, sent_tokens = self._prompt_size()
            yield DemoCall(
                message=place,
                turn=turn,
                history_tokens=history_tokens,
                tokens_before=compaction.tokens_before if compaction else sent_tokens,
                sent_tokens=sent_tokens,
                milliseconds=milliseconds,
                has_protected=all(
                    message in prompt or _without_meta(message) in prompt for message in protected_messages(history)
                ),
                extends_previous=prompt[: len(previous)] == previous,
                missing_constraints=self._missing_constraints(prompt, place),
                compaction=compaction,
                undo=undo,
            )
            previous = prompt

    def reports(self) -> tuple[CompactionReport, ...]:
        """Return the reports of the compactions so far."""
        return self._manager.report(SESSION)

    def plans(self) -> tuple[PlanVersion, ...]:
        """Return every plan that was in force."""
        return self._manager.plans(SESSION)

    def cost(self) -> SessionCost:
        """Return what the session cost so far, and what compaction saved."""
        return self._manager.cost(SESSION)

    def tool_uses(self) -> tuple[ToolUse, ...]:
        """Return the tool calls of the session, each with how it failed, if it did."""
        from compact.core.facts.outcomes import tool_uses

        return tuple(tool_uses(self._manager.history(SESSION)))

    def close(self) -> None:
        """Close the manager; the session stays in its store."""
        self._manager.close()

    def _prompt(self, history: list[WireMessage]) -> list[WireMessage]:
        """Return what is sent for a history: compacted if it must be, or because the person asks for it."""
        if len(history) != self._asked_at:
            return self._manager.preflight(SESSION, history, tools=self._tools)
        with self._model.down():
            return self._manager.manual_compact(SESSION, history, _NOTE, tools=self._tools)

    def _compaction(self, number: int, place: int, milliseconds: float) -> DemoCompaction | None:
        """Return the compaction that the events of this call tell of, if there was one."""
        from compact.core.engine.events import CompactionCompletedEvent

        done = next((event for event in self._events if isinstance(event, CompactionCompletedEvent)), None)
        if done is None:
            return None
        run = self._manager.current_plan(SESSION).run
        return DemoCompaction(
            number=number,
            message=place,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            proposals=done.proposals,
            milliseconds=milliseconds,
            is_manual=place == self._asked_at,
            failure=run.failures[0] if run and run.failures else None,
        )

    def _prompt_size(self) -> tuple[int, int]:
        """Return the turn of the prompt that was returned, and its tokens."""
        from compact.core.engine.events import PromptReadyEvent

        return next((event.turn_number, event.tokens) for event in self._events if isinstance(event, PromptReadyEvent))

    def _missing_constraints(self, prompt: Sequence[WireMessage], place: int) -> tuple[str, ...]:
        """Return what was asked for before this place and is not in a prompt, word for word."""
        texts = [message["content"] or "" for message in prompt]
        given = (text for text, asked_at in self.constraints.items() if asked_at < place)
        return tuple(constraint for constraint in given if not any(constraint in text for text in texts))

    def _undo(self, number: int, place: int) -> DemoUndo:
        """Take the last compaction back; the plan before it is in force again, as long as it fits."""
        plan = self._manager.undo(SESSION)
        return DemoUndo(number=number, message=place, tokens_before=plan.tokens_before, tokens_after=plan.tokens_after)
