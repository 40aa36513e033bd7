"""The entries of a log by their ids, each as it came and in the form that the caller has it in now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from compact.core.log.forms import what_is_said
from compact.core.messages.message import Message


class FormedEntries:
    """Entries, and their `forms` where the caller has others.

    An entry that something else stands for keeps the form that this was made from; the caller's form is `unseen` until
    the entry is shown again.
    """

    def __init__(
        self,
        entries: Iterable[Message] = (),
        forms: Mapping[str, Message] | None = None,
        unseen: Mapping[str, Message] | None = None,
    ) -> None:
        self.recorded = {entry.id: entry for entry in entries}
        # Where each stands in the log.
        self.places = {message_id: place for place, message_id in enumerate(self.recorded)}
        self.forms, self.unseen = dict(forms or {}), dict(unseen or {})

    def copy(self) -> FormedEntries:
        """Return the same entries, whose forms may change by themselves."""
        twin = FormedEntries((), self.forms, self.unseen)
        twin.recorded, twin.places = dict(self.recorded), dict(self.places)
        return twin

    def record(self, entry: Message) -> None:
        """Take in a new entry of the log."""
        self.places[entry.id] = len(self.recorded)
        self.recorded[entry.id] = entry

    def __contains__(self, message_id: object) -> bool:
        return message_id in self.recorded

    def now(self, message_id: str) -> Message:
        """Return an entry in the form that it has now."""
        return self.forms.get(message_id) or self.recorded[message_id]

    def take_form(self, form: Message) -> bool:
        """Show an entry in this form from now on; return False if it has it."""
        if form.original == self.now(form.id).original:
            return False
        self.forms[form.id] = form
        return True

    def take_unseen(self, form: Message) -> bool:
        """Keep the form of an entry that something else stands for; return False if it is known."""
        before = self.unseen.get(form.id)
        self.unseen[form.id] = form
        return before is None or before.original != form.original

    def forget_unseen(self, item: object, message_id: str) -> bool:
        """Forget in which form the caller had an entry if an item has the whole of it now; return True if so."""
        is_whole = message_id in self.unseen and what_is_said(item) == what_is_said(self.now(message_id).original)
        if is_whole:
            del self.unseen[message_id]
        return is_whole

    def forget_forms(self, message_ids: Iterable[str]) -> None:
        """Have these entries as they came: the caller has left them."""
        for message_id in message_ids:
            self.forms.pop(message_id, None)
            self.unseen.pop(message_id, None)

    def keep_forms(self, message_ids: Collection[str]) -> None:
        """Have all but these entries as they came."""
        self.forms = {i: form for i, form in self.forms.items() if i in message_ids}
        self.unseen = {i: form for i, form in self.unseen.items() if i in message_ids}
