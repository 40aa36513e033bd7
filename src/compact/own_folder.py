"""Where things are written: the folder `.compact`, which never gets into a commit, and what cannot be written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NAME = ".compact"
# Chosen: twice what an empty store takes.
_MIN_FREE_BYTES = 1_000_000


def keep_out_of_git(folder: Path) -> None:
    """Write a `.gitignore` into a folder of this name, unless it has one: conversations are nobody's business."""
    ignore = folder / ".gitignore"
    if folder.name != NAME or os.path.lexists(ignore):
        return
    try:
        descriptor = os.open(ignore, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError:
        # Another process was faster; or the folder cannot be written to, which whoever writes the content says.
        return
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("*\n")


def why_not_writable(path: Path, *, is_folder: bool) -> str:
    """Return why a file, or files in a folder, cannot be written, or ""; nothing is created to find out."""
    place = path.expanduser().absolute()
    found = next(known for known in (place, *place.parents) if os.path.lexists(known))
    try:
        if (is_folder or found != place) and not found.is_dir():
            return f"{found} is not a folder"
        for known in {found, found.parent} if found.is_file() else {found}:
            if not os.access(known, os.W_OK | (os.X_OK if known.is_dir() else 0)):
                return f"{known} cannot be written to"
        disk = shutil.disk_usage(found if found.is_dir() else found.parent)
    except OSError as error:
        return f"{found}: {error.strerror}"
    is_full = disk.total and disk.free < _MIN_FREE_BYTES  # some file systems do not say
    return f"the disk of {found} is full" if is_full else ""
