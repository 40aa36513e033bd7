"""What the proxy adds to a call, measured on loopback; benchmarks/proxy.py prints it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "proxy.py"


def test_a_call_that_is_not_compacted_hardly_takes_longer() -> None:
    """A generous limit on the quickest calls, because machines that run tests are slow and busy."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--calls", "40"], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["rows"]
    assert {row["wire"] for row in rows} == {"chat", "anthropic", "responses"}
    for row in rows:
        sys.stdout.write(f"{row['wire']}: {row['added_ms']:.1f} ms added, median; {row['best_ms']:.1f} ms at best\n")
        assert row["best_ms"] < 60, row
        assert row["added_ms"] < 250, row
