"""A history as text for a model: each entry with its id, long texts cut in the middle, in parts, behind a fence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compact.core.messages.attachments import attachments_of
from compact.core.messages.groups import calls_answered, group_messages
from compact.core.messages.message import Message

CUT_MARK = "[… cut …]"
_SIMPLE_ID = re.compile(r"[\w.-]{1,40}")
# Chosen: the most characters that a text of each kind may have; a share below 1 makes all of them shorter. What people
# and agents write is kept nearly in full, what tools print by how it begins and ends.
_MAX_CHARS = {"tool": 3_000, "assistant": 8_000, "arguments": 1_200}
_MAX_OTHER_CHARS = 16_000
_MIN_CHARS = 60


def entry_names(messages: Sequence[Message]) -> dict[str, str]:
    """Return what each message is called in a prompt: its own id, or its place where the id is long or odd."""
    own = {message.id for message in messages if _SIMPLE_ID.fullmatch(message.id)}
    prefix = "s"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in own):
        prefix += "x"
    return {
        message.id: message.id if message.id in own else f"{prefix}{place}" for place, message in enumerate(messages, 1)
    }


@dataclass(frozen=True, slots=True)
class Transcript:
    """Messages to be written as text, at any length; `names` has what each is called."""

    messages: Sequence[Message]
    names: Mapping[str, str]

    def groups(self, share: float = 1.0) -> list[str]:
        """Return each group of messages that stay together as text; with a share below 1, long texts are cut more."""
        groups = group_messages(self.messages)
        answered = calls_answered(self.messages, groups)
        texts: list[str] = []
        for group in groups:
            lines: list[str] = []
            for index in group.indices:
                call = answered.get(index)
                lines.extend(self._entry(self.messages[index], share, call.name if call else ""))
            texts.append("\n".join(lines))
        return texts

    def only(self, group: int) -> Transcript:
        """Return one group of it."""
        indices = group_messages(self.messages)[group].indices
        return Transcript([self.messages[index] for index in indices], self.names)

    def _entry(self, message: Message, share: float, answered_tool: str) -> Iterator[str]:
        name = self.names.get(message.id, message.id)
        author = f"result of {answered_tool}" if answered_tool else message.role
        text = clipped(_content(message), _share_of(_MAX_CHARS.get(message.role, _MAX_OTHER_CHARS), share))
        yield f"[{name}] {author}: {text}".rstrip()
        for call in message.tool_calls:
            arguments = clipped(call.arguments, _share_of(_MAX_CHARS["arguments"], share))
            yield f"[{name}] {message.role} calls {call.name}({arguments})"


def _content(message: Message) -> str:
    """Return the text of a message, and a word for each part that is none."""
    if isinstance(message.content, str) or message.content is None:
        return message.text
    known = {attachment.place: f"attachment: {attachment}" for attachment in attachments_of(message)}
    parts = enumerate(message.content)
    others = [known.get(place, str(part.get("type", "part"))) for place, part in parts if not _has_text(part)]
    return "\n".join(filter(None, (message.text, *(f"[{kind}]" for kind in others))))


def _has_text(part: Mapping[str, object]) -> bool:
    return isinstance(part.get("text", part.get("content")), str | list | tuple)


def _share_of(max_chars: int, share: float) -> int:
    return max(_MIN_CHARS, int(max_chars * share))


def clipped(text: str, max_chars: int) -> str:
    """Return a text of at most so many characters: its beginning and its end, with a mark where the middle was."""
    if len(text) <= max_chars:
        return text
    room = max(0, max_chars - len(CUT_MARK) - 2)
    head = (room * 2 + 2) // 3  # two thirds are its beginning
    return f"{text[:head].rstrip()} {CUT_MARK} {text[len(text) - (room - head) :].lstrip()}"


def fenced(*blocks: tuple[str, str]) -> str:
    """Return blocks of text between marks that nothing in them can close: the marks have a hash of all of it."""
    body = "\n\n".join(f"{title}:\n{text}" for title, text in blocks if text)
    nonce = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    while nonce in body:  # nobody can write down the hash of what he writes, but looking costs nothing
        nonce = hashlib.sha256(nonce.encode()).hexdigest()[:16]
    return f"<record-{nonce}>\n{body}\n</record-{nonce}>"


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """As much of a transcript as fits one request; `end` is the group behind it."""

    text: str
    end: int


class TranscriptParts:
    """A transcript in groups, from which parts are taken that are as large as there is room."""

    def __init__(self, transcript: Transcript, *, share: float, count: Callable[[str], int]) -> None:
        self._transcript, self._share, self._count = transcript, share, count
        self._groups = transcript.groups(share)
        self._tokens = [count(group) + 1 for group in self._groups]

    def is_end(self, group: int) -> bool:
        """Return True if nothing comes behind a place."""
        return group >= len(self._groups)

    @property
    def total_tokens(self) -> int:
        """What all of it takes."""
        return sum(self._tokens)

    def part(self, start: int, room_tokens: int) -> TranscriptPart:
        """Return as many groups from a place on as fit the room; at least one, cut until it fits."""
        end, used = start, 0
        while end < len(self._groups) and used + self._tokens[end] <= room_tokens:
            used += self._tokens[end]
            end += 1
        if end > start:
            return TranscriptPart("\n".join(self._groups[start:end]), end)
        return TranscriptPart(self._squeezed(start, room_tokens), start + 1)

    def _squeezed(self, group: int, room_tokens: int) -> str:
        """Return one group cut until it fits."""
        text, share = self._groups[group], self._share
        alone = self._transcript.only(group)
        while self._count(text) > room_tokens and share > 0.01:
            share /= 2
            text = alone.groups(share)[0]
        max_chars = len(text)
        while self._count(text) > room_tokens and max_chars > 0:
            max_chars //= 2
            text = clipped(text, max_chars) if max_chars > len(CUT_MARK) + 2 else text[:max_chars]
        return text
