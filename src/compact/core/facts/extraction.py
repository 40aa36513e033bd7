"""Find the facts of a history: without a model, the same every time, each with the messages it is from.

What stands in one message is read once in its life; only what became of it (a command that failed and then went well)
is put together each time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from compact.core.facts.constraints import Constraint, ConstraintFinder
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.ledger import Fact, FactKind, Ledger, merged
from compact.core.facts.open_items import find_open_items
from compact.core.facts.outcomes import ToolUse, tool_uses
from compact.core.facts.text import cut_line, ends_of, joined_ranges, line_around, sentence_ranges
from compact.core.facts.tool_calls import LAST_LINE, fits_name, is_typed
from compact.core.log.messages import Message

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
# Chosen: the newest changes are the likely cause of a test that passes again.
_MAX_CHANGES_NAMED = 3


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
    held = constraints.standing(whole)
    standing = [constraint for constraint in held if constraint.source_id in inside]
    uses = list(tool_uses(messages))
    return merged(
        (
            *(fact for fact in _asks(whole, held) if inside.issuperset(fact.source_ids)),
            *(Fact(FactKind.CONSTRAINT, found.text, source_ids=(found.source_id,)) for found in standing),
            *find_decisions(messages),
            *find_open_items(messages),
            *_files(uses),
            *_commands(uses),
            *_errors(uses),
            *artifacts,
            *_mentions(messages),
        )
    )


def _asks(messages: Sequence[Message], held: Iterable[Constraint]) -> Iterator[Fact]:
    """Yield the task, which is the first thing that a person asked for, and the latest ask.

    The task follows the session: "ok, go on" asks for nothing new, and neither does a message that only sets
    constraints, which stand for themselves; the ask before them is still the latest.
    """
    constraints: dict[str, list[str]] = {}
    for constraint in held:
        constraints.setdefault(constraint.source_id, []).append(constraint.text)
    typed = [message for message in messages if is_typed(message)]
    task = next((message for message in typed if not is_acknowledgement(message.text)), typed[0] if typed else None)
    if task is None:
        return
    yield Fact(FactKind.TASK, task.text.strip(), source_ids=(task.id,))
    asking = [message for message in typed if _asks_something(message.text, constraints.get(message.id, ()))]
    if asking and asking[-1].text != task.text:
        yield Fact(FactKind.LATEST_ASK, asking[-1].text.strip(), source_ids=(asking[-1].id,))


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


def _files(uses: Iterable[ToolUse]) -> Iterator[Fact]:
    """Yield each file, whether it was modified, and which of its lines were read; what failed touched nothing."""
    modified: set[str] = set()
    read: dict[str, list[tuple[int, int]]] = {}
    for use in uses:
        changed, path = use.about.changed, use.about.path
        if use.failure:
            continue
        modified.update(changed)
        if path and not changed and not fits_name(use.call.name, _SEARCHES):
            read.setdefault(path, []).extend((use.about.lines,) if use.about.lines else ())
        for name in changed or (path,):
            if _is_file_name(name) and (name in modified or name in read):
                yield Fact(FactKind.FILE, name, _file_detail(name in modified, read.get(name)), use.ids)


def _is_file_name(name: str | None) -> TypeGuard[str]:
    return name is not None and len(name) <= _MAX_PATH_CHARS and "\n" not in name


def _file_detail(is_modified: bool, ranges: list[tuple[int, int]] | None) -> str:
    parts = ["modified"] if is_modified else []
    if ranges is not None:
        lines = (f"{start}-{'' if end >= LAST_LINE else end}" for start, end in joined_ranges(ranges))
        parts.append(f"read {', '.join(lines)}".rstrip())
    return "; ".join(parts)


def _commands(uses: Iterable[ToolUse]) -> Iterator[Fact]:
    for use in uses:
        if use.about.command:
            yield Fact(FactKind.COMMAND, cut_line(use.about.command), use.failure or "ok", use.ids)


def _errors(uses: Iterable[ToolUse]) -> Iterator[Fact]:
    """Yield each failure, and what stood between it and the same call going well."""
    changes: list[str] = []
    open_errors: dict[str, list[tuple[Fact, int]]] = {}
    for use in uses:
        command = use.about.command
        subject = f"{use.call.name} {use.about.path or command or use.call.arguments}"
        if use.failure and use.failure != _NOTHING_FOUND:
            # A bare number says nothing without what it is the end of.
            text = f"{command}: {use.failure}" if command and use.failure.startswith("exit ") else use.failure
            error = Fact(FactKind.ERROR, cut_line(text), "not resolved", use.ids)
            open_errors.setdefault(subject, []).append((error, len(changes)))
            yield error
        if use.failure:
            continue
        for error, place in open_errors.pop(subject, ()):
            yield Fact(FactKind.ERROR, error.subject, _resolution(changes[place:]), (*error.source_ids, *use.ids))
        changes.extend(use.about.changed)


def _resolution(changes: Sequence[str]) -> str:
    named = list(dict.fromkeys(reversed(changes)))
    if not named:
        return "resolved by trying again"
    rest = ", …" if len(named) > _MAX_CHANGES_NAMED else ""
    return f"resolved after changing {', '.join(named[:_MAX_CHANGES_NAMED])}{rest}"


def _mentions(messages: Sequence[Message]) -> Iterator[Fact]:
    """Yield identifiers and numbers that the dialogue has used: those that only a tool printed are not among them."""
    for message in messages:
        for text in message.read_once(_read_mentions):
            yield Fact(FactKind.MENTION, text, source_ids=(message.id,))


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
