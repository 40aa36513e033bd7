"""A history as a record to read: each entry with its id, long results cut in the middle, all of it behind a fence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compact.core.log.groups import calls_answered, group_messages
from compact.core.log.messages import Message

CUT_MARK = "[… cut …]"
_SIMPLE_ID = re.compile(r"[\w.-]{1,40}")
# What a text of each kind may take, in characters; a cut in length makes all of them shorter.
_LONGEST = {"tool": 3_000, "assistant": 8_000, "arguments": 1_200}
_LONGEST_OTHER = 16_000
_SHORTEST_CHARS = 60


def step_ids(messages: Sequence[Message]) -> dict[str, str]:
    """What each message is called in a prompt: its own id, or its place where the id is long or odd."""
    names: dict[str, str] = {}
    for place, message in enumerate(messages, 1):
        simple = _SIMPLE_ID.fullmatch(message.id)
        names[message.id] = message.id if simple else f"s{place}"
    return names


@dataclass(frozen=True, slots=True)
class Record:
    """The entries of a history in groups that stay together, to be told at any length."""

    messages: Sequence[Message]
    names: Mapping[str, str]

    def groups(self, share: float = 1.0) -> list[str]:
        """Each group as text; with a share below 1 the longest texts are cut further."""
        groups = group_messages(self.messages)
        answered = calls_answered(self.messages, groups)
        told: list[str] = []
        for group in groups:
            lines: list[str] = []
            for index in group.indices:
                call = answered.get(index)
                lines.extend(self._entry(self.messages[index], share, call.name if call else ""))
            told.append("\n".join(lines))
        return told

    def only(self, place: int) -> Record:
        """One group of it."""
        indices = group_messages(self.messages)[place].indices
        return Record([self.messages[index] for index in indices], self.names)

    def _entry(self, message: Message, share: float, answers: str) -> Iterator[str]:
        name = self.names.get(message.id, message.id)
        who = f"result of {answers}" if answers else message.role
        longest = _LONGEST.get(message.role, _LONGEST_OTHER)
        text = clipped(_content(message), _share_of(longest, share))
        yield f"[{name}] {who}: {text}".rstrip()
        for call in message.tool_calls:
            arguments = clipped(call.arguments, _share_of(_LONGEST["arguments"], share))
            yield f"[{name}] {message.role} calls {call.name}({arguments})"


def _content(message: Message) -> str:
    """The text of a message, and a word for each part that is none."""
    if isinstance(message.content, str) or message.content is None:
        return message.text
    others = [str(part.get("type", "part")) for part in message.content if not _has_text(part)]
    return "\n".join(filter(None, (message.text, *(f"[{kind}]" for kind in others))))


def _has_text(part: Mapping[str, object]) -> bool:
    return isinstance(part.get("text", part.get("content")), str | list | tuple)


def _share_of(longest: int, share: float) -> int:
    return max(_SHORTEST_CHARS, int(longest * share))


def clipped(text: str, longest: int) -> str:
    """A text of at most so many characters: its beginning and its end, with a mark where the middle was."""
    if len(text) <= longest:
        return text
    room = max(0, longest - len(CUT_MARK) - 2)
    head = (room * 2 + 2) // 3
    return f"{text[:head].rstrip()} {CUT_MARK} {text[len(text) - (room - head) :].lstrip()}"


def fenced(*blocks: tuple[str, str]) -> str:
    """Blocks of text between marks that nothing in them can close: the marks are made of a hash of all of it."""
    body = "\n\n".join(f"{title}:\n{text}" for title, text in blocks if text)
    nonce = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    while nonce in body:  # nobody can write down the hash of what he writes, but looking costs nothing
        nonce = hashlib.sha256(nonce.encode()).hexdigest()[:16]
    return f"<record-{nonce}>\n{body}\n</record-{nonce}>"


class Portions:
    """A record told in parts, each as large as there is room; `place` is the group that comes next."""

    def __init__(self, record: Record, *, share: float, count: Callable[[str], int]) -> None:
        self._record, self._share, self._count = record, share, count
        self._groups = record.groups(share)
        self._tokens = [count(group) + 1 for group in self._groups]
        self.place = 0

    @property
    def is_told(self) -> bool:
        """True once nothing is left."""
        return self.is_last(self.place)

    def is_last(self, place: int) -> bool:
        """True if nothing comes behind a place."""
        return place >= len(self._groups)

    @property
    def total_tokens(self) -> int:
        """What all of it takes."""
        return sum(self._tokens)

    def next(self, room_tokens: int) -> tuple[str, int]:
        """As many groups as fit the room, and the place behind them; at least one, cut until it fits."""
        end, used = self.place, 0
        while end < len(self._groups) and used + self._tokens[end] <= room_tokens:
            used += self._tokens[end]
            end += 1
        if end > self.place:
            return "\n".join(self._groups[self.place : end]), end
        return self._squeezed(self.place, room_tokens), self.place + 1

    def _squeezed(self, place: int, room_tokens: int) -> str:
        text, share = self._groups[place], self._share
        alone = self._record.only(place)
        while self._count(text) > room_tokens and share > 0.01:
            share /= 2
            text = alone.groups(share)[0]
        longest = len(text)
        while self._count(text) > room_tokens and longest > 0:
            longest //= 2
            text = clipped(text, longest) if longest > len(CUT_MARK) + 2 else text[:longest]
        return text
