"""Every constraint finder passes the suite that we give to others."""

from __future__ import annotations

from compact.constraints import LearnedConstraints
from compact.core.facts.constraints import NoConstraints
from compact.testing import check_constraint_finder


def test_the_finder_that_was_learned_conforms() -> None:
    check_constraint_finder(LearnedConstraints(), example="Never touch the migrations. Always answer in English.")


def test_the_finder_that_finds_nothing_conforms() -> None:
    check_constraint_finder(NoConstraints())
