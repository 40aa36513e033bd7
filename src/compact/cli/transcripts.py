"""Reads transcripts from files and pipes, in the forms they come in, and writes them back."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from compact.cli.screen import counted, is_live, json_text, remark, working
from compact.core.errors import CompactError

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_FORMS = "use a JSON list of messages, an object with `messages`, or JSONL with one message per line"


class TranscriptError(CompactError, ValueError):
    """A file that cannot be read as a transcript, or not be written."""

    code = "invalid_transcript"


def read_transcript(source: str, index: int = 0) -> list[Any]:
    """The messages in a file (or on standard input); `index` chooses where it holds several transcripts."""
    name = "standard input" if source == STANDARD_INPUT else source
    data = _bytes_of(source)
    with working(f"reading {name}"):
        text = _decoded(_unpacked(data, name), name)
        if not text.strip():
            raise TranscriptError(f"{name} is empty", hint=_FORMS)
        transcripts = _transcripts(_values(text, source, name), name)
    if index >= len(transcripts):
        held = counted(len(transcripts), "transcript")
        last = len(transcripts) - 1
        hint = f"use --index 0 to {last}" if last else "leave --index out"
        raise TranscriptError(f"{name} holds {held}, there is no number {index} (they count from 0)", hint=hint)
    messages = transcripts[index]
    if not isinstance(messages, list):
        raise TranscriptError(f"`messages` in {name} is {_kind(messages)}, not a list", hint=_FORMS)
    if not messages:
        raise TranscriptError(f"{name} holds no messages", hint=_FORMS)
    return cast(list[Any], messages)


def with_marks(compacted: Sequence[Any], messages: Sequence[Any]) -> list[Any]:
    """A compacted transcript with the `meta` its messages had: what is kept in a file may be compacted again."""
    from compact.dialects.dialect import without
    from compact.dialects.translation import META, look_of

    marked = [message for message in messages if isinstance(message, dict) and META in message]
    by_look = {look_of((without(message, META),)): message for message in marked}
    return [by_look.get(look_of((message,)), message) for message in compacted] if by_look else list(compacted)


def write_transcript(path: Path, messages: Sequence[object]) -> None:
    """JSON, or JSONL if the name says so; packed if it ends in .gz."""
    suffixes = path.suffixes[-2:]
    text = as_lines(messages) if ".jsonl" in suffixes else as_list(messages)
    data = text.encode()
    try:
        # No time stamp: the same transcript gives the same file.
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise TranscriptError(f"cannot write {path}: {error.strerror}", hint="check the path of --output") from None


def as_lines(messages: Sequence[object]) -> str:
    """JSONL: one message per line."""
    return "".join(json_text(message) + "\n" for message in messages)


def as_list(messages: Sequence[object], *, encoding: str | None = "utf-8") -> str:
    """A JSON list, still one message per line so that it can be searched and compared."""
    return "[\n" + ",\n".join(json_text(message, encoding=encoding) for message in messages) + "\n]\n"


def _bytes_of(source: str) -> bytes:
    if source == STANDARD_INPUT:
        if is_live(sys.stdin):
            remark("reading a transcript from the terminal; end it with Ctrl-D")
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except FileNotFoundError:
        raise TranscriptError(f"there is no file {source}", hint="check the path; - reads standard input") from None
    except IsADirectoryError:
        raise TranscriptError(f"{source} is a directory", hint="name one file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TranscriptError(f"cannot read {source}: {reason}", hint="check the path and its permissions") from None


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise TranscriptError(f"{name} is a damaged gzip file", hint="copy or download it again") from None


def _decoded(data: bytes, name: str) -> str:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise TranscriptError(f"{name} is not text: it looks like a binary file", hint=_FORMS)
    return text


def _values(text: str, source: str, name: str) -> list[Any]:
    """What the file holds: one value if it is JSON, one for each line if it is JSONL."""
    if source.removesuffix(".gz").endswith(".jsonl") or _has_value_per_line(text):
        return _lines(text, name)
    return [_parsed(text, lambda error: f"{name}, line {error.lineno}, column {error.colno}", name)]


def _has_value_per_line(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    try:
        return isinstance(json.loads(first), dict) and bool(rest.strip())
    except (ValueError, RecursionError):
        return False


def _lines(text: str, name: str) -> list[Any]:
    values: list[Any] = []
    # Not splitlines: it would cut at U+2028, which JSON allows inside a string.
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            place = f"{name}, line {number}"
            values.append(_parsed(row, lambda error, place=place: f"{place}, column {error.colno}", place))
            # The first line may be a whole JSON list, in a file that is JSONL by its name only.
            if not isinstance(values[-1], dict) and number > 1:
                raise TranscriptError(f"{place}: expected an object, got {_kind(values[-1])}", hint=_FORMS)
    return values


def _parsed(text: str, place: Callable[[json.JSONDecodeError], str], otherwise: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise TranscriptError(f"{place(error)}: not valid JSON ({error.msg})", hint="fix the JSON there") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise TranscriptError(f"{otherwise}: JSON that cannot be read ({reason})", hint="fix the JSON there") from None


def _transcripts(values: list[Any], name: str) -> list[Any]:
    """The transcripts among the values: one message list, or what each object has under `messages`."""
    if len(values) == 1 and isinstance(values[0], list):
        values = cast(list[Any], values[0])
        return [value["messages"] for value in values] if values and all(map(_is_record, values)) else [values]
    if all(map(_is_record, values)):
        return [value["messages"] for value in values]
    if all(isinstance(value, dict) and "role" in value for value in values):
        return [values]
    wrong = next(place for place, value in enumerate(values) if not (isinstance(value, dict) and "role" in value))
    what = "an object without `role` or `messages`" if isinstance(values[wrong], dict) else _kind(values[wrong])
    where = f"{name}, entry {wrong + 1}" if len(values) > 1 else name
    raise TranscriptError(f"{where}: expected messages, got {what}", hint=_FORMS)


def _is_record(value: object) -> bool:
    return isinstance(value, dict) and "messages" in value and "role" not in value


def _kind(value: object) -> str:
    kinds: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")
