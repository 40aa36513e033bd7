"""What a tool call is about: the file it touches, the command it runs, whether it only looks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from posixpath import normpath
from typing import Any, cast

from compact.core.facts.text import first_line, json_leaves
from compact.core.messages.message import Message, ToolCall

READS = ("read*", "view*", "cat*", "open*", "get_file*", "list*", "ls", "glob*", "grep*", "search*", "find*", "fetch*")
WRITES = (
    "write*", "edit*", "str_replace*", "apply_patch*", "create_file*", "delete_file*", "move*", "multi_edit*",
    "multiedit*", "notebookedit*",
)  # fmt: skip
PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "target_file", "notebook_path", "absolute_path")
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "code")
# Editors with one tool for everything say in `command` what they do: some only look.
_EDITOR_READS, _EDITOR_CHANGES = ("view",), ("create", "str_replace", "insert", "undo_edit", "delete", "rename")
# Commands that put numbers before lines.
_NUMBERING = re.compile(r"\bcat -\w*n|\bnl\b")
# A shell command that only prints a file; the file comes last.
_PRINTS_FILE = re.compile(r"(?:cd \S+ && )?(?:cat|head|tail|nl|less|more|bat|sed -n)\s(?:[^|;&<>]*\s)?([^\s|;&<>]+)")
# Chosen: longer commands do more than that.
_MAX_PRINT_CHARS = 1000
# Where a file is read to its end.
LAST_LINE = 10**9
_SHELL_FLAGS = ("-c", "-lc", "-ic", "/c", "-Command")
_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S[^\n]{0,400})$", re.MULTILINE)
# One call is asked several things in a row, so the newest few parses are kept: at most 128 of 4 kB each. Longer
# arguments are whole files and are parsed each time. Chosen: compacting 350,000 tokens takes no longer than with 4,096.
_CACHED_PARSES = 128
_CACHED_PARSE_CHARS = 4096
# Chosen: nobody writes arguments so deep; walking them could exhaust the stack.
_MAX_DEPTH = 100
# Text that a harness puts in a user's mouth: marked by name, or wrapped in its own tags.
_HARNESS_NAMES = ("injected", "compact_summary")
_HARNESS_TAG = re.compile(r"\s*<(?:command-|local-command-|system-reminder|task-notification|user-prompt-submit-hook)")


def fits_name(tool_name: str, patterns: tuple[str, ...]) -> bool:
    """Return True if a tool's name is one of the patterns, whatever its case."""
    return _fits_name(tool_name, tuple(patterns))  # users of a strategy may have given it a list


# A session has few tools, and of each of their calls this is asked a dozen times.
@lru_cache(maxsize=1024)
def _fits_name(tool_name: str, patterns: tuple[str, ...]) -> bool:
    lowered = tool_name.lower()
    return any(fnmatchcase(lowered, pattern) for pattern in patterns)


def _parsed(arguments: str) -> dict[str, Any]:
    return _parse(arguments) if len(arguments) > _CACHED_PARSE_CHARS else _cached_parse(arguments)


def _parse(arguments: str) -> dict[str, Any]:
    try:
        parsed = cast(object, json.loads(arguments))
    except (ValueError, RecursionError):
        return {}
    if arguments.count("{") + arguments.count("[") > _MAX_DEPTH and _is_deep(parsed):
        return {}
    return cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}


_cached_parse = lru_cache(maxsize=_CACHED_PARSES)(_parse)


def _is_deep(value: object) -> bool:
    """Return True if something in it lies deeper than anybody looks."""
    level: list[object] = [value]
    for _ in range(_MAX_DEPTH):
        if not level:
            return False
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments by name; none if they are not a JSON object, or one that is nested too deep."""
    return dict(_parsed(call.arguments))


def argument_texts(call: ToolCall, *, with_names: bool = False) -> Iterator[str]:
    """Yield the values of a call's arguments as text, as they were meant, not as JSON writes them."""
    arguments = arguments_of(call)
    return json_leaves(arguments, with_names=with_names) if arguments else iter((call.arguments,))


def path_of(call: ToolCall, names: tuple[str, ...] = PATH_ARGUMENTS) -> str | None:
    """Return the file that a call names."""
    return _path_in(_parsed(call.arguments), names)


def files_changed(
    call: ToolCall, writes: tuple[str, ...] = WRITES, path_arguments: tuple[str, ...] = PATH_ARGUMENTS
) -> tuple[str, ...]:
    """Return the files that a call writes to: the one it names, or those of a patch."""
    return _changed_in(call, _parsed(call.arguments), path_arguments) if fits_name(call.name, writes) else ()


