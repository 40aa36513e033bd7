"""What a preflight costs on a long history, and how that grows.

    python benchmarks/preflight.py [--quick] [--json]

Prints what a user waits for with every default; then the time of a call on an unchanged history and of a call with one
new exchange, for ever longer histories, in every dialect, for objects of frameworks, and with a store on disk. Absolute
times depend on the machine. What does not is the ratio to a plain scan in Python, which only looks whether the list
holds the same objects: it is made in the same run, in turns with the calls, and the quickest of both are compared.
A scan does not see what was changed in place. What does is a comparison with copies, one `==` in C: a call makes one.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS, Dialect
from compact.testing import Wire, assistant, system, tool_exchange, user

LENGTHS = (125, 250, 500, 1_000, 4_000, 16_000)  # turns; the last is a history of 64,001 messages
QUICK_LENGTHS = (125, 250, 500, 1_000)
# The most tokens of a history; one of the longest has only short messages.
_TOKENS = 128_000
NOWHERE: dict[str, Any] = {
    "state": {"url": "memory:"},
    "storage": {"adapter": "none"},
    "telemetry": {"exporter": "none"},
}
# Instructions are no message in these.
_WITHOUT_SYSTEM = ("anthropic", "gemini", "converse")

_TEXT = "the quick brown fox jumps over the lazy dog while the harbour master counts the berths again "


def history_of(turns: int, *, tokens: int = 128_000) -> list[Wire]:
    """A history of so many turns (a question, a tool call with its result, an answer) and about so many tokens."""
    words = (_TEXT * 40).split()
    per_turn = max(12, int(tokens / turns / 1.06) - 48)
    history = [system("You are careful.")]
    for number in range(turns):
        filler = " ".join(words[: per_turn // 3])
        history += [user(f"question {number} {filler}")]
        history += tool_exchange(f"call-{number}", f"result {number} {filler}", path=f"src/file_{number}.py")
        history += [assistant(f"answer {number} {filler}")]
    return history


def milliseconds(action: Callable[[], object], *, repeat: int = 30) -> float:
    """The median time of an action."""
    return statistics.median(timed(action, repeat))


def timed(action: Callable[[], object], repeat: int) -> list[float]:
    """How long an action took each time, in milliseconds, the quickest first."""
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1000)
    return sorted(times)


def compared(items: Sequence[Any], call: Callable[[], object], *, repeat: int = 60) -> dict[str, float]:
    """The median and the quickest time of a call, in turns with a scan that finds the same objects, and their ratio."""
    known, calls, scans = list(items), list[float](), list[float]()
    for _ in range(repeat):
        scans += timed(lambda: all(one is other for one, other in zip(items, known, strict=True)), 1)
        calls += timed(call, 1)
    return {
        "scan": min(scans),
        "unchanged": statistics.median(calls),
        "quickest": min(calls),
        "ratio": min(calls) / min(scans),
    }


def roomy_manager(**settings: Any) -> CompactManager:
    """A manager whose window none of these histories fills."""
    large = {"max_context_tokens": 20_000_000, "policy": {"trigger_tokens": 10_000_000}}
    return CompactManager(CompactConfig(**{**large, **NOWHERE, **settings}))


def measure(turns: int, *, tokens: int = _TOKENS, repeat: int = 60) -> dict[str, float]:
    """Times for one length of history, in milliseconds."""
    manager, history = roomy_manager(), history_of(turns, tokens=tokens)
    first = timed(lambda: manager.preflight("s", history), 1)[0]
    copies = copy.deepcopy(history)
    messages = len(history)
    unchanged = compared(history, lambda: manager.preflight("s", history), repeat=repeat)
    compare = timed(lambda: history == copies, repeat)[0]
    equal_copies = milliseconds(lambda: manager.preflight("s", copies), repeat=repeat // 2)
    manager.preflight("s", history)  # the caller's own objects again

    def grow() -> None:
        number = len(history)
        history.extend(tool_exchange(f"more-{number}", "one more result", path="src/new.py"))
        manager.preflight("s", history)

    grown = timed(grow, repeat // 2)
    return {
        "turns": turns,
        "messages": messages,
        "tokens": manager.status("s").used_tokens,
        "first": first,
        "compare": compare,
        **unchanged,
        "equal_copies": equal_copies,
        "one_new_exchange": statistics.median(grown),
        "quickest_new": grown[0],
    }


def growth_exponent(rows: Sequence[dict[str, float]], name: str) -> float:
    """The power of the number of messages by which a time grows: the slope of a line through both logarithms."""
    points = [(math.log(row["messages"]), math.log(row[name])) for row in rows]
    mean_x, mean_y = (statistics.mean(values) for values in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def framework_dialects() -> Iterator[tuple[str, Dialect]]:
    """The dialects of frameworks whose packages are installed."""
    if find_spec("langchain_core"):
        from compact.adapters.langchain import LangChainDialect

        yield "LangChain", LangChainDialect()
    if find_spec("pydantic_ai"):
        from compact.adapters.pydantic_ai import PydanticAIDialect

        yield "pydantic-ai", PydanticAIDialect()


def measure_forms(turns: int, *, repeat: int = 60) -> list[dict[str, Any]]:
    """The same history in every dialect, as objects of frameworks, and of text alone, which could be in any dialect."""
    rows: list[dict[str, Any]] = []
    forms: tuple[tuple[str, Dialect | None], ...] = (*DIALECTS.items(), *framework_dialects(), ("text alone", None))
    for name, dialect in forms:
        history = history_of(turns)
        entries = history[1:] if name in _WITHOUT_SYSTEM else history
        items: list[Any] = [user(str(entry["content"])) for entry in entries]
        if dialect is not None:
            items = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
        manager = roomy_manager()

        def call(
            manager: CompactManager = manager, items: list[Any] = items, dialect: Dialect | None = dialect
        ) -> list[Any]:
            return manager.preflight("s", items, dialect=dialect)

        call()
        assert all(one is other for one, other in zip(call(), items, strict=True)), name
        rows.append({"form": name, "items": len(items), **compared(items, call, repeat=repeat)})
    return rows


def measure_store(turns: int) -> dict[str, float]:
    """An unchanged history with its store on disk, and in memory: a call is recorded either way."""
    history, times = history_of(turns), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        managers = {
            "memory": roomy_manager(),
            "sqlite": roomy_manager(state={"url": f"sqlite:///{folder}/compact.db"}),
        }
        for name, manager in managers.items():
            with manager:
                manager.preflight("s", history)
                times[name] = timed(lambda manager=manager: manager.preflight("s", history), 100)[0]
    return {**times, "added": times["sqlite"] - times["memory"]}


# What a user waits for: in a fresh interpreter and an empty folder, with every default.
_START = """
import time
started = time.perf_counter()
from compact import CompactManager
manager, messages = CompactManager(), [{"role": "user", "content": "hello"}]
manager.preflight("s", messages)
print((time.perf_counter() - started) * 1000)
times = []
for number in range(60):
    messages += [{"role": "assistant", "content": "and then?"}, {"role": "user", "content": f"step {number} " * 40}]
    started = time.perf_counter()
    manager.preflight("s", messages)
    times.append((time.perf_counter() - started) * 1000)
