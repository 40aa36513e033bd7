"""What a compaction costs as a session grows through many of them, and what one very large message costs.

    python benchmarks/rounds.py [--rounds N] [--window TOKENS] [--json] [--check]

A coding session that the benchmark makes itself grows, call by call, through so many compactions that each need a
summary, with the default configuration and no model. Printed for each round: the CPU time of the call that compacts
without anything prefetched, the tokens of history by then, and the one by the other; beside it how long that call
takes when its summary was prefetched. Then a message of two million characters of every kind, and what the session has
in memory. Absolute times depend on the machine; the ratios (late rounds against early ones) do not. `--check` exits
with 1 if one of the goals is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from compact import CompactConfig, CompactManager
from compact.stateless import estimate_messages_tokens
from compact.testing import Wire, assistant, system, tool_exchange, user

_NOWHERE = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
_SESSION = "rounds"
_LARGE_CHARS = 2_000_000
# The goals that `--check` holds against what was measured.
_MAX_US_PER_TOKEN = 3.0
_MAX_GROWTH = 1.5
_MAX_MESSAGE_SECONDS = 1.0

_VERBS = ("load", "parse", "merge", "check", "write", "send", "read", "find", "count", "split", "join", "build", "open")
_NOUNS = ("invoice", "ledger", "order", "customer", "payment", "refund", "address", "shipment", "basket", "voucher")
_MODULES = ("billing", "orders", "stock", "mail", "search", "auth", "export", "report")
_ASKS = (
    "The totals of {noun}s are wrong when a voucher is used twice. Please find out why and fix it.",
    "Now make {name} faster, it takes {number} ms for a customer with many {noun}s.",
    "Add a test for {name} in {path}. Never touch the database in unit tests.",
    "Good. From now on always run the linter before you say that something is done. Then rename {name}.",
    "What is left to do for the {noun} export? We decided to go with CSV instead of XML, remember.",
)
_THOUGHTS = (
    "I will look at {name} in {path} first, since the {noun} total comes from there.",
    "The test fails in {name}: it expects {number} and gets {other}. Let's go with a decimal instead of a float.",
    "Next steps: change {path}, then run the tests again. Still need to update the {noun} fixture.",
    "The {noun} is loaded twice, once by {name} and once in {path}:{number}. I'll cache it per request.",
)


class SessionMaker:
    """Makes the exchanges of one coding session, the same ones every time."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._calls = 0

    def exchanges(self) -> Iterator[list[Wire]]:
        """Yield what one call after the other adds to the history, without end."""
        yield [system("You are a careful engineer. Answer briefly."), user(self.fill(_ASKS[0]))]
        while True:
            makers = (self._reads, self._reads, self._edits, self._searches, self._tests, self._queries, self._plans)
            for _ in range(self._random.randint(6, 10)):
                yield self._random.choice(makers)()
            yield [assistant(self.fill(" ".join(_THOUGHTS))), user(self.fill(self._random.choice(_ASKS)))]

    def _name(self) -> str:
        pick = self._random.choice
        return f"{pick(_VERBS)}_{pick(_NOUNS)}_{pick(_VERBS)}"

    def _path(self) -> str:
        pick = self._random.choice
        return f"src/{pick(_MODULES)}/{pick(_NOUNS)}_{pick(_VERBS)}.py"

    def _number(self) -> int:
        return self._random.randint(100, 99_999)

    def fill(self, text: str) -> str:
        """Return a text with names, paths and numbers in it."""
        values = {"name": self._name(), "path": self._path(), "number": self._number(), "other": self._number()}
        return text.format(noun=self._random.choice(_NOUNS), **values)

    def _exchange(self, tool: str, result: str, **arguments: object) -> list[Wire]:
        self._calls += 1
        call, answer = tool_exchange(f"call_{self._calls}", result, tool=tool, **arguments)
        return [{**call, "content": self.fill(self._random.choice(_THOUGHTS))}, answer]

    def code(self, lines: int) -> list[str]:
        """Return lines of a program."""
        pick = self._random.choice
        found: list[str] = []
        while len(found) < lines:
            noun, name = pick(_NOUNS), self._name()
            found += [
                f"def {name}({noun}: {noun.title()}, limit: int = {self._number()}) -> {pick(_NOUNS).title()}:",
                f'    """Return the {noun} after it was {pick(_VERBS)}ed, or None below the limit."""',
                f"    if {noun}.total_cents < limit or {noun}.id in self._{pick(_NOUNS)}s_by_id:",
                f"        raise {pick(_NOUNS).title()}Error(f'{name}: {{{noun}.id}} is below {{limit}}')",
                f"    {pick(_NOUNS)} = self.{self._name()}({noun}.{pick(_NOUNS)}_id, retries={pick('123456789')})",
                f"    return {self._name()}({noun}, at=datetime({self._random.randint(2019, 2025)}, 3, 14))",
                "",
            ]
        return found[:lines]

    def _reads(self) -> list[Wire]:
        lines = self.code(self._random.randint(60, 220))
        text = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, 1))
        return self._exchange("read_file", text, path=self._path())

    def _edits(self) -> list[Wire]:
        path, old, new = self._path(), "\n".join(self.code(8)), "\n".join(self.code(40))
        return self._exchange("edit_file", f"The file {path} was changed.", path=path, old_string=old, new_string=new)

    def _searches(self) -> list[Wire]:
        lines = [f"{self._path()}:{self._number()}:{line.strip()}" for line in self.code(60)]
        return self._exchange("grep", "\n".join(lines), pattern=self._name(), path="src")

    def _tests(self) -> list[Wire]:
        name, path = self._name(), self._path()
        passed = [f"tests/test_{self._name()}.py::test_{self._name()} PASSED [{n}%]" for n in range(0, 100, 2)]
        failed = (
            f"E   AssertionError: {self._number()} != {self._number()}\n{path}:{self._number()}: AssertionError\n"
            f"FAILED tests/test_{name}.py::test_{name} - AssertionError\n1 failed, {len(passed)} passed in 4.2s"
        )
        end = failed if self._random.random() < 0.5 else f"{len(passed)} passed in 4.1s"
        return self._exchange("bash", "\n".join((*passed, end)), command=f"python -m pytest tests/test_{name}.py -x")

    def rows(self, count: int) -> list[dict[str, object]]:
        """Return records of a database."""
        return [
            {"id": f"ord_{self._number()}{n}", "total_cents": self._number(), "note": self.fill("{noun} for {name}")}
            for n in range(count)
        ]

    def _queries(self) -> list[Wire]:
        result = json.dumps({"rows": self.rows(40), "next": None})
        return self._exchange("query", result, sql=f"select * from {self._name()}")

    def _plans(self) -> list[Wire]:
        states = ("completed", "in_progress", "pending", "pending")
        todos = [{"content": self.fill("change {name} in {path}"), "status": state} for state in states]
        return self._exchange("todo_write", "The list was saved.", todos=todos)


