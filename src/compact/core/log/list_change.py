"""What a changed list means for the line: what leaves it, and where what is new goes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, takewhile

from compact.core.log.alignment import following_places
from compact.core.log.forms import what_is_said
from compact.core.log.known_list import KnownList
from compact.core.messages.message import Message


@dataclass(frozen=True)
class ListChange:
    """A caller's list beside the known one that it goes on from, `sent`, and the line before it came, `view`.

    `places` says where its items are in the known list; None is for what is new. `own` has its items and their entries,
    `recorded` gives an entry by its id.
    """

    sent: KnownList
    places: Sequence[int | None]
    own: KnownList
    view: Sequence[Message]
    recorded: Callable[[str], Message]

    @cached_property
    def kept(self) -> frozenset[str]:
        """The entries of the known list that the list still has."""
        return frozenset(i for place in self.places if place is not None for i in self.sent.ids[place])

    def missing(self) -> set[str]:
        """Return the entries of the known list that the list does not have."""
        return {message_id for ids in self.sent.ids for message_id in ids} - self.kept

    def trimmed(self, lost: Iterable[int], before: Iterable[str]) -> set[str]:
        """Return the oldest entries of the line, at these places or lost before: none behind what the list has."""
        gone = {i for place in lost for i in self.sent.ids[place]}.union(before)
        return gone.intersection(entry.id for entry in _before_known(self.view, self.kept)) if gone else gone

    def marked_anew(self) -> set[str]:
        """Return the oldest entries, lost by the known list, that the list has again with other marks."""
        listed = {message_id for ids in self.sent.ids for message_id in ids}
        older = _before_known(self.view, listed)
        new = _before_known((self.recorded(i) for ids in self.own.ids for i in ids), listed) if older else []
        said = {what_is_said(entry.original) for entry in new}
        return {entry.id for entry in older if what_is_said(entry.original) in said}

    def hidden_behind_lost(self) -> set[str]:
        """Return what a prompt hides behind its newest items, if the list has lost these: it goes back to before that.

        What is hidden before the first of them stays if that was the user's, and the list has other words there.
        """
        last = max((n for n, place in enumerate(self.places) if place is not None), default=-1)
        last_place = self.places[last] if self.places else None
        if last_place is None:
            return set()
        lost = next((ids[0] for ids in self.sent.ids[last_place + 1 :] if ids), None)
        new = next((self.recorded(ids[0]) for ids in self.own.ids[last + 1 :] if ids), None)
        if lost is None:
            return set()
        is_edit = new is not None and new.role == self.recorded(lost).role == "user"
        kept = self.sent.ids[last_place]
        start = lost if is_edit or not kept else kept[-1]
        shown = {ids[0] for ids in self.sent.ids if len(ids) == 1}
        behind = dropwhile(lambda entry: entry.id != start, self.view)
        return {entry.id for entry in behind if entry.id not in shown and entry.id != start}

    def places_of_new(self, gone: Container[str]) -> dict[str, list[str]]:
        """Return the new entries, by the entry that each is put behind; `gone` has those that leave the line.

        That is the one that it takes the place of, if something is gone there: what is hidden before that stays before
        it, as does what the list has lost while a summary stands for it. What follows all that is known is at the end
        of the line, behind what is hidden there.
        """
        end, line_end = len(self.sent.ids), self.view[-1].id if self.view else ""
        behind, last, start, following = dict[str, list[str]](), "", 0, following_places(self.places, end)
        for n, place in enumerate(self.places):
            if place is None and self.own.ids[n]:
                before = line_end if following[n] == end else self._taken_place(start, following[n], gone) or last
                behind.setdefault(before, []).append(self.own.ids[n][-1])
            elif place is not None:
                start, last = place + 1, self.sent.ids[place][-1] if self.sent.ids[place] else last
        return behind

    def _taken_place(self, start: int, end: int, gone: Container[str]) -> str:
        """Return the first entry between two known places that leaves the line, or else the last one there, or ""."""
        between = [message_id for ids in self.sent.ids[start:end] for message_id in ids]
        return next((message_id for message_id in between if message_id in gone), between[-1] if between else "")


def _before_known(entries: Iterable[Message], known: Container[str]) -> list[Message]:
    """Return the entries before the first known one; known instructions are passed over."""
    older = takewhile(lambda entry: entry.id not in known or entry.is_instruction, entries)
    return [entry for entry in older if entry.id not in known]
