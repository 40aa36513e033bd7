"""Logs of agents as transcripts: how commands find them, and what they say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from compact.cli import screen
from compact.cli.transcripts.requests import FileTranscript
from compact.transcripts import FORMATS, AgentLog, read

KNOWN = ", ".join(one.name for one in FORMATS)


def find_logs(source: str, data: bytes | None = None) -> list[FileTranscript]:
    """Return the sessions in a file or a folder, or in the bytes of standard input; empty if it is no log."""
    if data is None:
        path = Path(source)
        return _transcripts(path) if path.exists() and (path.is_file() or path.is_dir()) else []
    with NamedTemporaryFile(prefix="compact-") as file:
        file.write(data)
        file.flush()
        found = _transcripts(Path(file.name))
    return [replace(one, log=one.log.from_source("standard input") if one.log else None) for one in found]


def find_in_folder(folder: Path) -> tuple[list[FileTranscript], Sequence[str]]:
    """Return the sessions in the logs of a folder, and the files that are no logs."""
    try:
        found = read(folder)
    except OSError:
        return [], ()
    return _of_logs(found.logs), found.others


def _transcripts(path: Path) -> list[FileTranscript]:
    try:
        return _of_logs(read(path).logs)
    except OSError:
        return []  # Whoever reads the file as a transcript says why it cannot be read.


def _of_logs(logs: Sequence[AgentLog]) -> list[FileTranscript]:
    return [FileTranscript(list(log.messages), log.instructions, dialect="chat", log=log) for log in logs]


def describe(log: AgentLog, index: int, count: int, name: str) -> None:
    """Say on stderr what was read: whose log it is, what is in it, and what was not understood."""
    if count > 1:
        screen.notice(f"{name} holds {screen.quantity(count, 'session')}; this is {index}, --index chooses another")
    screen.notice(f"{log.source}: {summary_of(log)}")
    show_unknown([log])


def summary_of(log: AgentLog) -> str:
    """Return one line about a log."""
    who = f"{log.agent} {log.version}".rstrip()
    parts = [
        screen.quantity(len(log.messages), "message"),
        screen.quantity(log.calls, "call"),
        screen.quantity(log.results, "result"),
    ]
    if log.compactions:
        parts.append(f"{screen.quantity(len(log.compactions), 'compaction')} of its own (see compact audit)")
    if log.thinking:
        parts.append(f"{screen.quantity(log.thinking, 'piece')} of thinking left out")
    return f"{who}: {', '.join(parts)}"


def show_unknown(logs: Sequence[AgentLog]) -> None:
    """Say what was not understood: what it is, how often, and where it is first."""
    for log in logs:
        for lines in log.unknown:
            often = screen.quantity(lines.count, "time")
            text = f"{log.source}: not understood: {lines.kind}, {often}, first at {lines.first}"
            screen.notice(text, label="note", style="yellow")
