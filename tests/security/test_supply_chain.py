"""What is installed is what was locked: each package by its hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))


def test_there_are_locks() -> None:
    assert len(LOCKS) >= 3


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_a_hash(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    packages = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert packages
    for package in packages:
        assert re.match(r"[A-Za-z0-9._-]+(?:\[[\w,-]+\])?==\S+", package), package
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package


def test_every_install_of_the_makefile_asks_for_the_hashes() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if ".lock" in line]
    asking = [line for line in installs if " -r " in line and "uv pip compile" not in line]
    assert asking
    assert all("--require-hashes" in line for line in asking)
