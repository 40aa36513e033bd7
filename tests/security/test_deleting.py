"""What deleting a session removes, and what the page about security says that it does not."""

from __future__ import annotations

from pathlib import Path

from compact import CompactConfig, CompactManager
from compact.testing import dialogue


def opened(folder: Path) -> CompactManager:
    return CompactManager(
        CompactConfig(
            max_context_tokens=2_000,
            policy={"hard_cap_buffer": 0},
            state={"url": f"sqlite:///{folder}/state.db"},
            storage={"adapter": "fs", "path": str(folder / "archive")},
            telemetry={"exporter": "none"},
        )
    )


def session_ids(manager: CompactManager) -> list[str]:
    return [info.session_id for info in manager.sessions()]


def test_the_archive_of_a_deleted_session_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as manager:
        manager.manual_compact("s", dialogue(40, words=50))
        manager.flush()
        archived = {path for path in (tmp_path / "archive").rglob("*") if path.is_file()}
        assert archived
        manager.delete("s")
        assert session_ids(manager) == []
    assert {path for path in (tmp_path / "archive").rglob("*") if path.is_file()} >= archived


def test_a_process_that_still_has_it_writes_it_again(tmp_path: Path) -> None:
    history = dialogue(10, words=20)
    with opened(tmp_path) as ours, opened(tmp_path) as theirs:
        ours.preflight("s", history)
        theirs.delete("s")
        assert session_ids(theirs) == []
        ours.preflight("s", [*history, *dialogue(2, words=20)])
        assert session_ids(theirs) == ["s"]
