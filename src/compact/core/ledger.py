"""What code keeps of a history without any model: the task, and what was asked last, verbatim."""

from __future__ import annotations

from dataclasses import replace

from compact.core.summary import StructuredSummary, SummaryRequest


def carry_task(request: SummaryRequest) -> StructuredSummary:
    """The summary that is always there, even when no summariser answers: earlier state, task and latest ask."""
    asked = [message.text for message in request.messages if message.role == "user" and message.text]
    base = request.previous or StructuredSummary()
    task = base.task or (asked[0] if asked else "")
    latest = asked[-1] if asked else base.latest_ask
    artifacts = tuple(dict.fromkeys((*base.artifacts, *request.artifacts)))
    return replace(base, task=task, latest_ask=latest if latest != task else "", artifacts=artifacts)
