"""What could not be archived, and where it was meant for."""

from __future__ import annotations

from compact.core.audit.archive import ArchiveError


def test_an_error_names_the_place_and_what_to_do() -> None:
    error = ArchiveError("the disk is full", place="/archive/s", hint="make room")
    assert str(error).startswith("cannot write to the archive at /archive/s: the disk is full")
    assert (error.place, error.hint, error.code) == ("/archive/s", "make room", "archive_failed")
