"""How large tests are that could always be larger: `make soak` runs them at full size."""

from __future__ import annotations

import os

SOAK = bool(os.environ.get("COMPACT_TEST_SOAK"))
# How many times as many random conversations a soak draws.
SCALE = 40 if SOAK else 1
# How long processes are kept busy where the question is whether they stand it.
LOAD_SECONDS = float(os.environ.get("COMPACT_TEST_LOAD_SECONDS") or (600 if SOAK else 2))
