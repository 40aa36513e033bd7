"""The archive as files on disk: private, whole, and never overwritten.

Transcripts and summaries are on the disk when a save returns. Events are handed to the operating system, so they
survive a crash of the process but perhaps not of the machine. `.*.tmp` files are what a killed writer left; they can
be deleted. Appending relies on the file system to keep writes whole, as local ones do and NFS does not.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any

from compact.archive.json_lines import summary_document, to_line, transcript_lines
from compact.archive.names import EVENTS_NAME, folder_name, free_names, is_archived, summary_name, transcript_name
from compact.archive.private_folder import Folder, open_folder
from compact.archive.retention import PRUNE_SECONDS, ArchivedFile, PruneTimer, Retention
from compact.core.audit.archive import ArchiveError
from compact.core.messages.message import Message

_ADVICE = {
    errno.ENOSPC: ("the disk is full", "free some space, or move the archive to another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or move the archive to another disk"),
    errno.EROFS: ("the file system is read-only", "choose an archive folder that can be written"),
    errno.EACCES: ("permission denied", "make the folder writable for this user, or choose another one"),
    errno.EPERM: ("the operation is not permitted", "make the folder writable for this user, or choose another one"),
    errno.ELOOP: ("a symbolic link is in its place", "remove the link: the archive never follows one"),
    errno.ENOTDIR: ("a link or a file is where a folder should be", "remove it, or choose another archive folder"),
}


class FilesystemArchive:
    """Writes a folder per session under `root`: folders for the owner alone (0700), files too (0600)."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        retention: Retention | None = None,
        prune_seconds: float = PRUNE_SECONDS,
        clock: Callable[[], float] = time,
    ) -> None:
        # Absolute from the start: an agent that changes its directory must not take the archive with it.
        self.root = Path(root).expanduser().absolute()
        self.retention = retention or Retention()
        self._timer, self._clock = PruneTimer(prune_seconds), clock

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Write a part of the history, a message per line, and return the path."""
        return self._save(session_id, transcript_name(step), transcript_lines(transcript))

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Write the summary and return the path."""
        return self._save(session_id, summary_name(step), summary_document(summary))

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Append the event to the session's `events.jsonl`."""
        self.save_events(session_id, [event])

    def save_events(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Append events to the session's `events.jsonl`, in a single write."""
        with self._folder(session_id, EVENTS_NAME) as folder:
            folder.append(EVENTS_NAME, b"".join(map(to_line, events)))

    def prune(self) -> int:
        """Remove files that are too old or too many, once in a while, and folders that are empty then."""
        if not self.retention.is_limited or not self._timer.is_due():
            return 0
        try:
            surplus = self.retention.surplus(self._files(), now=self._clock())
            for file in surplus:
                Path(file.place).unlink(missing_ok=True)  # another process may be at it too
        except OSError as error:
            reason, hint = _ADVICE.get(error.errno or 0, (error.strerror or str(error), ""))
            raise ArchiveError(reason, place=str(self.root), hint=hint) from error
        for folder in {Path(file.place).parent for file in surplus}:
            with suppress(OSError):  # it has other files
                folder.rmdir()
        return len(surplus)

    def _files(self) -> Iterator[ArchivedFile]:
        """Yield the files that are ours; no link is followed."""
        for folder in os.scandir(self.root):
            if not folder.is_dir(follow_symlinks=False):
                continue
            for file in os.scandir(folder):
                if is_archived(f"{folder.name}/{file.name}") and file.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # another process has just removed it
                        found = file.stat(follow_symlinks=False)
                        yield ArchivedFile(file.path, found.st_size, found.st_mtime)

    def _save(self, session_id: str, name: str, data: bytes) -> str:
        with self._folder(session_id, name) as folder:
            return str(folder.path / folder.write_new(free_names(name), data))

    @contextmanager
    def _folder(self, session_id: str, name: str) -> Generator[Folder]:
        own = folder_name(session_id)
        try:
            with open_folder(self.root, own) as folder:
                yield folder
        except OSError as error:
            reason, hint = _ADVICE.get(error.errno or 0, (error.strerror or str(error), ""))
            raise ArchiveError(reason, place=str(self.root / own / name), hint=hint) from error