# -- rounds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """One compaction: the tokens of everything that was said by then, and what the call that made it took."""

    number: int
    history_tokens: int
    cpu_seconds: float
    call_seconds: float

    @property
    def us_per_token(self) -> float:
        """Microseconds of CPU for each token of history."""
        return self.cpu_seconds * 1e6 / self.history_tokens


def measure_rounds(count: int, window: int, *, prefetch: str) -> list[Round]:
    """Let a session grow through so many compactions with a summary; with `never`, all of the work is in the call."""
    config = CompactConfig(max_context_tokens=window, summarizer={"prefetch": prefetch}, **_NOWHERE)
    found: list[Round] = []
    tokens = version = 0
    history: list[Wire] = []
    with CompactManager(config) as manager:
        for exchange in SessionMaker().exchanges():
            tokens += estimate_messages_tokens(exchange)
            history.extend(exchange)
            start, cpu = time.perf_counter(), time.process_time()
            history = [*manager.preflight(_SESSION, history)]
            call_seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
            _let_model_answer()
            summary = manager.current_plan(_SESSION).summary
            if summary and summary.version > version:
                version = summary.version
                found.append(Round(len(found) + 1, tokens, cpu_seconds, call_seconds))
                if len(found) == count:
                    break
    return found


def _let_model_answer() -> None:
    """Wait for what is prefetched: while an agent's model answers, there is more time than that takes."""
    for thread in threading.enumerate():
        if thread.name == "compact-prefetch":
            thread.join()


