"""A caller that does to its list what callers do, beside a small model of its log: `docs/matching.md`, proved.

Appends, edits, deletions, rewinds, returns to an older list, repeats, copies, changes in place, prompts that are sent
back, compactions, undo, restarts, a second process and injected content, in random order and in every dialect.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import dialect_conversations as written
from compact import CompactConfig, CompactManager, Injector, InsufficientBudget
from compact.core.log.known_list import KnownList
from compact.core.log.log import Log
from compact.core.log.recognition import SUMMARY_MARK
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import EMPTY_CONTENT
from compact.core.messages.message import Message
from compact.dialects import get_dialect
from compact.dialects.gateway import Gateway
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import WordTokenizer, assistant, dialogue, tool_exchange, user
from conversations import SMALL_STRATEGIES
from dialect_conversations import Call, Step
from sizes import SCALE, SOAK

Wire = dict[str, Any]
WRITERS: dict[str, Callable[[Sequence[Step]], list[Wire]]] = {
    name: getattr(written, name) for name in ("chat", "responses", "anthropic", "gemini", "converse", "vercel")
}
NOTE = "a note for this call alone"
CLEARED = "[Old tool result content cleared]"
# Few, so that messages are often equal.
_TEXTS = ("ok", "go on", "alpha src/app/main.py", "error: no such file", "берег 漢字 🧠 id-4711")
_LONG = tuple(" ".join([word] * 120) for word in ("harbour", "crane"))
# So many prompts of lines that a caller has left are known for sure: an edit or a compaction may lie between two.
_NEWEST = 5
# The dialects in which a caller says up to where the provider caches.
_MARKED = ("anthropic", "converse")
_texts = st.sampled_from((*_TEXTS, *_TEXTS, *_LONG))


@st.composite
def turns(draw: st.DrawFn, *, max_turns: int = 3) -> list[Step]:
    """What arrives between two calls: an answer, a user's words, and calls with their results."""
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, max_turns))):
        steps.append(Step("model", draw(_texts)))
        steps.append(Step("user", draw(_texts), is_protected=draw(st.integers(0, 6)) == 0))
        for _ in range(draw(st.integers(0, 2))):
            results = [draw(_texts) for _ in range(draw(st.integers(1, 2)))]
            steps.append(with_calls(draw(st.sampled_from(("", "I look."))), draw(st.integers(0, 40)), results))
    return steps


def with_calls(text: str, number: int, results: Sequence[str]) -> Step:
    """Some calls and their results; a number that comes again gives the same ids again, as some agents do."""
    calls = (Call(f"call_{number}_{n}", "read_file", {"path": "a.py"}, result) for n, result in enumerate(results))
    return Step("model", text, tuple(calls))


