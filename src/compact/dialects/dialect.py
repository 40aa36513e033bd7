"""The socket for wire dialects and frameworks: how a caller's items become entries of the log, and prompts items again.

An entry is a Chat Completions message, a plain dict: that is the form the log has, whatever an agent speaks. What only
its own dialect understands (signatures, ids, block types) travels in the entry under `native`, so that an item can be
made from its entries alone, in this process or in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from compact.core.errors import InvalidHistory
from compact.core.log.legality import Violation

Entry: TypeAlias = dict[str, Any]
NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Block:
    """Items of a list and the entries they come to: one item may hold several entries, one entry several items."""

    items: tuple[Any, ...]
    entries: tuple[Entry, ...]


class Dialect(Protocol):
    """How one wire form, or the messages of one framework, are read and written."""

    @property
    def name(self) -> str:
        """``chat``, ``responses``, ``anthropic``, …"""
        ...

    def recognises(self, item: object) -> bool | None:
        """True for an item that only this dialect has, None for one that it shares with others, False for no other."""
        ...

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Cut items into the smallest blocks that make sense; the first is number `place` of the caller's list.

        Every item is in one block, in order. Raises InvalidHistory, naming the place. What is a Chat Completions
        message as it stands is its own entry. No item is changed.
        """
        ...

    def write(self, entries: Sequence[Entry]) -> Iterable[Block]:
        """Items for entries that are not what was read any more: changed, parted from their block, or made by us."""
        ...

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """A whole prompt made legal where blocks meet: merged, moved to another role, in as few new items as can be."""
        ...

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Everything in a whole prompt that the provider would reject."""
        ...


def without(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A copy of an item without some of its keys."""
    return {key: value for key, value in item.items() if key not in keys}


def foreign(item: object, place: int, dialect: str) -> InvalidHistory:
    """The error for an item that a dialect does not know."""
    shape = f"keys {', '.join(map(str, item))}" if isinstance(item, Mapping) else type(item).__name__
    return InvalidHistory(
        f"not a message in the dialect {dialect!r}: {shape}",
        place=f"messages[{place}]",
        hint="pass one kind of messages in a session, or name another dialect: preflight(..., dialect=...)",
    )
