"""Reads transcripts from files and pipes, in all their formats, and writes them."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from compact.cli.screen import is_terminal, json_text, notice, quantity, spinner
from compact.cli.transcripts.agent_logs import KNOWN, describe, find_in_folder, find_logs
from compact.cli.transcripts.requests import FileTranscript, read_request
from compact.core.errors import CompactError
from compact.core.json_data import is_list

STANDARD_INPUT = "-"
# What a transcript in a folder is called; other files there may be large, and are none.
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_GZIP_MAGIC = b"\x1f\x8b"
_FORMATS = (
    "use a JSON list of messages, a request (`messages`, `input` or `contents`), JSONL with a message per line, "
    f"or a log of {KNOWN}"
)


class TranscriptError(CompactError, ValueError):
    """A transcript file that cannot be read or written."""

    code = "invalid_transcript"


def read_transcript(source: str, index: int = 0) -> FileTranscript:
    """Return the transcript in a file, a folder or standard input; `index` chooses one of several.

    A log of an agent is said on stderr, with what was not understood in it.
    """
    name, transcripts = _name(source), _read_all(source)
    if index >= len(transcripts):
        held = quantity(len(transcripts), "transcript")
        last = len(transcripts) - 1
        hint = f"use --index 0 to {last}" if last else "leave --index out"
        raise TranscriptError(f"{name} holds {held}: there is no transcript {index} (the first is 0)", hint=hint)
    log = transcripts[index].log
    if log:
        describe(log, index, len(transcripts), name)
    elif len(transcripts) > 1:
        notice(f"{name} holds {quantity(len(transcripts), 'transcript')}; this is {index}, --index chooses another")
    return _checked(transcripts[index], name)


def read_transcripts(source: str) -> list[FileTranscript]:
    """Return all the transcripts in a file, a folder of logs, or standard input."""
    stem = "" if source == STANDARD_INPUT else Path(source).name.split(".")[0]
    found = [one if one.log else _checked(one, _name(source)) for one in _read_all(source)]
    return [replace(one, name=one.name or stem) for one in found]


def _name(source: str) -> str:
    return "standard input" if source == STANDARD_INPUT else source


def _checked(transcript: FileTranscript, name: str) -> FileTranscript:
    """Return a transcript whose messages are a list that is not empty; anything else is an error."""
    messages = transcript.messages
    if not isinstance(messages, list):
        key = transcript.key or "messages"
        raise TranscriptError(f"`{key}` in {name} is {_json_type(messages)}, not a list", hint=_FORMATS)
    if not messages:
        raise TranscriptError(f"{name} holds no messages", hint=_FORMATS)
    return transcript


def _read_all(source: str) -> list[FileTranscript]:
    name = _name(source)
    if source != STANDARD_INPUT and Path(source).is_dir():
        return _in_folder(Path(source))
    data = _read_bytes(source) if source == STANDARD_INPUT else None
    with spinner(f"reading {name}"):
        logs = find_logs(source, data)
        if logs:
            return logs
        text = _decode(_decompress(_read_bytes(source) if data is None else data, name), name)
        if not text.strip():
            raise TranscriptError(f"{name} is empty", hint=_FORMATS)
        return _find_transcripts(_parse_values(text, source, name), name)


def _in_folder(folder: Path) -> list[FileTranscript]:
    with spinner(f"reading {folder}"):
        logs, others = find_in_folder(folder)
    if not logs:
        raise TranscriptError(
            f"there is no log in the folder {folder}", hint=f"name a file, or a folder with logs of {KNOWN}"
        )
    left = [place for place in others if place.endswith(SUFFIXES)]
    if left:
        text = f"{quantity(len(left), 'file')} in {folder} left out: no log of an agent; the first: {left[0]}"
        notice(text, label="note", style="yellow")
    return logs


def with_meta(compacted: Sequence[Any], messages: Sequence[Any]) -> list[Any]:
    """Return a compacted transcript with the `meta` of its messages: the file may be compacted again."""
    from compact.dialects.dialect import META, without
    from compact.dialects.translation import look_of

    objects = [cast(dict[str, Any], message) for message in messages if isinstance(message, dict)]
    by_look = {look_of((without(message, META),)): message for message in objects if META in message}
    return [by_look.get(look_of((message,)), message) for message in compacted] if by_look else list(compacted)


def write_transcript(path: Path, content: object) -> None:
    """Write JSON, or JSONL if the name says so; gzipped if it ends in .gz. A request is one value, in either."""
    suffixes = path.suffixes[-2:]
    text = to_jsonl(content) if ".jsonl" in suffixes and is_list(content) else to_json(content)
    data = text.encode()
    try:
        # No time stamp: the same transcript gives the same file.
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise TranscriptError(f"cannot write {path}: {error.strerror}", hint="check the path of --output") from None


def to_jsonl(messages: Sequence[object]) -> str:
    """Return JSONL: one message per line."""
    return "".join(json_text(message) + "\n" for message in messages)


def to_json(content: object, *, encoding: str | None = "utf-8") -> str:
    """Return a JSON list with one message per line, so that it can be searched and compared; or a request."""
    if not is_list(content):
        return json_text(content, encoding=encoding) + "\n"
    messages = content
    return "[\n" + ",\n".join(json_text(message, encoding=encoding) for message in messages) + "\n]\n"


def _read_bytes(source: str) -> bytes:
    if source == STANDARD_INPUT:
        if is_terminal(sys.stdin):
            notice("reading a transcript from the terminal; end it with Ctrl-D")
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except FileNotFoundError:
        raise TranscriptError(f"there is no file {source}", hint="check the path; - reads standard input") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TranscriptError(f"cannot read {source}: {reason}", hint="check the path and its permissions") from None


def _decompress(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise TranscriptError(f"{name} is a damaged gzip file", hint="copy or download it again") from None


def _decode(data: bytes, name: str) -> str:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise TranscriptError(f"{name} is not text: it looks like a binary file", hint=_FORMATS)
    return text


def _parse_values(text: str, source: str, name: str) -> list[Any]:
    """Return what the file holds: one value if it is JSON, one for each line if it is JSONL."""
    if source.removesuffix(".gz").endswith(".jsonl") or _has_value_per_line(text):
        return _parse_lines(text, name)
    return [_parse(text, lambda error: f"{name}, line {error.lineno}, column {error.colno}", name)]


def _has_value_per_line(text: str) -> bool:
    """Return True if the first line alone is a JSON object and more lines follow."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        return isinstance(json.loads(first), dict) and bool(rest.strip())
    except (ValueError, RecursionError):
        return False


