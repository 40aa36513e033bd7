"""Chat Completions: the form the log has, so that nothing needs to be translated but our own `meta`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.errors import InvalidHistory
from compact.core.json_data import is_mapping
from compact.core.messages.legality import Violation
from compact.core.messages.message import ROLES, Message
from compact.dialects.chat_check import check_chat_completions
from compact.dialects.dialect import (
    META,
    NATIVE,
    Block,
    Entry,
    check_calls,
    entry_message,
    fields_of,
    foreign,
    message_entry,
    without,
)
from compact.dialects.objects import plain_item

_OWN_PARTS = frozenset({"image_url", "input_audio", "refusal"})
# Parts that other dialects have, and only they; what nobody knows is passed through.
_FOREIGN_PARTS = frozenset(
    {"input_text", "output_text", "input_image", "input_file"}
    | {"tool_use", "tool_result", "thinking", "redacted_thinking"}
    | {"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"}
)


class ChatDialect:
    """Plain dicts as Chat Completions takes them, and our own `Message`."""

    name = "chat"

    def recognises(self, item: object) -> bool | None:
        """Return True for tool calls, results and parts of its own; plain text may be of any dialect."""
        if isinstance(item, Message):
            return True
        if not isinstance(item, Mapping):
            return False
        fields = cast(Mapping[str, Any], item)
        if fields.get("role") not in ROLES or "parts" in fields or "type" in fields:
            return False
        answer = _recognises_content(fields.get("content"))
        if fields.get("tool_calls") or "tool_call_id" in fields:
            return True
        return True if fields["role"] == "tool" and answer is not False else answer

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Read each item as an entry of its own."""
        check_readable(items, place)
        return (Block((item,), (message_entry(item) if isinstance(item, Message) else item,)) for item in items)

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Write each entry as it is, without what is ours."""
        for entry in entries:
            is_plain = not (META in entry or NATIVE in entry)
            own = None if is_plain else entry_message(entry)
            yield Block((entry if is_plain else own or without(entry, META, NATIVE),), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return the items as they are: the engine keeps Chat Completions legal by itself."""
        return blocks

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything Chat Completions would reject, keys that it does not know included."""
        return check_chat_completions([plain_item(item) for item in items])


def check_readable(items: Sequence[Any], place: int) -> None:
    """Raise InvalidHistory for objects of others, and for a call or a result that is written as another dialect does.

    Nobody would see it as one. Other parts that are not known here are passed through.
    """
    for number, item in enumerate(items, place):
        if not (isinstance(item, Message) or is_mapping(item)):
            raise foreign(item, number, "chat")
        check_calls(fields_of(item).get("content"), number, "chat")
        if any(map(_is_ollama_call, fields_of(item).get("tool_calls") or ())):
            raise InvalidHistory(
                "a call without an id, whose arguments are an object, is not in the dialect 'chat'",
                place=f"messages[{number}]",
                hint='name the dialect if it is Ollama\'s: preflight(..., dialect="ollama")',
            )


def _is_ollama_call(call: object) -> bool:
    """Return True for a call whose result nobody could find: Chat Completions has none without an id."""
    return not fields_of(call).get("id") and is_mapping(fields_of(fields_of(call).get("function")).get("arguments"))


def _recognises_content(content: object) -> bool | None:
    if not isinstance(content, list | tuple):
        return None
    parts = [fields_of(part) for part in cast(Sequence[object], content)]
    kinds = {part.get("type") for part in parts}
    # Others have parts of the type `file` too; here the file is under its own key.
    if kinds & _OWN_PARTS or any(part.get("type") == "file" and "file" in part for part in parts):
        return True
    return False if kinds & _FOREIGN_PARTS else None
