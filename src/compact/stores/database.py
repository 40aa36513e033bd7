"""Connections to a database that may be away: opened when first needed, not tried for a while after a failure.

Content is handed to `execute` beside the statement, never in it: statements are cached, with the values in them, and
would keep what was deleted.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool

from compact.core.audit.store import StoreError
from compact.core.errors import ConfigError
from compact.extras import install_line
from compact.own_folder import keep_out_of_git
from compact.stores import schema
from compact.stores.packing import unpacked
from compact.waiting.forks import after_fork
from compact.waiting.progress import in_parts

# Chosen: how long a turn may wait for another writer, or for a server to answer.
_BUSY_TIMEOUT_SECONDS = 2
# Chosen: a write takes milliseconds; a thread that is at one for longer than this waits for a disk that hangs.
_TURN_TIMEOUT_SECONDS = 10
# Chosen: more than a statement may take on the server.
_STATEMENT_SECONDS, _ANSWER_TIMEOUT_SECONDS = 30, 35
# Chosen: an agent must not wait for a dead server at every turn.
_PAUSE_SECONDS = 5.0
# Of what a server answers, only this means that it is not there: no connection, no room, shutting down.
_OUTAGES = ("08", "53", "57P")
# The oldest SQLite whose full-text index, upserts and triggers do what is needed here.
_MIN_SQLITE = (3, 31, 0)
_HINT = "check state.url, the server, free disk space and permissions"


_Access: TypeAlias = Literal["read", "write"]


class _Pause(NamedTuple):
    """Until when something is not tried, and what failed."""

    until: float = 0.0
    reason: str = ""


class Database:
    """Connections to one SQLite file or PostgreSQL server; every failure is a sentence that says what to do."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._is_read_only = read_only
        try:
            address = make_url(url)
            self.name = address.render_as_string(hide_password=True)
            self._path = Path(address.database or "").absolute() if address.drivername == "sqlite" else None
            self._engine = self._connect_lazily(address)
        except (ArgumentError, ValueError) as error:
            hint = "use sqlite:///./state.db or postgresql://user@host:5432/name"
            raise ConfigError("this is not a database URL", field="state.url", hint=hint) from error
        except ModuleNotFoundError as error:
            message = f"PostgreSQL needs the package {error.name}"
            raise ConfigError(message, field="state.url", hint=install_line("postgres")) from error
        if self._path:
            _check_sqlite_version(sqlite3.sqlite_version_info)
        reading = {"only_reads": True} if self._path else {"isolation_level": "REPEATABLE READ"}
        self._reader = self._engine.execution_options(**reading)
        self._lock = threading.Lock()
        self._turn = _WriteTurn()
        self._owner = os.getpid()
        self._letting_go = self._let_go_at_last()
        self._is_prepared = self._is_closed = False
        self._file: tuple[int, int] | None = None
        # A write that fails says nothing about reads: a disk may be full, another writer slow.
        self._paused: dict[_Access, _Pause] = {"read": _Pause(), "write": _Pause()}

    def _connect_lazily(self, address: URL) -> Engine:
        if not self._path:
            return _postgresql(address, read_only=self._is_read_only)
        return _read_only_sqlite(self._path) if self._is_read_only else _sqlite(address.set(database=str(self._path)))

    @property
    def is_sqlite(self) -> bool:
        """True for a file, False for a server."""
        return self._path is not None

    @property
    def is_read_only(self) -> bool:
        """True if nothing is ever written here, not even tables."""
        return self._is_read_only

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Open a connection that sees one moment of the database and waits for no writer."""
        with self._reported("read"):
            self._prepare("read")
            with self._reader.connect() as connection:
                yield connection

    def first_row(self, query: QuickStatement, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return the first row that one query finds; SQLite is asked without all that a transaction takes."""
        if self._path is None:
            with self.reading() as connection:
                return connection.execute(query.statement, values).first()
        with self._reported("read"):
            self._prepare("read")
            with closing(self._engine.raw_connection()) as connection, closing(connection.cursor()) as cursor:
                return query.run(cursor, [values]).fetchone()

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Open a transaction: all of it is written, or nothing."""
        if self._is_read_only:
            raise StoreError(f"{self.name} was opened to be read only", hint="start it without --read-only")
        with self._reported("write"):
            self._prepare("write")
            with self._turn_to_write(), self._engine.begin() as connection:
                yield connection

    @contextmanager
    def _turn_to_write(self) -> Generator[None]:
        """Wait for the other threads that write to the same SQLite file.

        SQLite itself lets them try again and again, in no order: with some dozen of them, one may lose each time until
        the file counts as locked, although it is free most of the time.
        """
        if not self._path:
            yield
            return
        with self._turn.taken():
            self._check_pause("write")
            yield

    def shrink(self) -> None:
        """Give free pages of a SQLite file back to the disk; PostgreSQL does so by itself.

        The file is written anew, for which there must be room beside it.
        """
        if self._path is None:
            return
        with self._reported("write"):
            self._prepare("write")
            with self._turn_to_write(), closing(self._engine.raw_connection()) as connection:
                cursor = connection.cursor()
                cursor.execute("VACUUM")
                # What was written anew is in the write-ahead log until then.
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.close()

    def close(self) -> None:
        """Close all connections; those that a thread still uses when it is done with them."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        """Close the connections that no thread uses; those in use come back to the same pool, and are closed then."""
        self._engine.pool.dispose()

    def _let_go_at_last(self) -> weakref.finalize[..., Any]:
        """Have the connections closed if nobody closes them; at the end of the process that makes no difference."""
        letting_go = weakref.finalize(self, _let_go, self._engine, self._owner)
        letting_go.atexit = False
        return letting_go

    def _prepare(self, access: _Access) -> None:
        self._check_pause(access)
        if os.getpid() != self._owner:
            # Connections and locks are the parent's: two processes on one of them would garble what both write.
            self._engine.dispose(close=False)
            self._owner, self._lock, self._turn = os.getpid(), threading.Lock(), _WriteTurn()
            self._letting_go.detach()
            self._letting_go = self._let_go_at_last()
        if self._is_prepared:
            self._check_file()
            return
        with self._lock:
            if self._is_prepared:  # by a thread that was here first
                return
            if self._is_read_only:
                self._check_readable()
                return
            if self._path:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                keep_out_of_git(self._path.parent)
                _create_private(self._path)
                self._file = self._found_file()
            with self._engine.begin() as connection:
                schema.prepare(connection)
            self._is_prepared = True

    def _check_pause(self, access: _Access) -> None:
        pause = self._paused[access]
        if time.monotonic() < pause.until:
            raise StoreError(f"{pause.reason}; not tried again for a moment", hint=_HINT)

    def _check_readable(self) -> None:
        """Raise StoreError unless the tables are there, and known; nothing is created."""
        if self._path and not self._path.is_file():
            raise StoreError(f"there is no store at {self._path}", hint="it is created by the first call of an agent")
        with self._engine.connect() as connection:
            schema.check_readable(connection)
        self._file = self._found_file()
        self._is_prepared = True

    def _check_file(self) -> None:
        """Raise StoreError if the file is not the one that was opened: what is written to a deleted file is lost."""
        if self._path and self._found_file() != self._file:
            self._engine.dispose()
            self._is_prepared = False
            raise StoreError(
                f"{self.name} was deleted or replaced by another file",
                hint="nothing to do: it is opened or created anew with the next call",
            )

    def _found_file(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _reported(self, access: _Access) -> Generator[None]:
        """Raise a failure as a sentence; after an outage the database is not tried for a while."""
        try:
            yield
        except IntegrityError:
            raise  # another process was quicker: the caller knows what that means
        except (SQLAlchemyError, OSError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            failure = f"cannot use {self.name}: {reason}"
            if _is_outage(error):
                pause = _Pause(time.monotonic() + _PAUSE_SECONDS, failure)
                only_writes = access == "write" and (self._path is not None or _has_no_room(error))
                for kind in ("write",) if only_writes else ("read", "write"):
                    self._paused[kind] = pause
            raise StoreError(failure, hint=_HINT) from error
        finally:
            if self._is_closed:
                self._close_idle()


class _WriteTurn:
    """Lets the threads of a process write one after the other, in the order in which they have asked.

    A lock alone lets whoever comes by just then go first, so that of some dozen threads one may wait for seconds. Who
    waits long behind others that come and go is told nothing: only one that keeps its turn is an outage.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken_at: float | None = None

    @contextmanager
    def taken(self) -> Generator[None]:
        """Wait for a turn and have it; raise TimeoutError if another thread does not end its own."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    def _take(self) -> None:
        mine = threading.Lock()
        with self._guard:
            if self._taken_at is None:
                self._taken_at = time.monotonic()
                return
            mine.acquire()
            self._waiting.append(mine)
        try:
            while not mine.acquire(timeout=self._seconds_left()):
                pass
        except BaseException:  # also Ctrl-C
            self._leave(mine)
            raise

    def _seconds_left(self) -> float:
        """Return how long the thread whose turn it is may still keep it; if it may not, raise TimeoutError."""
        with self._guard:
            left = (self._taken_at or 0.0) + _TURN_TIMEOUT_SECONDS - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"another thread has been writing to it for {_TURN_TIMEOUT_SECONDS:g} seconds")
        return left

    def _leave(self, mine: threading.Lock) -> None:
        """Wait no longer; a turn that came just now goes to the next one."""
        with self._guard:
            is_waiting = mine in self._waiting
            if is_waiting:
                self._waiting.remove(mine)
        if not is_waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._guard:
            self._taken_at = time.monotonic() if self._waiting else None
            if self._waiting:
                self._waiting.popleft().release()


class QuickStatement:
    """A statement that every call makes: compiled once, and for SQLite run by the driver itself.

    What SQLAlchemy does around each takes longer there than the statement does.
    """

    def __init__(self, statement: Any, columns: Sequence[str] | None = None) -> None:
        """Compile a statement; `columns` are those that an insert or an update has values for."""
        self.statement = statement
        dialect = sqlite.dialect()
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        self._sql = str(compiled)
        # In the order of the question marks, each with what makes of a value what the database gets.
        types = {name: compiled.binds[name].type.dialect_impl(dialect) for name in compiled.positiontup}
        self._values = [(name, types[name].bind_processor(dialect)) for name in compiled.positiontup]

    def prepared(self, rows: Sequence[Mapping[str, Any]], database: Database) -> Sequence[Any]:
        """Return rows as `execute_prepared` takes them: what takes long (texts are packed) needs no transaction."""
        return [bound for part in in_parts(rows) for bound in self._bound(part)] if database.is_sqlite else list(rows)

    def execute_prepared(self, connection: Connection, rows: Sequence[Any]) -> int:
        """Run it in a transaction, once for each row that `prepared` returned; return how many it has written."""
        if connection.dialect.name != "sqlite":
            return sum(connection.execute(self.statement, part).rowcount for part in in_parts(rows))
        with closing(connection.connection.cursor()) as cursor:
            return sum(self._run(cursor, part).rowcount for part in in_parts(rows))

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Run it in a transaction, once for each of the rows of values; return how many rows it has written."""
        return self.execute_prepared(connection, self._bound(rows) if connection.dialect.name == "sqlite" else rows)

    def run(self, cursor: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Run it with a cursor of the driver, and return the cursor."""
        return self._run(cursor, self._bound(rows))

    def _bound(self, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        return list(
            zip(*(_bound_column([row[name] for row in rows], bind) for name, bind in self._values), strict=True)
        )

    def _run(self, cursor: Any, values: Sequence[tuple[Any, ...]]) -> Any:
        try:
            return cursor.execute(self._sql, values[0]) if len(values) == 1 else cursor.executemany(self._sql, values)
        except sqlite3.Error as error:
            # As SQLAlchemy does, but without the values: they are content.
            raise DBAPIError.instance(self._sql, None, error, sqlite3.Error) from error


def _bound_column(values: list[Any], bind: Callable[[Any], Any] | None) -> list[Any]:
    if bind is None:
        return values
    # Thousands of rows are of one session: what they share is looked at once.
    first = values[0] if values else None
    return [bind(first)] * len(values) if all(value is first for value in values) else [bind(v) for v in values]


# One thread at a time creates a file; others open it when it is closed again.
_creating = threading.Lock()


def _create_private(path: Path) -> None:
    """Create a file that is not there, so that nobody else can read what SQLite will write, even for a moment.

    One that is there is not touched: whoever closes a file loses all locks that the process has on it (POSIX), also
    those of connections that are in use, and another process would remove their write-ahead log.
    """
    with _creating:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            if not os.access(path, os.W_OK):
                os.close(os.open(path, os.O_RDWR))  # raises, and says more than SQLite would


@after_fork
def _after_fork() -> None:
    global _creating  # a thread that is gone may hold it
    _creating = threading.Lock()


def _let_go(engine: Engine, owner: int) -> None:
    """Close the connections of a database that nobody uses any more; in a forked process they are the parent's."""
    engine.dispose(close=os.getpid() == owner)


def _check_sqlite_version(found: tuple[int, ...]) -> None:
    """Raise ConfigError for a SQLite that is too old: it would fail later, and say less."""
    if found < _MIN_SQLITE:
        needed, has = (".".join(map(str, version)) for version in (_MIN_SQLITE, found))
        raise ConfigError(
            f"SQLite {has} is too old: Compact needs {needed} or newer",
            field="state.url",
            hint="use a Python that was built with a newer SQLite, or PostgreSQL: postgresql://user@host:5432/name",
        )


def _is_outage(error: Exception) -> bool:
    if not isinstance(error, OSError | OperationalError | InterfaceError | PoolTimeoutError):
        return False
    code = _sqlstate(error)
    return code is None or code.startswith(_OUTAGES)


def _has_no_room(error: Exception) -> bool:
    """Return True for a server that is there, and has no room for what is written."""
    return (_sqlstate(error) or "").startswith("53")


def _sqlstate(error: Exception) -> str | None:
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def _switch_to_wal(cursor: Any) -> None:
    """Switch SQLite to write-ahead logging, which does not wait for other processes that do so at the same moment."""
    deadline = time.monotonic() + _BUSY_TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _sqlite(address: URL) -> Engine:
    engine = create_engine(address, connect_args={"timeout": _BUSY_TIMEOUT_SECONDS})

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # our own BEGIN below, not the driver's late one
        cursor = connection.cursor()
        _switch_to_wal(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
        # Triggers of our own tables call a function of ours, which builds of SQLite may not trust unless told so.
        cursor.execute("PRAGMA trusted_schema=ON")
        connection.create_function(schema.UNPACK, 1, unpacked, deterministic=True)
        connection.create_function(schema.UNHEX, 1, bytes.fromhex, deterministic=True)
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        # A transaction that reads first and writes later can fail half-way; a writing one waits at the start.
        only_reads = connection.get_execution_options().get("only_reads", False)
        connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")

    return engine


def _read_only_sqlite(path: Path) -> Engine:
    """Return an engine that writes nothing: not the file, and none of the files that SQLite keeps beside it."""

    def connect() -> sqlite3.Connection:
        # Without a write-ahead log nobody has the file open to write, and SQLite must not create one to read it.
        log = Path(f"{path}-wal")
        how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?{how}", uri=True, timeout=_BUSY_TIMEOUT_SECONDS, check_same_thread=False
        )
        connection.isolation_level = None
        return connection

    # A connection of its own for each read: whether there is a write-ahead log may have changed.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.exec_driver_sql("BEGIN")

    return engine


def _postgresql(address: URL, *, read_only: bool = False) -> Engine:
    timeouts = f"-c lock_timeout={_BUSY_TIMEOUT_SECONDS * 1000} -c statement_timeout={_STATEMENT_SECONDS * 1000}"
    if read_only:
        timeouts += " -c default_transaction_read_only=on"
    # A server that vanished from the network is noticed by us, not by the defaults of TCP, which take minutes.
    vanished = {"tcp_user_timeout": 4000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 2}
    engine = create_engine(
        address.set(drivername="postgresql+psycopg"),
        connect_args={"connect_timeout": _BUSY_TIMEOUT_SECONDS, "options": timeouts, **vanished},
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=20,
        pool_timeout=5,
    )
    connect_limited = _limited_connection()

    @event.listens_for(engine, "do_connect")
    def connect(_: object, __: object, arguments: Any, settings: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        return connect_limited(*arguments, **settings)

    return engine


def _limited_connection() -> Callable[..., Any]:
    """Return what connects to a server and hangs up if it does not answer: one that is frozen keeps its connections.

    Its own time limit for a statement does not help then, and neither do those of TCP: its machine still answers.
    """
    import psycopg  # only loaded where it is used
    from psycopg import waiting

    class LimitedConnection(psycopg.Connection[Any]):
        """A connection that is closed when its server is silent for too long."""

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            """Wait for the server, as long as that may take."""
            return super().wait(self._limited(gen), *args, **kwargs)

        def _limited(self, gen: Any) -> Generator[Any, Any, Any]:
            end = time.monotonic() + _ANSWER_TIMEOUT_SECONDS
            try:
                state = next(gen)
                while True:
                    ready = yield state
                    if ready == waiting.Ready.NONE and time.monotonic() > end:
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"no answer for {_ANSWER_TIMEOUT_SECONDS} seconds")
                    state = gen.send(ready)
            except StopIteration as done:
                return done.value

    return LimitedConnection.connect