class CallerMachine(RuleBasedStateMachine):
    """One caller, its list, and what must hold after each of its calls."""

    dialect = "chat"
    # Sends back what was injected, moves the mark for the cache to the end, and has neighbours of one role apart.
    is_untidy = False

    def __init__(self) -> None:
        super().__init__()
        self.store = InMemoryCompactionStore()
        self.steps: list[Step] = []
        self.older: list[list[Step]] = []
        self.sent: list[Wire] = []
        self.prompt: list[Wire] | None = None
        self.is_carried = False
        # Every prompt that was given, with the steps that it was given for and the plan that it was made with.
        self.given: list[tuple[list[Wire], list[Step], int]] = []
        self.log: list[Message] = []
        self.calls = 0
        # What a list has lost of its beginning: a summary may still stand for it.
        self.trimmed: list[Step] = []
        # The store of a process that begins anew with each call, if there is one.
        self.beside: InMemoryCompactionStore | None = None

    @initialize(window=st.sampled_from([260, 500, 1500]), injects=st.booleans(), start=turns())
    def begin(self, window: int, injects: bool, start: list[Step]) -> None:
        self.window, self.injects = window, injects
        self.manager, self.other = self.open(), None
        self.steps = [Step("user", "do the task")]
        self.go_on(start)

    def open(self, store: InMemoryCompactionStore | None = None) -> CompactManager:
        config = CompactConfig(
            max_context_tokens=self.window,
            policy={"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
            telemetry={"exporter": "none"},
        )
        plugs: dict[str, Any] = {"tokenizer": WordTokenizer(), "strategies": SMALL_STRATEGIES}
        injectors = [Injector("clock", 30, lambda context: NOTE)] if self.injects else []
        return CompactManager(config, store=store or self.store, injectors=injectors, **plugs)

    # -- what a caller does ------------------------------------------------------------------------------------------

    @rule(more=turns())
    def append(self, more: list[Step]) -> None:
        self.go_on(more)

    @rule(more=turns(max_turns=1))
    def append_to_the_prompt(self, more: list[Step]) -> None:
        """A caller that goes on with what it was given, rather than with its own list."""
        if self.prompt is None or (self.injects and not self.is_untidy):
            return
        more = self.numbered(more)
        self.steps = [*self.steps, *more]
        self.older.append(self.steps)
        self.call([*copy.deepcopy(self.prompt), *self.write(more)], is_carried=True)

    @rule(which=st.integers(0, 30), more=turns(max_turns=1))
    def go_back_to_an_older_prompt(self, which: int, more: list[Step]) -> None:
        """A prompt of this line, however many plans ago, or a new one of a line that was left; and other words."""
        # In a very small window messages are left out without a word, and nothing in a prompt tells which.
        newest = len(self.given) - (_NEWEST if self.window > 260 else 0)
        # Beyond eight plans a prompt is not known; a tidy caller's windows are not so small that there are as many.
        oldest = self._version() - 8 if self.is_untidy else 0
        mine = [
            (prompt, steps)
            for number, (prompt, steps, version) in enumerate(self.given)
            if number >= newest or (self.steps[: len(steps)] == steps and version >= oldest)
        ]
        if mine and (self.is_untidy or not self.injects):
            prompt, steps = mine[-1 - which % len(mine)]
            more = self.numbered(more)
            self.steps = [*steps, *more]
            self.call([*copy.deepcopy(prompt), *self.write(more)], is_carried=True)

    @rule()
    def try_again(self) -> None:
        """The very list of the last call, in other objects: the call had failed."""
        if self.sent:
            self.call(json.loads(json.dumps(self.sent)), is_carried=self.is_carried)

    @rule(more=turns(max_turns=1))
    def go_on_elsewhere_with_the_prompt(self, more: list[Step]) -> None:
        """What one process has given comes back to the other."""
        self.manager, self.other = self.other or self.open(), self.manager
        self.append_to_the_prompt(more)

    @rule(place=st.integers(0, 60), text=_texts)
    def put_in_between(self, place: int, text: str) -> None:
        place = 1 + place % len(self.steps)
        more = self.numbered([Step("model", text), Step("user", text)])
        self.change([*self.steps[:place], *more, *self.steps[place:]])

    @rule(place=st.integers(0, 60), text=_texts)
    def edit(self, place: int, text: str) -> None:
        if self.steps:
            place %= len(self.steps)
            self.change([*self.steps[:place], replace(self.steps[place], text=text), *self.steps[place + 1 :]])

    @rule(place=st.integers(0, 60))
    def delete(self, place: int) -> None:
        if len(self.steps) > 2:
            place = 1 + place % (len(self.steps) - 1)
            self.change([*self.steps[:place], *self.steps[place + 1 :]])

    @rule(count=st.integers(1, 8), more=turns(max_turns=1))
    def rewind(self, count: int, more: list[Step]) -> None:
        self.change([*self.steps[: max(1, len(self.steps) - count)], *self.numbered(more)])

    @rule(which=st.integers(0, 30))
    def return_to_an_older_list(self, which: int) -> None:
        if self.older:
            self.change(self.older[which % len(self.older)])

    @rule()
    def repeat(self) -> None:
        self.call()

    @rule(place=st.integers(0, 60), text=_texts)
    def change_in_place(self, place: int, text: str) -> None:
        """The caller's own objects, one of them with other words."""
        if not self.steps or self.is_carried:
            return
        place %= len(self.steps)
        changed = [*self.steps[:place], replace(self.steps[place], text=text), *self.steps[place + 1 :]]
        items = self.write(changed)
        if len(items) != len(self.sent):
            return
        for old, new in zip(self.sent, items, strict=True):
            if old != new:
                old.clear()
                old.update(new)
        self.steps, self.prompt = changed, None
        self.call(self.sent)

    def edit_the_prompt(self, place: int, text: str = "") -> None:
        """Other words for one message of the user's in what the caller was given, or without any: it is gone."""
        found = self._alone_in_the_prompt() if self.is_untidy or not self.injects else []
        if not found:
            return
        at, number = found[place % len(found)]
        items, asked = copy.deepcopy(self.prompt or []), self._asked()
        said = [replace(self.steps[number], text=text)] if text else []
        items[at : at + 1] = self.write(said)
        self.steps = [*self.steps[:number], *said, *self.steps[number + 1 :]]
        self.call(items, is_carried=True)
        assert self._asked() <= asked + len(said), "what was there was logged again"

    def rewind_the_prompt(self, place: int, more: list[Step]) -> None:
        """The prompt up to one of the user's messages, and another answer: what was hidden behind it is gone, too."""
        found = self._alone_in_the_prompt() if self.is_untidy or not self.injects else []
        if found:
            at, number = found[place % len(found)]
            more = self.numbered(more)
            items = [*copy.deepcopy(self.prompt or [])[: at + 1], *self.write(more)]
            self.steps = [*self.steps[: number + 1], *more]
            self.call(items, is_carried=True)

    def trim(self, count: int) -> None:
        """The list without its oldest messages, up to a question that no dialect has in one item with another."""
        roles = [step.role for step in self.steps]
        places = [n for n in range(count, len(roles) - 2) if roles[n] == "user" != roles[n - 1]]
        if places:
            self.trimmed += self.steps[: places[0]]
            self.change(self.steps[places[0] :])

    def clear_results(self, most: int) -> None:
        """Results are cleared in the caller's own list, the oldest first."""
        before = self._results()
        calling = [number for number, step in enumerate(self.steps[:-1]) if step.calls]
        cleared = {
            number: replace(step, calls=tuple(replace(call, result=CLEARED) for call in step.calls))
            for number in calling[:most]
            for step in [self.steps[number]]
        }
        self.change([cleared.get(number, step) for number, step in enumerate(self.steps)])
        # In Chat Completions the calls of a walk have ids that come twice.
        assert self.dialect == "chat" or self._results() == before, "what was cleared was logged again"

    def _results(self) -> int:
        return sum(message.role == "tool" for message in self.manager.history("s"))

    def _asked(self) -> int:
        return sum(message.role == "user" for message in self.manager.history("s"))

    def _alone_in_the_prompt(self) -> list[tuple[int, int]]:
        """Messages of the user's that are one item behind the step before them: their places in prompt and list.

        What a list has lost of its beginning was trimmed, and what it ends with may be asked again.
        """
        prompt, said = self.prompt or [], Counter(step.text for step in self.steps)
        found: list[tuple[int, int]] = []
        for number in range(2, len(self.steps) - 1):
            before, step = self.write([self.steps[number - 1]]), self.steps[number]
            items = self.write([step])
            if step.role != "user" or step.is_protected or said[step.text] > 1 or len(items) != 1:
                continue
            places = [place for place, item in enumerate(prompt) if item == items[0]]
            start = places[0] - len(before) if len(places) == 1 else -1
            if start >= 0 and prompt[start : places[0]] == before and places[0] < len(prompt) - 1:
                found.append((places[0], number))
        return found

    @rule()
    def compact_now(self) -> None:
        for manager in self._managers():
            try:
                self.prompt = manager.manual_compact("s", self.write(self.steps), dialect=self.dialect)
            except InsufficientBudget:
                self.prompt = None
        self.call()

    @rule()
    def undo(self) -> None:
        for manager in self._managers():
            manager.undo("s")
        self.prompt = None  # another one is what undo is for
        self.call()

    def _managers(self) -> Iterator[CompactManager]:
        """The caller's own, and the one beside it."""
        yield self.manager
        if self.beside is not None:
            with self.open(self.beside) as manager:
                yield manager

    @rule()
    def restart(self) -> None:
        """Another process goes on: the same bytes for the same list."""
        version, before = self.manager.current_plan("s").version, self.prompt
        self.manager.close()
        self.manager = self.open()
        if before is None:
            return
        again = self.ask(self.manager, copy.deepcopy(self.sent))
        assert again == before, "a restart changed the prompt"
        assert self.manager.current_plan("s").version == version, "a restart made a new plan"

    @rule(more=turns(max_turns=1))
    def go_on_elsewhere(self, more: list[Step]) -> None:
        """A second process answers the next call of the session, and then the first one again."""
        self.manager, self.other = self.other or self.open(), self.manager
        self.go_on(more)

    def go_on(self, more: list[Step]) -> None:
        self.steps = [*self.steps, *self.numbered(more)]
        self.older.append(self.steps)
        self.call()

    def change(self, steps: list[Step]) -> None:
        self.steps = steps
        self.call()

    # -- the call, and what must hold --------------------------------------------------------------------------------

    def write(self, steps: Sequence[Step]) -> list[Wire]:
        if self.is_untidy and self.dialect in _MARKED:
            return [item for step in steps for item in WRITERS[self.dialect]([step])]
        return WRITERS[self.dialect](steps)

    def numbered(self, steps: list[Step]) -> list[Step]:
        """Steps with ids of their own for calls, where a provider refuses an id that comes twice."""
        if self.dialect == "chat":
            return steps
        named: list[Step] = []
        for step in steps:
            self.calls += 1
            calls = tuple(replace(call, id=f"{call.id}_{self.calls}") for call in step.calls)
            named.append(replace(step, calls=calls, number=self.calls))
        return named

    def ask(self, manager: CompactManager, items: list[Wire]) -> list[Wire] | None:
        try:
            return manager.preflight("s", items, dialect=self.dialect)
        except InsufficientBudget:
            return None

    def call(self, items: list[Wire] | None = None, *, is_carried: bool = False) -> None:
        items = self.write(self.steps) if items is None else items
        if self.is_untidy:
            move_mark(items, self.dialect)
        version, before, was = self._version(), self.prompt, self.sent
        self.prompt = self.ask(self.manager, items)
        self.sent, self.is_carried = items, is_carried
        if self.beside is not None:
            with self.open(self.beside) as manager:
                assert self.ask(manager, copy.deepcopy(items)) == self.prompt, "a process that began anew gave another"
                assert manager.current_plan("s").version == self._version(), "and another plan"
        self._check_log()
        if self.prompt is None:
            return
        self._check_prompt()
        self.given.append((copy.deepcopy(self.prompt), self.steps, self._version()))
        own = self._own(self.prompt)
        is_longer = was and items[: len(was)] == was
        # Where a provider joins neighbours, the last message of a prompt grows.
        if before is not None and version == self._version() and is_longer and self.dialect in ("chat", "responses"):
            assert own[: len(self._own(before))] == self._own(before), "the prompt changed without a plan"
        version = self._version()
        assert self.ask(self.manager, copy.deepcopy(items)) == self.prompt, "the same list gave another prompt"
        assert self._version() == version, "the same list gave another plan"

    def _version(self) -> int:
        return self.manager.current_plan("s").version

    def _own(self, prompt: list[Wire]) -> list[Wire]:
        """A prompt without what is injected, which stands at its end."""
        return prompt[:-1] if self.injects and NOTE in json.dumps(prompt[-1]) else prompt

    def _check_log(self) -> None:
        """The log only grows, and its line is the caller's list."""
        if self.prompt is None:
            return  # what was refused was not written down
        log = list(self.manager.history("s"))
        assert log[: len(self.log)] == self.log, "the log changed"
        self.log = log
        rendered = self.manager.prompt("s")
        ids = [message_id for slot in rendered.slots for message_id in slot.ids] + list(rendered.hidden)
        assert len(set(ids)) == len(ids), "an entry stands twice"
        by_id = {message.id: message for message in log}
        line = _parts([by_id[message_id] for message_id in ids])
        own, trimmed = (_parts(self._read(self.write(steps))) for steps in (self.steps, self.trimmed))
        assert own <= line, "the line lacks something of the caller's list"
        assert line - own <= trimmed, "the line has more than the caller's list"

    def _read(self, items: list[Wire]) -> list[Message]:
        """What a log has that sees a list for the first time."""
        gateway = Gateway()
        gateway.select_dialect(items, self.dialect)
        return [read_entry(entry, f"messages[{n}]") for n, entry in enumerate(gateway.to_entries())]

    def _check_prompt(self) -> None:
        assert self.prompt is not None
        check = get_dialect(self.dialect).check
        # A caller may delete what makes its own list legal; what it sends below its budget is passed on as it is.
        assert check(self.prompt) == () or check(self.sent), "the prompt is not legal"
        assert self.manager.status("s").used_tokens <= self.window - 10, "the prompt does not fit"
        assert json.dumps(self.prompt).count(SUMMARY_MARK) <= 1, "there are two summaries"
        # Where a provider joins neighbours, two of them are in one message.
        shown, end = "\n".join(self._shown()), 0
        for step in self.steps:
            if step.is_protected:
                place = shown.find(step.text, end)
                assert place >= 0, "a pinned message is missing or out of place"
                end = place + len(step.text)
        step = self.steps[-1]
        newest = step.calls[-1].result if step.calls else step.text
        if newest not in _LONG:
            assert newest in "\n".join(self._shown()[-3:]), "the newest message is missing"

    def _shown(self) -> list[str]:
        return [slot.message.text for slot in self.manager.prompt("s").slots]


def _parts(messages: Sequence[Message]) -> Counter[tuple[str, str]]:
    """What a line consists of: calls and results by their ids, since callers cut and clear them, and a user's words.

    Whether an answer and the calls behind it are one entry or two depends on what stood there when they were read.
    """
    calls = [("call", call.id) for message in messages for call in message.tool_calls]
    results = [("result", message.tool_call_id or "") for message in messages if message.role == "tool"]
    return Counter([*calls, *results, *(("user", message.text) for message in messages if message.role == "user")])


def move_mark(items: list[Wire], dialect: str) -> None:
    """Put the mark up to which a provider caches behind the last item, and take it away elsewhere."""
    if not items or dialect not in _MARKED:
        return
    for item in items:
        if isinstance(item["content"], list):
            blocks = cast("list[Wire]", item["content"])
            item["content"] = [
                {name: value for name, value in block.items() if name != "cache_control"}
                for block in blocks
                if "cachePoint" not in block
            ]
    last = items[-1]
    if dialect == "converse":
        last["content"] = [*last["content"], {"cachePoint": {"type": "default"}}]
        return
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if blocks:
        last["content"] = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]


