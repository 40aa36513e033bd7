"""What exporters cost the agent: the time of a preflight with each of them, and with one whose server is away.

    python benchmarks/exporters.py [--json]

Each way is measured in turn, a few rounds long, so that all of them meet the same machine. Absolute times depend on
the machine; what counts is the difference to `none`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from preflight import history_of

from compact import CompactConfig, CompactManager

_ROUNDS, _CALLS = 5, 200


@contextmanager
def listening(*, answers: bool) -> Iterator[str]:
    """A server that says yes to everything, or one that takes connections and never says anything."""

    class Yes(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    if answers:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Yes)
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        return
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


def manager_for(**telemetry: Any) -> CompactManager:
    """A manager that keeps nothing, with these settings of telemetry."""
    nowhere = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}}
    return CompactManager(
        CompactConfig(
            max_context_tokens=1_280_000, policy={"trigger_tokens": 1_280_000}, **nowhere, telemetry=telemetry
        )
    )


def measure(*, turns: int = 125, pause_seconds: float = 0.0) -> dict[str, dict[str, float]]:
    """The median and the 99th percentile of a call in milliseconds, and what was dropped, for each way."""
    history = history_of(turns)
    with listening(answers=True) as good, listening(answers=False) as silent:
        ways = {
            "none": manager_for(exporter="none"),
            "console": manager_for(exporter="console"),
            "ariadne": manager_for(exporter="ariadne", ariadne_url=f"{good}/ingest"),
            "ariadne, refused": manager_for(exporter="ariadne", ariadne_url="http://127.0.0.1:9/ingest"),
            "ariadne, hanging": manager_for(exporter="ariadne", ariadne_url=f"{silent}/ingest"),
            "otlp": manager_for(exporter="otlp", otlp_endpoint=good),
            "all of them": manager_for(
                exporter="console,ariadne,otlp,agents", ariadne_url=f"{good}/ingest", otlp_endpoint=good
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, manager in ways.items():
                manager.preflight("s", history)
                times[name] += list(_timed(manager, history, pause_seconds))
                manager.flush(0.1)
        for manager in ways.values():
            manager.close()
    return {name: {"median": statistics.median(found), "p99": _p99(found)} for name, found in times.items()}


def _timed(manager: CompactManager, history: list[Any], pause_seconds: float) -> Iterator[float]:
    for _ in range(_CALLS):
        start = time.perf_counter()
        manager.preflight("s", history)
        yield (time.perf_counter() - start) * 1000
        if pause_seconds:
            time.sleep(pause_seconds)


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    parser.add_argument("--pause-ms", type=float, default=2.0, help="what an agent does between two calls")
    options = parser.parse_args()
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        rows = measure(pause_seconds=options.pause_ms / 1000)
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'exporter':<18} {'median':>8} {'p99':>8}   (ms, a history of 128,000 tokens that has not changed)")
    for name, row in rows.items():
        print(f"{name:<18} {row['median']:>8.3f} {row['p99']:>8.3f}")


if __name__ == "__main__":
    main()
