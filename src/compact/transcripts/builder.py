"""Builds one session from the pieces of a log: joins what belongs together, pairs results with their calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.transcripts.logs import AgentLog, OwnCompaction, UnknownLines
from compact.transcripts.parts import Content, is_empty, joined

ORPHAN = "tool result without its call"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a log; arguments are JSON text, or data that becomes it."""

    id: str
    name: str
    arguments: object

    def to_entry(self) -> dict[str, Any]:
        """Return the call as Chat Completions has it."""
        text = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": text}}


@dataclass(slots=True)
class LogBuilder:
    """The session that a reader is at; the reader adds what it finds, in order."""

    agent: str
    version: str = ""
    session_id: str = ""
    parent_id: str = ""
    model: str = ""
    instructions: str = ""
    thinking: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    compactions: list[OwnCompaction] = field(default_factory=list[OwnCompaction])
    _unknown: dict[str, UnknownLines] = field(default_factory=dict[str, UnknownLines])
    # The message that made a call, as long as it has no result; the key under which more may be joined to the last one.
    _callers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _open: object = None

    def say(self, role: str, content: Content, *, name: str = "") -> None:
        """Add a message of a person or of the harness; `name` marks what no person wrote."""
        if is_empty(content):
            return
        self.messages.append({"role": role, "content": content, **({"name": name} if name else {})})
        self._open = None

    def answer(self, content: Content, calls: Sequence[Call] = (), *, key: object = None) -> None:
        """Add what the model said; pieces with the same key that follow each other are one message."""
        if is_empty(content) and not calls:
            return
        last = self.messages[-1] if self.messages else {}
        if key is not None and self._open == key and last.get("role") in ("assistant", "tool"):
            message = next(entry for entry in reversed(self.messages) if entry["role"] == "assistant")
            message["content"] = joined(message["content"], content)
        else:
            message = dict[str, Any](role="assistant", content=None if is_empty(content) else content)
            self.messages.append(message)
        for call in calls:
            message.setdefault("tool_calls", []).append(call.to_entry())
            self._callers[call.id] = message
        self._open = key

    def result(self, call_id: str, content: Content, *, place: str) -> None:
        """Add the result of a call, behind the message that made it and the results that it has."""
        caller = self._callers.pop(call_id, None)
        if caller is None:
            self.note_unknown(ORPHAN, place)
            return
        position = next(n for n in reversed(range(len(self.messages))) if self.messages[n] is caller) + 1
        while position < len(self.messages) and self.messages[position]["role"] == "tool":
            position += 1
        entry = {"role": "tool", "tool_call_id": call_id, "content": "" if content is None else content}
        if position < len(self.messages):
            self._make_room(position)
        self.messages.insert(position, entry)

    def end_answer(self) -> None:
        """Let what the model says next be a message of its own."""
        self._open = None

    def _make_room(self, position: int) -> None:
        """Move what is said about later messages: a result is put between."""

        def moved(at: int) -> int:
            return at + (at >= position)

        self.compactions = [
            replace(one, position=one.position + (one.position > position), kept=tuple(map(moved, one.kept)))
            for one in self.compactions
        ]

    def compact(
        self, summary: str, *, place: str, kept: Sequence[int] = (), trigger: str = "", tokens_before: int = 0
    ) -> None:
        """Add a compaction of the agent's own, at this point of the log."""
        self._open = None
        self.compactions.append(
            OwnCompaction(len(self.messages), summary.strip(), tuple(kept), place, trigger, tokens_before)
        )

    def cut(self, length: int) -> None:
        """Forget everything behind so many messages: the session was wound back to there."""
        for message in self.messages[length:]:
            for call in message.get("tool_calls") or ():
                self._callers.pop(call["id"], None)
        del self.messages[length:]
        self.compactions = [one for one in self.compactions if one.position <= length]
        self._open = None

    def note_unknown(self, kind: str, place: str) -> None:
        """Count something that no rule covers; the place of the first one is kept."""
        known = self._unknown.get(kind)
        self._unknown[kind] = replace(known, count=known.count + 1) if known else UnknownLines(kind, 1, place)

    def build(self) -> AgentLog:
        """Return the session."""
        return AgentLog(
            agent=self.agent,
            messages=self.messages,
            version=self.version,
            session_id=self.session_id,
            parent_id=self.parent_id,
            model=self.model,
            instructions=self.instructions,
            compactions=tuple(self.compactions),
            unknown=tuple(self._unknown.values()),
            thinking=self.thinking,
        )
