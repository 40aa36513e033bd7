"""The wire dialects that are understood, one file each, and how a list tells which one it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compact.core.errors import ConfigError, InvalidHistory
from compact.dialects.anthropic import AnthropicDialect
from compact.dialects.chat import ChatDialect
from compact.dialects.dialect import Block as Block
from compact.dialects.dialect import Dialect as Dialect
from compact.dialects.dialect import Entry as Entry
from compact.dialects.gemini import GeminiDialect
from compact.dialects.responses import ResponsesDialect

CHAT = ChatDialect()
_ALL: tuple[Dialect, ...] = (CHAT, ResponsesDialect(), AnthropicDialect(), GeminiDialect())
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _ALL}


def get_dialect(dialect: str | Dialect) -> Dialect:
    """A dialect by its name; one of your own as it is."""
    if not isinstance(dialect, str):
        return dialect
    if dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ConfigError(f"there is no dialect {dialect!r}", field="dialect", hint=f"use one of {known}")
    return DIALECTS[dialect]


def detect(items: Sequence[Any], start: int = 0) -> Dialect | None:
    """The dialect that items are in, from a place in a list on; None if they could be in several, as plain text is.

    A list in two dialects is an error that names the place; so is what no dialect knows, once it is read.
    """
    found: Dialect | None = None
    first = 0
    for place in range(start, len(items)):
        answers = {dialect.name: dialect.recognises(items[place]) for dialect in DIALECTS.values()}
        certain = [DIALECTS[name] for name, answer in answers.items() if answer]
        if len(certain) != 1 or certain[0] is found:
            continue
        if found is not None:
            raise InvalidHistory(
                f"the list is in two dialects: messages[{first}] is {found.name}, this is {certain[0].name}",
                place=f"messages[{place}]",
                hint="pass one kind of messages, or name the dialect: preflight(..., dialect=...)",
            )
        found, first = certain[0], place
    return found
