"""How tool calls went: each with what it is about, its result, and the line that says how it failed, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compact.core.facts.text import cut_line, ends_of
from compact.core.facts.tool_calls import READS, CallSubject, call_subjects, fits_name
from compact.core.messages.groups import WaitingCalls
from compact.core.messages.message import Message, ToolCall

# Chosen: a line of an error is recognised by how it begins; the rest is not searched.
_HEAD_CHARS = 300
# Reading what is itself about errors is no failure: a read that failed says so at once, and briefly. Chosen.
_MAX_FAILED_READ_CHARS = 500
# A failure is told at the beginning or at the end; what lies between is what was printed. Chosen: the summary of a test
# run and the end of a stack trace fit.
_HEAD_LINES, _TAIL_LINES = 12, 24
# Chosen: exit codes stand on the first or the last few lines.
_EXIT_CODE_CHARS = 400

_EXIT = re.compile(
    r"\b(?:exit(?:ed with)?[ _]?(?:code|status)|returncode|exited with)\b\W{0,4}(\d{1,3})\b", re.IGNORECASE
)
_SAYS_FAILED = re.compile(
    r"""[^\w"']{0,8}(?:\[?[\w./-]{1,40}[\]:>]{1,2}\s{1,2})?(?:
      (?:fatal\s)?(?:error|fatal|panic|exception|failure)(?:\s\w{1,12}|\[\w{1,12}\])?(?:[:!\]]|\s*$)
    | traceback\s\(|(?:\w{1,20}\s)?failed\b(?!["'(=.]) | (?:not\sok|fail)\b | e[a-z]{3,14}:\s
    )
    | <\w{0,20}error>
    | [\w.$]{0,80}(?:Error|Exception)(?::|\s*$)
    | .{1,200}?:\s(?:fatal\s)?error(?:\s\w{1,12})?:
    | .{0,200}?(?:no\ssuch\sfile\sor\sdirectory|command\snot\sfound|(?:permission|access)\sdenied|connection\srefused)
    | .{0,60}?\b[1-9]\d{0,4}\s(?:tests?\s)?(?:failed|failing|errors?|failures?)\b
    | .{1,100}\sfailed\W{0,3}$
    | hunk\s\#\d{1,4}\sfailed | .{0,100}?\btimed\sout\b | \W{0,8}"error"\s?:\s?"(?!") | npm\serr(?:or|!)\s
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WHERE = re.compile(r"[^\s:]{1,120}:\d{1,6}:(?:\d{1,5}:)?\s\S")
_TRACEBACK = re.compile(r"\W{0,8}traceback\s\(", re.IGNORECASE)
# Code and listings speak of errors too.
_LISTED = re.compile(r"\s*\d{1,6}\s*[:|→\t-]|.*(?:\b(?:throw|raise|return|assert)\b| = )")
_IS_CODE = re.compile(
    r"\s*(?:\d{1,6}\s*[:|→\t-]|[\w./-]{1,120}[:-]\d{1,6}[:-]\s?\s*(?:func|def|class|return|throw|raise|if|\}|//|\#)\b)"
    r"|.*(?:[;{,]\s*$|\b(?:throw new|raise|except|catch|return|func|def|class|const|let|import|if err)\b[ (]|=>|:=| = )"
    r"|\s*(?://|/\*|\$ )"
    r"|\s*[\"']?\w{0,20}error\w{0,10}[\"']?\s*:\s*(?:\"\"|''|null|none|false|0\b|\[\]|\{\})",
    re.IGNORECASE,
)
_NO_FAILURE = re.compile(r"\b(?:0|no|without|zero) (?:errors?|failures?|failed)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call that was answered, what it is about, its result, and how it failed, if it did.

    `caller` is the message that makes the call, and `place` where it stands.
    """

    place: int
    caller: Message
    call: ToolCall
    about: CallSubject
    result: Message
    failure: str

    @property
    def ids(self) -> tuple[str, ...]:
        return self.caller.id, self.result.id


class ToolUseReader:
    """Finds the calls that were answered, message by message."""

    def __init__(self) -> None:
        self._read = 0
        # Their places, and the messages themselves.
        self._waiting = WaitingCalls[tuple[int, Message]]()

    def add(self, message: Message) -> ToolUse | None:
        """Read the next message; return the call that it answers, if it does."""
        own_place, self._read = self._read, self._read + 1
        answered = self._waiting.answered_by(message)
        if answered is None:
            self._waiting.add(message, (own_place, message))
            return None
        place, caller = answered
        # Of two calls of one message that share an id, the last one counts.
        call = next(call for call in reversed(caller.tool_calls) if call.id == (message.tool_call_id or ""))
        return ToolUse(place, caller, call, call_subjects(caller)[call.id], message, failure_of(message, call))

    def copy(self) -> ToolUseReader:
        """Return one that has read the same, and goes on by itself."""
        twin = ToolUseReader()
        twin._read, twin._waiting = self._read, self._waiting.copy()
        return twin


def tool_uses(messages: Iterable[Message]) -> Iterator[ToolUse]:
    """Yield the calls that were answered, in the order of their results."""
    reader = ToolUseReader()
    for message in messages:
        use = reader.add(message)
        if use is not None:
            yield use


def failure_of(message: Message, call: ToolCall) -> str:
    """Return the line of a tool result that says how its call failed, or "" if it went well; looked for once."""
    return message.read_once(_read_failure if fits_name(call.name, READS) else _other_failure)


def _read_failure(message: Message) -> str:
    result = message.text
    lines = result.strip().split("\n", 1)[:1] if len(result) < _MAX_FAILED_READ_CHARS else []
    return next(_failure_lines(lines), "")


def _other_failure(message: Message) -> str:
    result = message.text
    code = _exit_code(result)
    if code == "0":
        return ""
    lines = [line for first, last in ends_of(result) for line in result[first:last].splitlines() if line.strip()]
    if len(lines) > _HEAD_LINES + _TAIL_LINES:
        lines = [*lines[:_HEAD_LINES], *lines[-_TAIL_LINES:]]
    failure = next(_failure_lines(lines), "")
    if failure or code is None:
        return failure
    where = next((line for line in lines if _WHERE.match(line.strip())), "")
    return cut_line(where.strip()) or f"exit {code}"


def _exit_code(result: str) -> str | None:
    # A short result is both of its ends.
    for text in dict.fromkeys((result[:_EXIT_CODE_CHARS], result[-_EXIT_CODE_CHARS:])):
        for line in text.splitlines() if _EXIT.search(text) else ():
            found = _EXIT.search(line)
            if found and not _LISTED.match(line):
                return found.group(1)
    return None


def _failure_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines that report a failure, in order; where a stack trace begins comes last: it says nothing yet."""
    traces: list[str] = []
    for line in lines:
        head = line[:_HEAD_CHARS]
        if not _SAYS_FAILED.match(head.strip()) or _IS_CODE.match(head) or _NO_FAILURE.search(head):
            continue
        if _TRACEBACK.match(head):
            traces.append(cut_line(line.strip()))
        else:
            yield cut_line(line.strip())
    yield from traces