def command_of(call: ToolCall) -> str | None:
    """Return the command that a call runs."""
    return _command_in(_parsed(call.arguments))


@dataclass(frozen=True, slots=True)
class CallSubject:
    """What a call is about: the file it names, the files it changes, the first line of the command it runs.

    `only_reads` is the file or folder that it looks at and does nothing else. `prints_numbers` says that its result has
    the numbers of lines before the lines of a file; `lines` are the first and the last line that it asks for.
    """

    path: str | None
    changed: tuple[str, ...]
    only_reads: str | None
    command: str
    prints_numbers: bool
    lines: tuple[int, int] | None


def call_subjects(message: Message) -> Mapping[str, CallSubject]:
    """Return what each call of a message is about, by the id of the call; its arguments are parsed once in its life."""
    return message.read_once(_read_subjects)


def _read_subjects(message: Message) -> Mapping[str, CallSubject]:
    return {call.id: _read_subject(call) for call in message.tool_calls}


def _read_subject(call: ToolCall) -> CallSubject:
    arguments = _parsed(call.arguments)
    path, command = _path_in(arguments, PATH_ARGUMENTS), _command_in(arguments) or ""
    return CallSubject(
        path=path,
        changed=_changed_in(call, arguments, PATH_ARGUMENTS) if fits_name(call.name, WRITES) else (),
        only_reads=_read_in(call, arguments),
        command=first_line(command),
        prints_numbers=bool(path or _NUMBERING.search(command)),
        lines=_lines_in(arguments),
    )


def _path_in(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((path for name in names if isinstance(path := arguments.get(name), str) and path.strip()), None)


def _changed_in(call: ToolCall, arguments: Mapping[str, Any], path_arguments: tuple[str, ...]) -> tuple[str, ...]:
    if arguments.get("command") in _EDITOR_READS:
        return ()
    path = _path_in(arguments, path_arguments)
    if path is not None:
        return (path,)
    texts = [text for text in arguments.values() if isinstance(text, str)] or [call.arguments]
    return tuple(dict.fromkeys(name for text in texts for name, _ in patched_files(text)))


def patched_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield each file that a patch is about, with what the patch says of it."""
    # What stands before the first file, then in turn the name of a file and what follows it.
    _, *parts = _PATCHED_FILE.split(text)
    for name, said in zip(parts[::2], parts[1::2], strict=True):
        yield name.strip(), said.removeprefix("\n")


def _read_in(call: ToolCall, arguments: Mapping[str, Any]) -> str | None:
    path = _path_in(arguments, PATH_ARGUMENTS)
    if path is not None and (fits_name(call.name, READS) or arguments.get("command") in _EDITOR_READS):
        return normpath(path)
    command = _command_in(arguments) or ""
    printed = _PRINTS_FILE.fullmatch(command.strip()) if len(command) <= _MAX_PRINT_CHARS else None
    return normpath(printed[1].strip("'\"")) if printed else None


def _command_in(arguments: Mapping[str, Any]) -> str | None:
    found = next((arguments[name] for name in _COMMAND_ARGUMENTS if arguments.get(name)), None)
    match found:
        case str() if found in (*_EDITOR_READS, *_EDITOR_CHANGES) and _path_in(arguments, PATH_ARGUMENTS) is not None:
            return None
        case str():
            return found
        case [str(), flag, str(script)] if flag in _SHELL_FLAGS:
            return script
        case list():
            return " ".join(map(str, cast(list[object], found)))
        case _:
            return None


def _lines_in(arguments: Mapping[str, Any]) -> tuple[int, int] | None:
    match arguments:
        case {"view_range": [int(start), int(end), *_]} | {"start_line": int(start), "end_line": int(end)}:
            end = LAST_LINE if end == -1 else end
        case {"offset": int(start), "limit": int(count)}:
            end = start + count - 1
        case {"offset": int(start)} | {"start_line": int(start)}:
            end = LAST_LINE
        case {"limit": int(end)}:
            start = 1
        case _:
            return None
    return (int(start), int(end)) if 0 <= start <= end else None


def is_typed(message: Message) -> bool:
    """Return True for what a person wrote: a user message that no harness has put in."""
    return (
        message.role == "user"
        and message.name not in _HARNESS_NAMES
        and bool(message.text.strip())
        and not _HARNESS_TAG.match(message.text)
    )
