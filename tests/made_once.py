"""Folders that take long to make, and are made once for all processes that run the tests."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# Chosen: several times what the longest takes on a busy machine.
_PATIENCE_SECONDS = 600.0


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled, here or in another process of the same run; nobody writes to it."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / f"made-once-{name}"
    is_made, has_failed = folder.with_suffix(".made"), folder.with_suffix(".failed")
    try:
        folder.mkdir()
    except FileExistsError:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not is_made.exists():
            assert not has_failed.exists(), f"another process could not make {folder}"
            assert time.monotonic() < give_up, f"another process has not made {folder} in {_PATIENCE_SECONDS:.0f} s"
            time.sleep(0.2)
        return folder
    try:
        make(folder)
    except BaseException:
        has_failed.touch()
        raise
    is_made.touch()
    return folder


def copied_store(folder: Path, target: Path) -> str:
    """Copy a store that was made once, and return the URL of the copy."""
    for file in folder.glob("state.db*"):
        shutil.copy(file, target / file.name)
    return f"sqlite:///{target / 'state.db'}"
