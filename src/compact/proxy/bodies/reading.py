"""Reads the JSON of conversations: of one that was read before and has grown, only what is new.

An agent sends its whole conversation with every call. Where the text is the same as before, the objects are the ones
that were read then, so whatever looks at them next sees at once that they are known. Nobody may change them.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from compact.adapters.support import RecentDict
from compact.adapters.support.endpoints import Body

# Chosen: an agent and the helpers that it has at work, which have one key and take turns.
_BODIES_OF_A_CALLER = 4
# Chosen: some hundred long conversations.
_MOST_BYTES = 64_000_000

_SPACE = re.compile(r"[ \t\n\r]*")
_decode_value = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A JSON object with a list of items in it, and its text.

    `start` is the text up to the end of the last item, `ends` has where each of them ends, and `rest` is the text
    after the list. Without a list, `ends` is empty.
    """

    fields: Body
    items_key: str = ""
    start: str = ""
    ends: list[int] = field(default_factory=list[int])
    rest: str = ""

    @property
    def size(self) -> int:
        """How many bytes its text takes in memory, where a character may have four."""
        return sys.getsizeof(self.start) + sys.getsizeof(self.rest)

    def shared_items(self, text: str) -> int:
        """Return how many items another text begins with, too."""
        if text.startswith(self.start):
            return len(self.ends)
        return bisect_left(self.ends, True, key=lambda end: not text.startswith(self.start[:end]))

    def fields_before(self) -> Body:
        """Return the fields before the items."""
        names = list(self.fields)
        return {name: self.fields[name] for name in names[: names.index(self.items_key)]}

    def fields_after(self) -> Body:
        """Return the fields after the items."""
        names = list(self.fields)
        return {name: self.fields[name] for name in names[names.index(self.items_key) + 1 :]}


@dataclass(frozen=True, slots=True)
class UnreadBody:
    """The text of a body, and an earlier one that has its first `shared` items."""

    text: str
    earlier: ReadBody | None = None
    shared: int = 0

    @property
    def new_size(self) -> int:
        """How much of the text is to be read."""
        return len(self.text) - (self.earlier.ends[self.shared - 1] if self.earlier else 0)

    def read(self, items_key: str) -> ReadBody | None:
        """Read the body; None if it is no JSON object."""
        try:
            return _Reader(self.text, items_key).read(self.earlier, self.shared)
        except (ValueError, RecursionError):
            return _read_plainly(self.text)


def _read_plainly(text: str) -> ReadBody | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return ReadBody(cast("Body", found)) if isinstance(found, dict) else None


class BodyMemory:
    """Keeps the newest body of each session that was read last, by caller; for the tasks of one event loop."""

    def __init__(self) -> None:
        self._bodies: RecentDict[Hashable, RecentDict[str, ReadBody]] = RecentDict()
        self._size = 0

    def find(self, caller: Hashable, raw: bytes) -> UnreadBody | None:
        """Return the text of a body with the earlier one that it shares most with; None if it is no text."""
        try:
            text = raw.decode(json.detect_encoding(raw), "surrogatepass")
        except UnicodeDecodeError:
            return None
        most, best = 0, None
        for earlier in self._of(caller).values():
            shared = earlier.shared_items(text)
            if shared > most:
                most, best = shared, earlier
        return UnreadBody(text, best, most)

    def keep(self, caller: Hashable, session_id: str, body: ReadBody) -> None:
        """Keep a body for the next call of its session."""
        if not body.ends:
            return
        bodies = self._of(caller)
        before = _size(bodies)
        bodies[session_id] = body
        self._bodies[caller] = bodies
        self._size += _size(bodies) - before
        while self._size > _MOST_BYTES:
            self._size -= _size(self._bodies.popitem(last=False)[1])

    def forget(self, session_id: str) -> None:
        """Keep nothing of a session any longer."""
        for caller in [caller for caller, bodies in self._bodies.items() if session_id in bodies]:
            bodies = self._bodies[caller]
            self._size -= bodies.pop(session_id).size
            if not bodies:
                del self._bodies[caller]

    def _of(self, caller: Hashable) -> RecentDict[str, ReadBody]:
        known = self._bodies.get(caller)
        return RecentDict(_BODIES_OF_A_CALLER) if known is None else known


def _size(bodies: Mapping[str, ReadBody]) -> int:
    return sum(body.size for body in bodies.values())


class _Reader:
    """Reads one text from its beginning, or from behind the items that an earlier one has, too.

    Raises ValueError for all that no client sends, JSON or not, such as a name that is there twice.
    """

    def __init__(self, text: str, items_key: str) -> None:
        self._text = text
        self._items_key = items_key
        self._at = 0
        self._fields: Body = {}
        self._ends: list[int] = []
        self._items_end = 0

    def read(self, earlier: ReadBody | None, shared: int) -> ReadBody:
        """Return the body."""
        if earlier:
            self._go_on_behind(earlier, shared)
            if self._text[self._at :] == earlier.rest:
                self._fields |= earlier.fields_after()
                return self._body()
        else:
            self._expect("{")
            self._read_field()
        while self._takes(","):
            self._read_field()
        self._expect("}")
        self._skip_space()
        if self._at != len(self._text):
            raise ValueError("there is more behind the object")
        return self._body()

    def _body(self) -> ReadBody:
        if not self._ends:
            return ReadBody(self._fields)
        start, rest = self._text[: self._ends[-1]], self._text[self._items_end :]
        return ReadBody(self._fields, self._items_key, start, self._ends, rest)

    def _go_on_behind(self, earlier: ReadBody, shared: int) -> None:
        self._fields = earlier.fields_before()
        self._ends = earlier.ends[:shared]
        self._at = self._ends[-1]
        items = self._fields[self._items_key] = earlier.fields[self._items_key][:shared]
        if self._takes(","):
            self._read_items(items)
        else:
            self._end_items()

    def _read_field(self) -> None:
        name = self._value()
        if not isinstance(name, str) or name in self._fields:
            raise ValueError("a name was expected, and a new one")
        self._expect(":")
        if name == self._items_key and self._takes("["):
            items: list[Any] = []
            self._fields[name] = items
            self._read_items(items)
        else:
            self._fields[name] = self._value()

    def _read_items(self, items: list[Any]) -> None:
        while True:
            items.append(self._value())
            self._ends.append(self._at)
            if not self._takes(","):
                break
        self._end_items()

    def _end_items(self) -> None:
        self._expect("]")
        self._items_end = self._at

    def _value(self) -> Any:
        self._skip_space()
        value, self._at = _decode_value(self._text, self._at)
        return value

    def _takes(self, sign: str) -> bool:
        self._skip_space()
        is_there = self._text.startswith(sign, self._at)
        self._at += is_there
        return is_there

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise ValueError(f"{sign} was expected")

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
