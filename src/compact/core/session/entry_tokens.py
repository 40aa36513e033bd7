"""What the entries of a log weigh: each is counted once, when it comes, and each of its forms likewise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compact.core.audit.records import StoredSession
from compact.core.log.log import Log, Match
from compact.core.messages.message import Message, list_start
from compact.core.messages.tokenizer import ProviderAwareTokenizer


@dataclass(slots=True)
class EntryTokens:
    """The tokens of the entries of one log as they came, of their forms, and of the forms that are unseen."""

    log: Log = field(compare=False)
    recorded: dict[str, int] = field(default_factory=dict[str, int])
    forms: dict[str, int] = field(default_factory=dict[str, int])
    unseen: dict[str, int] = field(default_factory=dict[str, int])
    # The tokenizer that has counted them; "" if that is not known.
    counted_by: str = ""
    # A line whose tokens were asked for, and the tokens of each of its messages.
    _line: list[Message] = field(default_factory=list[Message], repr=False, compare=False)
    _of_line: list[int] = field(default_factory=list[int], repr=False, compare=False)

    @classmethod
    def restored(cls, log: Log, stored: StoredSession) -> EntryTokens:
        """Return what a store has written down."""
        recorded = {entry.message.id: entry.tokens for entry in stored.messages}
        forms = {message_id: form.tokens for message_id, form in stored.forms.items()}
        return cls(log, recorded, forms, {message_id: form.tokens for message_id, form in stored.unseen.items()})

    def copy(self, log: Log) -> EntryTokens:
        """Return the same for a copy of the log."""
        line, of_line = list(self._line), list(self._of_line)
        recorded, forms, unseen = dict(self.recorded), dict(self.forms), dict(self.unseen)
        return replace(self, log=log, recorded=recorded, forms=forms, unseen=unseen, _line=line, _of_line=of_line)

    def take(self, match: Match, counted: Mapping[int, int]) -> list[Message]:
        """Take over what was counted of a caller's list, by the ids of its items; return the messages that are new."""
        if match.branched or match.rejoined or match.formed or match.unseen:
            self._forget_line()
        for message_id in match.formed:
            self.forms[message_id] = counted[id(self.log.forms[message_id].original)]
        for message_id in self.log.unseen.keys() & match.unseen:
            self.unseen[message_id] = counted[id(self.log.unseen[message_id].original)]
        first = [message for message in match.new if message.id not in self.recorded]
        self.recorded.update((message.id, counted[id(message.original)]) for message in first)
        return first

    def take_unseen(self, message_ids: Iterable[str]) -> None:
        """Weigh entries as forms of theirs that were unseen."""
        self.forms.update({message_id: self.unseen[message_id] for message_id in message_ids})
        self._forget_line()

    def of(self, message_id: str) -> int:
        """Return the tokens of one entry, in the form that it has now."""
        return self.forms[message_id] if message_id in self.log.forms else self.recorded[message_id]

    def of_messages(self, messages: Iterable[Message]) -> list[int]:
        """Return the tokens of entries, in the forms that they have now."""
        return [self.of(message.id) for message in messages]

    def of_line(self, messages: Sequence[Message]) -> Sequence[int]:
        """Return the tokens of a line likewise: only what is new is looked up, unless its past was edited."""
        known = len(self._line)
        if list_start(messages, known) != self._line:
            self._forget_line()
            known = 0
        new = messages[known:]
        self._of_line.extend(self.of_messages(new))
        self._line.extend(new)
        return self._of_line

    def _forget_line(self) -> None:
        """Look up the tokens of a line anew: entries of it may weigh something else now, or it is another line."""
        self._line, self._of_line = [], []

    def count_again(self, tokenizer: ProviderAwareTokenizer) -> bool:
        """Count all entries by another tokenizer; return False if it is the same, or if none has counted so far."""
        is_other = self.counted_by not in ("", tokenizer.name)
        if is_other:
            self.recorded = {entry.id: tokenizer.count_message(entry) for entry in self.log.entries}
            self.forms = {i: tokenizer.count_message(form) for i, form in self.log.forms.items()}
            self.unseen = {i: tokenizer.count_message(form) for i, form in self.log.unseen.items()}
            self._forget_line()
        self.counted_by = tokenizer.name
        return is_other
