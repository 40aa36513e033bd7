"""Find the facts of a history: without a model, the same every time, each with the messages it is from.

What stands in one message is read once in its life; only what became of it (a command that failed and then went well)
is put together each time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import TypeGuard

from compact.core.facts.constraints import Constraint, ConstraintFinder
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.ledger import Fact, FactKind, FactsBySubject, Ledger, MergedFacts, by_subject
from compact.core.facts.open_items import TodoList, open_item_facts
from compact.core.facts.outcomes import ToolUse, ToolUseReader
from compact.core.facts.text import TextRange, cut_line, ends_of, joined_ranges, line_around, sentence_ranges
from compact.core.facts.tool_calls import LAST_LINE, fits_name, is_typed
from compact.core.messages.message import Message

_DECIDED = re.compile(
    r"\b(?:(?:we|i|let's|let us)(?: have|'ve|'ll| will)? (?:decided?|chose|choose|go(?:ing)? with|agreed?|settled?|"
    r"opt(?:ed)? for|switch(?:ed)? to|stick(?:ing)? (?:to|with))|decision:|instead of|rather than)\b",
    re.IGNORECASE,
)
_MENTIONS = (EntityKind.ID, EntityKind.NUMBER, EntityKind.DATE, EntityKind.URL, EntityKind.IDENTIFIER)
# Tools that name a place to look in, not a file that was read.
_SEARCHES = ("list*", "ls", "glob*", "grep*", "search*", "find*")
# Chosen: what a person writes to keep a session going is shorter.
_MAX_ACKNOWLEDGEMENT_CHARS = 80
_ASK_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HARNESS_NOTE = re.compile(r"\[request interrupted by user[^\]]*\]|#{3}\w+#{3}", re.IGNORECASE)
_ACKNOWLEDGEMENTS = frozenset(
    {
        "yes", "yeah", "yep", "yup", "no", "nope", "ok", "okay", "sure", "fine", "great", "good", "nice",
        "perfect", "cool", "wow", "awesome", "excellent", "amazing", "lovely", "thanks", "thank", "you", "thx",
        "ty", "so", "much", "very", "please", "pls", "hi", "hello", "hey", "there", "morning", "afternoon",
        "evening", "continue", "go", "on", "ahead", "proceed", "carry", "keep", "going", "next", "resume", "it",
        "that", "this", "is", "looks", "look", "works", "sounds", "right", "correct", "exactly", "alright",
        "agreed", "lgtm", "done", "now", "then", "and", "well", "a", "all", "for", "help", "your", "the",
        "again", "bye", "welcome", "ja", "bitte", "danke", "weiter", "oui", "merci", "sí", "si", "gracias",
        "继续", "好的", "好",
    }
)  # fmt: skip
# Chosen: longer ones are texts that ended up in the wrong argument.
_MAX_PATH_CHARS = 400
# A search that finds nothing ends like that: it is an outcome, not an error.
_NOTHING_FOUND = "exit 1"
# Chosen: more than these in one message, and what is further from both ends of a text, are data.
_MAX_MENTIONS = 5_000
_MENTIONS_END_CHARS = 50_000
# Chosen: how many messages are compared at a time.
_STRETCH = 500
# Chosen: the newest changes are the likely cause of a test that passes again.
_MAX_CHANGES_NAMED = 3


def find_facts(
    messages: Sequence[Message],
    artifacts: Iterable[Fact] = (),
    *,
    constraints: ConstraintFinder,
    history: Sequence[Message] | None = None,
    inside: Set[str] | None = None,
    reading: SpanReading | None = None,
) -> Ledger:
    """Return the ledger of a span: it contains that of any shorter span, except what was taken back or settled since.

    `history` is the whole that the span is part of: it decides what was asked first and last, and a constraint that
    was taken back after the span is gone too. `inside` are the ids of the span, if they are at hand, and `reading` is
    what was read of the span before this one.
    """
    whole = messages if history is None else history
    inside = {message.id for message in messages} if inside is None else inside
    held = constraints.standing(whole)
    standing = [constraint for constraint in held if constraint.source_id in inside]
    read = (reading or SpanReading()).read(messages)
    asked = (fact for fact in _asks(whole, held) if inside >= {*fact.source_ids})
    constrained = (Fact(FactKind.CONSTRAINT, found.text, source_ids=(found.source_id,)) for found in standing)
    # No two of these have facts of one kind.
    parts = (
        by_subject((*asked, *constrained)),
        read.decisions,
        by_subject(read.open_items),
        read.files,
        read.commands,
        read.errors,
        by_subject(artifacts),
        read.mentions,
    )
    return Ledger(tuple(chain.from_iterable(part.values() for part in parts)))


class FactReader:
    """Reads the facts of a span message by message, and what they have come to so far.

    What a message says is read once in its life; here it is put together (a command that failed and then went well).
    """

    def __init__(self) -> None:
        self.count = 0
        self.todos = TodoList()
        self.decisions, self.files, self.commands = MergedFacts(), MergedFacts(), MergedFacts()
        self.errors, self.mentions = MergedFacts(), MergedFacts()
        self._uses = ToolUseReader()
        self._modified: set[str] = set()
        # The lines that were read of each file, and the errors of each call that are not resolved yet.
        self._read: dict[str, tuple[TextRange, ...]] = {}
        self._open_errors: dict[str, tuple[tuple[Fact, int], ...]] = {}
        self._changes: list[str] = []

    def continued(self) -> FactReader:
        """Return one that goes on where this one is, and finds what comes to what is known here."""
        twin = FactReader()
        twin.count, twin.todos, twin._uses = self.count, self.todos.copy(), self._uses.copy()
        twin._modified, twin._read = set(self._modified), dict(self._read)
        twin._open_errors, twin._changes = dict(self._open_errors), list(self._changes)
        return twin

    def extend(self, messages: Iterable[Message]) -> None:
        """Read the next messages."""
        for message in messages:
            self.count += 1
            self.todos.add(message)
            for fact in find_decisions((message,)):
                self.decisions.add(fact)
            for text in message.read_once(_read_mentions):
                self.mentions.add(Fact(FactKind.MENTION, text, source_ids=(message.id,)))
            use = self._uses.add(message)
            if use is not None:
                self._add_use(use)

    def _add_use(self, use: ToolUse) -> None:
        if use.about.command:
            command = Fact(FactKind.COMMAND, cut_line(use.about.command), use.failure or "ok", use.ids)
            self.commands.add(command)
        self._add_error(use)
        if not use.failure:
            self._add_files(use)

    def _add_files(self, use: ToolUse) -> None:
        """Note each file, whether it was modified, and which of its lines were read; what failed touched nothing."""
        changed, path = use.about.changed, use.about.path
        self._modified.update(changed)
        if path and not changed and not fits_name(use.call.name, _SEARCHES):
            lines = (use.about.lines,) if use.about.lines else ()
            self._read[path] = joined_ranges((*self._read.get(path, ()), *lines))
        for name in changed or (path,):
            if _is_file_name(name) and (name in self._modified or name in self._read):
                detail = _file_detail(name in self._modified, self._read.get(name))
                self.files.add(Fact(FactKind.FILE, name, detail, use.ids))

    def _add_error(self, use: ToolUse) -> None:
        """Note a failure, or what stood between failures and the same call going well."""
        command, changes = use.about.command, self._changes
        subject = f"{use.call.name} {use.about.path or command or use.call.arguments}"
        if use.failure and use.failure != _NOTHING_FOUND:
            # A bare number says nothing without what it is the end of.
            text = f"{command}: {use.failure}" if command and use.failure.startswith("exit ") else use.failure
            error = Fact(FactKind.ERROR, cut_line(text), "not resolved", use.ids)
            self._open_errors[subject] = (*self._open_errors.get(subject, ()), (error, len(changes)))
            self.errors.add(error)
        if use.failure:
            return
        for error, place in self._open_errors.pop(subject, ()):
            ids = (*error.source_ids, *use.ids)
            self.errors.add(Fact(FactKind.ERROR, error.subject, _resolution(changes[place:]), ids))
        changes.extend(use.about.changed)


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The facts of a span by their kinds and subjects, and what is open at its end."""

    decisions: FactsBySubject
    files: FactsBySubject
    commands: FactsBySubject
    errors: FactsBySubject
    mentions: FactsBySubject
    open_items: tuple[Fact, ...]


