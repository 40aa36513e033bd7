"""One store with a session for each thing to see, and a viewer of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from viewer import seeding
from viewer.serving import Running, running


@pytest.fixture(scope="session")
def sessions_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that nobody writes to."""
    folder = tmp_path_factory.mktemp("sessions")
    seeding.seed(folder)
    return folder


@pytest.fixture(scope="module")
def api(sessions_folder: Path) -> Iterator[Running]:
    """A viewer of it."""
    with running(f"sqlite:///{sessions_folder / 'state.db'}") as viewer:
        yield viewer


@pytest.fixture
def own_url(sessions_folder: Path, tmp_path: Path) -> str:
    """A copy of the store that a test may write to."""
    for file in sessions_folder.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return f"sqlite:///{tmp_path / 'state.db'}"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Running]:
    """A viewer of a store in which nothing has happened yet."""
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        yield viewer
