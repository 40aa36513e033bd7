"""Random agents in every dialect, with the usual settings and others: what must hold after each of their calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from endurance.agent import Agent
from sizes import SOAK
from soak_counts import SoakCounts

AGENTS = 1_000 if SOAK else 14
TURNS = 18


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(AGENTS))
def test_an_agent_lives_with_its_session(seed: int, tmp_path: Path, soak: SoakCounts) -> None:
    agent = Agent(seed, tmp_path)
    try:
        agent.live(TURNS)
    finally:
        agent.close()
    soak.add(cases=agent.calls)
