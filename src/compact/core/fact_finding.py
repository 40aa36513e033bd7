"""Reads a history and writes down its facts: no model, the same every time, each with its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from compact.core.constraints import standing_constraints
from compact.core.entities import EntityKind, find_entities
from compact.core.groups import calls_answered, group_messages
from compact.core.ledger import Fact, FactKind, Ledger, merged
from compact.core.messages import Message, ToolCall
from compact.core.ranges import joined_ranges
from compact.core.tool_use import WRITES, arguments_of, command_of, fits_name, is_typed, path_of

_LONGEST_LINE_CHARS = 240
_FAILED = re.compile(
    r"\b(?:error|failed|failure|exception|traceback|fatal|denied|refused|not found|no such file|panic)\b", re.IGNORECASE
)
_EXIT = re.compile(r"(?:exit(?:ed with)?(?: code| status)?|returncode)\D{0,3}(\d{1,3})", re.IGNORECASE)
_NO_FAILURE = re.compile(r"\b(?:0|no|without|zero) (?:errors?|failures?|failed)\b", re.IGNORECASE)
_DECIDED = re.compile(
    r"\b(?:(?:we|i|let's|let us)(?: have|'ve|'ll| will)? (?:decided?|chose|choose|go(?:ing)? with|agreed?|settled?|"
    r"opt(?:ed)? for|switch(?:ed)? to|stick(?:ing)? (?:to|with))|decision:|instead of|rather than)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"^\s*(?:[-*]\s*)?\[ \]\s*\S|"
    r"\b(?:TODO|FIXME|still (?:need|have|open|missing|to do)|remaining:|next steps?:|not yet (?:done|implemented))",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"(?:[^.!?]|[.!?](?=\S))+[.!?]?")
_TODO_ARGUMENTS = ("todos", "plan", "tasks", "items")
_TODO_TEXTS = ("content", "step", "title", "description")
_MENTIONS = (EntityKind.ID, EntityKind.NUMBER, EntityKind.DATE, EntityKind.URL, EntityKind.IDENTIFIER)


def find_facts(
    messages: Sequence[Message], artifacts: Iterable[Fact] = (), *, history: Sequence[Message] | None = None
) -> Ledger:
    """The ledger of a span: a longer span's contains a shorter one's, but for what was taken back or settled since.

    `history` is the whole that the span is part of: what was asked first and last is told by it, and a wish that
    was taken back after the span is gone too.
    """
    whole = messages if history is None else history
    inside = {message.id for message in messages}
    wishes = [wish for wish in standing_constraints(whole) if wish.source_id in inside]
    answered = calls_answered(messages, group_messages(messages))
    calls = [(messages[index], call) for index, call in answered.items()]
    return merged(
        (
            *(fact for fact in _asked(whole) if inside.issuperset(fact.source_ids)),
            *(Fact(FactKind.CONSTRAINT, wish.text, source_ids=(wish.source_id,)) for wish in wishes),
            *_said(messages),
            *_todo(messages),
            *_files(calls),
            *_commands(calls),
            *_errors(calls),
            *artifacts,
            *_mentions(messages),
        )
    )


def _asked(messages: Sequence[Message]) -> Iterator[Fact]:
    typed = [message for message in messages if is_typed(message)]
    if typed:
        yield Fact(FactKind.TASK, typed[0].text.strip(), source_ids=(typed[0].id,))
    if len(typed) > 1 and typed[-1].text != typed[0].text:
        yield Fact(FactKind.LATEST_ASK, typed[-1].text.strip(), source_ids=(typed[-1].id,))


def _said(messages: Sequence[Message]) -> Iterator[Fact]:
    """Sentences of the dialogue in which something was decided, and lines that leave something to do."""
    for message in messages:
        if message.role != "assistant" and not is_typed(message):
            continue
        text = message.text
        for match in _DECIDED.finditer(text):
            yield Fact(FactKind.DECISION, _sentence_at(text, match.start()), source_ids=(message.id,))
        if message.role == "assistant":
            for match in _OPEN.finditer(text):
                yield Fact(FactKind.OPEN_ITEM, _line_at(text, match.end() - 1), source_ids=(message.id,))


def _todo(messages: Sequence[Message]) -> Iterator[Fact]:
    """What the newest to-do list of the agent still has open."""
    for message in reversed(messages):
        for call in message.tool_calls:
            entries = next((v for k, v in arguments_of(call).items() if k in _TODO_ARGUMENTS), None)
            if isinstance(entries, list):
                yield from _open_entries(cast(list[object], entries), message.id)
                return


def _open_entries(entries: Iterable[object], message_id: str) -> Iterator[Fact]:
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        named = cast(Mapping[str, object], entry)
        text = next((named[name] for name in _TODO_TEXTS if named.get(name)), None)
        status = str(named.get("status", ""))
        if isinstance(text, str) and status not in ("completed", "done", "cancelled"):
            yield Fact(FactKind.OPEN_ITEM, _cut(text), status.replace("_", " "), (message_id,))


def _files(calls: Iterable[tuple[Message, ToolCall]]) -> Iterator[Fact]:
    """Each file, whether it was modified, and which of its lines were read."""
    modified: set[str] = set()
    read: dict[str, list[tuple[int, int]]] = {}
    for result, call in calls:
        path = path_of(call)
        if not path or "\n" in path:
            continue
        if fits_name(call.name, WRITES):
            modified.add(path)
        else:
            read.setdefault(path, []).extend(_lines_read(call))
        parts = ["modified"] if path in modified else []
        if path in read:
            lines = ", ".join(f"{start}-{end}" for start, end in joined_ranges(read[path]))
            parts.append(f"read {lines}".rstrip())
        yield Fact(FactKind.FILE, path, "; ".join(parts), (result.id,))


def _lines_read(call: ToolCall) -> list[tuple[int, int]]:
    match arguments_of(call):
        case {"view_range": [int(start), int(end), *_]} | {"start_line": int(start), "end_line": int(end)}:
            return [(start, end)]
        case {"offset": int(start), "limit": int(count)}:
            return [(start, start + count - 1)]
        case _:
            return []


def _commands(calls: Iterable[tuple[Message, ToolCall]]) -> Iterator[Fact]:
    for result, call in calls:
        command = command_of(call)
        if command:
            failure = failure_line(result.text)
            yield Fact(FactKind.COMMAND, _cut(_first_line(command)), failure or "ok", (result.id,))


def _errors(calls: Sequence[tuple[Message, ToolCall]]) -> Iterator[Fact]:
    """Each failure, and what stood between it and the same call going well."""
    open_errors: dict[str, tuple[str, list[str], str]] = {}
    for result, call in calls:
        subject = f"{call.name} {path_of(call) or _first_line(command_of(call) or call.arguments)}"
        failure = failure_line(result.text)
        if failure:
            open_errors[subject] = (failure, [], result.id)
            yield Fact(FactKind.ERROR, failure, "not resolved", (result.id,))
        elif subject in open_errors:
            error, changed, source_id = open_errors.pop(subject)
            what = ", ".join(dict.fromkeys(changed))
            how = f"resolved after changing {what}" if what else "resolved by trying again"
            yield Fact(FactKind.ERROR, error, how, (source_id, result.id))
        if fits_name(call.name, WRITES) and not failure:
            for _, changed, _ in open_errors.values():
                changed.append(path_of(call) or call.name)


def _mentions(messages: Sequence[Message]) -> Iterator[Fact]:
    """Identifiers and numbers that somebody in the dialogue has used: those that only a tool printed are not in it."""
    for message in messages:
        if message.role != "assistant" and not is_typed(message):
            continue
        texts = (message.text, *(call.arguments for call in message.tool_calls))
        for text in texts:
            for entity in find_entities(text):
                if entity.kind in _MENTIONS:
                    yield Fact(FactKind.MENTION, entity.text, source_ids=(message.id,))


def failure_line(result: str) -> str:
    """The line of a tool result that says how it failed, or nothing if it went well."""
    exit_code = _EXIT.search(result)
    if exit_code and exit_code.group(1) == "0":
        return ""
    # Code and listings speak of errors too: in a long result a line only counts if it says so at its start.
    reach = None if len(result) < 1500 or exit_code else 30
    for line in result.splitlines()[:400]:
        if _FAILED.search(line[:reach]) and not _NO_FAILURE.search(line):
            return _cut(line.strip())
    return f"exit {exit_code.group(1)}" if exit_code else ""


def _sentence_at(text: str, place: int) -> str:
    line_start, line_end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    for sentence in _SENTENCE.finditer(line):
        if sentence.end() > place - line_start:
            return _cut(sentence.group().strip())
    return _cut(line.strip())


def _line_at(text: str, place: int) -> str:
    start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    return _cut(text[start : end if end >= 0 else len(text)].strip())


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE_CHARS else text[:_LONGEST_LINE_CHARS].rstrip() + " …"
