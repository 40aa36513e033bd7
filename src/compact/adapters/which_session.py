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
        opening = hashlib.sha256(look_of(looks[:1]).encode()).hexdigest()[:12]
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
