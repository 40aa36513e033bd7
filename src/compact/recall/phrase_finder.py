"""Finds where a phrase is in a session; what it read of the sessions asked about last is kept for the next question."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from compact.core.audit.records import BranchView, CallHistory
from compact.core.audit.store import CallHistoryReader, SessionReader, SessionStore, StoreError
from compact.core.audit.why import PhraseIndex, PhraseTrace, SearchCancelled
from compact.core.errors import UnknownSession

# Chosen: somebody looks at one session, and goes back to another; each takes about as much memory as its log.
_MAX_SESSIONS = 2
# Chosen: so many entries are read in a tenth of a second, after which somebody may have lost interest.
_ENTRIES_AT_ONCE = 2_000
_WAIT_SECONDS = 0.05


@dataclass(slots=True)
class _KnownSession:
    """What was read of a session; only whoever holds the lock reads on."""

    index: PhraseIndex
    created_at: float | None = None
    plan_version: int = -1
    lock: threading.Lock = field(default_factory=threading.Lock)


class PhraseFinder:
    """Answers where a phrase is; safe between threads."""

    def __init__(self, store: SessionStore, reader: SessionReader) -> None:
        self._store, self._reader = store, reader
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _KnownSession] = OrderedDict()

    def find(
        self,
        session_id: str,
        phrase: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> PhraseTrace:
        """Return where a phrase is; raise SearchCancelled soon after `should_stop` returns True."""
        reader = self._reader
        if not isinstance(reader, CallHistoryReader):
            return self._read_by_calls(session_id).trace(phrase, offset=offset, limit=limit)
        known = self._session(session_id)
        # One search of a session at a time: two would read the same, and take turns with the processor.
        while not known.lock.acquire(timeout=_WAIT_SECONDS):
            _check(should_stop)
        try:
            self._read_on(session_id, known, reader, should_stop)
            return known.index.trace(phrase, offset=offset, limit=limit, should_stop=should_stop)
        finally:
            known.lock.release()

    def forget(self, session_id: str) -> None:
        """Drop what was read of a session."""
        with self._lock:
            self._known.pop(session_id, None)

    def _session(self, session_id: str) -> _KnownSession:
        with self._lock:
            known = self._known.setdefault(session_id, _KnownSession(PhraseIndex(session_id)))
            self._known.move_to_end(session_id)
            while len(self._known) > _MAX_SESSIONS:
                self._known.popitem(last=False)
            return known

    def _read_on(
        self, session_id: str, known: _KnownSession, reader: CallHistoryReader, should_stop: Callable[[], bool]
    ) -> None:
        """Read what came to a session since it was read last: the log is never edited, so that is little."""
        index = known.index
        history = reader.call_history(session_id, after_call=index.last_call, after_branch=index.last_branch)
        if history is None:
            self.forget(session_id)
            raise UnknownSession(session_id)
        if known.created_at not in (None, history.created_at):
            # It was deleted, and begun anew under the same name.
            known.index, known.plan_version = PhraseIndex(session_id), -1
            index, history = known.index, reader.call_history(session_id) or history
        known.created_at, head = history.created_at, history.head
        while index.last_seq < head.last_seq:
            _check(should_stop)
            room = min(_ENTRIES_AT_ONCE, head.last_seq - index.last_seq)
            index.add_entries(self._reader.messages(session_id, after_seq=index.last_seq, limit=room))
        if known.plan_version != head.plan_version:
            _check(should_stop)
            plans = self._store.plans(session_id) if head.plan_version else ()
            index.set_plans([entry for entry in plans if entry.plan.version <= head.plan_version])
            known.plan_version = head.plan_version
        index.add_calls(history)

    def _read_by_calls(self, session_id: str) -> PhraseIndex:
        """Read a session from a store that is asked for each call by itself."""
        stored = self._store.load(session_id)
        if stored is None:
            raise UnknownSession(session_id)
        calls, index = self._reader.model_calls(session_id), PhraseIndex(session_id)
        index.add_entries(stored.messages)
        index.set_plans(self._store.plans(session_id))
        try:
            prompts = [self._reader.sent(session_id, call.number) for call in calls]
        except StoreError:
            # It has no earlier prompts: they are taken to be on the branch that the caller is on now.
            branch = BranchView(stored.messages[-1].seq, stored.view_ids) if stored.messages else BranchView()
            views = dict.fromkeys({stored.head.branch, *(call.branch for call in calls)}, branch)
            index.add_calls(CallHistory(created_at=0.0, head=stored.head, calls=calls, branches=views))
        else:
            sent = [prompt for prompt in prompts if prompt is not None]
            index.add_sent(sent, plan_version=stored.plan.version, view_ids=stored.view_ids)
        return index


def _check(should_stop: Callable[[], bool]) -> None:
    if should_stop():
        raise SearchCancelled("the search was cancelled")
