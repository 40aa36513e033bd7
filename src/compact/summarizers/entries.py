"""Entries of summaries by code: a decision with its reason, inputs and outputs; a file with what was changed and why.

Every part of an entry is in the words of the history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.facts.outcomes import ToolUse, tool_uses
from compact.core.facts.text import CUT_MARK, first_line, json_leaves, one_line, sentence_ranges
from compact.core.facts.tool_calls import (
    PATH_ARGUMENTS,
    READS,
    WRITES,
    arguments_of,
    fits_name,
    is_typed,
    patched_files,
)
from compact.core.messages.message import Message, ToolCall

SEPARATOR = " :: "
NOT_TOLD = "-"
# Chosen: an entry is read at a glance.
_BRIEF_CHARS = 80
_REASON_CHARS = 160
_MAX_NAMES = 5
# What tools draw around a line.
_RULERS = " =-_*#"
# Chosen: so much of a result or of an argument is looked at.
_SEARCHED_CHARS = 20_000
# How a sentence begins that gives the reason for the one before it.
_GIVES_REASON = re.compile(r"(?:because|since|otherwise|that way|this way|the reason)\b", re.IGNORECASE)
_DEFINITION = re.compile(
    r"^[ \t+\-@]*(?:(?:export|default|pub|public|private|protected|static|async|abstract|final|override)\s+){0,4}"
    r"(?P<what>def|class|func|fun|function|fn|interface|struct|enum|trait|type|module)\s+"
    r"(?:\([^)\n]{0,60}\)\s*)?(?P<name>[A-Za-z_$][\w$]{0,60})",
    re.MULTILINE,
)
_FUNCTIONS = ("def", "func", "fun", "function", "fn")
# Arguments that are not content: paths, and names of operations.
_NO_CONTENT = (*PATH_ARGUMENTS, "command")
_ACTIONS = (
    (("write*", "create*"), "written"),
    (("delete*",), "deleted"),
    (("move*", "rename*"), "moved"),
    (("*",), "edited"),
)


def decision_entries(span: Sequence[Message], ledger: Ledger) -> Iterator[Fact]:
    """Yield each decision as `[id] decision :: reason :: inputs :: outputs`, in the order in which they were taken.

    Inputs are the last call before it, outputs the first and the last call after it, without going past another
    decision or something that a person typed.
    """
    yield from _carried(ledger, FactKind.DECISION)
    places = {message.id: place for place, message in enumerate(span)}
    found = ((places.get(id_, -1), fact) for fact in ledger.of(FactKind.DECISION) for id_ in fact.source_ids[-1:])
    taken = sorted(((place, fact) for place, fact in found if place >= 0), key=lambda item: item[0])
    told = [(use, text) for use in tool_uses(span) if (text := _brief(use))]
    typed = (place for place, message in enumerate(span) if is_typed(message))
    stops = sorted({-1, *(place for place, _ in taken), *typed, len(span)})
    before, after = dict(zip(stops[1:], stops, strict=False)), dict(pairwise(stops))
    for place, fact in taken:
        inputs = [(use, text) for use, text in told if before[place] <= use.place < place][-1:]
        following = [(use, text) for use, text in told if place <= use.place < after[place]]
        outputs = (*following[:1], *following[1:][-1:])
        parts = (
            _without_separator(fact.subject),
            _without_separator(_reason(span[place].text, fact.subject)),
            "; ".join(_without_separator(text) for _, text in inputs),
            "; ".join(_without_separator(text) for _, text in outputs),
        )
        line = f"[{span[place].id}] {SEPARATOR.join(part or NOT_TOLD for part in parts)}"
        ids = (span[place].id, *(use.caller.id for use, _ in (*inputs, *outputs)))
        yield Fact(FactKind.DECISION, line, source_ids=tuple(dict.fromkeys(ids)))


def change_entries(span: Sequence[Message], ledger: Ledger) -> Iterator[Fact]:
    """Yield each file that was changed as `path: what was done; functions and types touched; why: …`."""
    for entry, uses in _changed_files(span, ledger):
        why = next((text for use in uses if (text := _said_before(span, use.place))), "")
        yield replace(entry, subject=f"{entry.subject}; why: {why}") if why else entry


def work_entries(span: Sequence[Message], ledger: Ledger) -> Iterator[Fact]:
    """Yield each file that was changed as `path: what was done; functions and types touched`."""
    return (entry for entry, _ in _changed_files(span, ledger))


def source_entries(span: Sequence[Message], ledger: Ledger) -> Iterator[Fact]:
    """Yield the addresses that the dialogue used; the ledger has them all."""
    return (fact for fact in ledger.of(FactKind.MENTION) if "://" in fact.subject)


def _changed_files(span: Sequence[Message], ledger: Ledger) -> Iterator[tuple[Fact, Sequence[ToolUse]]]:
    yield from ((fact, ()) for fact in _carried(ledger, FactKind.FILE))
    known = {fact.subject for fact in ledger.of(FactKind.FILE)}
    changes: dict[str, list[ToolUse]] = {}
    for use in tool_uses(span):
        for path in () if use.failure else use.about.changed:
            if path in known:
                changes.setdefault(path, []).append(use)
    for path, uses in changes.items():
        done = "; ".join(filter(None, (_action(uses), _touched(path, uses))))
        ids = dict.fromkeys(use.caller.id for use in uses)
        yield Fact(FactKind.FILE, f"{path}: {done}", source_ids=tuple(ids)), uses


def _carried(ledger: Ledger, kind: FactKind) -> Iterator[Fact]:
    """Yield what only the summary before tells."""
    return (fact for fact in ledger.of(kind) if not fact.source_ids)


def _brief(use: ToolUse) -> str:
    """Return what was asked and, unless that goes without saying, what came of it, in a line."""
    asked = use.about.path or use.about.command or _first_argument(use.call)
    line = one_line(f"{use.call.name} {asked}", _BRIEF_CHARS)
    outcome = use.failure or _outcome(use)
    if not (asked or outcome):
        return ""
    # A result is somebody else's words: they stand in quotation marks that they cannot end.
    quoted = one_line(outcome, _BRIEF_CHARS).replace('"', "'")
    return f'{line} → "{quoted}"' if outcome else line


def _outcome(use: ToolUse) -> str:
    """Return the line of a result that tells most: of a command the last; what was read or written needs none."""
    reads_file = fits_name(use.call.name, READS) and use.about.path
    if reads_file or fits_name(use.call.name, WRITES):
        return ""
    if not use.about.command:
        return next(iter(use.result.text[:_SEARCHED_CHARS].strip().splitlines()), "")
    lines = use.result.text[-_SEARCHED_CHARS:].strip().splitlines()
    # What ends in a colon only announces.
    return lines[-1].strip(_RULERS) if lines and not lines[-1].endswith(":") else ""


def _first_argument(call: ToolCall) -> str:
    arguments = arguments_of(call)
    found = next((value for value in arguments.values() if isinstance(value, str)), "" if arguments else call.arguments)
    return first_line(found)


def _without_separator(text: str) -> str:
    """Return a text that cannot be taken for two parts of an entry."""
    return one_line(text).replace(SEPARATOR, " : ")


def _reason(text: str, decision: str) -> str:
    """Return the sentence that leads up to a decision, and the one after it if it begins like a reason."""
    sentences = [text[start:end].strip() for start, end in sentence_ranges(text)]
    for before, sentence, after in zip(("", *sentences), sentences, (*sentences[1:], ""), strict=False):
        if sentence and sentence.startswith(decision.removesuffix(CUT_MARK)):
            reasons = (before, after if _GIVES_REASON.match(after) else "")
            return one_line(" ".join(filter(None, reasons)), _REASON_CHARS)
    return ""


def _said_before(span: Sequence[Message], place: int) -> str:
    """Return how the agent's words before a call end, or those before the calls that led to it."""
    for message in reversed(span[: place + 1]):
        if is_typed(message):
            break
        if message.role == "assistant" and message.text.strip():
            text = message.text.strip()
            *before, (start, end) = sentence_ranges(text)
            if before and _GIVES_REASON.match(text, start):
                start, _ = before[-1]
            return one_line(text[start:end], _REASON_CHARS)
    return ""


