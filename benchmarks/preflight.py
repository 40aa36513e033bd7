"""What a preflight costs on a long history, and how that grows.

    python benchmarks/preflight.py [--json]

Prints the time of a call on an unchanged history and of a call with one new exchange, for ever longer histories, and
how both relate to counting the history once from scratch. Absolute times depend on the machine; the ratios do not.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import subprocess
import sys
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


def import_milliseconds() -> float:
    """The time of `import compact` in a fresh interpreter, without the interpreter's own start."""
    code = "import time; t = time.perf_counter(); import compact; print((time.perf_counter() - t) * 1000)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    return statistics.median(runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    rows = [measure(turns) for turns in (125, 250, 500, 1000)]
    imported = import_milliseconds()
    if parser.parse_args().json:
        print(json.dumps({"import_ms": imported, "rows": rows}))
        return
    print(f"import compact: {imported:.1f} ms\n")
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