def machine_for(dialect: str, *, is_untidy: bool = False) -> type[CallerMachine]:
    return type(f"{dialect.title()}Machine", (CallerMachine,), {"dialect": dialect, "is_untidy": is_untidy})


@pytest.mark.soak
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_caller_may_do_anything_to_its_list(dialect: str) -> None:
    """Hypothesis chooses what it does."""
    # A failure is told as it was found: to make it smaller takes minutes.
    phases = tuple(Phase) if SOAK else (Phase.explicit, Phase.reuse, Phase.generate)
    chosen = settings(max_examples=5 * SCALE, stateful_step_count=12, deadline=None, phases=phases)
    run_state_machine_as_test(machine_for(dialect), settings=chosen)


# -- long walks ------------------------------------------------------------------------------------------------------

STEPS = 25
SEEDS = range(200) if SOAK else range(8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_long_walk(dialect: str, seed: int) -> None:
    """Random steps by a number: longer than what Hypothesis tries, so that summaries are made, left and met again."""
    walk(dialect, random.Random(seed))


@pytest.mark.parametrize("seed", range(200) if SOAK else range(3))
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_walk_with_prompts_of_long_ago(dialect: str, seed: int) -> None:
    """Most of its calls send back a prompt: the newest or an older one, to this process, the next or another."""
    walk(dialect, random.Random(f"back {seed}"), sends_back=True)


@pytest.mark.parametrize("seed", range(200) if SOAK else range(3))
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_walk_of_an_untidy_caller(dialect: str, seed: int) -> None:
    """Empty answers, several messages of one role, moving marks, and prompts that come back with what was injected."""
    walk(dialect, random.Random(f"untidy {seed}"), sends_back=True, is_untidy=True)


@pytest.mark.parametrize("is_untidy", [False, True])
@pytest.mark.parametrize("seed", range(100) if SOAK else range(2))
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_walk_of_a_caller_that_edits_what_it_was_given(dialect: str, seed: int, is_untidy: bool) -> None:
    """Every message of the user's says something else, so that it can be told whether one is logged again."""
    walk_with_edits(machine_for(dialect, is_untidy=is_untidy)(), random.Random(f"edits {seed}"))


@pytest.mark.parametrize("seed", range(100) if SOAK else range(2))
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_walk_beside_one_whose_process_begins_anew_with_every_call(dialect: str, seed: int) -> None:
    """The caller trims its list, too; another process of the same agent gives the same prompts, plan by plan."""
    caller = machine_for(dialect)()
    caller.beside = InMemoryCompactionStore()
    walk_with_edits(caller, random.Random(f"beside {seed}"))


def walk_with_edits(caller: CallerMachine, chance: random.Random) -> None:
    numbers = itertools.count(1)

    def more(most: int = 1) -> list[Step]:
        steps = random_turns(chance, most)
        # Where lists are trimmed, what an agent says again would be what it said at the beginning.
        tells = [one.role == "user" or (caller.beside is not None and bool(one.text)) for one in steps]
        return [
            replace(one, text=f"{one.text} {next(numbers)}") if told else one
            for one, told in zip(steps, tells, strict=True)
        ]

    rules: list[Callable[[], None]] = [
        lambda: caller.append(more(3)),
        lambda: caller.append(more(3)),
        lambda: caller.append_to_the_prompt(more()),
        lambda: caller.append_to_the_prompt(more()),
        lambda: caller.go_on_elsewhere_with_the_prompt(more()),
        lambda: caller.edit_the_prompt(chance.randint(0, 60)),
        lambda: caller.edit_the_prompt(chance.randint(0, 60)),
        lambda: caller.edit_the_prompt(chance.randint(0, 60), f"other words {next(numbers)}"),
        lambda: caller.put_in_between(chance.randint(0, 60), f"in between {next(numbers)}"),
        lambda: caller.rewind(chance.randint(1, 8), more()),
        lambda: caller.rewind_the_prompt(chance.randint(0, 60), more() if chance.random() < 0.5 else []),
        lambda: caller.clear_results(chance.randint(1, 3)),
        lambda: caller.return_to_an_older_list(chance.randint(0, 30)),
        caller.try_again,
        caller.restart,
        caller.restart,
        caller.compact_now,
        caller.undo,
    ]
    if caller.beside is not None:
        rules += [lambda: caller.trim(chance.randint(1, 6)), caller.undo]
    caller.begin(chance.choice([500, 1500]), chance.random() < 0.3, more(3))
    for _ in range(STEPS):
        chance.choice(rules)()


def walk(dialect: str, chance: random.Random, *, sends_back: bool = False, is_untidy: bool = False) -> None:
    """Take some steps at random, and some of them more often than others."""
    caller = machine_for(dialect, is_untidy=is_untidy)()
    caller.begin(chance.choice([260, 500, 1500]), chance.random() < 0.3, random_turns(chance))
    words = (*_TEXTS, *_TEXTS, *_LONG)
    rules: list[Callable[[], None]] = [
        lambda: caller.append(random_turns(chance)),
        lambda: caller.append(random_turns(chance)),
        lambda: caller.append_to_the_prompt(random_turns(chance, 1)),
        lambda: caller.append_to_the_prompt(random_turns(chance, 1)),
        lambda: caller.edit(chance.randint(0, 60), chance.choice(words)),
        lambda: caller.delete(chance.randint(0, 60)),
        lambda: caller.rewind(chance.randint(1, 8), random_turns(chance, 1)),
        lambda: caller.return_to_an_older_list(chance.randint(0, 30)),
        lambda: caller.change_in_place(chance.randint(0, 60), chance.choice(words)),
        lambda: caller.go_on_elsewhere(random_turns(chance, 1)),
        caller.repeat,
        caller.compact_now,
        caller.undo,
        caller.restart,
    ]
    if sends_back:
        rules += [
            lambda: caller.go_back_to_an_older_prompt(chance.randint(0, 30), random_turns(chance, 1)),
            lambda: caller.go_back_to_an_older_prompt(chance.randint(0, 3), random_turns(chance, 1)),
            lambda: caller.append_to_the_prompt(random_turns(chance, 1)),
            lambda: caller.go_on_elsewhere_with_the_prompt(random_turns(chance, 1)),
            lambda: caller.put_in_between(chance.randint(0, 60), chance.choice(words)),
            caller.try_again,
            caller.restart,
        ]
    if is_untidy:
        rules += [
            lambda: caller.append(untidy_turns(chance)),
            lambda: caller.append_to_the_prompt(untidy_turns(chance)),
        ]
    for _ in range(STEPS):
        chance.choice(rules)()


def random_turns(chance: random.Random, most: int = 3) -> list[Step]:
    """What `turns` draws, by chance."""
    words, steps = (*_TEXTS, *_TEXTS, *_LONG), list[Step]()
    for _ in range(chance.randint(1, most)):
        steps.append(Step("model", chance.choice(words)))
        steps.append(Step("user", chance.choice(words), is_protected=chance.randint(0, 6) == 0))
        for _ in range(chance.randint(0, 2)):
            results = [chance.choice(words) for _ in range(chance.randint(1, 2))]
            steps.append(with_calls(chance.choice(("", "I look.")), chance.randint(0, 40), results))
    return steps


def untidy_turns(chance: random.Random) -> list[Step]:
    """Answers that say nothing, and several messages of one role in a row."""
    said = (*_TEXTS, *_LONG)
    steps = [Step("model", chance.choice(("", "", *_TEXTS))) for _ in range(chance.randint(1, 2))]
    return [*steps, *(Step("user", chance.choice(said)) for _ in range(chance.randint(1, 3)))]


# -- what it found ---------------------------------------------------------------------------------------------------


def small_manager(
    window: int, store: InMemoryCompactionStore | None = None, injectors: Sequence[Injector] = ()
) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        telemetry={"exporter": "none"},
    )
    plugs: dict[str, Any] = {"tokenizer": WordTokenizer(), "strategies": SMALL_STRATEGIES, "injectors": injectors}
    return CompactManager(config, store=store or InMemoryCompactionStore(), **plugs)


