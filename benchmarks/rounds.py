"""What a compaction costs as a session grows through many of them, and what one very large message costs.

    python benchmarks/rounds.py [--rounds N] [--json] [--check]

A coding session that the benchmark makes itself grows, call by call, through so many compactions that each need a
summary, with the default configuration and no model. Printed for each round: the CPU time of the compaction, the tokens
of history by then, and the one by the other; then how long the call that crosses the trigger takes when its summary was
prefetched; then one message of two million characters of every kind. Absolute times depend on the machine; the ratios
(the last rounds against the first ones, a message against an empty loop over its text) do not. `--check` exits with 1 if
a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from compact import CompactConfig, CompactManager
from compact.stateless import estimate_messages_tokens
from compact.testing import Wire, assistant, system, tool_exchange, user

_NOWHERE = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
_SESSION = "rounds"
_LARGE_CHARS = 2_000_000
# Limits of `--check`, generous: the last rounds against the first ones, per token of history.
_MAX_GROWTH = 2.0

_VERBS = "load parse merge check write send read find count split join build open close reset apply".split()
_NOUNS = "invoice ledger order customer payment refund address shipment basket voucher report account session".split()
_MODULES = "billing orders stock mail search auth export report".split()
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
        self._random = random.Random(seed)  # noqa: S311 - the same session every time
        self._calls = 0

    def exchanges(self) -> Iterator[list[Wire]]:
        """Yield what one call after the other adds to the history, without end."""
        yield [system("You are a careful engineer. Answer briefly."), user(self._fill(_ASKS[0]))]
        while True:
            makers = (self._reads, self._reads, self._edits, self._searches, self._tests, self._queries, self._plans)
            for _ in range(self._random.randint(6, 10)):
                yield self._random.choice(makers)()
            yield [assistant(self._fill(" ".join(_THOUGHTS))), user(self._fill(self._random.choice(_ASKS)))]

    def _name(self) -> str:
        pick = self._random.choice
        return f"{pick(_VERBS)}_{pick(_NOUNS)}_{pick(_VERBS)}"

    def _path(self) -> str:
        pick = self._random.choice
        return f"src/{pick(_MODULES)}/{pick(_NOUNS)}_{pick(_VERBS)}.py"

    def _number(self) -> int:
        return self._random.randint(100, 99_999)

    def _fill(self, text: str) -> str:
        values = {"name": self._name(), "path": self._path(), "number": self._number(), "other": self._number()}
        return text.format(noun=self._random.choice(_NOUNS), **values)

    def _exchange(self, tool: str, result: str, **arguments: object) -> list[Wire]:
        self._calls += 1
        call, answer = tool_exchange(f"call_{self._calls}", result, tool=tool, **arguments)
        return [{**call, "content": self._fill(self._random.choice(_THOUGHTS))}, answer]

    def _code(self, lines: int) -> list[str]:
        pick = self._random.choice
        found: list[str] = []
        while len(found) < lines:
            noun, name = pick(_NOUNS), self._name()
            found += [
                f"def {name}({noun}: {noun.title()}, limit: int = {self._number()}) -> {pick(_NOUNS).title()}:",
                f'    """Return the {noun} after it was {pick(_VERBS)}ed, or None below the limit."""',
                f"    if {noun}.total_cents < limit or {noun}.id in self._{pick(_NOUNS)}s_by_id:",
                f"        raise {pick(_NOUNS).title()}Error(f'{name}: {{{noun}.id}} is below {{limit}}')",
                f"    {pick(_NOUNS)} = self.{self._name()}({noun}.{pick(_NOUNS)}_id, retries={self._random.randint(1, 9)})",
                f"    return {self._name()}({noun}, at=datetime({self._random.randint(2019, 2025)}, 3, 14))",
                "",
            ]
        return found[:lines]

    def _reads(self) -> list[Wire]:
        lines = self._code(self._random.randint(60, 220))
        text = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, 1))
        return self._exchange("read_file", text, path=self._path())

    def _edits(self) -> list[Wire]:
        path, old, new = self._path(), "\n".join(self._code(8)), "\n".join(self._code(40))
        return self._exchange("edit_file", f"The file {path} was changed.", path=path, old_string=old, new_string=new)

    def _searches(self) -> list[Wire]:
        lines = [f"{self._path()}:{self._number()}:{line.strip()}" for line in self._code(60)]
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

    def _queries(self) -> list[Wire]:
        rows = [
            {"id": f"ord_{self._number()}{n}", "total_cents": self._number(), "note": self._fill("{noun} for {name}")}
            for n in range(40)
        ]
        return self._exchange("query", json.dumps({"rows": rows, "next": None}), sql=f"select * from {self._name()}")

    def _plans(self) -> list[Wire]:
        states = ("completed", "in_progress", "pending", "pending")
        todos = [{"content": self._fill("change {name} in {path}"), "status": state} for state in states]
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


def measure_rounds(count: int, *, prefetch: str) -> list[Round]:
    """Let a session grow through so many compactions with a summary; with `never`, all of the work is in the call."""
    config = CompactConfig(max_context_tokens=int(sys.argv[2]), summarizer={"prefetch": prefetch}, **_NOWHERE)
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
            summary = manager.current_plan(_SESSION).summary
            if summary and summary.version > version:
                version = summary.version
                found.append(Round(len(found) + 1, tokens, cpu_seconds, call_seconds))
                print(found[-1], found[-1].us_per_token, summary.tokens_after)
                if len(found) == count:
                    break
    return found


if __name__ == "__main__":
    measure_rounds(int(sys.argv[1]), prefetch="never")
