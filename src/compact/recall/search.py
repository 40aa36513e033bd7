"""Recall what left the prompt: an entry of the log by its id, or entries by their words, within a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from compact.core.audit.artifacts import ArtifactStore, SecurityContext
from compact.core.audit.records import StoredMessage
from compact.core.audit.store import SessionReader
from compact.core.json_data import is_list
from compact.core.log.messages import Message

_ARTIFACT_ID = re.compile(r"art-[0-9a-f]{16}")
# Chosen: more than an agent reads of one answer.
_MAX_ENTRIES = 8


@dataclass(frozen=True, slots=True)
class Recalled:
    """One entry of the log that was found; `content` is its beginning if it is not whole."""

    message_id: str
    seq: int
    role: str
    content: str
    is_whole: bool

    def __str__(self) -> str:
        cut = "" if self.is_whole else ", cut to fit"
        return f"[{self.message_id}, {self.role}, entry {self.seq}{cut}]\n{self.content}"


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found for a query."""

    query: str
    found: tuple[Recalled, ...]

    def __str__(self) -> str:
        if not self.found:
            return f"nothing in this session's log matches {self.query!r}"
        return "\n\n".join(str(entry) for entry in self.found)


def recall(
    session_id: str,
    query: str,
    *,
    reader: SessionReader,
    artifacts: ArtifactStore,
    security: SecurityContext,
    count_text: Callable[[str], int],
    max_tokens: int,
    default_sensitivity: str = "internal",
) -> Recall:
    """Return the entries of a session that a query names: by artifact or message id exactly, by words otherwise.

    `default_sensitivity` is that of tool results which say nothing of their own, as it is when they are externalised.
    """
    entries = _entries_by_id(session_id, query.strip(), reader, artifacts, security)
    if entries is None:
        entries = reader.search(session_id, query, _MAX_ENTRIES)
    found: list[Recalled] = []
    left = max_tokens
    for entry in entries:
        # The log has what artifacts have: the same rules say who may read it.
        if not security.may_read_sensitivity(_sensitivity(entry.message, default_sensitivity)):
            continue
        text = _text(entry.message)
        cut = _fitting(text, left, count_text)
        if not cut:
            break
        found.append(Recalled(entry.message.id, entry.seq, entry.message.role, cut, cut == text))
        left -= count_text(cut)
    return Recall(query, tuple(found))


def _entries_by_id(
    session_id: str, query: str, reader: SessionReader, artifacts: ArtifactStore, security: SecurityContext
) -> tuple[StoredMessage, ...] | None:
    """Return the entry that an id names, if there is one; None if the query is no id."""
    message_id = query
    if _ARTIFACT_ID.fullmatch(query):
        artifact = artifacts.retrieve_artifact(query, security)
        if artifact is None or artifact.metadata.session_id != session_id:
            return ()
        message_id = artifact.metadata.message_id
    found = reader.message(session_id, message_id) if message_id else None
    return (found,) if found else None


def _sensitivity(message: Message, default: str) -> str:
    usual = default if message.role == "tool" else "internal"
    return str(message.meta.get("sensitivity", usual))


def _text(message: Message) -> str:
    """Return what an entry says and calls; of one without words, the kinds of its parts."""
    calls = (f"{call.name}({call.arguments})" for call in message.tool_calls)
    text = "\n".join(piece for piece in (message.text, *calls) if piece)
    parts = message.content if is_list(message.content) else ()
    return text or " ".join(f"[{part.get('type', 'part')}]" for part in parts) or "[empty]"


def _fitting(text: str, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """Return the text, or as much of its beginning as fits."""
    while text and (tokens := count_text(text)) > max_tokens:
        keep = int(len(text) * max_tokens / tokens * 0.95)
        text = text[: min(keep, len(text) - 1)] if max_tokens > 0 else ""
    return text