def memory_per_token(window: int, rounds: int = 6) -> float:
    """Return how many bytes a session takes in memory for each token of its history, its texts included."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        config = CompactConfig(max_context_tokens=window, summarizer={"prefetch": "never"}, **_NOWHERE)
        tokens, history = 0, list[Wire]()
        with CompactManager(config) as manager:
            for exchange in SessionMaker().exchanges():
                tokens += estimate_messages_tokens(exchange)
                history.extend(exchange)
                history = [*manager.preflight(_SESSION, history)]
                summary = manager.current_plan(_SESSION).summary
                if summary and summary.version == rounds:
                    return (tracemalloc.get_traced_memory()[0] - before) / tokens
    finally:
        tracemalloc.stop()
    raise AssertionError("the session has no end")


# -- single messages ---------------------------------------------------------------------------------------------------


def large_histories() -> Iterator[tuple[str, Callable[[], list[Wire]]]]:
    """Yield short histories in which one message has two million characters, or two arguments of so many."""
    maker = SessionMaker(3)
    code = "\n".join(maker.code(_LARGE_CHARS // 40))[:_LARGE_CHARS]
    line = " ".join(maker.fill("{name} {noun} {path} {number} and the rest") for _ in range(45_000))[:_LARGE_CHARS]
    rows = maker.rows(_LARGE_CHARS // 80)
    data = "".join(random.Random(5).choices("ABCDEFGHIJKLMabcdefghijklm0123456789+/", k=_LARGE_CHARS))

    def exchange(result: str, tool: str = "write_file", **arguments: object) -> Callable[[], list[Wire]]:
        return lambda: [*tool_exchange("large", result, tool=tool, **arguments), assistant("Done."), user("Go on.")]

    yield "argument, code", exchange("ok", path="src/a.py", content=code)
    yield "argument, one line", exchange("ok", path="src/a.txt", content=line)
    yield "two arguments, code and one line", exchange("ok", "edit_file", old=code, new=line)
    yield "argument, records", exchange("ok", "insert", rows=rows)
    yield "argument, numbers", exchange("ok", "insert", values=[*range(290_000)])
    yield "argument, short lines", exchange("ok", content="ab1\n" * (_LARGE_CHARS // 4))
    yield "argument, data", exchange("ok", content=data)
    yield "result, code", exchange(code, "bash", command="cat src/a.py")
    yield "result, one line", exchange(line, "bash", command="cat src/a.txt")
    yield (
        "result, JSON, not read yet",
        lambda: tool_exchange("large", json.dumps({"rows": rows}), tool="query", q="all"),
    )
    yield "result, short lines", exchange("x\n" * (_LARGE_CHARS // 2), "bash", command="yes")
    yield "typed, code", lambda: [user(code), assistant("Done."), user("Go on.")]
    yield "typed, one line, the newest", lambda: [user(line)]
    yield "agent, one line", lambda: [assistant(line), user("Go on.")]
    yield "agent, boxes", lambda: [assistant("- [ ] do one thing\n" * (_LARGE_CHARS // 19)), user("Go on.")]


def measure_message(messages: Sequence[Wire]) -> float:
    """Return the CPU seconds of a preflight of a history with these messages."""
    with CompactManager(CompactConfig(**_NOWHERE)) as manager:
        start = [system("You are careful."), user("Fix the totals. Never touch the database."), assistant("I will.")]
        manager.preflight(_SESSION, start)
        cpu = time.process_time()
        manager.preflight(_SESSION, [*start, *messages])
        return time.process_time() - cpu


# -- the command -------------------------------------------------------------------------------------------------------


def growth(values: Sequence[float]) -> float:
    """Return how the last third of some values relates to the first third, by their medians."""
    third = max(1, len(values) // 3)
    return statistics.median(values[-third:]) / statistics.median(values[:third])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="compactions with a summary (20)")
    parser.add_argument("--window", type=int, default=32_000, help="tokens of the window (32,000)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    rounds = measure_rounds(arguments.rounds, arguments.window, prefetch="never")
    prefetched = measure_rounds(arguments.rounds, arguments.window, prefetch="auto")
    messages = {name: measure_message(build()) for name, build in large_histories()}
    memory = memory_per_token(arguments.window)
    if arguments.json:
        data = {"rounds": [*map(asdict, rounds)], "prefetched": [*map(asdict, prefetched)], "messages": messages}
        print(json.dumps({**data, "bytes_per_token": memory}))
    else:
        _print_tables(rounds, prefetched, messages, memory)
    if arguments.check:
        sys.exit(1 if _missed(rounds, messages) else 0)


def _print_tables(
    rounds: Sequence[Round], prefetched: Sequence[Round], messages: dict[str, float], memory: float
) -> None:
    print(f"{'round':>5} {'history':>10} {'CPU s':>7} {'µs/token':>9} {'call ms':>9} {'prefetched ms':>14}")
    for one, other in zip(rounds, prefetched, strict=True):
        print(
            f"{one.number:>5} {one.history_tokens:>10,} {one.cpu_seconds:>7.2f} {one.us_per_token:>9.2f} "
            f"{one.call_seconds * 1000:>9.0f} {other.call_seconds * 1000:>14.0f}"
        )
    calls, ready = ([one.call_seconds for one in measured] for measured in (rounds, prefetched))
    print(f"\nlate rounds against early ones, per token of history: {growth([r.us_per_token for r in rounds]):.2f}x")
    print(f"a prefetched call against one without, median: {statistics.median(ready) / statistics.median(calls):.2f}x")
    print(f"in memory: {memory:.0f} bytes per token of history\n")
    print(f"one message of {_LARGE_CHARS:,} characters, CPU s")
    for name, seconds in messages.items():
        print(f"  {name:<34} {seconds:>6.2f}")


def _missed(rounds: Sequence[Round], messages: dict[str, float]) -> bool:
    """Print the goals that were missed; return True if there is one."""
    costs = [one.us_per_token for one in rounds]
    missed = [f"{name}: {seconds:.2f} s" for name, seconds in messages.items() if seconds > _MAX_MESSAGE_SECONDS]
    if statistics.median(costs) > _MAX_US_PER_TOKEN:
        missed.append(f"{statistics.median(costs):.2f} µs for each token of history")
    if growth(costs) > _MAX_GROWTH:
        missed.append(f"late rounds cost {growth(costs):.2f} times as much as early ones, for each token")
    for goal in missed:
        print(f"missed: {goal}", file=sys.stderr)
    return bool(missed)


if __name__ == "__main__":
    main()
