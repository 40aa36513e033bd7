"""A random agent: what it keeps of its conversation, how it sends that, and what happens to it between two calls.

After each call it checks what `docs/matching.md` says always holds. Nearly every message has a number of its own: by
that it is found in the log, in the line and in the prompt, in every dialect.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compact import CompactConfig, CompactManager, Injector, InsufficientBudget
from compact.core.log.recognition import SUMMARY_MARK
from compact.dialects import get_dialect
from compact.testing import WordTokenizer
from dialect_conversations import WRITERS, Call, Step, Wire

WORDS = ("tide", "crate", "pier", "quay", "harbour", "lamp", "rope", "winch", "src/app/main.py", "id-4711", "漢字")
SAID_OFTEN = ("ok", "continue", "yes", "go on")
RULES = ("Never touch the file config/secret_{}.py.", "Do not delete the table users_{}.", "Never call customer 44{}.")
CLEARED = "[Old tool result content cleared]"
_SENDS = ("history", "history", "prompt", "prompt", "either", "compacted prompt", "newest part")
_NUMBER = re.compile(r"#\d+#")
_RULE = re.compile("|".join(re.escape(rule).replace(r"\{\}", r"\d+") for rule in RULES))
# In these, neighbours of one role are one item: two of the user's messages are never neighbours here.
_JOINED = ("anthropic", "converse")
# In these, calls have no ids: a result that was cleared cannot be told from another.
_WITHOUT_IDS = ("gemini", "ollama")


@dataclass(frozen=True)
class Habits:
    """What an agent always does, drawn once; `sends` is what it makes the list of a call from, one of `_SENDS`."""

    dialect: str
    sends: str
    window: int
    injects: bool
    keeps_injected: bool
    has_two_processes: bool
    has_clock: bool
    repeats: float
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def drawn(cls, chance: random.Random) -> Habits:
        """Draw the habits of an agent."""
        dialect = chance.choice(list(WRITERS))
        return cls(
            dialect=dialect,
            sends=chance.choice(_SENDS),
            window=chance.choice([500, 800, 1200, 2000, 4000]),
            injects=chance.random() < 0.3,
            keeps_injected=chance.random() < 0.5,
            has_two_processes=chance.random() < 0.2,
            has_clock=dialect in ("chat", "ollama") and chance.random() < 0.2,
            repeats=chance.choice([0, 0.1, 0.3]),
            settings=chance.choice(
                [
                    {},
                    {"summarizer": {"prefetch": "auto"}},
                    {"strategies": {"enabled": chance.choice([("clear", "summarize"), ("clear", "drop")])}},
                    {"strategies": {"deduplicate": {"near_duplicates": True}}},
                    {"policy": {"hard_cap_buffer": 0, "keep_recent_turns": 1, "keep_tool_io_pairs": 4}},
                    {"redaction": {"patterns": ("harbour|lamp",)}},
                ]
            ),
        )


class Agent:
    """One agent and its session; the same seed gives the same life."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(f"agent {seed}")
        self.habits = Habits.drawn(self.chance)
        self.folder, self.turns, self.calls, self._count = folder, 0, 0, 0
        self.steps: list[Step] = []
        # The prompt that the next list goes on from, and what the agent has said since.
        self.prompt: list[Wire] | None = None
        self.said_since: list[Wire] = []
        self.is_on_an_older_prompt = False
        # Numbers that the line may have although the agent's list does not: it lost its beginning, or cleared a result.
        self.lost: frozenset[str] = frozenset()
        self.older: list[tuple[list[Step], frozenset[str]]] = []
        self.given: list[tuple[list[Wire], list[Step], frozenset[str]]] = []
        self.log: list[Any] = []
        # What happened, for whoever reads a failure.
        self.story: list[str] = []
        self.manager = self.open()
        self.other = self.open() if self.habits.has_two_processes else None

    def open(self) -> CompactManager:
        """Return a manager of another process, over the same store."""
        settings: dict[str, Any] = {
            "max_context_tokens": self.habits.window,
            "policy": {"hard_cap_buffer": 0},
            "state": {"url": f"sqlite:///{self.folder}/state.db"},
            "storage": {"adapter": "none"},
            "telemetry": {"exporter": "none"},
            "summarizer": {"prefetch": "never"},
            **self.habits.settings,
        }
        injectors = [Injector("clock", 40, lambda _: f"It is turn {self.turns}.")] if self.habits.injects else []
        return CompactManager(CompactConfig(**settings), tokenizer=WordTokenizer(), injectors=injectors)

    def close(self) -> None:
        """Close the managers."""
        self.manager.close()
        if self.other is not None:
            self.other.close()

    # -- what is said ------------------------------------------------------------------------------------------------

    def numbered(self, sizes: Sequence[int]) -> str:
        """Return some words behind a number that no other text has."""
        self._count += 1
        return f"#{self._count}# {' '.join(self.chance.choices(WORDS, k=self.chance.choice(sizes)))}"

    def words(self, sizes: Sequence[int]) -> str:
        """Return a numbered text, or one of those that are said often."""
        often = self.chance.random() < self.habits.repeats
        return self.chance.choice(SAID_OFTEN) if often else self.numbered(sizes)

    def question(self) -> Step:
        """Return what the user says; sometimes it holds a rule, or is protected."""
        text = self.words([1, 5, 12, 12, 40, 90])
        if self.chance.random() < 0.12:
            text = f"{self.numbered([3])}. {self.chance.choice(RULES).format(self._count)}"
        return self.step("user", text, is_protected=self.chance.random() < 0.05)

    def answer(self) -> Step:
        """Return what the model says in the end."""
        return self.step("model", self.words([3, 12, 50]), thinks="I think." if self.chance.random() < 0.1 else "")

    def calling(self) -> Step:
        """Return a step of the model with some calls and their results."""
        calls: list[Call] = []
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            result = self.chance.choice(["ok", "error: no such file", *(self.numbered([n]) for n in (4, 20, 120))])
            tool, path = self.chance.choice(["read_file", "grep", "edit_file"]), f"src/f{self.chance.randrange(6)}.py"
            failed = self.chance.random() < 0.08
            calls.append(Call(f"call_{self._count}", tool, {"path": path}, result, failed=failed))
        return self.step("model", self.chance.choice(["", "", self.words([5])]), calls=tuple(calls))

    def step(self, role: str, text: str, **others: Any) -> Step:
        """Return a step with a number of its own, by which its items have ids."""
        self._count += 1
        return Step(role, text, number=self._count, **others)

    def new_steps(self) -> Iterator[list[Step]]:
        """Yield what is new in each call of a turn: the user's words, and then results."""
        most = 1 if self.habits.dialect in _JOINED else self.chance.choice([1, 1, 1, 2])
        asked = [self.question() for _ in range(most)]
        yield [self.answer(), *asked] if self.steps and self.steps[-1].role == "user" else asked
        for _ in range(self.chance.choice([0, 0, 1, 1, 2, 3])):
            yield [self.calling()]

    def written(self, steps: Sequence[Step]) -> list[Wire]:
        """Return a list of the agent's own, with its instructions."""
        items = WRITERS[self.habits.dialect](steps)
        if not self.habits.has_clock:
            return items
        text = f"You look after the harbour. Today is 2026-03-{10 + self.turns % 18}."
        return [{"role": "system", "content": text}, *items]

    # -- what happens ------------------------------------------------------------------------------------------------

    def live(self, turns: int) -> None:
        """Live so many turns; raise an AssertionError that tells the story of the first thing that is wrong."""
        for _ in range(turns):
            try:
                self.turn()
            except AssertionError as error:
                raise AssertionError(f"{error}; {self.habits}; turn {self.turns}: {self.story[-9:]}") from error

    def turn(self) -> None:
        """Let something happen to the list, and make the calls of a turn."""
        self.turns += 1
        self.is_on_an_older_prompt = False
        happening = self.drawn_happening()
        self.story.append(happening.__name__)
        happening()
        goes_on = self.goes_on_with_the_prompt()
        for new in self.new_steps():
            before, self.steps = self.steps, [*self.steps, *new]
            if goes_on and self.prompt is not None:
                items = [*self.without_injected(self.prompt), *self.said_since, *WRITERS[self.habits.dialect](new)]
            else:
                items = self.written(self.steps)
            self.said_since = []
            if not self.call(items):
                self.steps = before
                return
        self.say(self.answer())

    def drawn_happening(self) -> Callable[[], None]:
        """Return what happens to the list before a turn: mostly nothing."""
        weights: dict[Callable[[], None], float] = {
            self.nothing: 14,
            self.rewind: 1,
            self.edit: 1,
            self.delete: 0.6,
            self.insert: 0.4,
            self.clear: 0.6,
            self.regenerate: 1.2,
            self.take_up_an_older_prompt: 0.6,
            self.take_up_an_older_list: 0.5,
            self.undo: 0.4,
            self.compact: 0.6,
            self.cut: 2,
        }
        return self.chance.choices(list(weights), list(weights.values()))[0]

    def goes_on_with_the_prompt(self) -> bool:
        """Return whether the next list is the last prompt and what came since."""
        if self.prompt is None or self.habits.sends in ("history", "newest part"):
            return self.is_on_an_older_prompt
        if self.habits.sends == "compacted prompt":
            return self.manager.current_plan("s").version > 0
        return self.habits.sends == "prompt" or self.chance.random() < 0.5

    def without_injected(self, prompt: Sequence[Wire]) -> list[Wire]:
        """Return a prompt as the agent keeps it: some take out what was added for the call."""
        items = copy.deepcopy(list(prompt))
        if not self.habits.injects or self.habits.keeps_injected or "It is turn" not in str(items[-1]):
            return items
        for key in ("content", "parts"):
            if isinstance(items[-1].get(key), list) and len(items[-1][key]) > 1:
                items[-1][key].pop()
                return items
        return items[:-1] if str(items[-1].get("content")).startswith("[clock") else items

    def say(self, step: Step) -> None:
        """Take an answer of the model into the list."""
        self.steps, self.said_since = [*self.steps, step], WRITERS[self.habits.dialect]([step])

    def change(self, steps: list[Step]) -> None:
        """Have another list from now on."""
        self.older.append((self.steps, self.lost))
        self.steps, self.prompt, self.said_since = steps, None, []

    def has_own_list(self) -> bool:
        """Return whether the agent can change its past: it has a list, not a prompt alone."""
        return self.habits.sends in ("history", "either", "newest part") or self.prompt is None

    def questions(self, start: int = 0) -> list[int]:
        """Return the places of the user's messages that stand behind an answer, or first."""
        steps = self.steps
        before = [n for n in range(start, len(steps)) if steps[n].role == "user"]
        return [n for n in before if n == 0 or (steps[n - 1].role == "model" and not steps[n - 1].calls)]

    def nothing(self) -> None:
        """Go on."""

    def rewind(self) -> None:
        """Go back to before one of the last questions."""
        if self.has_own_list() and (places := self.questions(1)[-4:]):
            self.change(self.steps[: self.chance.choice(places)])

    def edit(self) -> None:
        """Say something else at some place; a single message that is edited begins another conversation."""
        places = [n for n, step in enumerate(self.steps) if step.role == "user" and (n or len(self.steps) > 3)]
        if self.has_own_list() and places:
            place = self.chance.choice(places)
            edited = replace(self.steps[place], text=self.numbered([9]))
            self.change([*self.steps[:place], edited, *self.steps[place + 1 :]])

    def delete(self) -> None:
        """Take out a question with its answer, not the first: a list without that was trimmed."""
        places = self.questions()
        if self.has_own_list() and len(places) > 3:
            n = self.chance.randrange(1, len(places) - 1)
            self.change([*self.steps[: places[n]], *self.steps[places[n + 1] :]])

    def insert(self) -> None:
        """Put a question with its answer in between."""
        places = [n for n in self.questions(1) if n < len(self.steps) - 2]
        if self.has_own_list() and places:
            place = self.chance.choice(places)
            new = [self.step("user", self.numbered([6])), self.step("model", self.numbered([6]))]
            self.change([*self.steps[:place], *new, *self.steps[place:]])

    def clear(self) -> None:
        """Clear the results of one step, as agents do."""
        places = [n for n, step in enumerate(self.steps[:-3]) if step.calls]
        if self.has_own_list() and places and self.habits.dialect not in _WITHOUT_IDS:
            place = self.chance.choice(places)
            step = self.steps[place]
            cleared = replace(step, calls=tuple(replace(call, result=CLEARED) for call in step.calls))
            self.change([*self.steps[:place], cleared, *self.steps[place + 1 :]])
            self.lost |= numbers_of([step])

    def cut(self) -> None:
        """Lose the beginning, as agents do that have a window of their own."""
        places = [n for n in self.questions(5) if n < len(self.steps) - 4]
        if self.habits.sends == "newest part" and places:
            place = self.chance.choice(places)
            gone = numbers_of(self.steps[:place])
            self.change(self.steps[place:])
            self.lost |= gone

    def regenerate(self) -> None:
        """Have the model answer again."""
        if self.steps and self.steps[-1].role == "model" and not self.steps[-1].calls:
            self.steps = self.steps[:-1]
            self.say(self.answer())

    def take_up_an_older_prompt(self) -> None:
        """Go on with one of the last prompts."""
        if self.given and self.habits.sends != "newest part":
            self.older.append((self.steps, self.lost))
            self.is_on_an_older_prompt = True
            self.prompt, steps, lost = self.chance.choice(self.given[-5:])
            self.steps, self.lost = list(steps), self.lost | lost
            self.say(self.answer())

    def take_up_an_older_list(self) -> None:
        """Go on with the list from before a change."""
        if self.has_own_list() and self.older:
            steps, lost = self.chance.choice(self.older[-5:])
            self.change(list(steps))
            self.lost |= lost

    def undo(self) -> None:
        """Take the last compaction back."""
        if self.calls:
            self.manager.undo("s")
            self.prompt = None if self.has_own_list() else self.prompt

    def compact(self) -> None:
        """Compact now."""
        if not self.calls or not self.steps or not self.has_own_list():
            return
        try:
            prompt = self.manager.manual_compact("s", self.written(self.steps), dialect=self.habits.dialect)
        except InsufficientBudget:
            self.prompt = None
            return
        self.prompt, self.said_since = copy.deepcopy(prompt), []
        self.check_log()
        self.check_prompt(self.prompt)

    # -- the call, and what must hold --------------------------------------------------------------------------------

    def ask(self, items: list[Wire]) -> list[Wire] | None:
        """Make a call with copies; None where nothing fits."""
        try:
            return copy.deepcopy(self.manager.preflight("s", copy.deepcopy(items), dialect=self.habits.dialect))
        except InsufficientBudget:
            return None

    def call(self, items: list[Wire]) -> bool:
        """Make a call and check it; return whether there is a prompt."""
        self.calls += 1
        if self.other is not None and self.chance.random() < 0.5:
            self.manager, self.other = self.other, self.manager
            self.story.append("the other process")
        if self.chance.random() < 0.1:
            self.try_out(items)
        self.prompt = prompt = self.ask(items)
        if prompt is None:
            return False
        version = self.manager.current_plan("s").version
        check = get_dialect(self.habits.dialect).check
        assert not check(prompt) or check(items), f"not legal: {check(prompt)[:2]}"
        assert self.manager.status("s").used_tokens <= self.habits.window, "does not fit"
        assert self.ask(items) == prompt, "the same list gave another prompt"
        if self.chance.random() < 0.25:
            self.story.append("a restart")
            self.manager.close()
            self.manager = self.open()
            assert self.ask(items) == prompt, "a restart changed the prompt"
        assert self.manager.current_plan("s").version == version, "the same list gave another plan"
        self.check_log()
        self.check_prompt(prompt)
        self.given.append((prompt, self.steps, self.lost))
        return True

    def try_out(self, items: list[Wire]) -> None:
        """Ask what a compaction would do."""
        self.story.append("a dry run")
        try:
            self.manager.plan("s", copy.deepcopy(items), dialect=self.habits.dialect)
        except InsufficientBudget:
            self.story.append("refused")

    def check_log(self) -> None:
        """The log only grows, has each message once and nothing of ours, and its line is the agent's list."""
        log = list(self.manager.history("s"))
        assert log[: len(self.log)] == self.log, "the log changed"
        self.log = log
        once = dict[str, str]()
        for message in log:
            assert SUMMARY_MARK not in message.text, "a summary is logged"
            assert "It is turn" not in message.text, "what was injected is logged"
            for number in _NUMBER.findall(message.text):
                assert once.setdefault(number, message.id) == message.id, f"logged twice: {message.text[:80]}"
        rendered, by_id = self.manager.prompt("s"), {message.id: message for message in log}
        ids = [message_id for slot in rendered.slots for message_id in slot.ids] + list(rendered.hidden)
        assert len(set(ids)) == len(ids), "an entry stands twice"
        line = {number for message_id in ids for number in _NUMBER.findall(by_id[message_id].text)}
        own = numbers_of(self.steps)
        assert not own - line, f"the line lacks {sorted(own - line)[:5]}"
        assert not line - own - self.lost, f"the line has {sorted(line - own - self.lost)[:5]}, which the list has not"

    def check_prompt(self, prompt: list[Wire]) -> None:
        """What is pinned is there in order, what users asked to hold is there, and the newest message is."""
        shown, place = json.dumps(prompt, ensure_ascii=False, default=str), 0
        for step in self.steps:
            if step.is_protected and _NUMBER.match(step.text):
                place = shown.find(step.text, place)
                assert place >= 0, f"a pinned message is missing or out of place: {step.text[:80]}"
            for rule in _RULE.findall(step.text) if step.role == "user" else ():
                assert rule in shown, f"missing: {rule}"
        newest = self.steps[-1]
        for text in (newest.text, *(call.result for call in newest.calls)):
            is_short = len(text.split()) < 30
            assert not is_short or text in shown, f"the newest message is missing: {text[:80]}"


def numbers_of(steps: Sequence[Step]) -> frozenset[str]:
    """Return the numbers of the texts and results of some steps."""
    texts = [text for step in steps for text in (step.text, *(call.result for call in step.calls))]
    return frozenset(number for text in texts for number in _NUMBER.findall(text))
