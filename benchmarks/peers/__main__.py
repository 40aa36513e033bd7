"""What agent frameworks ship, beside Compact, each through its own code.

    python benchmarks/peers                     measure on the transcripts of COMPACT_DATA, print tables
    python benchmarks/peers --write             and write benchmarks/peers/results.json and the tables in docs/why.md
    python benchmarks/peers --sample            on conversations of the project's own; needs no data
    python benchmarks/peers --speed --write     only speed, memory and imports again; the other figures stay
    python benchmarks/peers --no-speed --write  all but these; they stay
    python benchmarks/peers --document          only write the tables of results.json into docs/why.md

Frameworks that are not installed are left out, and named.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.command import main

if __name__ == "__main__":
    sys.exit(main())
