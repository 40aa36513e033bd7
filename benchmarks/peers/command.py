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

PER_SOURCE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is installed, print it, and write it if asked to."""
    parser = argparse.ArgumentParser(prog="peers", description="what agent frameworks ship, beside Compact")
    parser.add_argument("--sample", action="store_true", help="on conversations of the project's own; needs no data")
    parser.add_argument("--per-source", type=int, default=PER_SOURCE, metavar="N", help="sessions of each source (1)")
    parser.add_argument("--no-speed", action="store_true", help="leave out speed, memory and imports")
    parser.add_argument("--write", action="store_true", help="write results.json and the tables in docs/why.md")
    parser.add_argument("--document", action="store_true", help="only write the tables of results.json")
    options = parser.parse_args(arguments)
    if options.document:
        write_document()
        return 0
    # Before LiteLLM is imported: it would ask the network for prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    folder = sample_folder() if options.sample else data_folder()
    if not any(folder.glob("*.jsonl.gz")):
        hint = "set COMPACT_DATA to the folder that holds *.jsonl.gz, or measure with --sample"
        print(f"no transcripts in {folder}\nhint: {hint}", file=sys.stderr)
        return 2
    results = measure(options, folder)
    print(tables(results))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        write_document()
    return 0


def measure(options: argparse.Namespace, folder: Any) -> dict[str, Any]:
    """All figures as data."""
    from peers.measuring import load_sessions, measure_peers, summarize_results
    from peers.registry import installed_peers
    from peers.speed import TURNS, import_seconds, speeds_of

    peers, missing = installed_peers()
    sessions = load_sessions(folder, options.per_source)
    with progress() as bar:
        line = bar.add_task("measuring", total=len(sessions) * len(peers) + len(peers))

        def done(what: str) -> None:
            bar.update(line, description=what, advance=1)

        kept = measure_peers(sessions, peers, done)
        found: dict[str, Any] = {}
        for peer in peers:
            name = peer.policy.name
            done(f"{name}: long histories")
            found[name] = {
                "package": peer.package,
                "version": peer.version,
                "about": peer.policy.about,
                "kept": summarize_results(kept[name]),
                "speed": dict.fromkeys(map(str, TURNS)) if options.no_speed else speeds_of(name),
                "import_s": 0.0 if options.no_speed else import_seconds(peer.module),
            }
    return {"sessions": [one.id for one in sessions], "peers": found, "not_measured": missing}