def _parse_lines(text: str, name: str) -> list[Any]:
    """Return the value of each line; an error names the line."""
    values: list[Any] = []
    # Not splitlines: it would cut at U+2028, which JSON allows inside a string.
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            place = f"{name}, line {number}"
            values.append(_parse(row, lambda error, place=place: f"{place}, column {error.colno}", place))
            # The first line may be a whole JSON list, in a file that is JSONL by its name only.
            if not isinstance(values[-1], dict) and number > 1:
                raise TranscriptError(f"{place}: expected an object, got {_json_type(values[-1])}", hint=_FORMATS)
    return values


def _parse(text: str, place: Callable[[json.JSONDecodeError], str], fallback: str) -> Any:
    """Return the value of a JSON text; the error says where it is wrong, `place` if the decoder knows the spot."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise TranscriptError(f"{place(error)}: not valid JSON ({error.msg})", hint="fix the JSON there") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise TranscriptError(f"{fallback}: JSON that cannot be read ({reason})", hint="fix the JSON there") from None


def _find_transcripts(values: list[Any], name: str) -> list[FileTranscript]:
    """Return the transcripts among the values: one message list, requests, or what each object has in `messages`."""
    if len(values) == 1 and isinstance(values[0], list):
        values = cast(list[Any], values[0])
        is_list_of_records = bool(values) and all(map(_is_record, values))
        return list(map(_record, values)) if is_list_of_records else [FileTranscript(values)]
    if all(map(_is_record, values)):
        return list(map(_record, values))
    if all(isinstance(value, dict) and "role" in value for value in values):
        return [FileTranscript(values)]
    wrong = next(index for index, value in enumerate(values) if not (isinstance(value, dict) and "role" in value))
    what = "an object without `role` or `messages`" if isinstance(values[wrong], dict) else _json_type(values[wrong])
    where = f"{name}, item {wrong + 1}" if len(values) > 1 else name
    raise TranscriptError(f"{where}: expected messages, got {what}", hint=_FORMATS)


def _is_record(value: object) -> bool:
    """Return True for an object that holds a whole transcript."""
    if read_request(value):
        return True
    return isinstance(value, dict) and "messages" in value and "role" not in value


def _record(value: Any) -> FileTranscript:
    own_id = value.get("id")
    transcript = read_request(value) or FileTranscript(value["messages"])
    return replace(transcript, name=own_id if isinstance(own_id, str) else "")


def _json_type(value: object) -> str:
    """Return the JSON type of a value, with its article."""
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")
