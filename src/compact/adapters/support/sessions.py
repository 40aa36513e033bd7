"""Which session a list belongs to, where nobody says so: the one that it goes on.

A framework's hook sees the list that is about to be sent, and often nothing of the conversation it is from. Lists grow:
one that begins with everything a session has shown so far is the next one of it. Two conversations that begin alike
part where they part; what one has said never reaches the other.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from compact.dialects.dialect import without
from compact.dialects.translation import look_of

_MOST_OPENINGS = 2_000
_MOST_ALIKE = 500


def _as_it_is(item: Any) -> Any:
    return item


@dataclass(slots=True)
class _Thread:
    session_id: str
    seen: list[Any]
    speakers: set[str] = field(default_factory=set[str])

    def goes_on_in(self, items: list[Any]) -> bool:
        return len(self.seen) <= len(items) and items[: len(self.seen)] == self.seen


@dataclass(slots=True)
class SessionFinder:
    """Tells conversations apart by how their lists go on; `normalise` leaves out what may change from call to call."""

    prefix: str
    normalise: Callable[[Any], Any] = _as_it_is
    _threads: OrderedDict[tuple[str, str], list[_Thread]] = field(
        default_factory=OrderedDict[tuple[str, str], list[_Thread]]
    )
    _main: dict[str, _Thread] = field(default_factory=dict[str, _Thread])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, items: Sequence[Any], *, base: str = "", speaker: str = "") -> str:
        """The session of a list. With `base` that is its name, but for lists that somebody else (an agent that is the
        tool of another) sends in the middle of it: those have names of their own under it.
        """
        looks = [self.normalise(item) for item in items]
        opening = hashlib.sha256(look_of(looks[: _opening_length(looks)]).encode()).hexdigest()[:12]
        with self._lock:
            siblings = self._threads.setdefault((base, opening), [])
            self._threads.move_to_end((base, opening))
            fitting = [thread for thread in siblings if thread.goes_on_in(looks)]
            longest = max(fitting, key=lambda one: len(one.seen), default=None)
            thread = longest or self._begin(base, speaker, opening)
            siblings[:] = [*(other for other in siblings if other is not thread), thread][-_MOST_ALIKE:]
            thread.seen = looks
            thread.speakers.add(speaker)
            self._forget_oldest()
            return thread.session_id

    def is_at(self, session_id: str, items: Sequence[Any]) -> bool:
        """True if a session has gone on to this list and no further: another conversation, alike so far, may have."""
        looks = [self.normalise(item) for item in items]
        with self._lock:
            threads = [thread for siblings in self._threads.values() for thread in siblings]
        return any(thread.session_id == session_id and thread.seen == looks for thread in threads)

    def _begin(self, base: str, speaker: str, opening: str) -> _Thread:
        if not base:
            return _Thread(f"{self.prefix}-{uuid4().hex[:12]}", [])
        main = self._main.get(base)
        if main is None:
            self._main[base] = main = _Thread(base, [])
        elif speaker not in main.speakers:
            return _Thread(f"{base}/{speaker}-{opening}", [])
        return main  # the same agent with another past: an edit, which the session itself knows how to take

    def _forget_oldest(self) -> None:
        while len(self._threads) > _MOST_OPENINGS:
            (base, _), gone = self._threads.popitem(last=False)
            if any(thread.session_id == base for thread in gone):
                self._main.pop(base, None)


def _opening_length(items: Sequence[Any]) -> int:
    """The items up to the first one that a user said: what stands before it, many conversations share."""
    said = (place for place, item in enumerate(items, 1) if isinstance(item, dict) and item.get("role") == "user")
    return next(said, 1)


def without_cache_marks(message: Any) -> Any:
    """A message without `cache_control`, which moves on with every call."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not any(_has_mark(block) for block in content):
        return message
    return {**message, "content": [without(block, "cache_control") if _has_mark(block) else block for block in content]}


def _has_mark(block: Any) -> bool:
    return isinstance(block, dict) and "cache_control" in block