def _action(uses: Sequence[ToolUse]) -> str:
    done = [next(word for patterns, word in _ACTIONS if fits_name(use.call.name, patterns)) for use in uses]
    counted = ((word, done.count(word)) for word in dict.fromkeys(done))
    return ", ".join(f"{word} ×{count}" if count > 1 else word for word, count in counted)


def _touched(path: str, uses: Iterable[ToolUse]) -> str:
    """Return the functions and types that changes name; if there are none, the first line that is new."""
    texts = [text for use in uses for text in _changed_texts(path, use.call)]
    names = dict.fromkeys(
        f"{found['name']}()" if found["what"] in _FUNCTIONS else f"{found['what']} {found['name']}"
        for text in texts
        for found in _DEFINITION.finditer(text)
    )
    if names:
        return ", ".join(list(names)[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    *before, newest = texts or ("",)
    known = {line.strip() for text in before for line in text.splitlines()}
    changed = (line for line in newest.splitlines() if line.strip() and line.strip() not in known)
    return one_line(next(changed, ""), _BRIEF_CHARS)


def _changed_texts(path: str, call: ToolCall) -> Iterator[str]:
    """Yield what a call puts into a file or takes out of it; of a patch the part about this file."""
    named = arguments_of(call).items()
    texts = (text for name, value in named if name not in _NO_CONTENT for text in json_leaves(value))
    for text in texts if named else (call.arguments,):
        patches = list(patched_files(text))
        yield from (said[:_SEARCHED_CHARS] for name, said in patches if name == path)
        if not patches:
            yield text[:_SEARCHED_CHARS]
