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
def api(sessions_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of it. What a test sends stays in the store, so each file of tests has a copy."""
    with running(_copied(sessions_folder, tmp_path_factory.mktemp("shared"))) as viewer:
        yield viewer


@pytest.fixture
def own_url(sessions_folder: Path, tmp_path: Path) -> str:
    """A copy of the store that a test may write to."""
    return _copied(sessions_folder, tmp_path)


@pytest.fixture
def own(own_url: str) -> Iterator[Running]:
    """A viewer of a store that the test may write to."""
    with running(own_url) as viewer:
        yield viewer


def _copied(folder: Path, target: Path) -> str:
    for file in folder.iterdir():
        shutil.copy(file, target / file.name)
    return f"sqlite:///{target / 'state.db'}"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Running]:
    """A viewer of a store in which nothing has happened yet."""
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        yield viewer
