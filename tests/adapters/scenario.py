"""The one scripted agent that every adapter runs: 40 tool calls, 3 user turns, a protected message, a window of 8k.

    scenario = Scenario()
    watch = Watch(scenario)
    manager = watch.manager()                       # window, memory store, events recorded
    ...                                             # in the fake model of a framework, at every request:
    step = watch.ask(items, dialect, tools=…, instructions=…)   # checks the request, says what to answer
    ...                                             # in the framework's tools: scenario.look_up(depot), manager.recall
    watch.check(manager, session_id, stored=texts)  # after the run, with all text of the framework's stored history

The agent looks up 39 depots; the last call of all is the recall tool, asked for a fact of the third depot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, TriggerDecisionEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.dialects import Dialect, get_dialect
from compact.testing import RecordingSink
from compact.tokens import get_tokenizer

WINDOW_TOKENS = 8_000
TOOL = "look_up_depot"
RECALL = "recall"
INSTRUCTIONS = "You audit depots. Look every depot up, one by one, and say when you are done."
# What the user says before the first task, and what must be in every request, word for word.
PROTECTED = "House rule 7: never order a recount at depot 12 before the auditor Imke Vogelsang has signed form R-88."
PROMPTS = (
    "Audit the depots 1 to 14 and note who runs each of them.",
    "Now the depots 15 to 27, with the same care.",
    "And at last the depots 28 to 39. Then check again which seal depot 3 has.",
)
FINALS = ("Depots 1 to 14 are audited.", "Depots 15 to 27 are audited.", "All depots are audited.")
_TURNS = (range(1, 15), range(15, 28), range(28, 40))
RECALLED_DEPOT = 3

_GOODS = ("copper wire", "lamp oil", "roof tiles", "seed rye", "bell metal", "tar paper", "glass rods", "oak staves")
_PEOPLE = ("Ottilie Brandt", "Jaro Malik", "Wren Adeyemi", "Sunniva Dahl", "Tomasz Reuter", "Ines Calado")
# The schema of the tool, in the Chat Completions form, for those who must write it by hand.
TOOL_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": "The stock list of one depot.",
        "parameters": {
            "type": "object",
            "properties": {"depot": {"type": "integer", "description": "The number of the depot."}},
            "required": ["depot"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls one tool."""

    call_id: str
    name: str
    arguments: dict[str, Any]

    @property
    def arguments_json(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Final:
    """The model ends the turn with a text."""

    text: str


Step: TypeAlias = Call | Final


class Rejected(AssertionError):
    """What a provider would answer with 400, and what a request may never be."""


def fact(depot: int) -> str:
    """A string that only the listing of one depot has: its seal."""
    return f"KX-{depot:02d}-{depot * 7919 % 10_000:04d}"


def look_up(depot: int) -> str:
    """The stock list of a depot: about 600 tokens, plain ASCII, and no line twice in all lists."""
    person = _PEOPLE[depot % len(_PEOPLE)]
    lines = [f"Depot {depot} is run by {person}, seal {fact(depot)}, last audit on day {depot * 37 % 365}."]
    for shelf in range(1, 17):
        number = depot * 100 + shelf
        goods = _GOODS[(depot + shelf) % len(_GOODS)]
        lines.append(
            f"Shelf {shelf} of depot {depot}: {number * 31 % 997} crates of {goods}, lot LT-{number}-{number % 89}, "
            f"counted by {_PEOPLE[(depot * shelf) % len(_PEOPLE)]}, {number * 17 % 53} crates damaged."
        )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the user says, what the model answers at each step, what the tools return."""

    prompts: tuple[str, ...] = PROMPTS
    protected: str = PROTECTED
    instructions: str = INSTRUCTIONS

    @property
    def steps(self) -> tuple[Step, ...]:
        """The answers of the model, one for each request: 40 calls and 3 texts."""
        steps: list[Step] = []
        for turn, (depots, final) in enumerate(zip(_TURNS, FINALS, strict=True)):
            steps += [Call(f"call_{depot}", TOOL, {"depot": depot}) for depot in depots]
            if turn == len(_TURNS) - 1:
                steps.append(Call("call_40", RECALL, {"query": fact(RECALLED_DEPOT)}))
            steps.append(Final(final))
        return tuple(steps)

    @property
    def depots(self) -> range:
        """Every depot that is looked up."""
        return range(1, 40)

    def look_up(self, depot: int) -> str:
        """What the tool returns."""
        return look_up(int(depot))


@dataclass(slots=True)
class Watch:
    """Stands where the provider stands: rejects what it would, and remembers what it was sent."""

    scenario: Scenario = field(default_factory=Scenario)
    sink: RecordingSink = field(default_factory=RecordingSink)
    model: str = "gpt-4o"
    requests: list[str] = field(default_factory=list[str])  # the text of each, as its model reads it
    tokens: list[int] = field(default_factory=list[int])
    rejections: list[str] = field(default_factory=list[str])

    @property
    def config(self) -> CompactConfig:
        """The window of the scenario; everything else as it comes."""
        return CompactConfig(model=self.model, max_context_tokens=WINDOW_TOKENS)

    @property
    def budget_tokens(self) -> int:
        """The most a request may take."""
        return WINDOW_TOKENS - self.config.policy.hard_cap_buffer

    def manager(self, **parts: Any) -> CompactManager:
        """A manager whose events are recorded here."""
        return CompactManager(self.config, on_event=self.sink, **parts)

    def ask(
        self,
        items: Sequence[Any],
        dialect: str | Dialect,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        instructions: str = "",
    ) -> Step:
        """Check a request as it goes to the provider, and say what the model answers; raises Rejected."""
        number = len(self.requests)
        spoken = get_dialect(dialect)
        if violations := spoken.check(items):
            self._reject(number, f"illegal: {[str(violation) for violation in violations]}")
        entries = [entry for block in spoken.read(list(items), 0) for entry in block.entries]
        return self.ask_entries(entries, tools=tools, instructions=instructions)

    def ask_entries(
        self, entries: Sequence[Any], *, tools: Sequence[Mapping[str, Any]] = (), instructions: str = ""
    ) -> Step:
        """The same for a request as Chat Completions entries."""
        number = len(self.requests)
        messages = [read_entry(entry, f"request[{place}]") for place, entry in enumerate(entries)]
        if violations := check_chat(messages):
            self._reject(number, f"illegal: {[str(violation) for violation in violations]}")
        counter = get_tokenizer(self.model)
        tokens = sum(map(counter.count_message, messages)) + counter.count_tools(tools)
        tokens += counter.count_text(instructions) if instructions else 0
        if tokens > self.budget_tokens:
            self._reject(number, f"{tokens:,} tokens, more than the {self.budget_tokens:,} there are")
        text = "\n".join(message.text for message in messages)
        if self.scenario.protected not in text:
            self._reject(number, "the protected message is not in it")
        steps = self.scenario.steps
        if number >= len(steps):
            self._reject(number, f"the script has {len(steps)} steps only")
        self.requests.append(text)
        self.tokens.append(tokens)
        return steps[number]

    def _reject(self, number: int, why: str) -> None:
        self.rejections.append(f"request {number + 1}: {why}")
        raise Rejected(self.rejections[-1])

    @property
    def compactions(self) -> list[CompactionCompletedEvent]:
        """Every compaction that was told."""
        return self.sink.of(CompactionCompletedEvent)

    def check(self, manager: CompactManager, session_id: str, *, stored: Iterable[str] | None) -> None:
        """After the run: all of it happened, nothing was lost, and it was compacted at least twice.

        `stored` is the text of the framework's own history, item by item; None if the framework keeps none.
        """
        assert not self.rejections, self.rejections
        assert not (errors := self.sink.of(CompactionErrorEvent)), errors
        assert len(self.requests) == len(self.scenario.steps), f"{len(self.requests)} requests only"
        assert len(self.compactions) >= 2, f"compacted {len(self.compactions)} times only: {self.decisions[-3:]}"
        if stored is not None:
            self.check_whole("\n".join(stored))
        # Nobody has told us of the very last answer: it came after the last request.
        self.check_whole("\n".join(message.text for message in manager.history(session_id)), finals=FINALS[:-1])
        for depot in self.scenario.depots:
            assert fact(depot) in str(manager.recall(session_id, fact(depot))), f"depot {depot} cannot be recalled"
        # The agent asked for it itself, and was answered: most of it was gone, and all of it is in the last request.
        listing = look_up(RECALLED_DEPOT).splitlines()
        before, after = ([line in request for line in listing] for request in self.requests[-2:])
        assert sum(before) < len(listing) / 2, "nothing had left the prompt"
        assert all(after), "what was recalled is not in the request after it"

    def check_whole(self, text: str, *, finals: Sequence[str] = FINALS) -> None:
        """Everything that anybody said is in a text, line by line; line ends may be written as JSON does."""
        plain = text.replace("\\n", "\n")
        wanted = [self.scenario.protected, *self.scenario.prompts, *finals]
        wanted += [line for depot in self.scenario.depots for line in look_up(depot).splitlines()]
        missing = [line for line in wanted if line not in plain]
        assert not missing, f"{len(missing)} lines are not in the history, first of all {missing[0]!r}"

    @property
    def decisions(self) -> list[str]:
        """Why it was or was not compacted, call by call."""
        return [event.reason for event in self.sink.of(TriggerDecisionEvent)]
