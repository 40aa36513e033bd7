"""The sessions in files and folders, in the one form that all policies get: Chat Completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from compact.cli import screen
from compact.cli.transcripts.agent_logs import KNOWN, show_unknown
from compact.cli.transcripts.files import STANDARD_INPUT, SUFFIXES, TranscriptError, read_transcripts
from compact.cli.transcripts.measure import measure
from compact.core.errors import CompactError
from compact.transcripts.reading import places
from compact.transcripts.sources import is_database

if TYPE_CHECKING:
    from compact.cli.transcripts.requests import FileTranscript
    from compact.config import CompactConfig
    from compact.measuring.histories import MessageSizes, SessionHistory


@dataclass(frozen=True, slots=True)
class FoundTranscript:
    """A transcript with its name, and where it was read; `is_named` is False for what was found in a folder."""

    name: str
    transcript: FileTranscript
    source: str
    is_named: bool


@dataclass(frozen=True, slots=True)
class FoundTranscripts:
    """What was read of files and folders, and why the rest was not."""

    found: Sequence[FoundTranscript]
    unread: Sequence[str]

    @property
    def model(self) -> str:
        """The model that most of the messages are by; "" if no file says that."""
        messages = Counter[str]()
        for recording in self.found:
            messages[recording.transcript.model] += len(recording.transcript.messages)
        del messages[""]
        return max(messages, key=lambda model: messages[model], default="")


def read_recordings(sources: Sequence[str]) -> FoundTranscripts:
    """Return every transcript of the files; of a folder, what is none is noted."""
    found: list[FoundTranscript] = []
    unread: list[str] = []
    for source, is_named in _files(sources):
        try:
            found += [FoundTranscript(name, one, source, is_named) for name, one in _transcripts_of(source)]
        except CompactError as error:
            if is_named:
                raise
            unread.append(error.message)
    return FoundTranscripts(found, unread)


def read_sessions(recordings: FoundTranscripts, config: CompactConfig) -> list[SessionHistory]:
    """Return every session that has a model call; what is left out is counted and said."""
    from compact.measuring.histories import MessageSizes
    from compact.tokens import get_tokenizer

    sizes = MessageSizes(get_tokenizer(config.model, config.tokenizer))
    found: list[SessionHistory] = []
    skipped = list(recordings.unread)
    for recording in recordings.found:
        try:
            found.append(_history(recording, config, sizes))
        except CompactError as error:
            if recording.is_named:
                raise
            skipped.append(error.message)
    if skipped:
        files = screen.quantity(len(skipped), "file")
        screen.notice(
            f"{files} could not be read as transcripts; the first: {skipped[0]}", label="note", style="yellow"
        )
    sessions = [session for session in found if session.calls]
    if not sessions:
        raise TranscriptError(
            "there is no session with a model call in what was named",
            hint="name transcripts that have replies of an assistant; `compact inspect FILE` shows what one holds",
        )
    if len(sessions) < len(found):
        left = screen.quantity(len(found) - len(sessions), "session")
        screen.notice(f"{left} without a reply of an assistant left out", label="note", style="yellow")
    return sessions


def _files(sources: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield files and folders that are one log, and whether each was named itself; of a folder, what may be one."""
    for source in sources:
        path = Path(source)
        if source == STANDARD_INPUT or not path.is_dir():
            yield source, True
            continue
        inside = [str(place) for place in places(path) if _may_be_transcript(place)]
        if not inside:
            hint = f"name files, or a folder with logs of {KNOWN}, or files that end in {', '.join(SUFFIXES)}"
            raise TranscriptError(f"there is no transcript in the folder {source}", hint=hint)
        yield from ((place, False) for place in inside)


def _may_be_transcript(place: Path) -> bool:
    """Return True for what is read of a folder: its other files may be large, and are no transcripts."""
    return place.is_dir() or place.name.endswith(SUFFIXES) or is_database(place)


def _transcripts_of(source: str) -> Iterator[tuple[str, FileTranscript]]:
    transcripts = read_transcripts(source)
    show_unknown([transcript.log for transcript in transcripts if transcript.log])
    name = Path(source).name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    names = [name] if len(transcripts) == 1 else [f"{name}#{number}" for number in range(len(transcripts))]
    return zip(names, transcripts, strict=True)


def _history(recording: FoundTranscript, config: CompactConfig, sizes: MessageSizes) -> SessionHistory:
    """Return a transcript of any dialect as a history; instructions become a system message."""
    from compact.core.messages.entries import write_entry
    from compact.measuring.histories import SessionHistory

    transcript = recording.transcript
    measured = measure(config, transcript)
    system = [{"role": "system", "content": transcript.instructions}] if transcript.instructions else []
    entries = [cast(dict[str, Any], write_entry(message, {})) for message in measured.messages]
    return SessionHistory(
        id=recording.name,
        source=recording.source,
        messages=(*system, *entries),
        sizes=sizes,
        tools=transcript.tools,
        fixed_tokens=sizes.tokenizer.count_tools(transcript.tools) if transcript.tools else 0,
    )