def test_a_list_from_before_an_edit_is_not_the_edited_one() -> None:
    """The prompt from before the edit is as long as the one of now, and is not what stands there now."""
    with small_manager(1_500) as manager:
        before = written.chat([Step("user", "do the task"), Step("model", "ok"), Step("user", "go on")])
        edited = [before[0], {"role": "assistant", "content": "no"}, before[2]]
        for items in (before, edited, before, edited):
            assert manager.preflight("s", copy.deepcopy(items)) == items


def test_a_prompt_of_an_earlier_plan_is_known_after_a_restart() -> None:
    """A call fails after its compaction, the process ends, and the call is made again with what it was made with."""
    store = InMemoryCompactionStore()
    history = written.chat([Step("user", "do the task"), *(Step(role, _LONG[0]) for role in ("model", "user") * 4)])
    with small_manager(900, store) as manager:
        first = manager.manual_compact("s", history)
        assert SUMMARY_MARK in str(first)
        sent = [*first, *written.chat([Step("model", _LONG[1]), Step("user", "go on")] * 5)]
        prompt, version = manager.preflight("s", sent), manager.current_plan("s").version
        assert version > 1
    with small_manager(900, store) as manager:
        assert manager.preflight("s", copy.deepcopy(sent)) == prompt
        assert manager.current_plan("s").version == version
        assert not any(SUMMARY_MARK in message.text for message in manager.history("s"))


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_a_new_message_that_looks_like_a_protected_one_is_not_protected(dialect: str) -> None:
    """The protected one was left by a rewind; what comes later says the same, and is not marked."""
    with small_manager(1_500) as manager:
        start = [Step("user", "do the task"), Step("model", "ok")]
        marked = [*start, Step("user", "go on", is_protected=True), Step("model", "yes")]
        for steps in (marked, [*start, Step("user", "no")], [*start, Step("user", "no"), Step("model", "ok")]):
            manager.preflight("s", WRITERS[dialect](steps), dialect=dialect)
        items = WRITERS[dialect]([*start, Step("user", "no"), Step("model", "ok"), Step("user", "go on")])
        manager.preflight("s", items, dialect=dialect)
        newest = manager.prompt("s").slots[-1].message
        assert (newest.text, dict(newest.meta)) == ("go on", {})


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_protected_message_of_the_first_prompt_is_still_protected_when_it_comes_back(dialect: str) -> None:
    """What is sent has no marks; nothing was left out of that prompt, and it is not the newest any more."""
    with small_manager(500) as manager:
        start = [Step("user", "do the task"), Step("model", "ok"), Step("user", "go on", is_protected=True)]
        first = copy.deepcopy(manager.preflight("s", WRITERS[dialect](start), dialect=dialect))
        more = [Step(role, _LONG[0]) for role in ("model", "user") * 3]
        prompt = manager.preflight("s", WRITERS[dialect]([*start, *more]), dialect=dialect)
        assert SUMMARY_MARK in str(prompt)
        other = [Step("model", "alpha"), Step("user", "ok")]
        manager.preflight("s", [*first, *WRITERS[dialect](other)], dialect=dialect)
        protected = [message for message in manager.history("s") if message.text == "go on"]
        assert [message.meta.get("protected") for message in protected] == [True]
        assert protected[0].id in {i for slot in manager.prompt("s").slots for i in slot.ids}


@pytest.mark.parametrize("key", ["content", "parts"])
def test_a_protected_message_keeps_its_mark_without_what_was_added_to_its_item(key: str) -> None:
    """The caller takes out of the prompt what was added for the call before, and goes on with it."""
    dialect = {"content": "anthropic", "parts": "gemini"}[key]
    steps = [Step("user", "do the task"), Step("model", "ok"), Step("user", "go on", is_protected=True)]
    config = CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})
    with CompactManager(config, injectors=[Injector("clock", 30, lambda context: NOTE)]) as manager:
        prompt = copy.deepcopy(manager.preflight("s", WRITERS[dialect](steps), dialect=dialect))
        assert NOTE in str(prompt[-1][key].pop())
        more = WRITERS[dialect]([Step("model", "yes"), Step("user", "and now?")])
        manager.preflight("s", [*prompt, *more], dialect=dialect)
        history = [(message.text, bool(message.meta.get("protected"))) for message in manager.history("s")]
        assert history == [(step.text, step.is_protected) for step in steps] + [("yes", False), ("and now?", False)]


