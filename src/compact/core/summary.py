"""The summary as structure: facts with their sources, rendered to the one `<COMPACT-SUMMARY vN>` message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compact.core.messages import Message

STRUCTURED_SUMMARY_SCHEMA_VERSION = "v1.0"
SUMMARY_RENDER_VERSION = "v1.0"


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice that was made, and why."""

    decision: str
    rationale: str = ""
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenItem:
    """Something still to be done."""

    item: str
    priority: str = "normal"
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool call did, in a line."""

    tool: str
    outcome: str
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArtifactReference:
    """Content kept outside the prompt, and the id by which it comes back."""

    artifact_id: str
    description: str = ""
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredSummary:
    """What a span of history comes down to; each part names the messages it was taken from."""

    task: str = ""
    latest_ask: str = ""
    requests: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    tool_outcomes: tuple[ToolOutcome, ...] = ()
    open_items: tuple[OpenItem, ...] = ()
    artifacts: tuple[ArtifactReference, ...] = ()
    narrative: str = ""
    schema_version: str = STRUCTURED_SUMMARY_SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` gives back an equal summary."""
        return {
            "schema_version": self.schema_version,
            "task": self.task,
            "latest_ask": self.latest_ask,
            "requests": list(self.requests),
            "facts": list(self.facts),
            "decisions": [[d.decision, d.rationale, list(d.source_ids)] for d in self.decisions],
            "tool_outcomes": [[t.tool, t.outcome, list(t.source_ids)] for t in self.tool_outcomes],
            "open_items": [[o.item, o.priority, list(o.source_ids)] for o in self.open_items],
            "artifacts": [[a.artifact_id, a.description, list(a.source_ids)] for a in self.artifacts],
            "narrative": self.narrative,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StructuredSummary:
        """The inverse of `to_dict`."""
        return cls(
            schema_version=data["schema_version"],
            task=data["task"],
            latest_ask=data["latest_ask"],
            requests=tuple(data["requests"]),
            facts=tuple(data["facts"]),
            decisions=tuple(Decision(a, b, tuple(ids)) for a, b, ids in data["decisions"]),
            tool_outcomes=tuple(ToolOutcome(a, b, tuple(ids)) for a, b, ids in data["tool_outcomes"]),
            open_items=tuple(OpenItem(a, b, tuple(ids)) for a, b, ids in data["open_items"]),
            artifacts=tuple(ArtifactReference(a, b, tuple(ids)) for a, b, ids in data["artifacts"]),
            narrative=data["narrative"],
        )


@dataclass(frozen=True, slots=True)
class SummaryCacheKey:
    """What must be equal for a stored summary to be used again."""

    content_hash: str
    schema_version: str = STRUCTURED_SUMMARY_SCHEMA_VERSION
    policy_version: str = ""
    model: str = ""
    prompt_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """Everything a summariser gets: the messages to leave the prompt, what was known before, and the room it has."""

    messages: tuple[Message, ...]
    previous: StructuredSummary | None
    max_tokens: int
    count_text: Callable[[str], int]
    strategy: str = "task_state"
    note: str = ""
    version: int = 1
    artifacts: tuple[ArtifactReference, ...] = ()


def render_summary_text(summary: StructuredSummary, *, version: int, messages: int) -> str:
    """The text of the summary message: one tagged block with only the sections that have something in them."""
    lines = [f"<COMPACT-SUMMARY v{version}>"]
    lines.append(f"Stands for {rounded(messages)} earlier messages, kept in full; recall finds them by words or id.")
    for title, body in _sections(summary):
        lines.extend(("", f"## {title}", body))
    lines.append("</COMPACT-SUMMARY>")
    return "\n".join(lines)


def _sections(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    bullets: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("Also asked for", summary.requests),
        ("Facts", summary.facts),
        (
            "Decisions",
            tuple(d.decision + (f" (because {d.rationale})" if d.rationale else "") for d in summary.decisions),
        ),
        ("Work done", tuple(f"{t.tool}: {t.outcome}" for t in summary.tool_outcomes)),
        ("Open", tuple(o.item for o in summary.open_items)),
        ("Kept elsewhere", tuple(f"{a.artifact_id}: {a.description}" for a in summary.artifacts)),
    )
    if summary.task:
        yield "Task", summary.task
    if summary.latest_ask:
        yield "Latest ask", summary.latest_ask
    for title, items in bullets:
        if items:
            yield title, "\n".join(f"- {item}" for item in items)
    if summary.narrative:
        yield "What happened", summary.narrative


def rounded(count: int) -> str:
    """A size for people, short enough that it is never taken for a figure out of the history."""
    if count < 100:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 99_950 else f"{count / 1_000_000:.1f}M"


_GIVES_WAY = ("narrative", "tool_outcomes", "facts", "requests", "decisions", "artifacts", "open_items")


def fit_summary(summary: StructuredSummary, fits: Callable[[StructuredSummary], bool]) -> StructuredSummary:
    """The summary cut down until it fits: the story first, then the oldest entries, task and latest ask last."""
    for part in _GIVES_WAY:
        while not fits(summary) and getattr(summary, part):
            items = getattr(summary, part)
            # Half at a time, oldest first: a long list is not tried entry by entry.
            summary = replace(summary, **{part: "" if part == "narrative" else items[(len(items) + 1) // 2 :]})
    for part in ("latest_ask", "task"):
        while not fits(summary) and getattr(summary, part):
            text = getattr(summary, part)
            summary = replace(summary, **{part: text[: len(text) // 2].rstrip()})
    return summary
