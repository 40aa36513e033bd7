"""Which attachments are in use: those of the newest turns, those named in them, and those an instruction is about.

An attachment is what the user asks about, and no text can stand for it: while it is in use it stays in the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compact.core.messages.attachments import AUDIO, DOCUMENT, FILE, IMAGE, VIDEO, Attachment, attachments_of
from compact.core.messages.groups import turn_numbers
from compact.core.messages.message import Message

# The words by which people refer to what they sent, by its kind; whole words, in any case, singular or plural.
_WORDS = {
    DOCUMENT: "document pdf paper report contract manual sheet spreadsheet table text page dokument documento bericht",
    IMAGE: "image picture photo screenshot scan drawing figure chart bild foto imagen captura",
    AUDIO: "audio recording voice sound aufnahme grabación",
    VIDEO: "video clip recording film vídeo vidéo",
    FILE: "file attachment attached upload uploaded datei anhang archivo adjunto fichier",
}
_REFERENCES = {
    kind: re.compile(rf"\b(?:{'|'.join((words if kind == FILE else f'{words} {_WORDS[FILE]}').split())})s?\b", re.I)
    for kind, words in _WORDS.items()
}
# A name that is no usual word is known without its ending, too: `q3_figures` for `q3_figures.xlsx`.
_DISTINCT = re.compile(r"[\d_-]")


def messages_in_use(
    messages: Sequence[Message], *, recent_turns: int, instructions: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Return the ids of the users' messages whose attachments are in use, the oldest first.

    `instructions` are the standing constraints: the id of the message that says each, and its text. An attachment that
    was sent again later is in use where it was sent last.
    """
    attached = [place for place, m in enumerate(messages) if m.role == "user" and attachments_of(m)]
    if not attached:
        return ()
    turns = turn_numbers(messages)
    newest = turns[-1] - recent_turns + 1
    used = {place for place in attached if turns[place] >= newest}
    recent = [m.text.casefold() for place, m in enumerate(messages) if turns[place] >= newest and _speaks(m)]
    used.update(place for place in attached if _is_named(messages[place], recent))
    places = {message.id: place for place, message in enumerate(messages)}
    for source_id, text in instructions:
        if source_id in places:
            used.update(_meant(messages, attached, places[source_id], text))
    sent_again = _sent_again(messages, attached)
    last = {attachment.digest: place for place in attached for attachment in attachments_of(messages[place])}
    used |= {last[attachment.digest] for place in used & sent_again for attachment in attachments_of(messages[place])}
    return tuple(messages[place].id for place in sorted(used - sent_again))


def repeated_attachments(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of the users' messages all of whose attachments were sent again later."""
    attached = [place for place, m in enumerate(messages) if m.role == "user" and attachments_of(m)]
    return frozenset(messages[place].id for place in _sent_again(messages, attached))


def _sent_again(messages: Sequence[Message], attached: Sequence[int]) -> set[int]:
    later: set[str] = set()
    repeated: set[int] = set()
    for place in reversed(attached):
        digests = {attachment.digest for attachment in attachments_of(messages[place])}
        if digests <= later:
            repeated.add(place)
        later |= digests
    return repeated


def _speaks(message: Message) -> bool:
    return message.role in ("user", "assistant")


def _is_named(message: Message, texts: Sequence[str]) -> bool:
    names = [name for attachment in attachments_of(message) for name in names_of(attachment)]
    return any(name in text for text in texts for name in names)


def names_of(attachment: Attachment) -> tuple[str, ...]:
    """Return the words by which a text names an attachment, in lower case."""
    name = attachment.name.casefold()
    stem = name.rpartition(".")[0]
    if "." in name and len(stem) > 3 and _DISTINCT.search(stem):
        return (name, stem)
    return (name,) if len(name) > 3 else ()


def refers_to(attachment: Attachment, text: str) -> bool:
    """Return True if a text has a word for what an attachment is: a document, an image, a file."""
    return _REFERENCES[attachment.kind].search(text) is not None


def _meant(messages: Sequence[Message], attached: Sequence[int], place: int, text: str) -> Iterable[int]:
    """Return what an instruction is about: what it names, or what came last with it or before it, else what came next.

    "Answer from this document only" is about documents; a screenshot that was sent later is none.
    """
    lowered = text.casefold()
    named = [at for at in attached if any(n in lowered for a in attachments_of(messages[at]) for n in names_of(a))]
    if named:
        return named
    fitting = [at for at in attached if any(refers_to(a, text) for a in attachments_of(messages[at]))]
    before = [at for at in fitting if at <= place]
    return before[-1:] or fitting[:1]