def test_what_was_added_is_not_the_callers_although_the_message_before_it_was_deleted() -> None:
    config = CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})
    with CompactManager(config, injectors=[Injector("clock", 30, lambda context: NOTE)]) as manager:
        first, question = [user("do the task"), assistant("ok")], user("go on")
        prompt = copy.deepcopy(manager.preflight("s", [*first, question], dialect="chat"))
        assert prompt[-2] == question
        assert NOTE in str(prompt[-1])
        del prompt[-2]
        again = manager.preflight("s", [*prompt, assistant("yes"), user("and now?")], dialect="chat")
        assert again[:-1] == [*first, assistant("yes"), user("and now?")]
        assert not any(NOTE in message.text for message in manager.history("s"))


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("dialect", WRITERS)
def test_a_prompt_from_before_an_edit_brings_its_line_and_its_plan_back(dialect: str, is_restarted: bool) -> None:
    """A user takes an edit back, in an application that goes on with prompts: the summary in it is ours."""
    store, write = InMemoryCompactionStore(), WRITERS[dialect]
    start = [Step("user", "do the task"), *(Step(role, f"{_LONG[0]} {role}") for role in ("model", "user") * 3)]
    more = [Step("model", "fine"), Step("user", "next")]
    manager = small_manager(500, store)
    before = copy.deepcopy(manager.preflight("s", write(start), dialect=dialect))
    assert SUMMARY_MARK in str(before)
    manager.preflight("s", write([start[0], Step("model", "changed"), *start[2:]]), dialect=dialect)
    log = len(manager.history("s"))
    if is_restarted:
        manager.close()
        manager = small_manager(500, store)
    prompt = manager.preflight("s", [*before, *write(more)], dialect=dialect)
    assert prompt == [*before, *write(more)]
    assert [message.text for message in manager.history("s")][log:] == ["fine", "next"]
    assert {i for slot in manager.prompt("s").slots for i in slot.ids} >= {f"m{n}" for n in range(1, 8)}
    assert manager.preflight("s", copy.deepcopy(prompt), dialect=dialect) == prompt
    manager.close()


def edited_session(store: InMemoryCompactionStore) -> tuple[list[Wire], list[Wire]]:
    """A session with a summary whose past was edited; the prompt from before, and the list of now."""
    start = [Step("user", "do the task"), *(Step(role, f"{_LONG[0]} {role}") for role in ("model", "user") * 3)]
    now = written.chat([start[0], Step("model", "changed"), *start[2:]])
    with small_manager(500, store) as manager:
        before = copy.deepcopy(manager.preflight("s", written.chat(start)))
        assert SUMMARY_MARK in str(before)
        manager.preflight("s", now)
    return before, now


def test_a_line_that_was_left_is_known_after_many_changes_of_a_date_and_a_restart() -> None:
    """Forms of an entry make branches in the store, and are no lines of their own."""
    store = InMemoryCompactionStore()
    before, now = edited_session(store)
    with small_manager(500, store) as manager:
        for day in range(10, 22):
            manager.preflight("s", [*now, *written.chat([Step("model", "ok"), Step("user", f"it is 2026-03-{day}")])])
    with small_manager(500, store) as manager:
        manager.preflight("s", [*before, *written.chat([Step("model", "fine"), Step("user", "next")])])
        assert not any(SUMMARY_MARK in message.text for message in manager.history("s"))


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_a_line_that_was_left_is_known_after_a_caller_has_gone_back_and_forth(is_restarted: bool) -> None:
    """Two other lists, again and again, are two lines, however often the caller leaves them."""
    store = InMemoryCompactionStore()
    before, now = edited_session(store)
    manager = small_manager(500, store)
    for _ in range(6):
        for words in ("one way", "another way"):
            manager.preflight("s", [*now, *written.chat([Step("model", "ok"), Step("user", words)])])
    if is_restarted:
        manager = small_manager(500, store)
    manager.preflight("s", [*before, *written.chat([Step("model", "fine"), Step("user", "next")])])
    assert not any(SUMMARY_MARK in message.text for message in manager.history("s"))


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "converse"])
def test_neighbours_that_were_sent_as_one_item_are_known_after_one_has_left_and_a_restart(dialect: str) -> None:
    store, write = InMemoryCompactionStore(), WRITERS[dialect]
    steps = [Step(role, f"message {n}") for n, role in enumerate(("user", "model", "user", "user", "model", "user"))]
    with small_manager(1_500, store, [Injector("clock", 20, lambda _: "it is late")]) as manager:
        items = [item for step in steps for item in write([step])]
        prompt = copy.deepcopy(manager.preflight("s", items, dialect=dialect))
        assert len(prompt) == len(items) - 1
        manager.preflight("s", [*items[:2], *items[3:]], dialect=dialect)
    with small_manager(1_500, store, [Injector("clock", 20, lambda _: "it is late")]) as manager:
        manager.preflight("s", prompt, dialect=dialect)
        assert [message.text for message in manager.history("s")] == [step.text for step in steps]


def test_a_dry_run_forgets_no_line_that_was_left() -> None:
    """With a store that cannot tell what calls were made of."""
    with small_manager(500, cast(Any, OneByOne(InMemoryCompactionStore()))) as manager:
        start = [Step("user", "do the task"), *(Step(role, f"{_LONG[0]} {role}") for role in ("model", "user") * 3)]
        now = written.chat([start[0], Step("model", "changed"), *start[2:]])
        before = copy.deepcopy(manager.preflight("s", written.chat(start)))
        manager.preflight("s", now)
        manager.plan("s", now)
        manager.preflight("s", [*before, *written.chat([Step("model", "fine"), Step("user", "next")])])
        assert not any(SUMMARY_MARK in message.text for message in manager.history("s"))


class OneByOne:
    """A store of somebody's own, without `call_history`."""

    def __init__(self, store: InMemoryCompactionStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name == "call_history":
            raise AttributeError(name)
        return getattr(self._store, name)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_a_prompt_that_was_repaired_before_there_was_a_plan_comes_back(is_restarted: bool) -> None:
    """The call that goes on with it compacts, and is made again."""
    store = InMemoryCompactionStore()
    start = [("user", "do the task"), ("assistant", "one"), ("user", "two"), ("assistant", None), ("user", "three")]
    with small_manager(260, store) as manager:
        sent = manager.preflight("s", [{"role": role, "content": said} for role, said in start])
        assert sent[3]["content"] == EMPTY_CONTENT
        for number in range(8):
            sent += [
                {"role": "assistant", "content": f"{number} {_LONG[0][:200]}"},
                {"role": "user", "content": "go on"},
            ]
        prompt = copy.deepcopy(manager.preflight("s", copy.deepcopy(sent)))
        version = manager.current_plan("s").version
        again = small_manager(260, store) if is_restarted else manager
        assert version > 0
        assert again.preflight("s", copy.deepcopy(sent)) == prompt
        assert again.current_plan("s").version == version
        assert EMPTY_CONTENT not in [message.text for message in again.history("s")]


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_what_says_nothing_goes_out_filled_whichever_list_comes(is_restarted: bool) -> None:
    """First the prompt that was given, then the caller's own list."""
    store = InMemoryCompactionStore()
    own = [{"role": role, "content": said} for role, said in (("user", "do it"), ("assistant", None), ("user", "go"))]
    more = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "on"}]
    with small_manager(1_500, store) as manager:
        sent = manager.preflight("s", copy.deepcopy(own))
        prompt = copy.deepcopy(manager.preflight("s", [*sent, *more]))
        assert prompt[1]["content"] == EMPTY_CONTENT
        again = small_manager(1_500, store) if is_restarted else manager
        assert again.preflight("s", [*own, *more]) == prompt
        assert len(again.history("s")) == 5


def test_an_empty_answer_that_becomes_nothing_is_not_sent_as_nothing() -> None:
    """A caller that writes down its empty answers in another way, and has marks for a cache."""
    said = [("user", "do it"), *[pair for n in range(4) for pair in (("assistant", ""), ("user", f"ask {n}"))]]
    own: list[Wire] = [{"role": role, "content": text} for role, text in said]
    own[0] = marked("user", "do it", is_marked=True)
    with small_manager(1_500) as manager:
        manager.preflight("s", copy.deepcopy(own))
        changed = [{**item, "content": None} if item["role"] == "assistant" else item for item in own]
        prompt = manager.preflight("s", copy.deepcopy(changed))
        assert all(item["content"] is not None for item in prompt)


