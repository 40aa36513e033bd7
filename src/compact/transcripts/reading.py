"""`read`: the sessions in a file or a folder, whatever agent or tool wrote it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compact.transcripts.agents import claude_code, cline, codex, gemini_cli, opencode, pi, qwen_code
from compact.transcripts.exports import langsmith, openai, otel
from compact.transcripts.logs import AgentLog, UnknownLines
from compact.transcripts.sources import DAMAGED, Item, LogFile, is_database, open_log

_CLINE_FILE = "api_conversation_history"
_DAMAGED_LINE = "line that is not JSON"


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One format: whose it is, how it is recognised by its first lines, and how it is read."""

    name: str
    recognises: Callable[[Sequence[object]], bool]
    read: Callable[[Iterable[Item]], list[AgentLog]]


# The more certain ones first; `name` is what messages and the documentation say.
FORMATS: tuple[LogFormat, ...] = (
    LogFormat("Claude Code", claude_code.recognises, claude_code.read),
    LogFormat("Codex", codex.recognises, codex.read),
    LogFormat("Gemini CLI", gemini_cli.recognises, gemini_cli.read),
    LogFormat("Qwen Code", qwen_code.recognises, qwen_code.read),
    LogFormat("opencode", opencode.recognises, opencode.read),
    LogFormat("pi", pi.recognises, pi.read),
    LogFormat("LangSmith", langsmith.recognises, langsmith.read),
    LogFormat("OpenTelemetry (OTLP JSON)", otel.recognises, otel.read),
    LogFormat("OpenAI exports", openai.recognises, openai.read),
    LogFormat("Cline or Roo Code", cline.recognises, cline.read),
)


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """What was found at a path.

    Attributes:
        logs: The sessions that have messages, those of a file in its order, files by their names.
        empty: How many sessions had none.
        others: Files of a folder that are no logs.
    """

    logs: tuple[AgentLog, ...]
    empty: int = 0
    others: tuple[str, ...] = ()


def read(path: Path | str) -> ReadLogs:
    """Return the sessions in a log, or in all logs of a folder; none if the file is no log that is known.

    A log is recognised by its content. Long logs are read a line at a time.

    Args:
        path: A file, plain or gzipped, a database of opencode's, or a folder.

    Raises:
        OSError: If the path cannot be read.

    Example:
        >>> from compact.transcripts import read
        >>> [log.agent for log in read("tests/agent_logs/samples/codex.jsonl").logs]
        ['Codex']
    """
    start = Path(path)
    found: list[AgentLog] = []
    others: list[str] = []
    for place in places(start):
        logs = _read_one(place)
        if logs is None:
            others.append(str(place))
            continue
        found += [_named(log, place, number, len(logs)) for number, log in enumerate(logs)]
    kept = tuple(log for log in found if log.messages)
    return ReadLogs(kept, len(found) - len(kept), tuple(others) if start.is_dir() else ())


def places(start: Path) -> Iterator[Path]:
    """Yield the files of a folder by their names, and whole folders that are one log; or the file itself.

    Args:
        start: A file or a folder.
    """
    if not start.is_dir() or opencode.is_storage(start):
        yield start
    else:
        for place in sorted(start.iterdir()):
            if place.is_dir() and not place.is_symlink():
                yield from places(place)
            elif place.is_file():
                yield place


def _named(log: AgentLog, place: Path, number: int, count: int) -> AgentLog:
    """Return a log with its file; an id that it lacks is that of its file, or of its folder."""
    source = f"{place}, session {number + 1}" if count > 1 else str(place)
    stem = place.name.split(".")[0]
    return replace(
        log, source=source, session_id=log.session_id or (place.resolve().parent.name if stem == _CLINE_FILE else stem)
    )


def _read_one(place: Path) -> list[AgentLog] | None:
    """Return the sessions of one file or storage folder; None if it is no log."""
    if place.is_dir():
        return opencode.read_storage(place)
    if is_database(place):
        return _read_database(place)
    file = open_log(place)
    if file is None:
        return None
    known = next((one for one in FORMATS if one.recognises(file.head)), None)
    return _with_damage(file, known.read) if known else None


def _read_database(place: Path) -> list[AgentLog] | None:
    try:
        return opencode.read_database(place) or None
    except sqlite3.Error:
        return None


def _with_damage(file: LogFile, reader: Callable[[Iterable[Item]], list[AgentLog]]) -> list[AgentLog]:
    """Read a file, and count the lines that are no JSON."""
    damaged: list[str] = []

    def whole() -> Iterator[tuple[str, Any]]:
        for place, value in file.items():
            if value is DAMAGED:
                damaged.append(place)
            else:
                yield place, value

    logs = reader(whole())
    if not damaged or not logs:
        return logs
    lines = UnknownLines(_DAMAGED_LINE, len(damaged), damaged[0])
    return [replace(logs[0], unknown=(*logs[0].unknown, lines)), *logs[1:]]
