"""The archive as files on disk: private, whole, and never overwritten.

Transcripts and summaries are on the disk when a save returns. Events are handed to the operating system, so they
survive a crash of the process but perhaps not of the machine. `.*.tmp` files are what a killed writer left; they can
be deleted. Appending relies on the file system to keep writes whole, as local ones do and NFS does not.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compact.archive.json_lines import summary_document, to_line, transcript_lines
from compact.archive.names import EVENTS_NAME, folder_name, free_names, summary_name, transcript_name
from compact.archive.private_folder import Folder, open_folder
from compact.core.audit.archive import ArchiveError
from compact.core.log.messages import Message

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

    def __init__(self, root: str | os.PathLike[str]) -> None:
        # Absolute from the start: an agent that changes its directory must not take the archive with it.
        self.root = Path(root).expanduser().absolute()

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Write the history, a message per line, and return the path."""
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
