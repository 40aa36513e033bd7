"""The gateway of one session: a caller's list becomes entries of the log, and a prompt becomes items again.

Lists are in the dialect that the caller names, or in the one that they are recognised to be in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.log.messages import SettledItems
from compact.dialects import CHAT, DIALECTS, detect, get_dialect
from compact.dialects.chat import check_parts
from compact.dialects.dialect import META, NATIVE, Dialect, has_own_marks, without, without_cache_marks
from compact.dialects.objects import PlainItems, check_items, is_reply, plain_item, same_start
from compact.dialects.translation import ShownList, Translator


@dataclass(slots=True)
class Gateway:
    """Remembers a session's dialect, and what its items looked like; one call at a time."""

    _translator: Translator = field(default_factory=lambda: Translator(CHAT))
    _is_decided: bool = False
    # True while lists are Chat Completions without marks of ours: then there is nothing to translate.
    _is_chat_as_is: bool = True
    # How often the session had been read from its store when its prompt was learned.
    _learned: int | None = None
    _has_marks: bool = False
    _scanned: int = 0
    _incoming: Sequence[Any] = ()
    # The caller's last list as data, the last one that was understood, and which of its objects each piece of data is
    # given back as.
    _objects: PlainItems[Any] = field(default_factory=lambda: PlainItems[Any].read((), plain_item))
    _understood: PlainItems[Any] = field(default_factory=lambda: PlainItems[Any].read((), plain_item))
    _own: dict[int, Any] = field(default_factory=dict[int, Any])
    _selected: Sequence[Any] = ()
    # How many of its first items are those of the list that was understood, and were looked at then.
    _checked: int = 0

    def fork(self) -> Gateway:
        """Return a copy for a dry run: what it learns never reaches this gateway."""
        return replace(self, _translator=self._translator.fork())

    @property
    def dialect(self) -> Dialect:
        """The dialect of the last list."""
        return self._translator.dialect

    def select_dialect(self, items: Sequence[Any], named: str | Dialect | None, likely: str = "chat") -> None:
        """Find out which dialect a list is in; one that could be in several is in the `likely` one."""
        items = self._read_objects(items, named)
        if named is not None:
            self._switch_to(get_dialect(named))
            self._is_decided = True
        elif not self._is_decided:
            found = detect(items, min(self._scanned, len(items)))
            self._is_decided, self._scanned = found is not None, len(items)
            self._switch_to(found or _likely(items, get_dialect(likely)))
        self._is_chat_as_is = (
            self.dialect is CHAT
            and not self._translator.knows_meta
            # In all of them: a caller may mark what it has sent before.
            and not has_own_marks(items)
            and not self._has_cache_marks(items)
        )

    def _has_cache_marks(self, items: Sequence[Any]) -> bool:
        """Return True if a list has marks for a provider's cache, or had some: callers move them."""
        fresh = items[self._checked :]
        self._has_marks = self._has_marks or any(without_cache_marks(item) is not item for item in fresh)
        return self._has_marks

    def must_learn(self, reads: int) -> bool:
        """Return True if the prompt of a session that was read so many times from its store is not known here yet."""
        return self._learned != reads

    def learn(self, shown: ShownList, reads: int) -> None:
        """Recognise what a session was shown before, should it come back."""
        self._learned = reads
        if shown.entries and (not self._is_chat_as_is or any(map(_is_marked, shown.entries))):
            self._is_chat_as_is = False  # what comes back has lost its marks; they are known here
            self._translator.learn(shown)

    def to_entries(self, items: Sequence[Any], lists: Sequence[ShownList] = ()) -> Sequence[Any]:
        """Return a caller's list, which a dialect was selected for, as entries of the log.

        `lists` are those that its session knows.
        """
        at_hand = self.entries_at_hand(items)
        if at_hand is None:
            at_hand = self._translator.entries(self._incoming, lists)
            self._understood = self._objects
        return at_hand

    def entries_at_hand(self, items: Sequence[Any]) -> Sequence[Any] | None:
        """Do what `to_entries` does, if no other lists are needed for it; return None if they are."""
        is_settled = isinstance(items, SettledItems)
        items = self._objects.plain if self._selected is items else items
        self._incoming = items = SettledItems(items) if is_settled else items
        if self._is_chat_as_is:
            check_parts(items[self._checked :], self._checked)
            entries = items
        else:
            entries = self._translator.entries_at_hand(items)
        if entries is not None:
            self._understood = self._objects
        return entries

    def to_items(self, entries: Sequence[Any], *, summary_place: int | None = None) -> list[Any]:
        """Return a prompt as the caller's items, without marks of ours; `summary_place` says where its summary is."""
        items = self._to_plain_items(entries, summary_place)
        return [self._own.get(id(item), item) for item in items] if self._own else items

    def _read_objects(self, items: Sequence[Any], named: str | Dialect | None) -> Sequence[Any]:
        """Return a list with data in place of objects; a dialect of somebody else's reads its own objects."""
        is_known = named is None or isinstance(named, str) or named in DIALECTS.values()
        self._selected, self._checked = items, same_start(self._understood, items)
        if is_known:
            check_items(items[self._checked :], self._checked)
        dump = plain_item if is_known else _as_it_is
        self._objects = PlainItems[Any].read(items, dump, self._understood, start=self._checked)
        pairs = () if self._objects.is_plain else zip(self._objects.plain, self._objects.own, strict=True)
        self._own = {id(data): item for data, item in pairs if data is not item and not is_reply(item)}
        return self._objects.plain

    def _to_plain_items(self, entries: Sequence[Any], summary_place: int | None) -> list[Any]:
        if not self._is_chat_as_is:
            return self._translator.items(entries, summary_place=summary_place)
        items = list(entries)
        if items == self._incoming:  # nothing was changed, and the caller's list has no marks of ours
            return items
        return [without(entry, META, NATIVE) if _is_marked(entry) else entry for entry in entries]

    def _switch_to(self, dialect: Dialect) -> None:
        if dialect is not self.dialect:
            self._translator, self._learned = Translator(dialect), None


def _as_it_is(item: Any) -> Any:
    return item


def _is_marked(entry: object) -> bool:
    return isinstance(entry, dict) and (META in entry or NATIVE in entry)


def _likely(items: Sequence[Any], dialect: Dialect) -> Dialect:
    """Return the dialect of a list that could be in several: the likely one, if it knows all of it."""
    return CHAT if any(dialect.recognises(item) is False for item in items) else dialect
