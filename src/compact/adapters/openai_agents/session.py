"""A session of the OpenAI Agents SDK in a manager's store: all items of a history, shared between processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from compact.core.audit.records import Commit, SessionHead, StoredMessage
from compact.core.audit.store import VersionConflict
from compact.core.messages.message import Message, copy_plain
from compact.dialects.dialect import NATIVE
from compact.manager import CompactManager
from compact.runner import run_blocking

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

T = TypeVar("T")
# Chosen: each try is one write; twenty lost races in a row mean that something else is wrong.
_MOST_TRIES = 20


class CompactSession:
    """The SDK's `Session` protocol on a manager's store; `get_items` returns the whole history, compacted or not.

    The items have a log of their own, apart from the one that requests are made from: a request may be made from a part
    of the history (a limit, a handoff's filter), and the history stays whole. What is popped leaves the history, not
    the log; `clear_session` deletes both.

    Args:
        session_id: Names the conversation; the same as in `compaction_filter`.
        manager: Has the store.
        session_settings: The SDK's own settings, such as a limit.

    Example:
        >>> import asyncio
        >>> from compact import CompactManager
        >>> from compact.adapters.openai_agents import CompactSession
        >>> session = CompactSession("chat-1", CompactManager())  # Runner.run(…, session=session)
        >>> asyncio.run(session.add_items([{"role": "user", "content": "Hello"}]))
    """

    session_settings: SessionSettings | None

    def __init__(
        self, session_id: str, manager: CompactManager, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._manager = manager
        self._store = manager.store
        self._key = f"{session_id}/items"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return all items, or the newest ones, oldest first.

        Args:
            limit: How many of the newest; by default as the session's settings say, or all.

        Example:
            >>> asyncio.run(session.get_items())
            [{'role': 'user', 'content': 'Hello'}]
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = [item for _, item in await self._wait_for(self._load)]
        if limit is None:
            return items
        return items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items to the history.

        Args:
            items: Input items of the SDK.

        Raises:
            VersionConflict: Other processes wrote to the same session again and again.

        Example:
            >>> asyncio.run(session.add_items([{"role": "assistant", "content": "Hi."}]))
            >>> len(asyncio.run(session.get_items()))
            2
        """
        if items:
            await self._wait_for(lambda: self._append(cast(Sequence[Any], items)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none.

        Example:
            >>> asyncio.run(session.pop_item())
            {'role': 'user', 'content': 'Hello'}
        """
        return await self._wait_for(self._pop)

    async def clear_session(self) -> None:
        """Delete the history, and the sessions that requests were made from.

        Example:
            >>> asyncio.run(session.clear_session())
            >>> asyncio.run(session.get_items())
            []
        """
        await self._wait_for(lambda: self._store.delete(self._key))
        for session_id in await self._wait_for(self._request_sessions):
            await self._wait_for(partial(self._manager.delete, session_id))

    def _request_sessions(self) -> list[str]:
        """Return the session, and those of the agents that were tools in it."""
        known = (info.session_id for info in self._manager.sessions())
        below = (session_id for session_id in known if session_id.startswith(f"{self.session_id}/"))
        return [self.session_id, *below]

    def _load(self) -> list[tuple[str, Any]]:
        stored = self._store.load(self._key)
        if stored is None:
            return []
        by_id = {entry.message.id: cast(dict[str, Any], entry.message.original) for entry in stored.messages}
        return [(message_id, copy_plain(by_id[message_id][NATIVE])) for message_id in stored.view_ids]

    def _append(self, items: Sequence[Any]) -> None:
        def commit(head: SessionHead) -> Commit:
            places = enumerate(items, head.last_seq + 1)
            messages = tuple(StoredMessage(place, _entry_message(place, item), 0) for place, item in places)
            return Commit(session_id=self._key, expected=head, messages=messages)

        self._commit(commit)

    def _pop(self) -> Any:
        popped: list[Any] = []

        def commit(head: SessionHead) -> Commit | None:
            kept = self._load()
            popped[:] = [item for _, item in kept[-1:]]
            if not popped:
                return None
            return Commit(session_id=self._key, expected=head, view_ids=tuple(key for key, _ in kept[:-1]))

        self._commit(commit)
        return popped[0] if popped else None

    def _commit(self, make: Callable[[SessionHead], Commit | None]) -> None:
        """Write to the store; if another process was quicker, try again on top of what it wrote."""
        for attempt in range(1, _MOST_TRIES + 1):
            commit = make(self._store.head(self._key))
            if commit is None:
                return
            try:
                self._store.commit(commit)
            except VersionConflict:
                if attempt == _MOST_TRIES:
                    raise
            else:
                return

    async def _wait_for(self, step: Callable[[], T]) -> T:
        return await run_blocking(step) if self._store.blocks else step()


def _entry_message(place: int, item: Any) -> Message:
    """Return an entry that holds an item as it is; its text is in the log that requests are made from."""
    role = item.get("role") if item.get("role") in ("user", "assistant", "system", "developer") else "assistant"
    entry = {"role": role, "content": "", NATIVE: copy_plain(item)}
    return Message(role=role, content="", id=f"i{place}", original=entry)
