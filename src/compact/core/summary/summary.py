"""The summary as structure: facts with their sources, rendered to the one `<COMPACT-SUMMARY vN>` message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Any

from compact.core.facts.ledger import REQUIRED, FactKind, Ledger
from compact.core.log.recognition import SUMMARY_MARK
from compact.core.plurals import noun
from compact.core.short_repr import short_repr
from compact.core.summary.writing import SummaryWriting

STRUCTURED_SUMMARY_SCHEMA_VERSION = "v2.0"
SUMMARY_RENDER_VERSION = "v2.0"


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


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Chosen lines of one message, verbatim; `label` says where they come from (`agent:`, `bash:`, `→` for its result).

    A result stands behind its call.
    """

    label: str
    text: str
    source_id: str = ""


@dataclass(frozen=True, slots=True)
class SummaryCheck:
    """What checking a summary against its sources came to: facts it lacked, and strings that no source has."""

    required: int = 0
    asked_again: tuple[str, ...] = ()
    appended: tuple[str, ...] = ()
    ungrounded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredSummary:
    """What a span of history comes down to.

    A summariser returns one, and `plan.summary.summary` is the one in the prompt. Ledger and excerpts are code's,
    verbatim; the rest is written by a model and is checked. Each part names the messages it was taken from.

    Args:
        ledger: The facts that code found: task, constraints, files, commands, errors, open items, artifacts.
        decisions: Choices that were made, and why.
        tool_outcomes: What tool calls did, in a line each.
        open_items: What is still to be done.
        facts: More facts, a sentence each.
        narrative: The story in plain words.
        excerpts: Chosen lines of messages, verbatim.
        check: What checking it against its sources came to; filled in by the engine.
        schema_version: The version of this form.
        writing: How it came about; makes no difference between two summaries.

    Example:
        >>> from compact import StructuredSummary
        >>> summary = StructuredSummary(narrative="The parser was rewritten.", facts=("All 41 tests pass.",))
        >>> summary.facts
        ('All 41 tests pass.',)
    """

    ledger: Ledger = field(default_factory=Ledger)
    decisions: tuple[Decision, ...] = ()
    tool_outcomes: tuple[ToolOutcome, ...] = ()
    open_items: tuple[OpenItem, ...] = ()
    facts: tuple[str, ...] = ()
    narrative: str = ""
    excerpts: tuple[Excerpt, ...] = ()
    check: SummaryCheck | None = None
    schema_version: str = STRUCTURED_SUMMARY_SCHEMA_VERSION
    writing: SummaryWriting | None = field(default=None, compare=False)
    # What happened, written out once for all the ledgers that are tried with it.
    _story: str | None = field(default=None, init=False, compare=False, repr=False)
    __repr__ = short_repr

    @property
    def artifacts(self) -> tuple[ArtifactReference, ...]:
        """What is kept outside the prompt."""
        facts = self.ledger.of(FactKind.ARTIFACT)
        return tuple(ArtifactReference(fact.subject, fact.detail, fact.source_ids) for fact in facts)

    @property
    def story(self) -> str:
        """What happened, as a prompt tells it: the narrative and the excerpts."""
        if self._story is not None:
            return self._story
        return "\n".join(filter(None, [_own_words(self.narrative), *_steps(self.excerpts)]))

    def with_ledger(self, ledger: Ledger) -> StructuredSummary:
        """Return it with other facts: quick to write out, as it is when each of many facts is tried in it.

        Args:
            ledger: The facts.

        Example:
            >>> from compact.core.facts.ledger import Ledger
            >>> summary.with_ledger(Ledger()).narrative
            'The parser was rewritten.'
        """
        other = replace(self, ledger=ledger)
        object.__setattr__(other, "_story", self.story)
        return other

    def without_sources(self, message_ids: frozenset[str]) -> StructuredSummary:
        """Return it without what rests on these messages alone; what names no source stays.

        Args:
            message_ids: Messages that are gone.

        Example:
            >>> from compact.core.summary.summary import Excerpt
            >>> asked, done = Excerpt("user:", "Use MySQL.", "m3"), Excerpt("agent:", "Done.", "m4")
            >>> told = StructuredSummary(excerpts=(asked, done))
            >>> [excerpt.text for excerpt in told.without_sources(frozenset({"m3"})).excerpts]
            ['Done.']
        """

        def stands(source_ids: Iterable[str]) -> bool:
            sources = set(source_ids)
            return not sources or not sources <= message_ids

        return replace(
            self,
            ledger=Ledger(tuple(fact for fact in self.ledger if stands(fact.source_ids))),
            decisions=tuple(decision for decision in self.decisions if stands(decision.source_ids)),
            tool_outcomes=tuple(outcome for outcome in self.tool_outcomes if stands(outcome.source_ids)),
            open_items=tuple(item for item in self.open_items if stands(item.source_ids)),
            excerpts=tuple(excerpt for excerpt in self.excerpts if stands(filter(None, [excerpt.source_id]))),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal summary.

        Example:
            >>> summary.to_dict()["narrative"]
            'The parser was rewritten.'
        """
        check = self.check
        return {
            "schema_version": self.schema_version,
            "ledger": self.ledger.to_list(),
            "decisions": [[d.decision, d.rationale, list(d.source_ids)] for d in self.decisions],
            "tool_outcomes": [[t.tool, t.outcome, list(t.source_ids)] for t in self.tool_outcomes],
            "open_items": [[o.item, o.priority, list(o.source_ids)] for o in self.open_items],
            "facts": list(self.facts),
            "narrative": self.narrative,
            "excerpts": [[e.label, e.text, e.source_id] for e in self.excerpts],
            "check": check and [check.required, list(check.asked_again), list(check.appended), list(check.ungrounded)],
            "writing": self.writing.to_dict() if self.writing else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StructuredSummary:
        """Return the summary that `to_dict` made plain data of.

        Args:
            data: The plain data, perhaps read back from JSON.

        Example:
            >>> StructuredSummary.from_dict(summary.to_dict()) == summary
            True
        """
        check = data["check"]
        return cls(
            schema_version=data["schema_version"],
            ledger=Ledger.from_list(data["ledger"]),
            decisions=tuple(Decision(a, b, tuple(ids)) for a, b, ids in data["decisions"]),
            tool_outcomes=tuple(ToolOutcome(a, b, tuple(ids)) for a, b, ids in data["tool_outcomes"]),
            open_items=tuple(OpenItem(a, b, tuple(ids)) for a, b, ids in data["open_items"]),
            facts=tuple(data["facts"]),
            narrative=data["narrative"],
            excerpts=tuple(Excerpt(*excerpt) for excerpt in data["excerpts"]),
            check=SummaryCheck(check[0], *(tuple(texts) for texts in check[1:])) if check else None,
            writing=SummaryWriting.from_dict(data["writing"]) if data.get("writing") else None,
        )


def render_summary_text(summary: StructuredSummary, *, version: int, messages: int) -> str:
    """Return the text of the summary message: one tagged block with only the sections that have something in them."""
    lines = [f"{SUMMARY_MARK}{version}>"]
    lines.append(f"({rounded(messages)} earlier {noun(messages, 'message')}; recall finds them by words or id)")
    for title, body in _sections(summary):
        lines.extend((f"## {title}", body))
    lines.append("</COMPACT-SUMMARY>")
    return "\n".join(lines)


FACT_TITLES: Mapping[FactKind, str] = {
    FactKind.TASK: "Task",
    FactKind.CONSTRAINT: "Constraints",
    FactKind.LATEST_ASK: "Latest ask",
    FactKind.DECISION: "Decisions",
    FactKind.OPEN_ITEM: "Open",
    FactKind.FILE: "Files",
    FactKind.COMMAND: "Commands",
    FactKind.ERROR: "Errors",
    FactKind.ARTIFACT: "Kept elsewhere",
    FactKind.MENTION: "Also mentioned",
}
HAPPENED_TITLE = "What happened"
RESULT_LABEL = "→"
GAP_LABEL = "…"
_SPEAKERS = ("agent:", "user:", "system:", "developer:")
_UNLISTED = (FactKind.TASK, FactKind.LATEST_ASK)


# What a line begins with that goes on with the content of the line above it: no such line is ours, whatever it says.
QUOTE = "| "
# What would look like our own structure at the beginning of a line, in any of the forms of the sign.
_HEADING_SIGNS = "#\uff03\ufe5f\u266f"
_HEADING = re.compile(rf"^(?=[ \t]*[{_HEADING_SIGNS}])", re.MULTILINE)
_QUOTE_MARK = re.compile(rf"^{re.escape(QUOTE)}", re.MULTILINE)
_QUOTED_HEADING = re.compile(rf"^{re.escape(QUOTE)}(?=[ \t]*[{_HEADING_SIGNS}])", re.MULTILINE)
_TAG = re.compile(r"<(?=/?\s*COMPACT-SUMMARY)", re.IGNORECASE)


def quoted(text: str) -> str:
    """Return content of the history in which only the first line can be taken for a line of the summary itself."""
    return f"\n{QUOTE}".join(without_tags(text).splitlines())


def without_tags(text: str) -> str:
    """Return a text that neither opens nor closes a summary."""
    return _TAG.sub("&lt;", text) if "<" in text else text


def _own_words(text: str) -> str:
    """Return what people typed, word for word, with a mark before lines that would look like our headings."""
    said = without_tags("\n".join(text.splitlines()))
    return _HEADING.sub(QUOTE, said) if any(sign in said for sign in _HEADING_SIGNS) else said


def unquoted(text: str) -> str:
    """Return a summary's text without its marks, to look for strings in it."""
    return _QUOTE_MARK.sub("", text)


def read_own_words(text: str) -> str:
    """Return what people typed, from how it stands in a summary."""
    return _QUOTED_HEADING.sub("", text)


def _sections(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    written = {
        FactKind.DECISION: [
            d.decision + (f" (because {d.rationale})" if d.rationale else "") for d in summary.decisions
        ],
        FactKind.OPEN_ITEM: [item.item for item in summary.open_items],
    }
    for kind, title in FACT_TITLES.items():
        protect = _own_words if kind in REQUIRED else quoted
        lines = [protect(fact.text) for fact in summary.ledger.of(kind)]
        lines += [line for line in map(quoted, written.get(kind, ())) if line not in lines]
        if kind in _UNLISTED and lines:
            yield title, "\n".join(lines)
        elif kind is FactKind.MENTION and lines:
            yield title, ", ".join(lines)
        elif lines:
            yield title, "\n".join(f"- {line}" for line in lines)
    if summary.tool_outcomes:
        done = (f"{outcome.tool}: {outcome.outcome}" for outcome in summary.tool_outcomes)
        yield "Work done", "\n".join(f"- {quoted(line)}" for line in done)
    if summary.facts:
        yield "Facts", "\n".join(f"- {quoted(fact)}" for fact in summary.facts)
    if story := summary.story:
        yield HAPPENED_TITLE, story


def _steps(excerpts: Iterable[Excerpt]) -> Iterator[str]:
    """Yield the lines of a story; calls of one tool in a row that say nothing but what they asked share a line."""
    story = list(excerpts)
    steps = [(e, bool(behind and behind.label == RESULT_LABEL)) for e, behind in zip_longest(story, story[1:])]
    for (label, _), group in groupby(steps, key=lambda step: (step[0].label, step[1])):
        texts = [quoted(excerpt.text) for excerpt, _ in group]
        is_call = label.endswith(":") and label not in _SPEAKERS
        # Of calls with a result there is none behind another: the result stands between them.
        if len(texts) > 1 and is_call and not any("\n" in text for text in texts):
            yield f"{quoted(label[:-1])} ×{len(texts)}: {'; '.join(texts)}"
        else:
            yield from (f"{quoted(label)} {text}" for text in texts)


def call_label(tool_name: str) -> str:
    """Return what stands before the arguments of a call; no tool is taken for somebody who speaks."""
    return f"{tool_name}:" if f"{tool_name}:" not in _SPEAKERS else f"tool {tool_name}:"


def rounded(count: int) -> str:
    """Return a size for people, short enough that it is never taken for a figure out of the history."""
    if count < 100:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 99_950 else f"{count / 1_000_000:.1f}M"