def test_a_list_may_have_messages_of_ours_beside_one_that_says_nothing() -> None:
    items = [Message("user", "do it"), {"role": "assistant", "content": None}, Message("user", "go on")]
    with small_manager(1_500) as manager:
        prompt = manager.preflight("s", items)
        assert (len(prompt), len(manager.history("s"))) == (3, 3)
        assert manager.preflight("s", items) == prompt


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_a_placeholder_for_a_missing_result_comes_back_in_a_call_that_compacts(is_restarted: bool) -> None:
    store = InMemoryCompactionStore()
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    start = [{"role": "user", "content": "begin"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with small_manager(260, store) as manager:
        sent = manager.preflight("s", [*start, {"role": "user", "content": "go on"}])
        assert len(sent) == 4
        for number in range(8):
            answer = f"{number} {_LONG[0][:200]}"
            sent += [{"role": "assistant", "content": answer}, {"role": "user", "content": "go on"}]
        prompt = copy.deepcopy(manager.preflight("s", copy.deepcopy(sent)))
        version = manager.current_plan("s").version
        assert version > 0
        again = small_manager(260, store) if is_restarted else manager
        assert again.preflight("s", copy.deepcopy(sent)) == prompt
        assert (again.current_plan("s").version, len(again.history("s"))) == (version, len(sent) - 1)


def marked(role: str, text: str, *, is_marked: bool) -> Wire:
    mark = {"cache_control": {"type": "ephemeral"}} if is_marked else {}
    return {"role": role, "content": [{"type": "text", "text": text, **mark}]}


def test_marks_that_moved_on_before_a_restart_change_nothing() -> None:
    """Two messages have one in each call, and the last list has none: it ends with a result."""
    store = InMemoryCompactionStore()
    with small_manager(260, store) as manager:
        said: list[tuple[str, str]] = []
        for number in range(6):
            said += [("user", f"ask {number} {_LONG[0][:200]}"), ("assistant", f"say {number}")]
            newest = said[-2:]
            manager.preflight("s", [marked(role, text, is_marked=(role, text) in newest) for role, text in said])
        items = [marked(role, text, is_marked=False) for role, text in said]
        last_list = [*items, *WRITERS["chat"]([with_calls("", 1, [_LONG[1]])])]
        prompt = copy.deepcopy(manager.preflight("s", copy.deepcopy(last_list)))
        version, length = manager.current_plan("s").version, len(manager.history("s"))
    assert (version > 0, length) == (True, len(last_list))
    with small_manager(260, store) as manager:
        assert manager.preflight("s", copy.deepcopy(last_list)) == prompt
        assert (manager.current_plan("s").version, len(manager.history("s"))) == (version, length)


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "converse"])
def test_a_line_that_was_left_is_met_again_with_its_mark_elsewhere(dialect: str) -> None:
    def send(count: int) -> None:
        items = WRITERS[dialect]([Step("model" if n % 2 else "user", f"message {n}") for n in range(count)])
        if dialect == "chat":
            items[-1] = marked(items[-1]["role"], items[-1]["content"], is_marked=True)
        move_mark(items, dialect)
        manager.preflight("s", items, dialect=dialect)

    with small_manager(1_500) as manager:
        for count in (5, 3, 7):
            send(count)
        assert sorted(message.text for message in manager.history("s")) == [f"message {n}" for n in range(7)]


@pytest.mark.parametrize("is_whole_again", [False, True], ids=["cleared", "whole again"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_an_entry_that_undo_shows_again_is_shown_as_the_caller_has_it(is_restarted: bool, is_whole_again: bool) -> None:
    """Its agent cleared the result while a stub of ours stood for it."""
    store = InMemoryCompactionStore()
    steps = [Step("user", "do the task"), with_calls("", 1, [_LONG[0]]), with_calls("", 2, ["ok"])]
    steps += [Step(role, _TEXTS[0]) for role in ("model", "user") * 4]
    history = written.chat(steps)
    cleared = copy.deepcopy(history)
    cleared[2]["content"] = "[cleared]"
    manager = small_manager(1_500, store)
    assert _LONG[0] not in str(manager.manual_compact("s", history, target_tokens=80))
    manager.preflight("s", copy.deepcopy(cleared))
    if is_whole_again:
        manager.preflight("s", copy.deepcopy(history))
    if is_restarted:
        manager = small_manager(1_500, store)
    manager.undo("s")
    shown = next(message.text for message in manager.prompt("s").messages if message.tool_call_id == "call_1_0")
    assert shown == (_LONG[0] if is_whole_again else "[cleared]")


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_list_that_begins_as_it_was_sent_and_goes_on_with_a_mark_is_known_after_a_restart(dialect: str) -> None:
    """What is sent has no marks, and what a caller puts behind it may have some."""
    store, write = InMemoryCompactionStore(), WRITERS[dialect]
    with small_manager(500, store) as manager:
        sent = manager.preflight("s", write([Step("user", "the first rule", is_protected=True)]), dialect=dialect)
        more = [Step(role, _LONG[0]) for role in (*("model", "user") * 4, "model")]
        more.append(Step("user", "the second rule", is_protected=True))
        more += [Step("model", "ok"), Step("user", "the third rule", is_protected=True)]
        sent = copy.deepcopy([*sent, *write(more)])
        prompt, log = manager.preflight("s", sent, dialect=dialect), manager.history("s")
        assert manager.current_plan("s").version == 1
    with small_manager(500, store) as manager:
        assert manager.preflight("s", copy.deepcopy(sent), dialect=dialect) == prompt
        assert manager.history("s") == log


def test_a_mark_for_the_cache_makes_a_protected_message_no_text_of_ours() -> None:
    """It is not written again; what stands for more of ours is taken for the list that the caller goes on from."""
    store = InMemoryCompactionStore()
    first = {"role": "user", "content": "the first rule"}
    calls = [with_calls("", number, [" ".join(["harbour"] * 40)]) for number in range(7)]
    second = {**marked("user", "the second rule", is_marked=True), "meta": {"protected": True}}
    sent = [first, *written.anthropic(calls[:6]), assistant("ok"), second, *written.anthropic(calls[6:])]
    config = CompactConfig(max_context_tokens=300, policy={"hard_cap_buffer": 10}, telemetry={"exporter": "none"})
    with CompactManager(config, store=store, tokenizer=WordTokenizer()) as manager:
        own = [{**first, "meta": {"protected": True}}, *written.anthropic(calls[:1])]
        manager.preflight("s", own)
        prompt, log = copy.deepcopy(manager.preflight("s", copy.deepcopy(sent))), manager.history("s")
        assert manager.current_plan("s").version == 1
    with CompactManager(config, store=store, tokenizer=WordTokenizer()) as manager:
        assert manager.preflight("s", copy.deepcopy(sent)) == prompt
        assert manager.history("s") == log
        assert manager.current_plan("s").version == 1


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "converse"])
def test_a_list_that_has_some_neighbours_together_and_some_apart_is_known_after_a_restart(dialect: str) -> None:
    """Two messages of the user in a row, and two results in one item, as the caller has them."""
    store, write = InMemoryCompactionStore(), WRITERS[dialect]
    first, second = ([Step("user", text, is_protected=text == "rule")] for text in ("rule", "go"))
    rest = [with_calls("", 1, ["a", "b"]), with_calls("", 2, ["c", "d"])]
    with small_manager(1_500, store) as manager:
        sent: list[Wire] = []
        for steps in (first, [*second, rest[0]], [rest[1]]):
            given = [*sent, *(item for step in steps for item in write([step]))]
            sent = copy.deepcopy(manager.preflight("s", given, dialect=dialect))
        log = manager.history("s")
    with small_manager(1_500, store) as manager:
        manager.preflight("s", sent, dialect=dialect)
        assert manager.history("s") == log


