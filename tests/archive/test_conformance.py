"""Every archive passes the suite that we give to others, and has the names of the specification."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from compact.archive import FilesystemArchive, S3Archive, private_folder
from compact.testing import EmptyArchive, check_archive
from compact.testing.archive_checks import MakeArchive


def _make_filesystem(tmp_path: Path) -> MakeArchive:
    numbers = count()

    def make() -> EmptyArchive:
        root = tmp_path / str(next(numbers)) / "archive"

        def contents() -> dict[str, bytes]:
            # From above the root: what leaves it would be seen.
            return {str(path): path.read_bytes() for path in root.parent.rglob("*") if path.is_file()}

        return EmptyArchive(FilesystemArchive(root), contents)

    return make


def test_filesystem_archive_conforms(tmp_path: Path) -> None:
    check_archive(_make_filesystem(tmp_path), standard_names=True)


def test_filesystem_archive_conforms_without_folder_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(private_folder, "_HAS_FOLDER_DESCRIPTORS", False)
    check_archive(_make_filesystem(tmp_path), standard_names=True)


def test_filesystem_archive_conforms_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on FAT."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(private_folder.os, "link", refuse)
    check_archive(_make_filesystem(tmp_path), standard_names=True)


@pytest.mark.parametrize("kms_key_id", [None, "compact-archive-test-key"])
def test_s3_archive_conforms(bucket: Any, kms_key_id: str | None) -> None:
    numbers = count()

    def make() -> EmptyArchive:
        prefix = f"run-{next(numbers)}"
        archive = S3Archive(bucket.name, prefix, kms_key_id=kms_key_id, endpoint_url=bucket.server.url)
        seen = set(bucket.contents())
        return EmptyArchive(archive, lambda: {key: data for key, data in bucket.contents().items() if key not in seen})

    check_archive(make, standard_names=True)