def _common_start(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Return with how many messages both begin."""
    # Compared in C, a stretch at a time.
    start, most = 0, min(len(one), len(other))
    while start < most and one[start : start + _STRETCH] == other[start : start + _STRETCH]:
        start += _STRETCH
    end = start + _STRETCH
    pairs = enumerate(zip(one[start:end], other[start:end], strict=False), start)
    return next((n for n, (mine, its) in pairs if mine is not its and mine != its), most)


class SpanReading:
    """What was read of the span of a session's summary: the next span begins with most of it, and is read behind that.

    A span gets messages in its newest part, too, so what two spans in a row begin with is taken as settled. The forks
    of a session share it.
    """

    def __init__(self) -> None:
        # What is settled, and the span before. Whoever reads takes it out, and another fork meanwhile reads all anew.
        self._kept: list[tuple[FactReader, Sequence[Message]]] = []

    def read(self, span: Sequence[Message]) -> FoundFacts:
        """Return the facts of a span."""
        try:
            settled, before = self._kept.pop()
        except IndexError:
            settled, before = FactReader(), ()
        common = _common_start(span, before)
        if common < settled.count:
            settled = FactReader()
        settled.extend(span[settled.count : common])
        newest = settled.continued()
        newest.extend(span[common:])
        found = FoundFacts(
            decisions=settled.decisions.with_others(newest.decisions),
            files=settled.files.with_others(newest.files),
            commands=settled.commands.with_others(newest.commands),
            errors=settled.errors.with_others(newest.errors),
            mentions=settled.mentions.with_others(newest.mentions),
            open_items=tuple(open_item_facts(newest.todos)),
        )
        self._kept[:] = [(settled, span)]
        return found


def _asks(messages: Sequence[Message], held: Iterable[Constraint]) -> Iterator[Fact]:
    """Yield the task, which is the first thing that a person asked for, and the latest ask.

    The task follows the session: "ok, go on" asks for nothing new, and neither does a message that only sets
    constraints, which stand for themselves; the ask before them is still the latest.
    """
    constraints: dict[str, list[str]] = {}
    for constraint in held:
        constraints.setdefault(constraint.source_id, []).append(constraint.text)
    first = next((message for message in messages if is_typed(message)), None)
    task = next((message for message in messages if is_typed(message) and not is_acknowledgement(message.text)), first)
    if task is None:
        return
    yield Fact(FactKind.TASK, task.text.strip(), source_ids=(task.id,))
    typed = (message for message in reversed(messages) if is_typed(message))
    latest = next((one for one in typed if _asks_something(one.text, constraints.get(one.id, ()))), None)
    if latest is not None and latest.text != task.text:
        yield Fact(FactKind.LATEST_ASK, latest.text.strip(), source_ids=(latest.id,))


def _asks_something(text: str, constraints: Iterable[str]) -> bool:
    for constraint in constraints:
        text = text.replace(constraint, " ")
    return not is_acknowledgement(text)


def is_acknowledgement(text: str) -> bool:
    """Return True for a message that greets, thanks, agrees or says to go on, and asks for nothing of its own."""
    if len(text) > _MAX_ACKNOWLEDGEMENT_CHARS:
        return False
    words = _ASK_WORD.findall(_HARNESS_NOTE.sub("", text).lower())
    return _ACKNOWLEDGEMENTS.issuperset(words) and "?" not in text


def find_decisions(messages: Iterable[Message]) -> Iterator[Fact]:
    """Yield the sentences of the dialogue in which something was decided."""
    for message in messages:
        for sentence in message.read_once(_read_decisions):
            yield Fact(FactKind.DECISION, sentence, source_ids=(message.id,))


def _read_decisions(message: Message) -> tuple[str, ...]:
    if not _is_dialogue(message):
        return ()
    text, sentence_end = message.text, 0
    found: list[str] = []
    for first, last in ends_of(text):
        for match in _DECIDED.finditer(text, first, last):
            if match.start() >= sentence_end:
                sentence, sentence_end = _sentence_at(text, match.start())
                found.append(sentence)
    return tuple(found)


def _is_dialogue(message: Message) -> bool:
    return message.role == "assistant" or is_typed(message)


def _is_file_name(name: str | None) -> TypeGuard[str]:
    return name is not None and len(name) <= _MAX_PATH_CHARS and "\n" not in name


def _file_detail(is_modified: bool, ranges: tuple[TextRange, ...] | None) -> str:
    parts = ["modified"] if is_modified else []
    if ranges is not None:
        lines = (f"{start}-{'' if end >= LAST_LINE else end}" for start, end in ranges)
        parts.append(f"read {', '.join(lines)}".rstrip())
    return "; ".join(parts)


def _resolution(changes: Sequence[str]) -> str:
    named = list(dict.fromkeys(reversed(changes)))
    if not named:
        return "resolved by trying again"
    rest = ", …" if len(named) > _MAX_CHANGES_NAMED else ""
    return f"resolved after changing {', '.join(named[:_MAX_CHANGES_NAMED])}{rest}"


def _read_mentions(message: Message) -> tuple[str, ...]:
    if not _is_dialogue(message):
        return ()
    texts = (message.text, *(call.arguments for call in message.tool_calls))
    parts = (text[first:last] for text in texts for first, last in ends_of(text, _MENTIONS_END_CHARS))
    found = dict.fromkeys(
        sys.intern(string) for part in parts for string, kind in entity_kinds(part).items() if kind in _MENTIONS
    )
    return tuple(found)[:_MAX_MENTIONS]


def _sentence_at(text: str, place: int) -> tuple[str, int]:
    """Return the sentence around a place, and where it ends."""
    start, end = line_around(text, place)
    line = text[start:end]
    for sentence_start, sentence_end in sentence_ranges(line):
        if sentence_end > place - start:
            return cut_line(line[sentence_start:sentence_end].strip()), start + sentence_end
    return cut_line(line.strip()), end
