"""Recall what left the prompt: an entry of the log by its id, or the entries that a question is about.

The best match comes first, each with what it cannot be understood without: a result with its call, a call with its
results, a question with its answer. Of a long entry, the passage that the question is about is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from compact.core.audit.artifacts import ArtifactStore, SecurityContext
from compact.core.audit.records import StoredMessage
from compact.core.audit.store import SessionReader
from compact.core.json_data import is_list
from compact.core.messages.attachment_use import names_of, refers_to
from compact.core.messages.attachments import Attachment, attached_part, attachment_id, attachments_of, payload_of
from compact.core.messages.message import Message, Part
from compact.core.messages.sensitivity import sensitivity_of
from compact.core.search.recall_answer import (
    NOTHING_FOUND,
    TOOL_NAME,
    attached_line,
    entry_header,
    is_recall,
    is_recall_answer,
)
from compact.core.search.search_terms import SearchQuery, entry_terms, is_name, read_query
from compact.core.short_repr import short_repr
from compact.recall.passage import best_passage

_ARTIFACT_ID = re.compile(r"art-[0-9a-f]{16}")
# Chosen: more than an agent reads of one answer; and how many are looked at, since some may not be read or are ours.
_MAX_ENTRIES, _MAX_LOOKED_AT = 8, 24
# Chosen: so many times as many are looked at next, where matches of other conversations come first.
_MORE = 8
# Chosen: only the best matches are shown with their neighbours, and each has two at most.
_WITH_NEIGHBOURS, _MAX_NEIGHBOURS = 3, 2
# Chosen: a call and all the results of a usual batch of calls lie within so many entries.
_REACH = 8
# Chosen: so much of all the tokens for a neighbour that is no match itself.
_NEIGHBOUR_SHARE = 8
# Chosen: a page of pasted ids must not become a page of questions to the store.
_MAX_LOOKUPS = 8
# The usual value (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion", 2009).
_FUSION_OFFSET = 60
# Chosen: a reminder that nobody asked for is short; and what has less of a question may be about anything.
_MAX_REMINDED, _MIN_SHARED_WORDS, _MIN_SHARED_PART = 3, 2, 1 / 3
# Chosen: of a smaller part of a message nobody sees what it is about.
_MIN_REMINDED_TOKENS = 40
# Chosen: of a message that is cut to less, nothing is left that says anything.
_MIN_RECALLED_TOKENS = 12
_PIECE = re.compile(r"[^\s,;()\[\]{}<>'\"`]+")


@dataclass(frozen=True, slots=True)
class RecalledAttachment:
    """An attachment of an entry that was found, as what it was.

    `part` is the content part as the log has it. `is_asked_for` says that the query is about it, and not only about the
    words beside it: then it is shown again at the end of the agent's next prompt, unless `is_in_prompt`.
    """

    artifact_id: str
    attachment: Attachment
    part: Part
    is_asked_for: bool = False
    is_in_prompt: bool = False
    __repr__ = short_repr

    @property
    def data(self) -> bytes:
        """Its bytes; none of what was only referred to by an address or an id."""
        payload = payload_of(self.part)
        return payload.text.encode() if payload.text else payload.decoded()

    def __str__(self) -> str:
        if self.is_in_prompt:
            return f"[attachment {self.attachment}: it is in your prompt]"
        if self.is_asked_for:
            return attached_line(self.artifact_id, str(self.attachment))
        return f"[attachment {self.attachment}: {TOOL_NAME} {self.artifact_id} brings it back]"


@dataclass(frozen=True, slots=True)
class Recalled:
    """One entry of the log that was found; `content` is a passage of it if it is not whole.

    `neighbours` are the entries without which it makes no sense: the call of a result, the answer to a question.
    `attachments` are those of the entry.
    """

    message_id: str
    seq: int
    role: str
    content: str
    is_whole: bool
    neighbours: tuple[Recalled, ...] = ()
    attachments: tuple[RecalledAttachment, ...] = ()

    def __str__(self) -> str:
        return "\n\n".join((self._titled(), *(entry._titled(f", with {self.message_id}") for entry in self.neighbours)))

    def _titled(self, relation: str = "") -> str:
        cut = "" if self.is_whole else ", cut to fit"
        header = entry_header(self.message_id, self.role, self.seq, notes=relation + cut)
        return "\n".join((header, *filter(None, (self.content, *map(str, self.attachments)))))


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found for a query."""

    query: str
    found: tuple[Recalled, ...]
    __repr__ = short_repr

    @property
    def entries(self) -> tuple[Recalled, ...]:
        """Everything that is shown, neighbours included."""
        return tuple(entry for found in self.found for entry in (found, *found.neighbours))

    def __str__(self) -> str:
        if not self.found:
            return f"{NOTHING_FOUND} {self.query!r}"
        return "\n\n".join(str(entry) for entry in self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSource:
    """The entries of one session that the requester may read.

    `default_sensitivity` is that of tool results which say nothing of their own, as it is when they are externalised.
    `is_shown` says of a message whether the prompt has it as it is: what left the prompt comes first. `similar` finds
    entries that mean what a query means. Of a session id that was used for several conversations, only those that
    `is_in_conversation` says True for are found. `is_open` says of an entry whether it may be shown at all.
    """

    session_id: str
    reader: SessionReader
    artifacts: ArtifactStore
    security: SecurityContext
    default_sensitivity: str = "internal"
    is_shown: Callable[[str], bool] = lambda _: False
    is_open: Callable[[Message], bool] = lambda _: True
    similar: Callable[[str], Sequence[StoredMessage]] | None = None
    is_in_conversation: Callable[[Message], bool] = lambda _: True

    def by_id(self, query: str) -> list[StoredMessage] | None:
        """Return the entry that an id names, if it may be read; None if the query is no id."""
        message_id = query
        if _ARTIFACT_ID.fullmatch(query):
            artifact = self.artifacts.retrieve_artifact(query, self.security.within(self.session_id))
            if artifact is None or artifact.metadata.session_id != self.session_id:
                return []
            message_id = artifact.metadata.message_id
        found = self.reader.message(self.session_id, message_id) if message_id else None
        return [found] * self._may_read(found) if found else None

    def matches(self, query: str) -> list[StoredMessage]:
        """Return what a query names by id, then what matches it and left the prompt, then what did not."""
        named = [entry for piece in _ids_in(query) for entry in self.by_id(piece) or ()]
        ranked = self._search(query)
        if self.similar:
            similar = [entry for entry in self.similar(query) if self.is_in_conversation(entry.message)]
            ranked = _fused(ranked, similar, is_exact=bool(read_query(query).names))
        found = [entry for entry in ranked if not self._is_ours(entry)]
        found.sort(key=lambda entry: self.is_shown(entry.message.id))
        return list({entry.seq: entry for entry in (*named, *found) if self._may_read(entry)}.values())

    def missing(self, question: str, unstored: Sequence[Message] = ()) -> list[StoredMessage]:
        """Return what left the prompt and says of a question what nothing in the prompt does, the best first.

        `unstored` are messages of the prompt that the store does not have yet.
        """
        query = read_query(question)
        ranked = [entry for entry in self._search(question) if self._may_read(entry) and not self._is_ours(entry)]
        held = [(entry, self.is_shown(entry.message.id), _held_terms(entry.message, query)) for entry in ranked]
        just_said = (_held_terms(message, query) for message in unstored)
        in_prompt = frozenset[str]().union(*just_said, *(terms for _, is_shown, terms in held if is_shown))
        hidden = ((entry, terms) for entry, is_shown, terms in held if not is_shown)
        return [entry for entry, terms in hidden if _is_about(terms, query) and not terms <= in_prompt]

    def _search(self, query: str) -> Sequence[StoredMessage]:
        """Return the best matches of this line; further ones are looked at as long as those of others come before."""
        looked_at = _MAX_LOOKED_AT
        while True:
            ranked = self.reader.search(self.session_id, query, looked_at)
            found = [entry for entry in ranked if self.is_in_conversation(entry.message)]
            if len(found) >= _MAX_LOOKED_AT or len(ranked) < looked_at:
                return found[:_MAX_LOOKED_AT]
            looked_at *= _MORE

    def neighbours(self, match: StoredMessage) -> list[StoredMessage]:
        """Return what a match needs beside it: a result its call, a call its results, a question its answer."""
        near = [entry for entry in self._around(match) if self._may_read(entry)]
        before = [entry for entry in near if entry.seq < match.seq]
        after = [entry for entry in near if entry.seq > match.seq]
        message = match.message
        if message.role == "tool":
            return [e for e in before if any(call.id == message.tool_call_id for call in e.message.tool_calls)][-1:]
        if message.tool_calls:
            ids = {call.id for call in message.tool_calls}
            return [entry for entry in after if entry.message.tool_call_id in ids][:_MAX_NEIGHBOURS]
        if message.role == "user":
            return [entry for entry in after[:1] if entry.message.role == "assistant"]
        return [entry for entry in before[-1:] if entry.message.role == "user"]

    def _may_read(self, entry: StoredMessage) -> bool:
        """Return True if the requester may read an entry: the log has what artifacts have, under the same rules."""
        is_open = self.is_in_conversation(entry.message) and self.is_open(entry.message)
        return is_open and self.security.may_read_sensitivity(sensitivity_of(entry.message, self.default_sensitivity))

    def _is_ours(self, entry: StoredMessage) -> bool:
        """Return True for a call of the recall tool, and for its result.

        An answer that is in the log holds every word of its question, and nothing new.
        """
        message, calls = entry.message, entry.message.tool_calls
        if calls:
            if not all(is_recall(call.name) for call in calls):
                return False
            # Behind a prefix it may be another tool (`product_recall`): its answers tell.
            return all(call.name == TOOL_NAME for call in calls) or all(map(is_recall_answer, self._answers(entry)))
        if message.role != "tool" or not is_recall_answer(message.text):
            return False
        callers = (near.message for near in self._around(entry) if near.seq < entry.seq)
        return any(c.id == message.tool_call_id and is_recall(c.name) for near in callers for c in near.tool_calls)

    def _answers(self, entry: StoredMessage) -> Iterator[str]:
        ids = {call.id for call in entry.message.tool_calls}
        near = (other.message for other in self._around(entry) if other.seq > entry.seq)
        return (message.text for message in near if message.tool_call_id in ids)

    def _around(self, entry: StoredMessage) -> tuple[StoredMessage, ...]:
        start = max(0, entry.seq - _REACH - 1)
        return self.reader.messages(self.session_id, after_seq=start, limit=2 * _REACH + 1)


def recall(source: RecallSource, query: str, *, count_text: Callable[[str], int], max_tokens: int) -> Recall:
    """Return the entry of a session that an id names, or the entries that match a query, the best first."""
    matches, terms = source.by_id(query.strip()), ()
    if matches is None:
        matches, terms = source.matches(query), read_query(query).terms
    least = min(_MIN_RECALLED_TOKENS, max_tokens // 2)
    answer = _Answer(source, matches[:_MAX_ENTRIES], terms, count_text, max_tokens, query, min_tokens=least)
    return Recall(query, tuple(answer.found()))


def remind(
    source: RecallSource,
    question: str,
    missing: Sequence[StoredMessage],
    *,
    count_text: Callable[[str], int],
    max_tokens: int,
) -> Recall:
    """Return what is missing in a prompt for a user's question, although nobody has asked for it."""
    terms, matches = read_query(question).terms, missing[:_MAX_REMINDED]
    answer = _Answer(source, matches, terms, count_text, max_tokens, question, min_tokens=_MIN_REMINDED_TOKENS)
    # In the order of the conversation, a result behind its call: of two that disagree, the later one holds.
    found = (entry for match in answer.found() for entry in (replace(match, neighbours=()), *match.neighbours))
    return Recall(question, tuple(sorted(found, key=lambda entry: entry.seq)))


@dataclass(frozen=True, slots=True)
class _Answer:
    """Matches with their neighbours, within a number of tokens."""

    source: RecallSource
    matches: Sequence[StoredMessage]
    terms: Sequence[str]
    count_text: Callable[[str], int]
    max_tokens: int
    query: str = ""
    # A message that does not fit whole is not shown in less than these.
    min_tokens: int = 0

    def found(self) -> Iterator[Recalled]:
        """Yield the matches, the best first; a match that is shown as a neighbour is not shown again."""
        left, waiting = self.max_tokens, {entry.seq for entry in self.matches}
        for number, match in enumerate(self.matches):
            if match.seq not in waiting:
                continue
            near = self.source.neighbours(match) if self.terms and number < _WITH_NEIGHBOURS else []
            shown = self._passage(match, left if len(waiting) == 1 and not near else left // 2)
            if not shown:
                return
            left -= self.count_text(shown.content)
            neighbours: list[Recalled] = []
            for entry in near:
                # A neighbour that matches itself has as much room as every match.
                limit = left // 2 if entry.seq in waiting else min(left // 2, self.max_tokens // _NEIGHBOUR_SHARE)
                if neighbour := self._passage(entry, limit):
                    neighbours.append(neighbour)
                    left -= self.count_text(neighbour.content)
            waiting -= {entry.seq for entry in (shown, *neighbours)}
            yield replace(shown, neighbours=tuple(neighbours))

    def _passage(self, entry: StoredMessage, max_tokens: int) -> Recalled | None:
        text = _text(entry.message)
        cut = best_passage(text, self.terms, max_tokens, self.count_text)
        message = entry.message
        if not cut or (cut != text and max_tokens < self.min_tokens):
            return None
        attached = self._attachments(message)
        return Recalled(message.id, entry.seq, message.role, cut, cut == text, attachments=attached)

    def _attachments(self, message: Message) -> tuple[RecalledAttachment, ...]:
        """Return the attachments of a user's message; those that the query is about are asked for."""
        if message.role != "user":
            return ()
        return tuple(self._attachment(message, attachment) for attachment in attachments_of(message))

    def _attachment(self, message: Message, attachment: Attachment) -> RecalledAttachment:
        artifact_id, query = attachment_id(self.source.session_id, attachment), self.query.casefold()
        is_named = artifact_id in query or any(name in query for name in names_of(attachment))
        is_entry = self.query.strip() == message.id
        is_best = message is self.matches[0].message
        is_about = is_best and not _ARTIFACT_ID.search(query) and refers_to(attachment, query)
        return RecalledAttachment(
            artifact_id,
            attachment,
            attached_part(message, attachment),
            is_asked_for=is_named or is_entry or is_about,
            is_in_prompt=self.source.is_shown(message.id),
        )


def _fused(
    ranked: Sequence[StoredMessage], similar: Sequence[StoredMessage], *, is_exact: bool
) -> Sequence[StoredMessage]:
    """Return both lists as one, by reciprocal rank; where a name is asked for, what has it stays first."""
    entries = {entry.seq: entry for entry in (*ranked, *similar)}
    if is_exact:
        return list(entries.values())
    scores: dict[int, float] = dict.fromkeys(entries, 0.0)
    for found in (ranked, similar):
        for place, entry in enumerate(found, 1):
            scores[entry.seq] += 1 / (_FUSION_OFFSET + place)
    return [entries[seq] for seq in sorted(scores, key=lambda seq: (-scores[seq], -seq))]


def _held_terms(message: Message, query: SearchQuery) -> frozenset[str]:
    """Return the terms of a query that a message holds."""
    terms = entry_terms(message)
    return frozenset(term for term in query.terms if terms.frequency(term))


def _is_about(held: frozenset[str], query: SearchQuery) -> bool:
    """Return True if a message that holds these terms of a question is surely about it."""
    is_named = not query.names.isdisjoint(held)
    return is_named or len(held) >= max(_MIN_SHARED_WORDS, _MIN_SHARED_PART * len(query.terms))


def _ids_in(query: str) -> list[str]:
    """Return the pieces of a query that may be ids of messages or artifacts."""
    pieces = (piece.strip(".:!?") for piece in _PIECE.findall(query))
    return [piece for piece in dict.fromkeys(pieces) if is_name(piece)][:_MAX_LOOKUPS]


def _text(message: Message) -> str:
    """Return what an entry says and calls; of one without words, the kinds of its parts."""
    calls = (f"{call.name}({call.arguments})" for call in message.tool_calls)
    text = "\n".join(piece for piece in (message.text, *calls) if piece)
    parts = message.content if is_list(message.content) else ()
    return text or " ".join(f"[{part.get('type', 'part')}]" for part in parts) or "[empty]"
