"""How long an archive keeps what is in it, and how much: what is too old goes, and then the oldest of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

# Chosen: an archive of many sessions takes a while to list.
PRUNE_SECONDS = 3_600.0
_DAY_SECONDS, _MEGABYTE = 86_400.0, 1_000_000


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file or object of an archive: where it is, how large it is, and when it was last written."""

    place: str
    size: int
    written_at: float


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of an archive; None is no limit. Nothing that a session still needs is in an archive."""

    keep_days: float | None = None
    max_mb: float | None = None

    @property
    def is_limited(self) -> bool:
        """True if anything is ever to be removed."""
        return self.keep_days is not None or self.max_mb is not None

    def surplus(self, files: Iterable[ArchivedFile], *, now: float) -> list[ArchivedFile]:
        """Return what is to be removed, the oldest first; what was written last stays, however large it is."""
        oldest_first = sorted(files, key=lambda file: (file.written_at, file.place))
        oldest = float("-inf") if self.keep_days is None else now - self.keep_days * _DAY_SECONDS
        room = float("inf") if self.max_mb is None else self.max_mb * _MEGABYTE
        used, removed = sum(file.size for file in oldest_first), list[ArchivedFile]()
        for file in oldest_first[:-1]:
            if file.written_at >= oldest and used <= room:
                break
            removed.append(file)
            used -= file.size
        return removed


class PruneTimer:
    """Says when an archive is to be looked through again."""

    def __init__(self, every_seconds: float = PRUNE_SECONDS) -> None:
        self._every_seconds, self._due_at = every_seconds, float("-inf")

    def is_due(self) -> bool:
        """Return True at most once in its time."""
        now = monotonic()
        if now < self._due_at:
            return False
        self._due_at = now + self._every_seconds
        return True
