"""What code keeps of a history without any model: the task, and what was asked last, verbatim."""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.messages import Message
from compact.core.summary import StructuredSummary


def carry_task(previous: StructuredSummary | None, messages: Sequence[Message]) -> StructuredSummary:
    """The summary that is always there, even when no summariser answers: earlier state, task and latest ask."""
    asked = [message.text for message in messages if message.role == "user" and message.text]
    base = previous or StructuredSummary()
    task = base.task or (asked[0] if asked else "")
    latest = asked[-1] if asked else base.latest_ask
    return StructuredSummary(
        task=task,
        latest_ask=latest if latest != task else "",
        requests=base.requests,
        facts=base.facts,
        decisions=base.decisions,
        tool_outcomes=base.tool_outcomes,
        open_items=base.open_items,
        artifacts=base.artifacts,
        narrative=base.narrative,
    )
