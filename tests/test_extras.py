"""The line that installs an extra works as it is printed, wherever Compact came from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact import extras


class _Installed:
    def __init__(self, origin: dict[str, Any] | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self._origin) if self._origin else None


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, "pip install 'compact-context[viewer]'"),
        ({"url": "file:///my%20code/compact", "dir_info": {}}, "pip install '/my code/compact[viewer]'"),
        (
            {"url": "file:///code/compact", "dir_info": {"editable": True}},
            "pip install -e '/code/compact[viewer]'",
        ),
        (
            {"url": "https://example.org/compact.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'compact-context[viewer] @ git+https://example.org/compact.git'",
        ),
    ],
)
def test_the_line_names_where_compact_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, line: str
) -> None:
    monkeypatch.setattr(extras, "distribution", lambda name: _Installed(origin))
    assert extras.install_line("viewer") == line


def test_a_package_that_was_never_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", missing)
    assert extras.install_line("s3") == "pip install 'compact-context[s3]'"
