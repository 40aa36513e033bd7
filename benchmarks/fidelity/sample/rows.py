"""All conversations of the sample, as data files in a folder that the benchmark reads like any other."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fidelity.sample.coding import CodingSession
from fidelity.sample.script import Session, messages_of
from fidelity.sample.service import ServiceSession
from fidelity.sample.shell import ShellSession

SESSIONS = 6
KINDS: Mapping[str, type[Session]] = {
    "sample-coding": CodingSession,
    "sample-service": ServiceSession,
    "sample-shell": ShellSession,
}


def sample_rows(kind: str) -> list[dict[str, Any]]:
    """The conversations of one kind; the same at every call."""
    return [
        {"id": f"{kind}/{number}", "source": kind, "messages": messages_of(KINDS[kind], f"{kind} {number}")}
        for number in range(1, SESSIONS + 1)
    ]


def sample_folder() -> Path:
    """A folder that holds the sample, written if it is not there yet."""
    lines = {kind: "".join(json.dumps(row) + "\n" for row in sample_rows(kind)) for kind in KINDS}
    digest = hashlib.sha256("".join(lines.values()).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"compact-fidelity-sample-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in lines.items():
        file = folder / f"{kind}.jsonl.gz"
        if not file.exists():
            _write(file, text)
    return folder


def _write(file: Path, text: str) -> None:
    """Write whole or not at all: several runs may share the folder."""
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(gzip.compress(text.encode(), mtime=0))
    unfinished.replace(file)
