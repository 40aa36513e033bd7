"""The socket for summarisers: what one gets, and what makes two of its answers interchangeable."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from compact.core.facts.ledger import Ledger
from compact.core.messages.groups import Group
from compact.core.messages.message import Message
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summary import STRUCTURED_SUMMARY_SCHEMA_VERSION, StructuredSummary


@dataclass(slots=True)
class Spending:
    """What a session has spent on summaries; calls without a known price count as calls alone.

    The summariser adds to it, under a lock of its own. The same for one request alone is its `tally`.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """Everything a summariser gets: what is to leave the prompt, what was known before, and the room it has.

    `CompactManager(summarizer=…)` takes a function of one that returns a `StructuredSummary`, async or not. If it
    cannot, it raises `SummaryFailed`, and what `summarizer.on_failure` says is done instead.

    Attributes:
        messages: The messages that no summary stands for yet.
        previous: The summary so far, which the new one replaces.
        max_tokens: The room that the summary has.
        count_text: Counts the tokens of a text.
        span: All messages that the new summary will stand for, in their own words.
        history: The span and what stays in the prompt, in order.
        index: Where what stands in the history; None if that is not known.
        ledger: The facts that code has found in the span.
        form: The form of the summary: `task_state`, `brief`, `decision_log`, `code_delta`, `session_summary`.
        note: A remark of whoever compacts by hand.
        focus: What they want kept first.
        version: The version that the summary will have.
        missing: The facts that an earlier answer lacked.
        session_id: The conversation.
        spending: What the session has spent on summaries.
        tally: What this one summary has spent.

    Example:
        >>> from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
        >>> from compact.testing import tool_run
        >>> def summarize(request: SummaryRequest) -> StructuredSummary:
        ...     return StructuredSummary(ledger=request.ledger, narrative="Files were read.")
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000), summarizer=summarize)
        >>> prompt = manager.preflight("chat-1", tool_run(60, words=200))
        >>> manager.current_plan("chat-1").summary.summary.narrative
        'Files were read.'
    """

    messages: tuple[Message, ...]
    previous: StructuredSummary | None
    max_tokens: int
    count_text: Callable[[str], int]
    span: tuple[Message, ...] = ()
    history: tuple[Message, ...] = ()
    index: SpanIndex | None = field(default=None, compare=False, repr=False)
    ledger: Ledger = field(default_factory=Ledger)
    form: str = "task_state"
    note: str = ""
    focus: str = ""
    version: int = 1
    missing: tuple[str, ...] = ()
    session_id: str = ""
    spending: Spending = field(default_factory=Spending, compare=False)
    tally: Spending = field(default_factory=Spending, compare=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the history (a call and all its results), by places; empty if they are not known."""
        return tuple(self.index.groups) if self.index else ()

    @property
    def strategy(self) -> str:
        """Deprecated: use `form`."""
        warnings.warn("SummaryRequest.strategy is now SummaryRequest.form", DeprecationWarning, stacklevel=2)
        return self.form


class Summarizer(Protocol):
    """Writes a summary, at once or later. Any function of a request will do."""

    def __call__(self, request: SummaryRequest, /) -> StructuredSummary | Awaitable[StructuredSummary]:
        """Return the summary, or something to await for it."""
        ...


@dataclass(frozen=True, slots=True)
class SummarizerIdentity:
    """Which model writes, and the version of its prompts: summaries of equal ones are interchangeable."""

    model: str
    prompt_version: str


@runtime_checkable
class ModelSummarizer(Summarizer, Protocol):
    """A summariser that asks a model.

    It gets the room that is left beside the required facts, is asked once more for facts that its answer lacks, and
    its answers are checked against their sources and remembered.
    """

    def identity(self, form: str) -> SummarizerIdentity:
        """Return what must be equal for a remembered summary of this form to be used again."""
        ...


@dataclass(frozen=True, slots=True)
class SummaryCacheKey:
    """What must be equal for a stored summary to be used again."""

    content_hash: str
    schema_version: str = STRUCTURED_SUMMARY_SCHEMA_VERSION
    policy_version: str = ""
    model: str = ""
    prompt_version: str = ""


def compute_content_hash(messages: Iterable[Message], *more: str) -> str:
    """Return a fingerprint of messages as a summariser sees them, ids included: a summary names its sources."""
    digest = hashlib.sha256()
    for message in messages:
        calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
        digest.update(_bytes([message.id, message.role, message.name, message.tool_call_id, message.text, calls]))
    digest.update(_bytes(more))
    return digest.hexdigest()


def create_summary_cache_key(
    request: SummaryRequest, *, model: str, prompt_version: str, tenant_id: str = ""
) -> SummaryCacheKey:
    """Return the key under which the summary of a request is remembered; tenants never share one."""
    before = json.dumps(request.previous.to_dict()) if request.previous else ""
    more = (before, request.note, tenant_id, *([request.focus] if request.focus else ()))
    return SummaryCacheKey(
        content_hash=compute_content_hash(request.span or request.messages, *more),
        policy_version=f"{request.form} in {request.max_tokens}",
        model=model,
        prompt_version=prompt_version,
    )


def _bytes(value: Sequence[object]) -> bytes:
    # ASCII: lone surrogates are escaped.
    return json.dumps(value, separators=(",", ":")).encode()