def test_a_trimmed_list_with_something_before_its_last_message_keeps_the_summary() -> None:
    """An agent with a window of its own that puts a note before the last question."""
    history = [*dialogue(12, words=30), user("and now?"), assistant("so"), user("continue")]
    with small_manager(300) as manager:
        manager.preflight("s", history)
        plan = manager.current_plan("s")
        assert plan.summary is not None
        prompt = manager.preflight("s", [*history[-5:-1], user("a note"), history[-1]])
        assert SUMMARY_MARK in json.dumps(prompt)
        assert manager.current_plan("s").summary == plan.summary


@pytest.mark.parametrize("way", ["undo", "rewind"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_what_a_trimmed_list_has_lost_leaves_with_the_summary(way: str, is_restarted: bool) -> None:
    """Nothing stands for it any more, and the caller does not have it."""
    store, history = InMemoryCompactionStore(), dialogue(12, words=30)
    manager = small_manager(300, store)
    manager.preflight("s", history)
    summary = manager.current_plan("s").summary
    assert summary is not None
    assert len(summary.span) > 8
    trimmed = history[-5:] if way == "undo" else history[4:]
    assert SUMMARY_MARK in json.dumps(manager.preflight("s", trimmed))
    if is_restarted:
        manager = small_manager(300, store)
    if way == "undo":
        manager.undo("s")
    else:
        trimmed = trimmed[:3]
    for _ in range(2):
        assert manager.preflight("s", copy.deepcopy(trimmed)) == trimmed


def test_a_rewind_to_results_that_were_cleared_shows_them() -> None:
    """They are the newest message now, and there is room."""
    with small_manager(1_500) as manager:
        steps = [Step("user", "do the task")]
        manager.preflight("s", written.chat(steps))
        while not manager.current_plan("s").clearings:
            steps.append(with_calls("", len(steps), [f"{_LONG[len(steps) % 2]} {len(steps)}"]))
            manager.preflight("s", written.chat(steps))
        cleared = {record.span.first for record in manager.current_plan("s").clearings}
        place = next(n for n in range(1, len(steps)) if f"m{2 * n + 1}" in cleared)
        prompt = manager.preflight("s", written.chat(steps[: place + 1]))
        assert prompt[-1]["content"] == steps[place].calls[0].result


def roomy_manager(store: InMemoryCompactionStore | None = None) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=3_000,
        policy={"hard_cap_buffer": 100},
        storage={"adapter": "none"},
        state={"url": "memory:"},
        tokenizer="simple",
    )
    return CompactManager(config, store=store or InMemoryCompactionStore())


def questions_with_calls(count: int) -> list[Wire]:
    """Each is answered, and then a tool is called twice."""
    history: list[Wire] = []
    for n in range(count):
        history += [user(f"question {n} {'harbour lamp ' * 9}"), assistant(f"answer {n} {'river stone ' * 9}")]
        for call in (f"c{n}-0", f"c{n}-1"):
            history += tool_exchange(call, f"result of {call} {'harbour lamp ' * 30}")
    return history


@pytest.mark.parametrize(
    ("rule", "last", "steps"),
    [("Never touch the migrations.", "Never touch the migrations.", 8), ("Don't push yet.", "Ok, push.", 20)],
    ids=["repeated", "taken back"],
)
@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_a_constraint_is_shown_when_the_message_that_repeated_it_or_took_it_back_is_gone(
    rule: str, last: str, steps: int, is_restarted: bool
) -> None:
    """The summary need not say it while that message stands beside it."""
    store, history = InMemoryCompactionStore(), [user("Sort the berths."), assistant("I will."), user(rule)]
    for step in range(steps):
        history += [assistant(f"step {step} {'moved a berth ' * 40}"), user(f"Go on with {step}.")]
    manager = roomy_manager(store)
    prompt = manager.manual_compact("s", [*history, assistant("Done."), user(last)])
    assert rule not in str(prompt[:-1])
    if is_restarted:
        manager = roomy_manager(store)
    for messages in (history, history, [*history, assistant("Done."), user("and now?")], history):
        assert rule in str(manager.preflight("s", messages))
    for _ in range(2):
        manager.undo("s")
        assert rule in str(manager.preflight("s", history))
    manager.restore("s", 1)
    assert rule in str(manager.preflight("s", history))


def test_a_rewind_of_a_prompt_leaves_what_its_summary_hides_behind_that_place() -> None:
    """A summary has calls of each question, and answers are shown: the calls of later questions are gone, too."""
    history = questions_with_calls(6)
    with roomy_manager() as manager:
        prompt = manager.manual_compact("s", [*history, user("the last")], target_tokens=1_000)
        cut = next(place for place, item in enumerate(prompt) if str(item["content"]).startswith("question 3"))
        assert "c4-0" not in str(prompt[:cut])
        more = [prompt[cut], assistant("another answer"), user("and now?")]
        rewound = copy.deepcopy(manager.preflight("s", [*copy.deepcopy(prompt[:cut]), *more]))
        manager.undo("s")
        whole = manager.preflight("s", rewound)
        assert whole[-3:] == more
        assert "result of c2-1" in str(whole)
        assert "result of c3-0" not in str(whole)


@pytest.mark.parametrize("is_cleared", [False, True], ids=["as it came", "cleared"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_what_a_summary_hides_is_not_logged_again_where_a_prompt_goes_on_as_the_callers_own_list(
    is_restarted: bool, is_cleared: bool
) -> None:
    """A summary has calls between answers that are shown; the caller's own list has them there as well."""
    store, history = InMemoryCompactionStore(), [*questions_with_calls(6), user("the last")]
    with roomy_manager(store) as manager:
        prompt = copy.deepcopy(manager.manual_compact("s", history, target_tokens=1_000))
        own = [
            {**item, "content": CLEARED} if is_cleared and "result of c2" in str(item["content"]) else item
            for item in history
        ]
        assert manager.preflight("s", copy.deepcopy(own)) == prompt
        cut = next(place for place, item in enumerate(prompt) if str(item["content"]).startswith("question 2"))
        assert "result of c2-0" not in str(prompt)
        mixed = [*prompt[:cut], *own[own.index(prompt[cut]) :]]
        assert is_restarted or manager.preflight("s", copy.deepcopy(mixed)) == prompt
    with roomy_manager(store) as manager:
        more = [assistant("so"), user("and now?")]
        assert manager.preflight("s", [*copy.deepcopy(mixed), *more]) == [*prompt, *more]
        assert len(manager.history("s")) == len(history) + len(more)


@pytest.mark.parametrize("is_edited", [False, True], ids=["as it was", "edited"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
def test_a_trimmed_list_may_go_on_with_more_than_it_has_kept(is_edited: bool, is_restarted: bool) -> None:
    """A process that has not seen the trimmed list knows its beginning as the newest part of the line."""
    config = CompactConfig(
        max_context_tokens=3_000, policy={"hard_cap_buffer": 100}, storage={"adapter": "none"}, state={"url": "memory:"}
    )
    store = InMemoryCompactionStore()
    history = [(user, assistant)[n % 2](f"message {n} {'harbour ' * 48}") for n in range(31)]
    new = [(assistant, user)[n % 2](f"new {n}") for n in range(8)]
    manager = CompactManager(config, store=store)
    manager.manual_compact("s", history)
    trimmed = history[24:]
    manager.preflight("s", trimmed)
    if is_edited:
        del trimmed[3]
        new[0:0] = [trimmed.pop(), user("something else")]
    if is_restarted:
        manager = CompactManager(config, store=store)
    prompt = manager.preflight("s", [*trimmed, *new])
    assert SUMMARY_MARK in str(prompt), "it still stands for what was trimmed"
    assert [message["content"] for message in prompt[-len(new) :]] == [message["content"] for message in new]
    assert len(manager.history("s")) == len(history) + len(new) - is_edited


@pytest.mark.parametrize("dialect", ["chat", "gemini"])
def test_a_result_that_was_cleared_is_the_same_when_it_comes_back_whole(dialect: str) -> None:
    """The agent cleared it and went on, and goes back to its list from before; in Gemini both calls have one number."""

    def asked(*results: str) -> list[Wire]:
        made = (Call(f"c{n}", "read", {"path": f"{n}.py"}, result) for n, result in enumerate(results))
        return WRITERS[dialect]([Step("user", "read them"), *(Step("model", calls=(call,)) for call in made)])

    config = CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})
    with CompactManager(config) as manager:
        whole = "the whole file " * 20
        for items in (asked(whole), asked("[Old tool result content cleared]", "import ledger"), asked(whole)):
            prompt = manager.preflight("s", items, dialect=dialect)
            assert prompt == items
        results = [message.text for message in manager.history("s") if message.role == "tool"]
        assert results == [whole, "import ledger"]


def test_results_that_were_cleared_are_the_same_when_the_caller_returns_to_their_conversation() -> None:
    """It had another one under the same id meanwhile."""
    whole = "the whole file " * 20

    def history(result: str) -> list[Wire]:
        return [user("read it"), *tool_exchange("c1", result), *tool_exchange("c2", "the newest")]

    with CompactManager(CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})) as manager:
        cleared = history("[Old tool result content cleared]")
        for items in (history(whole), cleared, [user("Quite another thing: the weather.")], cleared):
            assert manager.preflight("s", items) == items
        results = [message.text for message in manager.history("s") if message.role == "tool"]
        assert results == [whole, "the newest"]
        assert manager.preflight("s", history(whole)) == history(whole)
        assert len(manager.history("s")) == len(cleared) + 1


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_a_changing_date_leaves_the_system_prompt_in_its_place(dialect: str) -> None:
    """What follows the date costs nothing again, and no message leaves the line."""
    with small_manager(900) as manager:
        steps, prompt = [Step("user", "do the task")], list[Wire]()
        for day in range(10, 28):
            steps += [Step("model", _LONG[day % 2]), Step("user", f"step {day}")]
            today = {"role": "system", "content": f"Be brief. Today is 2026-03-{day}."}
            prompt = manager.preflight("s", [today, *WRITERS[dialect](steps)], dialect=dialect)
            assert prompt[0] == today
            assert len(manager.history("s")) == len(steps) + 1
        assert SUMMARY_MARK in str(prompt)


@pytest.mark.parametrize("role", ["system", "user"])
def test_a_clock_in_the_first_message_makes_no_new_one_where_the_caller_goes_back(role: str) -> None:
    def history(minute: int, answers: int) -> list[Wire]:
        first = {"role": role, "content": f"You look after the harbour. It is 2026-11-19T10:{minute:02d}:00Z."}
        return [first, *dialogue(answers), user("and now?")]

    with CompactManager(CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})) as manager:
        for minute, answers in enumerate((6, 7, 4)):
            items = history(minute, answers)
            assert manager.preflight("s", items) == items
        assert sum("harbour" in message.text for message in manager.history("s")) == 1


