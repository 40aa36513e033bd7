"""A folder on disk that only its owner can read and no link leads out of; its files appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG
from time import sleep

from compact.own_folder import keep_out_of_git

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
# Windows has neither these flags nor folders as descriptors; there, full paths are used, and links are looked for.
_HAS_FOLDER_DESCRIPTORS = {os.open, os.mkdir, os.link, os.unlink} <= os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# Not blocking: a pipe under the name of a file must not stop the agent.
_FILE = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# Chosen: half a second in all.
_LOCK_TRIES, _LOCK_PAUSE_SECONDS = 250, 0.002
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@contextmanager
def open_folder(root: Path, name: str) -> Generator[Folder]:
    """Open the folder `name` right inside `root`, made if it is missing; refuse a symbolic link in its place."""
    path = root / name
    if not _HAS_FOLDER_DESCRIPTORS:
        _make_root(path)
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        yield Folder(path, None)
        return
    _make_root(root)
    root_descriptor = os.open(root, _DIRECTORY)
    try:
        descriptor = _open_inside(root_descriptor, name)
    finally:
        os.close(root_descriptor)
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _make_root(root: Path) -> None:
    missing: list[Path] = []
    for path in (root, *root.parents):
        if path.exists():
            break
        missing.append(path)
    for path in reversed(missing):  # not `parents=True`, which would leave those in between open to everyone
        path.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    for path in (root, *root.parents):
        keep_out_of_git(path)


def _open_inside(root: int, name: str) -> int:
    flags = _DIRECTORY | _NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=root)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(name, _PRIVATE_FOLDER, dir_fd=root)
            os.fsync(root)
        return os.open(name, flags, dir_fd=root)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder; with a descriptor, it stays the same one even if it is renamed or replaced meanwhile."""

    path: Path
    descriptor: int | None

    def write_new(self, names: Iterable[str], data: bytes) -> str:
        """Write data under the first name that is free, or that holds the same already, and return the name."""
        temporary = f".{token_hex(8)}.tmp"
        try:
            self._write(temporary, data)
            name = next(name for name in names if self._publish(temporary, name) or self._holds(name, data))
        finally:
            with suppress(OSError):
                os.unlink(self._at(temporary), dir_fd=self.descriptor)
        if self.descriptor is not None:
            os.fsync(self.descriptor)
        return name

    def append(self, name: str, line: bytes) -> None:
        """Add a line in a single write, so that the lines of several processes never mix.

        Where a full disk has cut a line short, the next one still starts on a line of its own.
        """
        with self._open(name, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            line = b"\n" + line if _ends_in_part_of_a_line(descriptor) else line
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)

    @contextmanager
    def _open(self, name: str, flags: int) -> Generator[int]:
        descriptor = os.open(self._at(name), flags | _FILE, _PRIVATE_FILE, dir_fd=self.descriptor)
        try:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EEXIST, "something that is not a file is in its place", name)
            yield descriptor
        finally:
            os.close(descriptor)

    def _write(self, name: str, data: bytes) -> None:
        with self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(data)
            os.fsync(descriptor)

    def _publish(self, temporary: str, name: str) -> bool:
        """Give a finished file its name, unless the name is taken: a link refuses where a rename would replace."""
        source, target = self._at(temporary), self._at(name)
        try:
            os.link(source, target, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # No hard links here (FAT, some network disks): look first. Two writers of one step could still collide.
            with suppress(FileNotFoundError):
                os.stat(target, dir_fd=self.descriptor, follow_symlinks=False)
                return False
            os.replace(source, target, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        return True

    def _holds(self, name: str, data: bytes) -> bool:
        try:
            with self._open(name, os.O_RDONLY) as descriptor:
                if os.fstat(descriptor).st_size != len(data):
                    return False
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    return file.read() == data
        except OSError:
            return False


def _ends_in_part_of_a_line(descriptor: int) -> bool:
    """Return True if the file ends in the middle of a line that is not being written; lock it until it is closed.

    While another process writes a line, readers see it grow, so one look cannot tell. Writers share a lock: a process
    that sees part of a line waits until it has the lock alone, and looks again.
    """
    if fcntl is None:
        return _lacks_newline(descriptor)
    _lock(descriptor, fcntl.LOCK_SH)
    return _lacks_newline(descriptor) and _lock(descriptor, fcntl.LOCK_EX) and _lacks_newline(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    """Wait for a lock, but not for ever: another program that holds one must not stop the agent."""
    assert fcntl is not None
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            sleep(_LOCK_PAUSE_SECONDS)
        except OSError:  # a file system without locks: parts of lines are not recognised there
            break
    return False


def _lacks_newline(descriptor: int) -> bool:
    if not os.fstat(descriptor).st_size:
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"
