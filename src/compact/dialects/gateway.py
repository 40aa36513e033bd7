"""The gateway of one session: a caller's list becomes entries of the log, and a prompt becomes items again.

Lists are in the dialect that the caller names, or in the one that they are recognised to be in.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

from compact.core.messages.message import Message, SettledItems, copy_plain
from compact.dialects import CHAT, DIALECTS, check_dialect, detect, get_dialect
from compact.dialects.chat import check_readable
from compact.dialects.dialect import META, NATIVE, Dialect, has_own_marks, without
from compact.dialects.objects import SeenItems, check_items, plain_item
from compact.dialects.translation import ShownList, Translator, may_look_otherwise


@dataclass(slots=True)
class Gateway:
    """Remembers a session's dialect, and what its items looked like; one call at a time."""

    _translator: Translator = field(default_factory=lambda: Translator(CHAT))
    _is_decided: bool = False
    # True while lists are Chat Completions without marks of ours: then there is nothing to translate.
    _is_chat_as_is: bool = True
    # How often the session had been read from its store when its prompt was learned.
    _learned: int | None = None
    # True once an item was seen that may come back with other looks.
    _look_changes: bool = False
    _has_messages: bool = False
    _scanned: int = 0
    # The dialect that lists were taken for which could be in several, and whether it knew all that was in them.
    _tried: Dialect = CHAT
    _is_likely: bool = True
    # The caller's last list, the last one that was understood, and the last one that was translated.
    _seen: SeenItems = field(default_factory=SeenItems.none)
    _understood: SeenItems = field(default_factory=SeenItems.none)
    _translated: SeenItems | None = None
    _is_settled: bool = False
    # How many of its first items are as they were when the one before was understood.
    _checked: int = 0

    def fork(self) -> Gateway:
        """Return a copy for a dry run: what it learns never reaches this gateway."""
        return replace(self, _translator=self._translator.fork())

    @property
    def dialect(self) -> Dialect:
        """The dialect of the last list."""
        return self._translator.dialect

    @property
    def known_dialect(self) -> str:
        """The name of a dialect of ours that lists were recognised to be in, or that the caller has named; else ""."""
        return self.dialect.name if self._is_decided and self.dialect.name in DIALECTS else ""

    @contextmanager
    def reading(self, failing: type[BaseException] = BaseException) -> Generator[None]:
        """Be as before if a list cannot be read: the dialect that it was taken for is none that the next one is in."""
        before = replace(self)
        try:
            yield
        except failing:
            for one in fields(self):
                setattr(self, one.name, getattr(before, one.name))
            raise

    def select_dialect(self, items: Sequence[Any], named: str | Dialect | None, likely: str = "chat") -> None:
        """Find out which dialect a list is in; one that could be in several is in the `likely` one."""
        data = self._look_at(items, named)
        if not self._is_decided:
            start = self._scanned if self._checked >= self._scanned else 0
            found = detect(data, start)
            self._is_decided, self._scanned = found is not None, len(data)
            self._switch_to(found or self._likely(data, start, get_dialect(likely)))
        elif named is None and self.known_dialect:
            check_dialect(data, self._checked, self.dialect)
        fresh = data[self._checked :]
        self._look_changes = self._look_changes or any(map(may_look_otherwise, fresh))
        # Objects of ours are entries as they are, and nothing is to be translated.
        self._has_messages = self._has_messages or any(isinstance(item, Message) for item in fresh)
        # A caller may mark what it has sent before; then that is not as it was.
        is_marked = self._translator.knows_meta or has_own_marks(fresh)
        looks_change = self._look_changes and not self._has_messages
        self._is_chat_as_is = self.dialect is CHAT and not is_marked and not looks_change

    def must_learn(self, reads: int) -> bool:
        """Return True if the prompt of a session that was read so many times from its store is not known here yet."""
        return self._learned != reads

    def learn(self, shown: ShownList, own: ShownList, reads: int) -> None:
        """Recognise what a session was shown before, should it come back; `own` is its caller's list."""
        self._learned = reads
        if self._is_chat_as_is and not self._has_messages and any(map(may_look_otherwise, own.entries)):
            self._look_changes, self._is_chat_as_is = True, False
        if shown.entries and (not self._is_chat_as_is or any(map(_is_marked, shown.entries))):
            self._is_chat_as_is = False  # what comes back has lost its marks; they are known here
            self._translator.learn(shown)

    def to_entries(self, lists: Sequence[ShownList] = ()) -> Sequence[Any]:
        """Return the list that a dialect was selected for as entries of the log, which nobody else holds.

        `lists` are those that its session knows.
        """
        at_hand = self.entries_at_hand()
        if at_hand is None:
            at_hand = self._translator.entries(self._seen.data, lists)
            self._understood = self._translated = self._seen
        return at_hand

    def entries_at_hand(self) -> Sequence[Any] | None:
        """Do what `to_entries` does, if no other lists are needed for it; return None if they are."""
        data = self._seen.data
        if self._is_chat_as_is:
            check_readable(data[self._checked :], self._checked)
            self._understood = self._seen
            return data
        is_last = self._understood is self._translated
        entries = self._translator.entries_at_hand(data, unchanged=self._checked if is_last else 0)
        if entries is not None:
            self._understood = self._translated = self._seen
        return entries

    def to_items(self, entries: Sequence[Any], *, summary_place: int | None = None, joins: bool = False) -> list[Any]:
        """Return a prompt as the caller's items, without marks of ours; see `Translator.items` for the options."""
        items = self._to_data(entries, summary_place, joins=joins)
        return self._seen.given_back() if items is self._seen.data else list(map(self._own_or_copy, items))

    def _own_or_copy(self, item: Any) -> Any:
        """Return the caller's own object, or one that it may change: what is in the log stays as it is."""
        own = self._seen.own_of(item)
        return own if own is not None else item if self._is_settled or not isinstance(item, dict) else copy_plain(item)

    def _look_at(self, items: Sequence[Any], named: str | Dialect | None) -> Sequence[Any]:
        """Return a list as data, in the dialect that is named; one of somebody else's reads its own objects."""
        is_known = named is None or isinstance(named, str) or named in DIALECTS.values()
        self._is_settled, self._checked = isinstance(items, SettledItems), self._understood.same_start(items)
        if is_known:
            check_items(items[self._checked :], self._checked)
        if named is not None:
            self._switch_to(get_dialect(named))
            self._is_decided = True
        self._seen = self._understood.followed_by(items, self._checked, plain_item if is_known else _as_it_is)
        return self._seen.data

    def _to_data(self, entries: Sequence[Any], summary_place: int | None, *, joins: bool) -> Sequence[Any]:
        if not self._is_chat_as_is:
            return self._translator.items(entries, summary_place=summary_place, joins=joins)
        if entries is self._seen.data:  # nothing was changed, and the caller's list has no marks of ours
            return entries
        return [without(entry, META, NATIVE) if _is_marked(entry) else entry for entry in entries]

    def _likely(self, items: Sequence[Any], start: int, dialect: Dialect) -> Dialect:
        """Return the dialect of a list that could be in several: the likely one, if it knows all of it."""
        if dialect is not self._tried or not start:
            self._tried, self._is_likely, start = dialect, True, 0
        if dialect is CHAT or not self._is_likely:
            return CHAT
        self._is_likely = not any(dialect.recognises(item) is False for item in islice(items, start, None))
        return dialect if self._is_likely else CHAT

    def _switch_to(self, dialect: Dialect) -> None:
        if dialect is not self.dialect:
            self._translator, self._learned = Translator(dialect), None
            self._understood, self._translated, self._checked = SeenItems.none(), None, 0


def _as_it_is(item: Any) -> Any:
    return item


def _is_marked(entry: object) -> bool:
    return isinstance(entry, dict) and (META in entry or NATIVE in entry)
