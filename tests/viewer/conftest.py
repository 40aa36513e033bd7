"""One store with a session for each thing to see, and a viewer of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from made_once import copied_store, made_once
from viewer import seeding
from viewer.serving import Running, running


@pytest.fixture(scope="session")
def sessions_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that nobody writes to, and every prompt that went out while it was written."""
    return made_once(tmp_path_factory, "sessions", seeding.seed_with_prompts)


@pytest.fixture(scope="module")
def long_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of a session of ten thousand messages."""
    folder = made_once(tmp_path_factory, "long", lambda to: seeding.seed_long(f"sqlite:///{to / 'state.db'}"))
    with running(copied_store(folder, tmp_path_factory.mktemp("long"))) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def api(sessions_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer of it. What a test sends stays in the store, so each file of tests has a copy."""
    with running(copied_store(sessions_folder, tmp_path_factory.mktemp("shared"))) as viewer:
        yield viewer


@pytest.fixture
def own_url(sessions_folder: Path, tmp_path: Path) -> str:
    """A copy of the store that a test may write to."""
    return copied_store(sessions_folder, tmp_path)


@pytest.fixture
def own(own_url: str) -> Iterator[Running]:
    """A viewer of a store that the test may write to."""
    with running(own_url) as viewer:
        yield viewer


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Running]:
    """A viewer of a store in which nothing has happened yet."""
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        yield viewer
