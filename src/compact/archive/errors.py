"""What the archive raises; the caller reports it as an event and goes on."""

from __future__ import annotations

from compact.core.errors import CompactError


class ArchiveError(CompactError):
    """Something could not be archived; `place` is the path or key it was meant for."""

    code = "archive_failed"

    def __init__(self, message: str, *, place: str, hint: str = "") -> None:
        super().__init__(f"cannot write to the archive at {place}: {message}", hint=hint)
        self.place = place
