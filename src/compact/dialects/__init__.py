"""How agents write their messages: each wire form is read into entries of the log, and prompts are written in it.

dialect          the socket: what a dialect can do, what a block and an entry are, how the summary is marked
gateway          one session's lists on their way in and out, in whatever dialect they are
turns            an assistant's turn as one entry: its parts, its calls, its opaque blocks
objects          message objects of client libraries and frameworks, and what is no message at all
chat             Chat Completions, the form that the log has
responses        OpenAI Responses
responses_items  its items as entries: what the model made in one go, and results
anthropic        Anthropic Messages
gemini           Gemini contents
gemini_parts     their parts, as dicts or as objects of the SDK
chat_check       what each provider answers with 400, one file each
responses_check
anthropic_check
gemini_check
translation      what was read and written before, so that known items are not read again, a folder
converse         Bedrock Converse, a folder
ollama           Ollama's own chat API, a folder
vercel           Vercel AI SDK, a folder
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compact.core.errors import ConfigError, InvalidHistory
from compact.core.json_data import is_mapping
from compact.dialects.anthropic import AnthropicDialect
from compact.dialects.chat import ChatDialect
from compact.dialects.converse import ConverseDialect
from compact.dialects.dialect import Block as Block
from compact.dialects.dialect import Dialect as Dialect
from compact.dialects.dialect import Entry as Entry
from compact.dialects.dialect import foreign
from compact.dialects.gemini import GeminiDialect
from compact.dialects.objects import framework_dialect, plain_item
from compact.dialects.ollama import OllamaDialect
from compact.dialects.responses import ResponsesDialect
from compact.dialects.vercel import VercelDialect

CHAT = ChatDialect()
_ALL: tuple[Dialect, ...] = (
    CHAT,
    ResponsesDialect(),
    AnthropicDialect(),
    GeminiDialect(),
    ConverseDialect(),
    VercelDialect(),
    OllamaDialect(),
)
_TEXT_ROLES = ("system", "user", "assistant")
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _ALL}


def get_dialect(dialect: str | Dialect) -> Dialect:
    """Return a dialect by its name; one of your own as it is."""
    found = DIALECTS.get(dialect) if isinstance(dialect, str) else dialect
    if found is None or not hasattr(found, "read"):
        named = repr(dialect) if isinstance(dialect, str) else f"of the type {type(dialect).__name__}"
        hint = f"use one of {', '.join(DIALECTS)}, or pass a Dialect of your own"
        raise ConfigError(f"there is no dialect {named}", field="dialect", hint=hint)
    return found


def detect(items: Sequence[Any], start: int = 0) -> Dialect | None:
    """Return the dialect that items are in, from a place on; None if they could be in several, as plain text is.

    A list in two dialects is an error that names the place; so is what no dialect knows, once it is read.
    """
    found: Dialect | None = None
    first = 0
    for place in range(start, len(items)):
        item = plain_item(items[place])
        if _is_plain_text(item):
            continue
        framework = framework_dialect(item)
        if found is not None and framework is None and found.recognises(item):
            continue  # whether others know it, too, makes no difference
        certain = [framework] if framework else [one for one in DIALECTS.values() if one.recognises(item)]
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


def check_dialect(items: Sequence[Any], start: int, dialect: Dialect) -> None:
    """Raise InvalidHistory for an item, from a place on, that only another dialect has: it would be half understood."""
    for place in range(start, len(items)):
        item = plain_item(items[place])
        if _is_plain_text(item) or dialect.recognises(item):
            continue
        if any(one.recognises(item) for one in DIALECTS.values() if one is not dialect):
            raise foreign(item, place, dialect.name)


def _is_plain_text(item: Any) -> bool:
    """Return True for what is a message in nearly every dialect, and certain in none: half of a long history."""
    if not is_mapping(item) or len(item) != 2:
        return False
    return isinstance(item.get("content"), str) and item.get("role") in _TEXT_ROLES
