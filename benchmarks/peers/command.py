"""The command line: what to measure, and where the figures go."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from fidelity.command import progress
from fidelity.sample.rows import sample_folder
from fidelity.transcripts import data_folder

from peers.document import RESULTS, tables, write_document
from peers.speed import OFFLINE

PER_SOURCE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is installed, print it, and write it if asked to."""
    parser = argparse.ArgumentParser(prog="peers", description="what agent frameworks ship, beside Compact")
    parser.add_argument("--sample", action="store_true", help="on conversations of the project's own; needs no data")
    parser.add_argument("--per-source", type=int, default=PER_SOURCE, metavar="N", help="sessions of each source (1)")
    parser.add_argument("--no-speed", action="store_true", help="speed, memory and imports stay as in results.json")
    only = "only these, of the peers whose name begins so, beside the other figures of results.json"
    parser.add_argument("--speed", nargs="?", const="", metavar="NAME", help=only)
    parser.add_argument("--write", action="store_true", help="write results.json and the tables in docs/why.md")
    parser.add_argument("--document", action="store_true", help="only write the tables of results.json")
    options = parser.parse_args(arguments)
    if options.document:
        write_document()
        return 0
    os.environ.update(OFFLINE)
    folder = sample_folder() if options.sample else data_folder()
    if options.speed is None and not any(folder.glob("*.jsonl.gz")):
        hint = "set COMPACT_DATA to the folder that holds *.jsonl.gz, or measure with --sample"
        print(f"no transcripts in {folder}\nhint: {hint}", file=sys.stderr)
        return 2
    again = options.speed is not None
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if again else measure(options, folder)
    if options.no_speed:
        keep_speeds(results)
    else:
        measure_speeds(results, options.speed or "")
    print(tables(results))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        write_document()
    return 0


def measure(options: argparse.Namespace, folder: Any) -> dict[str, Any]:
    """What each peer keeps and costs."""
    from peers.measuring import load_sessions, measure_peers, summarize_results
    from peers.registry import installed_peers

    peers, missing = installed_peers()
    sessions = load_sessions(folder, options.per_source)
    with progress() as bar:
        line = bar.add_task("measuring", total=len(sessions) * len(peers))
        kept = measure_peers(sessions, peers, lambda what: bar.update(line, description=what, advance=1))
    found = {
        peer.policy.name: {
            "package": peer.package,
            "version": peer.version,
            "about": peer.policy.about,
            "kept": summarize_results(kept[peer.policy.name]),
        }
        for peer in peers
    }
    return {"sessions": [one.id for one in sessions], "peers": found, "not_measured": missing}


def keep_speeds(results: dict[str, Any]) -> None:
    """Give the results the speeds that were measured before, of peers whose version is the same."""
    before = json.loads(RESULTS.read_text(encoding="utf-8"))["peers"]
    for name, peer in results["peers"].items():
        known = before.get(name, {})
        if known.get("version") == peer["version"]:
            peer |= {part: known[part] for part in ("speed", "import_s") if part in known}


def measure_speeds(results: dict[str, Any], begin: str) -> None:
    """Give the results how long their peers take whose names begin so, and how much memory."""
    from peers.registry import installed_peers
    from peers.speed import import_seconds, speeds_of

    with progress() as bar:
        line = bar.add_task("long histories", total=len(results["peers"]))
        for peer in installed_peers()[0]:
            name, measured = peer.policy.name, results["peers"].get(peer.policy.name)
            if measured is None or not name.startswith(begin):
                continue
            if measured["version"] != peer.version:
                was = f"results.json has {name} of {peer.package} {measured['version']}, installed is {peer.version}"
                raise SystemExit(f"{was}\nhint: measure all, without --speed")
            bar.update(line, description=f"{name}: long histories", advance=1)
            measured |= {"speed": speeds_of(name), "import_s": import_seconds(peer.statement)}
