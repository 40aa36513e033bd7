"""Reads a history and writes down its facts: no model, the same every time, each with its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from compact.core.facts.constraints import ConstraintFinder
from compact.core.facts.entities import EntityKind, find_entities
from compact.core.facts.ledger import Fact, FactKind, Ledger, merged
from compact.core.facts.open_items import find_open_items
from compact.core.facts.outcomes import cut_line, failure_line
from compact.core.facts.text import joined_ranges, line_around
from compact.core.facts.tool_calls import arguments_of, command_of, files_changed, fits_name, is_typed, path_of
from compact.core.log.groups import calls_answered, group_messages
from compact.core.log.messages import Message, ToolCall

_DECIDED = re.compile(
    r"\b(?:(?:we|i|let's|let us)(?: have|'ve|'ll| will)? (?:decided?|chose|choose|go(?:ing)? with|agreed?|settled?|"
    r"opt(?:ed)? for|switch(?:ed)? to|stick(?:ing)? (?:to|with))|decision:|instead of|rather than)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.!?]|[.!?](?=\S|\s[a-z]))+[.!?]?")
_MENTIONS = (EntityKind.ID, EntityKind.NUMBER, EntityKind.DATE, EntityKind.URL, EntityKind.IDENTIFIER)
# They name a place to look in, not a file that was read.
_SEARCHES = ("list*", "ls", "glob*", "grep*", "search*", "find*")
_LONGEST_PATH_CHARS = 400
_TO_THE_END = 10**9
# A search that finds nothing ends like that: it is an outcome, not an error.
_NOTHING_FOUND = "exit 1"
_MOST_CHANGES_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Use:
    """A tool call that was answered: who asked, what came back, and how it failed, if it did."""

    asked_id: str
    answer_id: str
    call: ToolCall
    failure: str

    @property
    def ids(self) -> tuple[str, ...]:
        return self.asked_id, self.answer_id


def find_facts(
    messages: Sequence[Message],
    artifacts: Iterable[Fact] = (),
    *,
    constraints: ConstraintFinder,
    history: Sequence[Message] | None = None,
) -> Ledger:
    """Return the ledger of a span: it contains that of any shorter span, except what was taken back or settled since.

    `history` is the whole that the span is part of: it decides what was asked first and last, and a constraint that
    was taken back after the span is gone too.
    """
    whole = messages if history is None else history
    inside = {message.id for message in messages}
    standing = [constraint for constraint in constraints.standing(whole) if constraint.source_id in inside]
    uses = list(_uses(messages))
    return merged(
        (
            *(fact for fact in _asked(whole) if inside.issuperset(fact.source_ids)),
            *(Fact(FactKind.CONSTRAINT, found.text, source_ids=(found.source_id,)) for found in standing),
            *_decisions(messages),
            *find_open_items(messages),
            *_files(uses),
            *_commands(uses),
            *_errors(uses),
            *artifacts,
            *_mentions(messages),
        )
    )


def _uses(messages: Sequence[Message]) -> Iterator[_Use]:
    groups = group_messages(messages)
    asked = {index: messages[group.indices[0]].id for group in groups for index in group.indices[1:]}
    for index, call in sorted(calls_answered(messages, groups).items(), key=lambda item: item[0]):
        answer = messages[index]
        yield _Use(asked[index], answer.id, call, failure_line(answer.text, call))


def _asked(messages: Sequence[Message]) -> Iterator[Fact]:
    typed = [message for message in messages if is_typed(message)]
    if typed:
        yield Fact(FactKind.TASK, typed[0].text.strip(), source_ids=(typed[0].id,))
    if len(typed) > 1 and typed[-1].text != typed[0].text:
        yield Fact(FactKind.LATEST_ASK, typed[-1].text.strip(), source_ids=(typed[-1].id,))


def _decisions(messages: Sequence[Message]) -> Iterator[Fact]:
    """Sentences of the dialogue in which something was decided."""
    for message in messages:
        if message.role == "assistant" or is_typed(message):
            told = 0
            for match in _DECIDED.finditer(message.text):
                if match.start() >= told:
                    sentence, told = _sentence_at(message.text, match.start())
                    yield Fact(FactKind.DECISION, sentence, source_ids=(message.id,))


def _files(uses: Iterable[_Use]) -> Iterator[Fact]:
    """Each file, whether it was modified, and which of its lines were read; what failed touched nothing."""
    modified: set[str] = set()
    read: dict[str, list[tuple[int, int]]] = {}
    for use in uses:
        changed, path = files_changed(use.call), path_of(use.call)
        if use.failure:
            continue
        modified.update(changed)
        if path and not changed and not fits_name(use.call.name, _SEARCHES):
            read.setdefault(path, []).extend(_lines_read(arguments_of(use.call)))
        for name in changed or (path,):
            if _is_file_name(name) and (name in modified or name in read):
                yield Fact(FactKind.FILE, name, _file_detail(name in modified, read.get(name)), use.ids)


def _is_file_name(name: str | None) -> TypeGuard[str]:
    return name is not None and len(name) <= _LONGEST_PATH_CHARS and "\n" not in name


def _file_detail(is_modified: bool, ranges: list[tuple[int, int]] | None) -> str:
    parts = ["modified"] if is_modified else []
    if ranges is not None:
        told = (f"{start}-{'' if end >= _TO_THE_END else end}" for start, end in joined_ranges(ranges))
        parts.append(f"read {', '.join(told)}".rstrip())
    return "; ".join(parts)


def _lines_read(arguments: dict[str, Any]) -> list[tuple[int, int]]:
    match arguments:
        case {"view_range": [int(start), int(end), *_]} | {"start_line": int(start), "end_line": int(end)}:
            end = _TO_THE_END if end == -1 else end
        case {"offset": int(start), "limit": int(count)}:
            end = start + count - 1
        case {"offset": int(start)} | {"start_line": int(start)}:
            end = _TO_THE_END
        case {"limit": int(end)}:
            start = 1
        case _:
            return []
    return [(int(start), int(end))] if 0 <= start <= end else []


def _commands(uses: Iterable[_Use]) -> Iterator[Fact]:
    for use in uses:
        command = command_of(use.call)
        if command and command.strip():
            yield Fact(FactKind.COMMAND, cut_line(_first_line(command)), use.failure or "ok", use.ids)


def _errors(uses: Iterable[_Use]) -> Iterator[Fact]:
    """Each failure, and what stood between it and the same call going well."""
    changes: list[str] = []
    open_errors: dict[str, list[tuple[Fact, int]]] = {}
    for use in uses:
        command = _first_line(command_of(use.call) or "")
        subject = f"{use.call.name} {path_of(use.call) or command or use.call.arguments}"
        if use.failure and use.failure != _NOTHING_FOUND:
            # A bare number says nothing without what it is the end of.
            told = f"{command}: {use.failure}" if command and use.failure.startswith("exit ") else use.failure
            error = Fact(FactKind.ERROR, cut_line(told), "not resolved", use.ids)
            open_errors.setdefault(subject, []).append((error, len(changes)))
            yield error
        if use.failure:
            continue
        for error, place in open_errors.pop(subject, ()):
            yield Fact(FactKind.ERROR, error.subject, _resolution(changes[place:]), (*error.source_ids, *use.ids))
        changes.extend(files_changed(use.call))


def _resolution(changes: Sequence[str]) -> str:
    named = list(dict.fromkeys(reversed(changes)))
    if not named:
        return "resolved by trying again"
    rest = ", …" if len(named) > _MOST_CHANGES_NAMED else ""
    return f"resolved after changing {', '.join(named[:_MOST_CHANGES_NAMED])}{rest}"


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


def _sentence_at(text: str, place: int) -> tuple[str, int]:
    """The sentence around a place, and where it ends."""
    start, end = line_around(text, place)
    line = text[start:end]
    for sentence in _SENTENCE.finditer(line):
        if sentence.end() > place - start:
            return cut_line(sentence.group().strip()), start + sentence.end()
    return cut_line(line.strip()), end


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
