"""A prompt in its wire form, to send it again, and the log of a session as a file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from compact.archive.json_lines import message_record, to_line
from compact.core.errors import CompactError
from compact.core.messages.message import Message
from compact.dialects import CHAT, DIALECTS, Dialect, detect
from compact.dialects.dialect import META, NATIVE, fields_of, without
from compact.dialects.translation import Translator
from compact.viewer.source import DataSource

# The field of a request that holds the prompt, where it is not `messages`.
_FIELDS = {"responses": "input", "gemini": "contents"}
WIRE_FORMS = ("auto", *DIALECTS)


def prompt_request(source: DataSource, session_id: str, number: int, form: str) -> dict[str, Any]:
    """Return the prompt of a call as the field of a request; `auto` is the form that its messages came in."""
    prompt = source.prompt(source.info(session_id), number)
    entries, place = prompt.entries, prompt.summary_place
    dialect = _dialect_of(entries) if form == "auto" else DIALECTS[form]
    return {_FIELDS.get(dialect.name, "messages"): [_plain(item) for item in _items(dialect, entries, place)]}


def _items(dialect: Dialect, entries: Sequence[Any], summary_place: int | None) -> list[Any]:
    if dialect is CHAT:
        return [without(fields_of(entry), META, NATIVE) if fields_of(entry) else entry for entry in entries]
    return list(Translator(dialect).items(entries, summary_place=summary_place))


def _dialect_of(entries: Sequence[Any]) -> Dialect:
    """Return the dialect that entries were read from: the one that reads most of them again from what it writes.

    Not all is read as it was: messages of one role that follow each other may be written as one. What is in no
    dialect's own form, as plain text is, is taken for Chat Completions.
    """
    others = {dialect.name: _read_again(dialect, entries) for dialect in DIALECTS.values() if dialect is not CHAT}
    best = max(others, key=lambda name: others[name])
    return DIALECTS[best] if others[best] else CHAT


def _read_again(dialect: Dialect, entries: Sequence[Any]) -> int:
    """Return how many entries a dialect reads again as they are, from what it writes of them."""
    try:
        items = Translator(dialect).items(entries)
        read = _natives(Translator(dialect).entries(items)) if detect(items) is dialect else set[str]()
        return len(_natives(entries) & read)
    except (CompactError, KeyError, TypeError, ValueError, AttributeError):
        # Marks of another dialect are not understood: then it is not this one.
        return 0


def _natives(entries: Sequence[Any]) -> set[str]:
    """Return what only the dialect of each entry understands."""
    found = (fields_of(entry)[NATIVE] for entry in entries if NATIVE in fields_of(entry))
    return {json.dumps(native, sort_keys=True, default=str) for native in found}


def _plain(item: Any) -> Any:
    """Return an item as JSON, in which bytes are base64, as they are on the wire."""
    if isinstance(item, bytes):
        return base64.b64encode(item).decode()
    if isinstance(item, dict):
        return {key: _plain(value) for key, value in cast(dict[str, Any], item).items()}
    if isinstance(item, list):
        return [_plain(value) for value in cast(list[Any], item)]
    return message_record(item) if isinstance(item, Message) else item


def session_lines(source: DataSource, session_id: str) -> Iterator[bytes]:
    """Yield the full log of a session as lines of JSON, without secrets: what `compact export` writes."""
    source.info(session_id)
    for message in source.manager.history(session_id):
        yield to_line(message_record(source.redactor.message(sent_message(message))))


def sent_message(message: Message) -> Message:
    """Return the message that a caller sent: one that works with our own class sent the inner message."""
    return message.original if isinstance(message.original, Message) else message
