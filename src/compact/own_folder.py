"""The folder `.compact`, which the default store and the default archive are in: it never gets into a commit."""

from __future__ import annotations

import os
from pathlib import Path

NAME = ".compact"


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
