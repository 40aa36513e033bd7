"""What a preflight costs on a long history, and how that grows.

    python benchmarks/preflight.py [--json]

Prints what a user waits for with every default; then the time of a call on an unchanged history and of a call with one
new exchange, for ever longer histories, and how both relate to counting the history once from scratch. Absolute times
depend on the machine; the ratios do not.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from compact import CompactConfig, CompactManager
from compact.testing import Wire, assistant, system, tool_exchange, user

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
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def measure(turns: int, *, tokens: int = 128_000) -> dict[str, float]:
    """Times for one length of history, in milliseconds."""
    nowhere = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
    config = CompactConfig(max_context_tokens=10 * tokens, policy={"trigger_tokens": 10 * tokens}, **nowhere)
    manager, history = CompactManager(config), history_of(turns, tokens=tokens)
    start = time.perf_counter()
    manager.preflight("s", history)
    first = (time.perf_counter() - start) * 1000
    copies = copy.deepcopy(history)

    def grow() -> None:
        number = len(history)
        history.extend(tool_exchange(f"more-{number}", "one more result", path="src/new.py"))
        manager.preflight("s", history)

    return {
        "turns": turns,
        "messages": len(history),
        "tokens": manager.status("s").used_tokens,
        "first": first,
        "unchanged": milliseconds(lambda: manager.preflight("s", history)),
        "equal_copies": milliseconds(lambda: manager.preflight("s", copies)),
        "one_new_exchange": milliseconds(grow),
    }


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
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    rows = [measure(turns) for turns in (125, 250, 500, 1000)]
    first, later = start_milliseconds()
    if parser.parse_args().json:
        print(json.dumps({"start_ms": first, "stored_call_ms": later, "rows": rows}))
        return
    print("with every default, in a fresh process:")
    print(f"  from the import to the first prompt  {first:6.0f} ms")
    print(f"  a later call, written to the store   {later:6.1f} ms\n")
    print("in memory:")
    print(
        f"{'turns':>6} {'messages':>9} {'tokens':>8} {'first':>9} {'unchanged':>10} {'copies':>9} {'one new':>9}   (ms)"
    )
    for row in rows:
        print(
            f"{row['turns']:>6.0f} {row['messages']:>9.0f} {row['tokens']:>8,.0f} {row['first']:>9.2f} "
            f"{row['unchanged']:>10.3f} {row['equal_copies']:>9.3f} {row['one_new_exchange']:>9.3f}"
        )
    shortest, longest = rows[0], rows[-1]
    print(f"\na history {longest['turns'] / shortest['turns']:.0f}x as long:")
    for name in ("unchanged", "one_new_exchange"):
        print(f"  {name.replace('_', ' ')} takes {longest[name] / shortest[name]:.1f}x as long")
    print(f"an unchanged history costs {longest['unchanged'] / longest['first']:.1%} of taking it in once")


if __name__ == "__main__":
    main()