def test_a_result_that_comes_back_whole_is_weighed_whole() -> None:
    """The agent had cleared it, and left the conversation meanwhile."""
    whole = "the whole file " * 200

    def history(result: str) -> list[Wire]:
        return [user("read it"), *tool_exchange("c1", result), *tool_exchange("c2", "the newest")]

    with CompactManager(CompactConfig(storage={"adapter": "none"}, state={"url": "memory:"})) as manager:
        manager.preflight("new", history(whole))
        for items in (
            history(whole),
            history("[cleared]"),
            [user("Quite another thing: the weather.")],
            history(whole),
        ):
            manager.preflight("s", items)
        assert manager.status("s").used_tokens == manager.status("new").used_tokens


def test_an_edited_past_of_repeated_texts_takes_little_more_time_than_its_length() -> None:
    """Four times the messages: sixteen times the time would be the square, and it was the cube."""
    seconds: list[float] = []
    for count in (500, 2_000):
        history = written.chat([Step(("user", "model")[n % 2], _TEXTS[n * 7 % 5]) for n in range(count)])
        edited = [{**item, "content": "new"} if n % 4 == 0 else item for n, item in enumerate(history)][:-1]
        with small_manager(1_000_000) as manager:
            manager.preflight("s", history)
            started = time.process_time()
            manager.preflight("s", edited)
            seconds.append(time.process_time() - started)
    assert seconds[1] < 12 * seconds[0] + 0.5, f"500 and 2,000 messages took {seconds} s"


def test_many_entries_with_one_id_get_ids_of_their_own() -> None:
    """Each is found at once: 8,000 took ten seconds."""
    log = Log()
    items = [Message("user", "x", id="same") for _ in range(8_000)]
    started = time.process_time()
    log.match(items, output=KnownList(), read=lambda item, place: read_entry(item, place))
    assert time.process_time() - started < 5
    assert len(set(log.view_ids)) == 8_000


_FAILED_ONCE = (2, 13, 28, 31, 15, 54, 58, 102, 107)


@pytest.mark.parametrize(
    ("dialect", "seeds"),
    [("chat", _FAILED_ONCE), ("anthropic", (*_FAILED_ONCE, 27, 46)), ("gemini", (17, 21, 162))],
)
def test_walks_that_failed_once(dialect: str, seeds: Sequence[int]) -> None:
    """An edited pin; forms of entries that an edit brought back; what was refused and then written elsewhere.

    A prompt of an earlier plan that came back; a message that looks like a protected one; a pin that is the newest. The
    second of two results without ids, alone; an item that lost its mark; a result that is pinned, without its call.
    """
    for seed in seeds:
        walk(dialect, random.Random(seed))


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_walks_with_prompts_that_failed_once(dialect: str) -> None:
    """A list that has as many items as the line and is a prompt; a prompt that the next process compacted again."""
    for seed in (104, 169):
        walk(dialect, random.Random(f"back {seed}"), sends_back=True)


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "gemini", "converse"])
def test_untidy_walks_that_failed_once(dialect: str) -> None:
    """New words that equal a part of an item; neighbours together here and apart there; a silence that was filled.

    A protected message that an edit had taken away, in an older prompt.
    """
    for seed in (2, 32, 55, 90, 128, 171, 210, 229, 300):
        walk(dialect, random.Random(f"untidy {seed}"), sends_back=True, is_untidy=True)


def test_what_a_trimmed_list_begins_with_stands_behind_what_was_trimmed() -> None:
    """The agent cuts its list a second time and puts a note where it begins; another process sees that list."""
    store, history = InMemoryCompactionStore(), dialogue(20, words=30)
    with small_manager(500, store) as manager:
        for length in range(7, len(history) + 1, 2):
            manager.preflight("s", history[:length])
        manager.preflight("s", history[-17:])
        cut = [user("a note of the agent"), *history[-10:]]
        prompt, version = copy.deepcopy(manager.preflight("s", cut)), manager.current_plan("s").version
    assert SUMMARY_MARK in str(prompt)
    with small_manager(500, store) as manager:
        assert manager.preflight("s", copy.deepcopy(cut)) == prompt
        assert manager.current_plan("s").version == version


def test_a_list_that_begins_before_what_was_trimmed_has_lost_that() -> None:
    """The agent went back and on, and cut its list; then it takes up what it had before it went back."""
    store, history = InMemoryCompactionStore(), dialogue(9, words=30)
    other = [*history[:8], *(user(f"other {n} {_LONG[n % 2][:150]}") for n in range(16))]
    with small_manager(500, store) as manager:
        manager.preflight("s", history)
        for length in range(9, len(other) + 1):
            manager.preflight("s", other[:length])
        assert SUMMARY_MARK in str(manager.preflight("s", other[-7:]))
        again = [*history, assistant("so"), user("something else")]
        prompt = copy.deepcopy(manager.preflight("s", again))
        rendered = manager.prompt("s")
        line = {i for slot in rendered.slots for i in slot.ids} | set(rendered.hidden)
        assert len(line) == len(again)
    with small_manager(500, store) as manager:
        assert manager.preflight("s", copy.deepcopy(again)) == prompt
