"""The dialect of a framework whose messages come to entries of the log one by one, whatever model they are for.

A framework says how its messages, as plain data, are read as entries and made from them; all else is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.dialects.dialect import NATIVE, Block, Entry
from compact.dialects.turns import OPENING

_INSTRUCTIONS = ("system", "developer")


class PreparedMessages(list[Any]):
    """Messages that a wrapped model sends: one of its methods may call another, which must not prepare them again."""

    @classmethod
    def of(cls, messages: Sequence[Any], items: Sequence[Any] | None) -> PreparedMessages:
        """Return what to send for messages: the items that they came to, or the messages as they are."""
        return cls(messages if items is None else items)


class ChatMessagesDialect(ABC):
    """Reads and writes the messages of a framework; a subclass has `read`, `_item_of` and perhaps `joins_results`.

    Entries that were read have `native`, by which they are told from those that we made.
    """

    name = ""
    # True if one message of the framework holds all results of a turn.
    joins_results = False

    def recognises(self, item: object) -> bool | None:
        """Return None for data with a role or a type: the adapter names the dialect."""
        return None if is_mapping(item) and ("role" in item or "type" in item) else False

    @abstractmethod
    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield the blocks that items make."""

    @abstractmethod
    def _item_of(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """Return the message that one entry, or the results of one turn, come to."""

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield each entry as a message."""
        return (Block((self._item_of([entry]),), (entry,)) for entry in entries)

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have a prompt begin with the user, no system message of ours in its middle, and results together.

        One list of messages may go to any provider, so the rules of the strictest hold.
        """
        joined: list[Block] = []
        has_begun = False
        for block in blocks:
            role = block.entries[0]["role"]
            if not has_begun and role not in _INSTRUCTIONS:
                has_begun = True
                if role != "user":
                    joined.append(Block((self._item_of([{"role": "user", "content": OPENING}]),), ()))
            elif has_begun and role in _INSTRUCTIONS and NATIVE not in block.entries[0]:
                block = Block((self._item_of([{**block.entries[0], "role": "user"}]),), block.entries)
            if self.joins_results and role == "tool" and joined and _are_results(joined[-1]):
                entries = (*joined.pop().entries, *block.entries)
                block = Block((self._item_of(entries),), entries)
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return what no provider would take: calls and results that do not pair, empty messages."""
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        return check_chat([read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)])


def _are_results(block: Block) -> bool:
    return bool(block.entries) and all(entry["role"] == "tool" for entry in block.entries)


def entry_text(entry: Entry) -> str:
    """Return the content of an entry as one text."""
    content = entry.get("content")
    if not is_list(content):
        return content or ""
    return "\n".join(str(part.get("text") or "") for part in content if is_mapping(part))
