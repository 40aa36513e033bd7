"""`compact import`: logs of agents into the store, where every other command and the viewer show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Store
from compact.cli.settings import in_memory, load_config, recorded_model, without_side_effects
from compact.cli.store import check_store_url
from compact.cli.transcripts.agent_logs import show_unknown
from compact.cli.transcripts.files import read_transcripts
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.cli.transcripts.requests import FileTranscript
    from compact.config import CompactConfig
    from compact.core.messages.message import Message
    from compact.manager import CompactManager

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Logs of agents, transcripts in JSON or JSONL, or folders with logs."),
]
SessionId = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="The session to import into; by default the agent's name and its id, or the file's name.",
    ),
]


def import_logs(
    paths: Paths,
    session: SessionId = None,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Import logs of agents into the store; compact nothing.

    Reads logs of Claude Code, Codex, Gemini CLI, Qwen Code, opencode, Cline, Roo Code and pi, and exports of LangSmith,
    OpenAI and OpenTelemetry, by their content. A session that is in the store already gets what its log has since. Then
    `compact view`, `show`, `recall` and `export` work on them.
    """
    check_store_url(store)
    settings = without_side_effects(load_config(config, store=store))
    transcripts = [one for path in paths for one in read_transcripts(path)]
    if session is not None and len(transcripts) != 1:
        found = screen.quantity(len(transcripts), "session")
        raise CompactError(f"--session names one session, but there are {found}", hint="leave --session out")
    rows = list(import_transcripts(transcripts, settings, session))
    if as_json:
        screen.write_json([dict(zip(_COLUMNS, row, strict=True)) for row in rows])
    else:
        screen.table(_COLUMNS, rows)
    show_unknown([one.log for one in transcripts if one.log])


# Chosen: an agent's instructions, and what its user asked first.
_FIRST_MESSAGES = 5
_READ = "read"
_COLUMNS = ("session", "agent", "messages", "calls", "results", "state")


def import_transcripts(
    transcripts: Sequence[FileTranscript], settings: CompactConfig, session: str | None = None
) -> Iterator[tuple[str, str, int, int, int, str]]:
    """Write transcripts into the store of the settings; yield a row for each."""
    from compact.manager import CompactManager

    with CompactManager(settings) as manager:
        stored = {info.session_id: info.messages for info in manager.sessions()}
        done: set[str] = set()
        for one in transcripts:
            free = (name for name in _names(one) if name not in done)
            name = session or next(name for name in free if name not in stored or _is_of(one, name, manager))
            done.add(name)
            yield _import(one, name, manager, stored=stored.get(name))


def _names(transcript: FileTranscript) -> Iterator[str]:
    """Yield ids for a session, the best first: the agent's name and its own id, or that of the file; then numbered."""
    log, base = transcript.log, transcript.name or "transcript"
    if log:
        agent = re.sub(r"\W+", "-", log.agent.lower())
        base = f"{agent}-{log.session_id}" if log.session_id else agent
    yield base
    yield from (f"{base}-{number}" for number in count(2))


def _is_of(transcript: FileTranscript, name: str, manager: CompactManager) -> bool:
    """Return True if a transcript is the stored session of that id, and not another one whose file is called the same.

    A log may have gone back to an earlier message since, and is known by how it begins.
    """
    looked_at = _FIRST_MESSAGES if transcript.log else None
    pairs = zip(_entries(transcript, manager)[:looked_at], manager.history(name), strict=False)
    return all(
        (one.role, one.text, one.tool_calls) == (other.role, other.text, other.tool_calls) for one, other in pairs
    )


def _entries(transcript: FileTranscript, manager: CompactManager) -> Sequence[Message]:
    """Return the messages of a transcript as a log has them; of an agent's log, the first ones."""
    from compact.core.messages.entries import read_entry
    from compact.manager import CompactManager

    if transcript.log:
        first = transcript.messages[:_FIRST_MESSAGES]
        return [read_entry(item, f"messages[{place}]") for place, item in enumerate(first)]
    reader = CompactManager(in_memory(manager.config))
    reader.add_history(_READ, transcript.messages, dialect=transcript.dialect)
    return reader.history(_READ)


def _import(
    transcript: FileTranscript, name: str, manager: CompactManager, *, stored: int | None
) -> tuple[str, str, int, int, int, str]:
    """Write a transcript, if it has more messages than are stored of it; None is none at all."""
    messages, calls, results = _counts(transcript, manager)
    state = "already there"
    if stored is None or messages > stored:
        model = recorded_model(manager.config, transcript.model)
        with screen.spinner(f"importing {screen.quantity(messages, 'message')} into {name}"):
            manager.add_history(name, transcript.messages, model=model, dialect=transcript.dialect)
        state = "imported" if stored is None else "updated"
    agent = transcript.log.agent if transcript.log else ""
    return name, agent, messages, calls, results, state


def _counts(transcript: FileTranscript, manager: CompactManager) -> tuple[int, int, int]:
    """Return how many messages, calls and results a transcript has in the store, whatever its dialect has of them.

    In some dialects an item has several results, in others a call is an item.
    """
    if transcript.log:
        items = transcript.messages
        calls = sum(len(one.get("tool_calls") or ()) for one in items)
        return len(items), calls, sum(one.get("role") == "tool" for one in items)
    entries = _entries(transcript, manager)
    return len(entries), sum(len(one.tool_calls) for one in entries), sum(one.role == "tool" for one in entries)
