"""What had to be done again after a compaction: files that were read again, and what a person said again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING

from compact.core.facts.text import is_same_statement
from compact.core.facts.tool_calls import READS, CallSubject, call_subjects, fits_name, is_typed

if TYPE_CHECKING:
    from compact.cli.audit.facts import KnownFact
    from compact.core.messages.message import Message, ToolCall

# As for regrets (docs/regret.md): a result that differs in more is another one.
_KNOWN_SHARE = 0.9
_NUMBER = re.compile(r"^\s*\d+(?:→|\t|: |\| )")


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call that only looked, and had been made before the compaction; its result was sent a second time.

    `position` is the message of the log that made it again.
    """

    tool: str
    about: str
    tokens: int
    position: int


def repeated_calls(
    before: Iterable[Message], later: Sequence[Message], *, start: int, count: Callable[[str], int]
) -> Iterator[RepeatedCall]:
    """Yield the first time that each file is read again, and each search made again, with what had been known.

    A file that was changed after the compaction is read for its new content: that is no fault of it. Nor is it if
    another part of the file is read.
    """
    earlier = list(before)
    known = {key for message in earlier for key, _, _ in _looks(message)}
    lines = {line for one in earlier if one.role == "tool" for line in _lines(one.text)}
    changed: set[str] = set()
    results = {one.tool_call_id: one.text for one in later if one.role == "tool"}
    for place, message in enumerate(later):
        for key, call, about in _looks(message):
            if key in known and key not in changed and _is_known(results.get(call.id, ""), lines):
                known.discard(key)
                name = about.only_reads or about.path or about.command or call.arguments
                yield RepeatedCall(call.name, name, count(results.get(call.id, "")), start + place)
        changed.update(_file_key(path) for about in call_subjects(message).values() for path in about.changed)


def _looks(message: Message) -> Iterator[tuple[str, ToolCall, CallSubject]]:
    """Yield the calls of a message that only look, with what two calls for the same have in common."""
    subjects = call_subjects(message)
    for call in message.tool_calls:
        about = subjects[call.id]
        if about.changed:
            continue
        if about.only_reads:
            yield _file_key(about.only_reads), call, about
        elif fits_name(call.name, READS):
            yield f"{call.name} {_canonical(call.arguments)}", call, about


def _is_known(result: str, lines: set[str]) -> bool:
    """Return True if nearly all of a result had been shown before."""
    own = _lines(result)
    return bool(own) and sum(line in lines for line in own) >= _KNOWN_SHARE * len(own)


def _lines(text: str) -> list[str]:
    """Return the lines of a result without the numbers that tools put before them."""
    return [bare for line in text.splitlines() if (bare := _NUMBER.sub("", line).strip())]


def _file_key(path: str) -> str:
    return f"file {normpath(path)}"


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def said_again(dropped: Iterable[KnownFact], later: Sequence[Message]) -> Iterator[tuple[KnownFact, str]]:
    """Yield constraints that were dropped, and that a person said once more, with the words of the second time."""
    typed = [line.strip() for one in later if is_typed(one) for line in one.text.splitlines() if line.strip()]
    for fact in dropped:
        again = next((line for line in typed if fact.text in line or is_same_statement(fact.text, line)), None)
        if again is not None:
            yield fact, again
