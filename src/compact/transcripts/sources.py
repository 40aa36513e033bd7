"""Files of logs: plain or gzipped, read a line at a time, so that a long log is never in memory as text."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

_GZIP_MAGIC = b"\x1f\x8b"
_SQLITE_MAGIC = b"SQLite format 3\x00"
# Chosen: enough to tell what a log is; some begin with dozens of lines about the program.
HEAD_LINES = 60
# Chosen: a JSON document is parsed as a whole; more than this is no log that a person keeps.
_MAX_DOCUMENT_BYTES = 1 << 30


class Damaged:
    """A line that is no JSON: a log may end in the middle of one, where its agent was stopped."""


DAMAGED = Damaged()
Item = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file that may be a log, and how it begins."""

    path: Path
    head: tuple[object, ...]
    is_lines: bool

    def items(self) -> Iterator[Item]:
        """Yield each line that is JSON with its place, or the document."""
        if not self.is_lines:
            yield from (("", value) for value in self.head)
            return
        with open_packed(self.path) as file:
            yield from _lines(file)


def is_database(path: Path) -> bool:
    """Return True for a SQLite file; one that cannot be read is none, and must not keep others from being read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


def open_log(path: Path) -> LogFile | None:
    """Return a file with its beginning; None if it is neither JSON nor JSONL."""
    try:
        with open_packed(path) as file:
            head = [value for _, value in _first(_lines(file), HEAD_LINES)]
    except (OSError, EOFError, zlib.error, UnicodeError):
        return None
    values = tuple(value for value in head if value is not DAMAGED)
    # A document may be one line; what is pretty-printed has a first line that is no JSON.
    if len(head) > 1 and head[0] is not DAMAGED and len(values) * 2 > len(head):
        return LogFile(path, values, is_lines=True)
    if len(head) == 1 and isinstance(head[0], dict):
        # One line of a log, or a document on one line: formats of both kinds are asked.
        return LogFile(path, values, is_lines=True)
    return _document(path)


def _document(path: Path) -> LogFile | None:
    try:
        with open_packed(path) as file:
            data = file.read(_MAX_DOCUMENT_BYTES)
        return LogFile(path, (json.loads(data.decode("utf-8-sig")),), is_lines=False)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None


def open_packed(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it is gzipped."""
    with path.open("rb") as file:
        is_packed = file.read(2) == _GZIP_MAGIC
    return cast(IO[bytes], gzip.open(path, "rb")) if is_packed else path.open("rb")


def _lines(file: Iterable[bytes]) -> Iterator[Item]:
    """Yield the value of each line that is not empty; DAMAGED where a line is no JSON."""
    for number, line in enumerate(file, start=1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            try:
                yield f"line {number}", json.loads(text)
            except (ValueError, RecursionError):
                yield f"line {number}", DAMAGED


def _first(items: Iterator[Item], count: int) -> list[Item]:
    return [item for item, _ in zip(items, range(count), strict=False)]
