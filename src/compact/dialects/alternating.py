"""Plain chat whose roles alternate: user, assistant, user. Many models are trained on nothing else.

The templates of Gemma, Mistral, Llama 2 and others refuse a list in which one role speaks twice, and Claude behind a
gateway one that does not begin with the user. What compaction leaves of such a list is put together until it alternates
again; a list that never did is none of these models', and goes out message by message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from compact.core.log.legality import Violation
from compact.dialects.chat import ChatDialect
from compact.dialects.dialect import META, Block, fields_of
from compact.dialects.turns import OPENING

_LEADING = ("system", "developer")
_SPEAKERS = ("user", "assistant")
_PLAIN_KEYS = frozenset({"role", "content"})


class AlternatingChat(ChatDialect):
    """Chat Completions without tools, in which user and assistant take turns."""

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Make one message of neighbours of one role, and begin with a message of the user."""
        joined: list[Block] = []
        for block in blocks:
            if joined and _can_merge(joined[-1], block):
                joined[-1] = _merged(joined[-1], block)
            else:
                joined.append(block)
        place = next((n for n, block in enumerate(joined) if _role(block) not in _LEADING), len(joined))
        if place < len(joined) and _role(joined[place]) == "assistant":
            joined.insert(place, Block(({"role": "user", "content": OPENING},), ()))
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything that such a model would reject."""
        return (*super().check(items), *check_alternation(items))


def alternates(items: Sequence[Any]) -> bool:
    """Return True for plain chat in which user and assistant take turns, the user first."""
    expected = 0
    for item in items:
        if not isinstance(item, dict):
            return False
        fields = cast(Mapping[str, Any], item)
        role = fields.get("role")
        if role in _LEADING and not expected:
            continue
        if role != _SPEAKERS[expected % 2] or not fields.keys() <= {*_PLAIN_KEYS, META}:
            return False
        expected += 1
    return expected > 0


def can_be_joined(entries: Sequence[Any]) -> bool:
    """Return True if a prompt of plain chat has neighbours that would be put together."""
    items = [cast(Mapping[str, Any], entry) for entry in entries if isinstance(entry, dict)]
    if len(items) != len(entries) or any("tool_calls" in item or item.get("role") == "tool" for item in items):
        return False
    return any(one.get("role") == other.get("role") in _SPEAKERS for one, other in pairwise(items))


def check_alternation(items: Sequence[Any]) -> Iterator[Violation]:
    """Yield where a list does not alternate, or does not begin with the user."""
    before = "assistant"
    for place, item in enumerate(items):
        role = str(fields_of(item).get("role"))
        if role in _LEADING:
            continue
        wanted = "user" if before == "assistant" else "assistant"
        if role != wanted:
            yield Violation("roles_alternate", place, f"the {role} speaks where it is the {wanted}'s turn")
        before = role


def _role(block: Block) -> str:
    return str(fields_of(block.items[0]).get("role")) if block.items else ""


def _can_merge(first: Block, second: Block) -> bool:
    if len(first.items) != 1 or len(second.items) != 1 or _role(first) != _role(second):
        return False
    return _role(first) in _SPEAKERS and all(fields_of(b.items[0]).keys() <= _PLAIN_KEYS for b in (first, second))


def _merged(first: Block, second: Block) -> Block:
    one, other = fields_of(first.items[0]), fields_of(second.items[0])
    item = {"role": one["role"], "content": _both(one.get("content"), other.get("content"))}
    return Block((item,), (*first.entries, *second.entries))


def _both(one: object, other: object) -> object:
    """Return two contents as one: as text if both are, which every template reads; as parts otherwise."""
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    return [*_parts(one), *_parts(other)]


def _parts(content: object) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(cast(Sequence[Any], content)) if isinstance(content, list | tuple) else []
