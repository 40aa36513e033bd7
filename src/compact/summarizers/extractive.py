"""A summary without a model: what was asked, what was done, what went wrong, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compact.core.groups import calls_answered, group_messages
from compact.core.ledger import carry_task
from compact.core.messages import Message, ToolCall
from compact.core.summary import (
    StructuredSummary,
    SummaryRequest,
    ToolOutcome,
    fit_summary,
    render_summary_text,
)

_FAILED = re.compile(r"\b(?:error|failed|failure|exception|traceback|fatal|denied|refused)\b", re.IGNORECASE)
_LONGEST_REQUEST_CHARS = 1200
_LONGEST_OUTCOME_CHARS = 240
# What the summary message costs beyond its text.
_FRAMING_TOKENS = 8


def extractive_summary(request: SummaryRequest) -> StructuredSummary:
    """Keep the task, what people asked, each call with how it ended, and what the agent said last."""
    base = carry_task(request)
    asked = tuple(_cut(text, _LONGEST_REQUEST_CHARS) for text in _asked(request.messages))
    said = [message.text for message in request.messages if message.role == "assistant" and message.text]
    summary = replace(
        base,
        requests=_distinct((*base.requests, *(text for text in asked if text not in (base.task, base.latest_ask)))),
        tool_outcomes=(*base.tool_outcomes, *_outcomes(request.messages)),
        narrative=_cut(said[-1], _LONGEST_REQUEST_CHARS) if said else base.narrative,
    )

    def fits(candidate: StructuredSummary) -> bool:
        text = render_summary_text(candidate, version=request.version, messages=len(request.messages) + 1_000_000)
        return request.count_text(text) + _FRAMING_TOKENS <= request.max_tokens

    return fit_summary(summary, fits)


def _asked(messages: Sequence[Message]) -> Iterator[str]:
    return (message.text for message in messages if message.role == "user" and message.text)


def _outcomes(messages: Sequence[Message]) -> Iterator[ToolOutcome]:
    answered = calls_answered(messages, group_messages(messages))
    for index, call in answered.items():
        message = messages[index]
        yield ToolOutcome(call.name, _outcome(call, message.text), (message.id,))


def _outcome(call: ToolCall, result: str) -> str:
    """The arguments, and the line of the result that says how it went, if there is one."""
    arguments = _cut(call.arguments, _LONGEST_OUTCOME_CHARS)
    failure = next((line.strip() for line in result.splitlines() if _FAILED.search(line)), "")
    return f"{arguments} → {_cut(failure, _LONGEST_OUTCOME_CHARS)}" if failure else arguments


def _distinct(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[:max_chars].rstrip() + " …"
