"""Measure a short form of each benchmark, and write what changed.

python benchmarks/regression            print the figures, and exit with 1 if they differ from results.md
python benchmarks/regression --write    write results.md: read its diff before you commit it
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from regression.parts import RESULTS, document


def main() -> int:
    """Measure, print, and compare or write."""
    text = document()
    print(text, end="")
    if "--write" in sys.argv[1:]:
        RESULTS.write_text(text, encoding="utf-8")
        return 0
    if text != RESULTS.read_text(encoding="utf-8"):
        print(
            f"differs from {RESULTS.name}\nhint: python benchmarks/regression --write, then git diff", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
