"""What each call of a session showed, as texts in which a phrase is counted.

Calls that went out under one plan, on one branch of the history, show the same prompt up to different places of the
log. It is rendered once for all of them, so that the work grows with the log and not with log times calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from compact.core.audit.phrases import fold, fold_message
from compact.core.audit.records import BranchView, StoredMessage
from compact.core.messages.groups import group_messages
from compact.core.messages.legality import MISSING_RESULT, repair_chat
from compact.core.messages.message import Message, Slot
from compact.core.plan.plan import CompactionPlan, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer, summary_id, summary_message
from compact.core.summary.summary import unquoted

_RENDERER = PromptRenderer()


class TextTable:
    """The folded texts of a log, and of all that stood for it in a prompt: each has a number, and stands here once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.log: list[StoredMessage] = []
        self.entries: dict[str, StoredMessage] = {}
        self._entry_numbers: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self.missing_result = self._number(fold(MISSING_RESULT))

    def add_entry(self, entry: StoredMessage) -> None:
        """Take in the next entry of the log."""
        self.log.append(entry)
        self.entries[entry.message.id] = entry
        self._entry_numbers[entry.message.id] = len(self.texts)
        self.texts.append(fold_message(entry.message))

    def numbered_entries(self) -> Iterator[tuple[int, StoredMessage]]:
        """Return the entries in the order of the log, each with the number of its text."""
        return zip(self._entry_numbers.values(), self.log, strict=True)

    def view(self, branch: BranchView, last_seq: int) -> Sequence[StoredMessage]:
        """Return the log entries of a branch, in its order, up to a place of the log."""
        before = (self.entries[i] for i in branch.view_ids)
        view = [*before, *self.log[branch.after_seq : last_seq]]
        return [branch.shown(entry) for entry in view] if branch.forms else view

    def number_of(self, message: Message) -> int:
        """Return the number of the text of a message: of the log, or standing for some of it."""
        entry = self.entries.get(message.id)
        if entry is not None and entry.message is message:
            return self._entry_numbers[message.id]
        return self._number(fold_message(message))

    def numbers_of_summary(self, record: SummarizationRecord | None) -> tuple[int, ...]:
        """Return the numbers of a summary: as it is, and without the marks that stand before quoted lines."""
        if record is None:
            return ()
        text = summary_message(record).text
        return self._number(fold(text)), self._number(fold(unquoted(text)))

    def _number(self, text: str) -> int:
        known = self._numbers.setdefault(text, len(self.texts))
        if known == len(self.texts):
            self.texts.append(text)
        return known

    def count(self, folded: str, *, first: int, last: int) -> list[int]:
        """Return how often a folded phrase stands in each of these texts."""
        return [text.count(folded) for text in self.texts[first:last]]


def is_summary(slot: Slot, record: SummarizationRecord | None) -> bool:
    """Return True for the place of a prompt where the summary of a record stands."""
    return record is not None and slot.ids == record.span.message_ids and slot.message.id == summary_id(record.version)


class PlannedPrompt:
    """The prompts of all calls under one plan on one branch: what each shows ends at its last log entry."""

    def __init__(self, messages: Sequence[StoredMessage], plan: CompactionPlan, table: TextTable) -> None:
        hidden = plan.hidden_ids()
        shown = [entry for entry in messages if entry.message.id not in hidden]
        seqs = {entry.message.id: entry.seq for entry in shown}
        slots = _RENDERER.render([entry.message for entry in shown], plan).slots
        repaired, summary = repair_chat(slots)[0], plan.summary
        texts = {slot.ids[0]: slot.message for slot in repaired if slot.ids and not is_summary(slot, summary)}
        entries = [slot for slot in slots if slot.ids and not is_summary(slot, summary)]
        rows = [
            (seqs[slot.ids[0]], opened, table.number_of(texts[slot.ids[0]]))
            for slot, opened in zip(entries, _opened_calls([slot.message for slot in entries]), strict=True)
        ]
        # A line between turns is there as soon as what follows it, and a summary always is.
        rows += [
            (0 if is_summary(following, summary) else seqs[following.ids[0]], 0, table.number_of(line.message))
            for line, following in pairwise(slots)
            if not line.ids
        ]
        rows.sort()
        self._seqs = [seq for seq, _, _ in rows]
        self._numbers = [number for _, _, number in rows]
        self._open_calls = list(accumulate(opened for _, opened, _ in rows))
        self._summary, self._missing_result = table.numbers_of_summary(summary), table.missing_result

    def totals(self, counts: Sequence[int], last_seqs: Sequence[int]) -> list[int]:
        """Return how often a phrase is in the prompt of each call; `counts` says how often it is in each text."""
        sums = [0, *accumulate(map(counts.__getitem__, self._numbers))]
        summary = count_in(self._summary, counts)
        missing = counts[self._missing_result]
        totals: list[int] = []
        for last_seq in last_seqs:
            place = bisect_right(self._seqs, last_seq)
            # A call that has no result yet is sent with a text that says so.
            open_calls = self._open_calls[place - 1] if place else 0
            totals.append(sums[place] + missing * open_calls + summary)
        return totals


def count_in(numbers: Sequence[int], counts: Sequence[int]) -> int:
    """Return how often a phrase is in a message of these texts: the first that has it is the one that counts.

    A summary has two. Words that go on in the next line of a quotation have a mark between them; they are there all the
    same, but only where the text as it is has none.
    """
    return next((counts[number] for number in numbers if counts[number]), 0)


def _opened_calls(messages: Sequence[Message]) -> list[int]:
    """Return by how many each message makes the calls more that have no result."""
    opened = [0] * len(messages)
    for group in group_messages(messages):
        head, *results = group.indices
        if messages[head].role != "tool":
            opened[head] = len(messages[head].tool_calls)
            for result in results:
                opened[result] = -1
    return opened
