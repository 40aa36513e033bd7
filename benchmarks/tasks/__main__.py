"""Whether an agent still reaches the end of its task when its prompts are compacted.

    python benchmarks/tasks                       scripted agents: 200 tasks in five domains, under every policy
    python benchmarks/tasks --tasks 10 --check    a small run with the floors
    python benchmarks/tasks --show travel-7       one task under one policy, step by step
    python benchmarks/tasks model                 a small real model on small tasks; a run that is cut off continues

The tasks are made from seeds: the same seeds give the same tasks, prompts and results. Exits with 1 if, with --check,
a floor is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tasks.command import main

if __name__ == "__main__":
    sys.exit(main())
