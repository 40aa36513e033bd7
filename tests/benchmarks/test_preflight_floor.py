"""What a call costs where nothing is compacted, against a plain scan of the list in the same run.

`make bench` prints the figures. The limits are several times those of a quiet machine, because machines that run tests
are busy: they notice work that is done again for every message, and not a few percent.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import preflight

# Measured on busy cores: 4 to 6 for Chat Completions, 4 to 16 for the other dialects: each list is compared once, with
# copies, whose parts are more in some. Objects of frameworks are compared by their fields, of which they have many: 21
# and 47. A call has costs of its own besides, which weigh more in a short history.
MOST = {"chat": 20, "LangChain": 100, "pydantic-ai": 200}
MOST_IN_OTHER_DIALECTS = 50


@pytest.fixture(scope="module")
def rows() -> list[dict[str, float]]:
    return [preflight.measure(turns, repeat=20) for turns in (125, 500, 1_000)]


def test_an_unchanged_history_costs_a_few_scans_of_it(rows: list[dict[str, float]]) -> None:
    longest = rows[-1]
    assert longest["messages"] == 4_001
    assert 1 < longest["ratio"] < MOST["chat"], longest


@pytest.mark.parametrize("name", ["quickest", "quickest_new"])
def test_a_call_grows_no_faster_than_its_history(rows: list[dict[str, float]], name: str) -> None:
    assert preflight.growth_exponent(rows, name) < 1.4, rows


def test_the_exponent_is_that_of_the_law_that_made_the_times() -> None:
    made: list[dict[str, float]] = [{"messages": n, "time": 3.0 * n**1.7} for n in (10, 100, 1_000)]
    assert preflight.growth_exponent(made, "time") == pytest.approx(1.7)


def test_so_it_is_in_every_dialect_and_for_objects_of_frameworks() -> None:
    forms: list[dict[str, Any]] = preflight.measure_forms(250, repeat=10)
    assert {"chat", "responses", "anthropic", "gemini", "converse", "vercel", "ollama"} < {row["form"] for row in forms}
    assert {"LangChain", "pydantic-ai"} < {row["form"] for row in forms}
    for row in forms:
        assert row["ratio"] < MOST.get(row["form"], MOST_IN_OTHER_DIALECTS) * 2, row
