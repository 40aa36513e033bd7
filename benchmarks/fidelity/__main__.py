"""How much of what the rest of a session needs survives a compaction.

    python benchmarks/fidelity                       product and baselines at 25, 12.5 and 6.25 %
    python benchmarks/fidelity --systems compact --budget 12.5 --worst 5
    python benchmarks/fidelity --sample --check      on conversations of the project's own, with floors
    python benchmarks/fidelity natural               against real summaries of a model, at their size
    python benchmarks/fidelity chained               eight rounds through the longest transcripts

The transcripts are read from the folder that COMPACT_DATA names; those of the sample are made. Exits with 1 if an
output fails a gate or, with --check, a floor.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fidelity.command import main

if __name__ == "__main__":
    sys.exit(main())
