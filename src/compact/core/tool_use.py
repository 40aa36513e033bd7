"""What a tool call is about: the file it touches, the command it runs, whether it only looks."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, cast

from compact.core.messages import Message, ToolCall

READS = ("read*", "view*", "cat*", "open*", "get_file*", "list*", "ls", "glob*", "grep*", "search*", "find*", "fetch*")
WRITES = (
    "write*", "edit*", "str_replace*", "apply_patch*", "create_file*", "delete_file*", "move*", "multi_edit*",
    "multiedit*", "notebookedit*",
)  # fmt: skip
PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "target_file", "notebook_path", "absolute_path")
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "code")
# Text that a harness puts in a user's mouth: marked by name, or wrapped in its own tags.
_HARNESS_NAMES = ("injected", "compact_summary")
_HARNESS_TAG = re.compile(r"\s*<(?:command-|local-command-|system-reminder|task-notification|user-prompt-submit-hook)")


def fits_name(tool_name: str, patterns: tuple[str, ...]) -> bool:
    """True if a tool's name is one of the patterns, whatever its case."""
    lowered = tool_name.lower()
    return any(fnmatchcase(lowered, pattern) for pattern in patterns)


@lru_cache(maxsize=4096)
def _parsed(arguments: str) -> dict[str, Any]:
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments by name; empty if they are not a JSON object."""
    return dict(_parsed(call.arguments))


def path_of(call: ToolCall, names: tuple[str, ...] = PATH_ARGUMENTS) -> str | None:
    """The file that a call names."""
    arguments = _parsed(call.arguments)
    return next((str(arguments[name]) for name in names if arguments.get(name)), None)


def command_of(call: ToolCall) -> str | None:
    """The command that a call runs."""
    arguments = _parsed(call.arguments)
    found = next((arguments[name] for name in _COMMAND_ARGUMENTS if arguments.get(name)), None)
    if isinstance(found, list):
        return " ".join(map(str, cast(list[object], found)))
    return found if isinstance(found, str) else None


def is_typed(message: Message) -> bool:
    """True for what a person wrote: a user message that no harness has put in."""
    return (
        message.role == "user"
        and message.name not in _HARNESS_NAMES
        and bool(message.text.strip())
        and not _HARNESS_TAG.match(message.text)
    )
