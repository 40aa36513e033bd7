"""How large tests are that could always be larger: `make soak` runs them at full size."""

from __future__ import annotations

import os

SOAK = bool(os.environ.get("COMPACT_TEST_SOAK"))
# How many times as many random conversations a soak draws.
SCALE = 20 if SOAK else 1
