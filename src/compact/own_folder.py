"""The folder `.compact`, which the default store and the default archive are in: it never gets into a commit."""

from __future__ import annotations

from pathlib import Path

NAME = ".compact"


def keep_out_of_git(folder: Path) -> None:
    """Write a `.gitignore` into a folder of this name, unless it has one: conversations are nobody's business."""
    ignore = folder / ".gitignore"
    if folder.name != NAME or ignore.exists():
        return
    try:
        ignore.write_text("*\n", encoding="utf-8")
    except OSError:
        # A folder that cannot be written to gets nothing else either; whoever writes the content says so.
        return