print(sorted(times)[30])
"""


def start_milliseconds() -> tuple[float, float]:
    """The time from the import to the first prompt, and of a later call, both with the default store."""
    runs: list[tuple[float, float]] = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            first, later = subprocess.check_output([sys.executable, "-c", _START], cwd=folder, text=True).split()
        runs.append((float(first), float(later)))
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument("--quick", action="store_true", help="leave out the longest histories and the fresh processes")
    options = parser.parse_args()
    rows = [measure(turns) for turns in (QUICK_LENGTHS if options.quick else LENGTHS)]
    exponents = {name: growth_exponent(rows, name) for name in ("quickest", "quickest_new")}
    forms, store = measure_forms(1_000), measure_store(1_000)
    start = None if options.quick else start_milliseconds()
    if options.json:
        told = {"rows": rows, "exponents": exponents, "forms": forms, "store": store}
        print(json.dumps({**told, "start_ms": start and start[0], "stored_call_ms": start and start[1]}))
        return
    if start:
        print("with every default, in a fresh process:")
        print(f"  from the import to the first prompt  {start[0]:6.0f} ms")
        print(f"  a later call, written to the store   {start[1]:6.1f} ms\n")
    _print_lengths(rows)
    shortest, longest = rows[0], rows[-1]
    print(f"\na history {longest['turns'] / shortest['turns']:.0f}x as long; exponents by least squares:")
    for name, what in (("quickest", "unchanged"), ("quickest_new", "one new exchange")):
        print(f"  {what} takes {longest[name] / shortest[name]:.1f}x as long, exponent {exponents[name]:.2f}")
    print(f"an unchanged history costs {longest['unchanged'] / longest['first']:.1%} of taking it in once\n")
    print(f"{'unchanged, 1,000 turns':<24} {'items':>7} {'scan':>8} {'median':>9} {'quickest':>9} {'ratio':>6}   (ms)")
    for row in forms:
        figures = f"{row['scan']:>8.3f} {row['unchanged']:>9.3f} {row['quickest']:>9.3f} {row['ratio']:>6.1f}"
        print(f"  {row['form']:<22} {row['items']:>7,} {figures}")
    print(f"\nwith SQLite {store['sqlite']:.2f} ms, in memory {store['memory']:.2f} ms: {store['added']:.2f} ms more")


def _print_lengths(rows: Sequence[dict[str, float]]) -> None:
    print("in memory; the ratio is that of the quickest call on an unchanged history to the quickest scan:")
    names = ("first", "scan", "compare", "unchanged", "quickest", "ratio", "copies", "one new")
    print(f"{'turns':>6} {'messages':>9} {'tokens':>9} " + " ".join(f"{name:>9}" for name in names) + "   (ms)")
    for row in rows:
        keys = ("scan", "compare", "unchanged", "quickest")
        times = " ".join(f"{row[key]:>9.3f}" for key in keys)
        print(
            f"{row['turns']:>6,.0f} {row['messages']:>9,.0f} {row['tokens']:>9,.0f} {row['first']:>9.2f} {times} "
            f"{row['ratio']:>9.1f} {row['equal_copies']:>9.3f} {row['one_new_exchange']:>9.3f}"
        )


if __name__ == "__main__":
    main()
