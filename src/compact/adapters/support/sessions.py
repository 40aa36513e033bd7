"""Which session a request belongs to: by the name a user gave, or else by how its list of messages continues.

A framework's hook sees the list that is about to be sent, and often nothing of the conversation it is from. Lists grow:
one that begins with everything a session has sent so far continues it. Two conversations that begin alike are one
session only until they differ; what was said in one never reaches the other.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from compact.core.json_data import is_list, is_mapping
from compact.core.log.forms import without_times
from compact.dialects.translation import look_of

# The header of an HTTP request that names its session.
SESSION_HEADER = "X-Compact-Session"

# Chosen: these bound memory, and are far above what one process serves at a time. A conversation that is forgotten
# begins a new session, which costs one more compaction.
_MOST_OPENINGS = 2_000
_MOST_ALIKE = 500
# Chosen: more sessions, or calls, than one process has at a time; what is kept for each is a few words.
_MOST_RECENT = 10_000

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")


class RecentDict(OrderedDict[K, V]):
    """A dictionary that holds so many entries at most, and forgets those that were set longest ago."""

    def __init__(self, most: int = _MOST_RECENT) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


def named_session(named: str | Callable[P, str] | None, *args: P.args, **kwargs: P.kwargs) -> str:
    """Return the session id that a user gave, as a text or as a function of the request; empty if none was given."""
    return (named(*args, **kwargs) if callable(named) else named) or ""


def _unchanged(item: Any) -> Any:
    return item


def _never(session_id: str) -> bool:
    return False


@dataclass(slots=True)
class _Conversation:
    session_id: str
    sent: list[Any]
    agents: set[str] = field(default_factory=set[str])

    def continues_as(self, items: list[Any]) -> bool:
        """Return True if a list begins with what was sent; results of tools and clocks may have changed since."""
        count = len(self.sent)
        if count > len(items):
            return False
        if items[:count] == self.sent:
            return True
        # Both lists are known to begin alike, but for dates and times.
        begun = _opening_length(self.sent)
        pairs = zip(self.sent[begun:], items[begun:count], strict=True)
        return all(known == item or _same_results(known, item) for known, item in pairs)


@dataclass(slots=True)
class SessionFinder:
    """Finds the session of a list of messages; `normalise` removes from a message what may change between calls.

    The same list again is the same session, a call that is made again. While that session `is_busy` with the first call
    it is taken for another conversation that begins alike, which must not wait for this one.
    """

    prefix: str
    normalise: Callable[[Any], Any] = _unchanged
    is_busy: Callable[[str], bool] = _never
    _conversations: OrderedDict[tuple[str, str], list[_Conversation]] = field(
        default_factory=OrderedDict[tuple[str, str], list[_Conversation]]
    )
    _main: dict[str, _Conversation] = field(default_factory=dict[str, _Conversation])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, items: Sequence[Any], *, base: str = "", agent: str = "") -> str:
        """Return the session of a list of messages.

        With `base`, that is the session, except for lists that another agent sends meanwhile (an agent that is called
        as a tool): those get ids of their own below it.
        """
        sent = [self.normalise(item) for item in items]
        opening = without_times(look_of(sent[: _opening_length(sent)]))
        opening = hashlib.sha256(opening.encode()).hexdigest()[:12]
        with self._lock:
            alike = self._conversations.setdefault((base, opening), [])
            self._conversations.move_to_end((base, opening))
            candidates = [known for known in alike if known.continues_as(sent) and not self._is_busy(known, sent, base)]
            longest = max(candidates, key=lambda one: len(one.sent), default=None)
            found = longest or self._begin(base, agent, opening)
            alike[:] = [*(other for other in alike if other is not found), found][-_MOST_ALIKE:]
            found.sent = sent
            found.agents.add(agent)
            self._forget_oldest()
            return found.session_id

    def _is_busy(self, known: _Conversation, sent: list[Any], base: str) -> bool:
        return not base and len(known.sent) == len(sent) and self.is_busy(known.session_id)

    def is_latest(self, session_id: str, items: Sequence[Any]) -> bool:
        """Return True if a session has a name, or has sent these items last.

        If not, another conversation that began alike has continued in it.
        """
        sent = [self.normalise(item) for item in items]
        with self._lock:
            found = [
                (base, conversation.sent)
                for (base, _), alike in self._conversations.items()
                for conversation in alike
                if conversation.session_id == session_id
            ]
        return any(base or last == sent for base, last in found)

    def _begin(self, base: str, agent: str, opening: str) -> _Conversation:
        if not base:
            return _Conversation(f"{self.prefix}-{uuid4().hex[:12]}", [])
        main = self._main.get(base)
        if main is None:
            self._main[base] = main = _Conversation(base, [])
        elif agent not in main.agents:
            return _Conversation(f"{base}/{agent}-{opening}", [])
        return main  # the same agent with another past: an edited history, which the session handles as a branch

    def _forget_oldest(self) -> None:
        while len(self._conversations) > _MOST_OPENINGS:
            (base, _), forgotten = self._conversations.popitem(last=False)
            if any(conversation.session_id == base for conversation in forgotten):
                self._main.pop(base, None)


def _same_results(known: Any, item: Any) -> bool:
    """Return True if two items are results of the same calls, whatever they say: agents clear old ones."""
    ids = _result_ids(known)
    return bool(ids) and ids == _result_ids(item)


def _result_ids(item: Any) -> list[Any]:
    if not is_mapping(item):
        return []
    parts = item.get("content")
    found = [id_ for part in parts for id_ in _result_ids(part)] if is_list(parts) else []
    result = item.get("toolResult")
    found += [result.get("toolUseId")] if is_mapping(result) else []
    own = (item.get(name) for name in ("tool_call_id", "tool_use_id"))
    found += [id_ for id_ in own if id_]
    return [item["call_id"], *found] if item.get("type") == "function_call_output" else found


def _opening_length(items: Sequence[Any]) -> int:
    """Return how many items there are up to the first user message: many conversations share what is before it."""
    users = (place for place, item in enumerate(items, 1) if is_mapping(item) and item.get("role") == "user")
    return next(users, 1)
