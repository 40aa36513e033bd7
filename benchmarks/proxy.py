"""What the proxy adds to a call that it does not compact.

    python benchmarks/proxy.py [--calls 200] [--json]

The same conversation is sent to a provider on loopback, directly and through a proxy with a SQLite store, in turns;
each call is one exchange longer than the one before. Printed are the medians, what the proxy
adds to them, and what it adds to the quickest call: on a busy machine that is nearer to the truth.

A model takes a while to answer, and the proxy stores what was sent meanwhile. So there are two providers: one answers
after 20 ms, sooner than any model would, and the other at once, so that a call waits for the store as well.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

Items = list[dict[str, Any]]
PATHS = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}
ANSWER = json.dumps({"id": "x", "usage": {"input_tokens": 1000, "output_tokens": 1}}).encode()
TEXT = "the pilot boat waits outside the breakwater while the harbour master counts the berths again " * 5


# Chosen: sooner than models answer, and longer than the proxy takes to store what was sent.
ANSWER_SECONDS = {"/soon": 0.02, "/at-once": 0.0}


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # An answer leaves in one piece: this thread and the client's are of one process, and would wait for each other.
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(next(seconds for prefix, seconds in ANSWER_SECONDS.items() if self.path.startswith(prefix)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)


@contextmanager
def provider() -> Iterator[str]:
    """A provider; what comes before the path of a request says how soon it answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@contextmanager
def proxy(upstream: str) -> Iterator[str]:
    """A proxy as people run it: a process of its own, with its store on disk."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "compact.cli.main", "proxy", "--upstream", upstream, "--port", str(port)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMPACT_")}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=kept)
        try:
            assert process.stderr
            process.stderr.readline()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate()


def exchange(wire: str, number: int) -> Items:
    """A call and its result."""
    arguments, result = {"path": f"src/part_{number}.py"}, f"contents {number}: {TEXT}"
    if wire == "anthropic":
        call = {"type": "tool_use", "id": f"c{number}", "name": "read_file", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    function = {"name": "read_file", "arguments": json.dumps(arguments)}
    if wire == "responses":
        return [
            {"type": "function_call", "call_id": f"c{number}", **function},
            {"type": "function_call_output", "call_id": f"c{number}", "output": result},
        ]
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def measure(wire: str, direct: str, through: str, calls: int) -> dict[str, Any]:
    """The medians of both ways, in milliseconds."""
    items: Items = [{"role": "user", "content": "Read all the files."}]
    for number in range(50):
        items += exchange(wire, number)
    times: dict[str, list[float]] = {direct: [], through: []}
    size = 0
    with httpx2.Client(timeout=60) as client:
        for number in range(calls + 5):
            items += exchange(wire, 50 + number)
            key = "input" if wire == "responses" else "messages"
            body = json.dumps({"model": "gpt-4o", "max_tokens": 9, key: items}).encode()
            size = len(body)
            for url, taken in times.items():
                start = time.perf_counter()
                answer = client.post(url + PATHS[wire], content=body, headers={"authorization": f"Bearer {wire}"})
                taken.append((time.perf_counter() - start) * 1000)
                said = answer.headers.get("x-compact", "unchanged")
                assert said.startswith("unchanged"), said
    one, other = (statistics.median(taken[5:]) for taken in times.values())
    best = min(times[through]) - min(times[direct])
    return {"wire": wire, "bytes": size, "direct_ms": one, "proxy_ms": other, "added_ms": other - one, "best_ms": best}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--calls", type=int, default=200, metavar="N", help="calls on each wire, both ways")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with provider() as url:
        for prefix, seconds in ANSWER_SECONDS.items():
            with proxy(url + prefix) as through:
                found = [measure(wire, url + prefix, through, options.calls) for wire in PATHS]
            rows += [{"answer_ms": seconds * 1000, **row} for row in found]
    if options.json:
        print(json.dumps({"rows": rows}))
        return
    titles = f"{'direct':>8} {'proxy':>8} {'added':>8} {'at best':>8}"
    print(f"{'':<10} {'answered':>9} {'last body':>11} {titles}   (median, ms)")
    for row in rows:
        figures = f"{row['direct_ms']:>8.2f} {row['proxy_ms']:>8.2f} {row['added_ms']:>8.2f} {row['best_ms']:>8.2f}"
        answered = f"{row['answer_ms']:.0f} ms" if row["answer_ms"] else "at once"
        print(f"{row['wire']:<10} {answered:>9} {row['bytes']:>11,} {figures}")


if __name__ == "__main__":
    main()
