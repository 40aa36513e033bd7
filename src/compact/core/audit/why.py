"""Answers "did the agent see this?": where a phrase is now, since when, and which calls went out without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compact.core.audit.records import ModelCall, PlanVersion, StoredMessage, StoredSession
from compact.core.log.messages import Message
from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    ExternalizationRecord,
    Record,
    SummarizationRecord,
)
from compact.core.plan.renderer import summary_message
from compact.core.plan.stubs import render_cleared, render_externalization_text
from compact.core.summary.summary import unquoted

_WORDS = {
    CompactionAction.INCLUDE: "in the prompt",
    CompactionAction.CLEAR: "cleared",
    CompactionAction.SUMMARIZE: "summarised",
    CompactionAction.EXTERNALIZE: "externalised",
    CompactionAction.DROP: "dropped",
}
_EXCERPT_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One message that holds the phrase, and what became of it.

    `is_visible` says whether the model still sees the phrase itself, in the message or in what stands for it.
    """

    message_id: str
    seq: int
    role: str
    excerpt: str
    state: str
    is_visible: bool
    since_version: int
    since_at: float
    strategy: str
    reason: str
    calls_without: tuple[int, ...]


def trace_phrase(
    phrase: str, stored: StoredSession, plans: Sequence[PlanVersion], calls: Sequence[ModelCall]
) -> tuple[Sighting, ...]:
    """Return every message that holds the phrase (upper and lower case alike), oldest first."""
    if not phrase.strip():
        return ()
    wanted, view = phrase.casefold(), set(stored.view_ids)
    history = _History(stored.session_id, plans)
    return tuple(
        _sighting(entry, wanted, history, stored.plan, calls, is_in_view=entry.message.id in view)
        for entry in stored.messages
        if wanted in _full_text(entry.message).casefold()
    )


class _History:
    """The plans by version."""

    def __init__(self, session_id: str, plans: Sequence[PlanVersion]) -> None:
        self.versions = tuple(plans)
        self._by_version = {entry.plan.version: entry.plan for entry in plans}
        self._empty = CompactionPlan(session_id)

    def plan(self, version: int) -> CompactionPlan:
        return self._by_version.get(version, self._empty)

    def since(self, message_id: str, action: CompactionAction) -> tuple[int, float]:
        """Return the version from which on, without a break, the message has had its present action."""
        version, at = 0, 0.0
        for entry in reversed(self.versions):
            if entry.plan.get_action(message_id)[0] is not action:
                break
            version, at = entry.plan.version, entry.at
        return version, at


def _sighting(
    entry: StoredMessage,
    wanted: str,
    history: _History,
    plan: CompactionPlan,
    calls: Sequence[ModelCall],
    *,
    is_in_view: bool,
) -> Sighting:
    message = entry.message
    action, record = plan.get_action(message.id)
    version, at = history.since(message.id, action) if record else (0, 0.0)
    without = [
        c.number for c in calls if c.last_seq >= entry.seq and not _shows(message, history.plan(c.plan_version), wanted)
    ]
    return Sighting(
        message_id=message.id,
        seq=entry.seq,
        role=message.role,
        excerpt=_excerpt(_full_text(message), wanted),
        state=_WORDS[action] if is_in_view else "left behind when the past was edited",
        is_visible=is_in_view and _shows(message, plan, wanted),
        since_version=version,
        since_at=at,
        strategy=record.strategy if record else "",
        reason=record.reason if record else "",
        calls_without=tuple(without),
    )


def _shows(message: Message, plan: CompactionPlan, wanted: str) -> bool:
    """Return True if the phrase is in the message under this plan, or in what stands for it."""
    return wanted in _shown_text(message, plan.get_action(message.id)[1]).casefold()


def _shown_text(message: Message, record: Record | None) -> str:
    match record:
        case None:
            return _full_text(message)
        case ClearRecord():
            return _full_text(render_cleared(message, record))
        case ExternalizationRecord():
            return render_externalization_text(record)
        case SummarizationRecord():
            return unquoted(summary_message(record).text)
        case _:
            return ""


def _full_text(message: Message) -> str:
    return "\n".join((message.text, *(call.arguments for call in message.tool_calls)))


def _excerpt(text: str, wanted: str) -> str:
    place = max(0, text.casefold().find(wanted) - _EXCERPT_CHARS // 4)
    return " ".join(text[place : place + _EXCERPT_CHARS].split())
