"""What readers ask of a store, answered by loading a session and looking through its log.

A database with an index is faster; this does for stores that have none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import islice

from compact.core.audit.records import EntrySize, ModelCall, SentPrompt, SessionInfo, StoredMessage, StoredSession
from compact.core.audit.store import SessionReader, SessionStore, StoreError
from compact.core.search.ranking import MemoryIndex, rank
from compact.core.search.search_terms import entry_terms, read_query


class ScanningReader(ABC):
    """A SessionReader on top of `load`, for stores to inherit.

    `model_calls`, `sessions` and `sent` are not in what `load` returns: until the store has them, they raise a
    StoreError that says so. `recent_calls` needs `model_calls`, and `sessions_with` needs `sessions`.
    """

    @abstractmethod
    def load(self, session_id: str) -> StoredSession | None:
        """Return everything needed to go on with a session, or None."""

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """Return one log entry by its id."""
        return next((entry for entry in self._entries(session_id) if entry.message.id == message_id), None)

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """Return at most `limit` log entries that follow a place in the log, oldest first."""
        return tuple(islice((entry for entry in self._entries(session_id) if entry.seq > after_seq), limit))

    def outline(self, session_id: str) -> tuple[EntrySize, ...]:
        """Return the id and the tokens of every log entry, oldest first."""
        return tuple(EntrySize(entry.message.id, entry.tokens) for entry in self._entries(session_id))

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Return log entries that match a query, best first."""
        best = rank(read_query(words), self._index(session_id), limit)
        # Read after the index, which may know entries that came meanwhile; a session may also go meanwhile.
        entries = {entry.seq: entry for entry in self._entries(session_id)}
        return tuple(entries[seq] for seq in best if seq in entries)

    def sessions_with(self, words: str) -> frozenset[str]:
        """Return the sessions that have a log entry with all the words in it."""
        sought = read_query(words).words
        if not sought:
            return frozenset()
        return frozenset(i.session_id for i in self.sessions() if self._index(i.session_id).has_entry_with(sought))

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """Return the newest calls of each of these sessions, oldest first."""
        return {session_id: self.model_calls(session_id)[-limit:] for session_id in session_ids}

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Raise StoreError: what `load` returns does not have them."""
        raise self._missing("model_calls", "the model calls of a session")

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Raise StoreError: what `load` returns does not have them."""
        raise self._missing("sessions", "a list of its sessions")

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Raise StoreError: what `load` returns does not have it."""
        raise self._missing("sent", "the prompt of an earlier model call")

    @property
    def _store_name(self) -> str:
        return type(self).__name__

    def _entries(self, session_id: str) -> tuple[StoredMessage, ...]:
        stored = self.load(session_id)
        return stored.messages if stored else ()

    def _index(self, session_id: str) -> MemoryIndex:
        """Return the terms of a session; made anew for each search, since nothing says when a session is deleted."""
        index = MemoryIndex()
        for entry in self._entries(session_id):
            index.add(entry.seq, entry_terms(entry.message))
        return index

    def _missing(self, method: str, what: str) -> StoreError:
        name = self._store_name
        return StoreError(
            f"the store {name} cannot return {what}",
            hint=f"let {name} inherit compact.stores.scanning.ScanningReader, and write its method {method}",
        )


class _ReaderOfStore(ScanningReader):
    """Reads a store that has no methods for readers."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    def load(self, session_id: str) -> StoredSession | None:
        """Return everything needed to go on with a session, or None."""
        return self._store.load(session_id)

    @property
    def _store_name(self) -> str:
        return type(self._store).__name__


def reader_of(store: SessionStore) -> SessionReader:
    """Return what answers readers: the store itself, or a reader that scans what it loads."""
    return store if isinstance(store, SessionReader) else _ReaderOfStore(store)
