"""What a store keeps of a session, and what one call adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from compact.core.errors import CompactError
from compact.core.log.forms import EntryForm
from compact.core.messages.message import Message
from compact.core.plan.plan import EDITED_PAST, CompactionPlan
from compact.core.short_repr import short_repr
from compact.core.summary.summary import StructuredSummary


@dataclass(frozen=True, slots=True)
class SessionHead:
    """How far a session has come: what was read must still be so when the next call is written."""

    last_seq: int = 0
    plan_version: int = 0
    branch: int = 0


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A log entry at its place (the first is 1), with its tokens so that it is never counted again."""

    seq: int
    message: Message
    tokens: int


class EntrySize(NamedTuple):
    """The id of a log entry, and its tokens."""

    message_id: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One prompt that went out: under which plan, with which summary, how large.

    `evicted` messages of the log are not in it, not even as a stub. `parts` are the tokens of each part of it
    (`PromptPart`), `branch` is the branch of the history that the caller is on, `limits` are the thresholds, and
    `reason` is why it was compacted or not. `details` is plain data, which `CallDetails` reads. `number` and `at` come
    from the store: the calls of a session are numbered 1, 2, 3, and `at` is the time of the call.
    """

    turn_number: int
    plan_version: int
    summary_version: int
    last_seq: int
    messages: int
    evicted: int
    tokens_estimated: int
    tokens_reported: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict[str, int])
    branch: int = 0
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    reason: str = ""
    number: int = 0
    at: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    __repr__ = short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHistory:
    """A history that was written into the log without a model call: what it comes to as a prompt, in which limits.

    `parts` are the tokens of each part (`PromptPart`), `contents` what each part consists of.
    """

    turn_number: int
    tokens: int
    parts: Mapping[str, int]
    contents: Mapping[str, Mapping[str, int]]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AddedMessage:
    """A message that stands behind the log in one prompt: `kind` is `injected`, or `rehydrated` for the turn."""

    kind: str
    message: Message
    tokens: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """What one model call was made of: `messages` under `plan`, and behind them what was `added`."""

    call: ModelCall
    plan: CompactionPlan
    messages: tuple[StoredMessage, ...]
    added: tuple[AddedMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchView:
    """The view that a caller went on from when it edited the past, after so many log entries.

    `forms` are those that its entries had, where they were not as they came, and `unseen` those that the caller had of
    entries that something else stood for.
    """

    after_seq: int = 0
    view_ids: tuple[str, ...] = ()
    forms: Mapping[str, EntryForm] = field(default_factory=dict[str, EntryForm])
    unseen: Mapping[str, EntryForm] = field(default_factory=dict[str, EntryForm])

    def with_forms(self, forms: Mapping[str, EntryForm], unseen: Mapping[str, EntryForm | None]) -> BranchView:
        """Return the same view with entries in other forms; None forgets one that is unseen."""
        still = {message_id: form for message_id, form in {**self.unseen, **unseen}.items() if form is not None}
        return replace(self, forms={**self.forms, **forms}, unseen=still)

    def shown(self, entry: StoredMessage) -> StoredMessage:
        """Return an entry in the form that it had in this view."""
        form = self.forms.get(entry.message.id)
        return replace(entry, message=form.applied(entry.message), tokens=form.tokens) if form else entry


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """What the prompts of a session's calls were made of, beside log and plans.

    `branches` are the views by the number of their branch (0, where the past was never edited, is not among them), and
    `added` is what stood behind the log, by the number of the call.
    """

    created_at: float
    head: SessionHead
    calls: tuple[ModelCall, ...]
    branches: Mapping[int, BranchView] = field(default_factory=dict[int, BranchView])
    added: Mapping[int, tuple[AddedMessage, ...]] = field(default_factory=dict[int, tuple[AddedMessage, ...]])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """Everything needed to go on where another process stopped.

    `view_ids` are the log entries of the branch that the caller is on, in its order, `forms` are those in which it has
    them, where they are not as they came, and `unseen` likewise those of entries that something else stands for; `plan`
    is the one in force, and `last_report` the newest call whose usage was reported.
    """

    session_id: str
    head: SessionHead
    messages: tuple[StoredMessage, ...]
    view_ids: tuple[str, ...]
    plan: CompactionPlan
    last_report: ModelCall | None = None
    forms: Mapping[str, EntryForm] = field(default_factory=dict[str, EntryForm])
    unseen: Mapping[str, EntryForm] = field(default_factory=dict[str, EntryForm])


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one call adds, all of it or nothing: it only counts if the session is still at `expected`.

    `messages` go behind the log. `view_ids` are there only if the caller edited the past: they are the new view, and
    otherwise the view grows by `messages`. `forms` are those of entries that the caller has in another form than
    before, `unseen` likewise those of entries that something else stands for, or None where there is none any more;
    with `view_ids` they are all that the view has, and without them they alone are the branch. `superseded` are plan
    versions between the expected one and `plan` that could not be written while they were in force; `added` is what
    stood behind the log in the prompt of `call`. `imported` is there if the whole history was, and no call was made.
    """

    session_id: str
    expected: SessionHead
    messages: tuple[StoredMessage, ...] = ()
    view_ids: tuple[str, ...] | None = None
    plan: CompactionPlan | None = None
    superseded: tuple[CompactionPlan, ...] = ()
    call: ModelCall | None = None
    added: tuple[AddedMessage, ...] = ()
    forms: Mapping[str, EntryForm] = field(default_factory=dict[str, EntryForm])
    unseen: Mapping[str, EntryForm | None] = field(default_factory=dict[str, EntryForm | None])
    imported: ImportedHistory | None = None

    @property
    def is_branch(self) -> bool:
        """True if the caller goes on from another view than before, or from the same in other forms."""
        return self.view_ids is not None or bool(self.forms) or bool(self.unseen)

    @property
    def head_after(self) -> SessionHead:
        """Where the session stands once this is written."""
        before = self.expected
        return SessionHead(
            last_seq=self.messages[-1].seq if self.messages else before.last_seq,
            plan_version=self.plan.version if self.plan else before.plan_version,
            branch=before.branch + self.is_branch,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session in a list.

    `last_tokens` is the size of the newest prompt; of a session that was `imported`, and had no call since, that of its
    history.
    """

    session_id: str
    messages: int
    plan_version: int
    model_calls: int
    last_tokens: int
    created_at: float
    updated_at: float
    imported: ImportedHistory | None = None


@dataclass(frozen=True, slots=True)
class PlanVersion:
    """A plan as it was committed."""

    plan: CompactionPlan
    at: float
    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class PrefetchedSummary:
    """A summary that was written before it is needed: the messages it stands for, and the version it would be."""

    message_ids: tuple[str, ...]
    version: int
    summary: StructuredSummary


def recorded_limits(info: SessionInfo, calls: Sequence[ModelCall]) -> Mapping[str, int]:
    """Return the window and the thresholds of a session's newest call, or of its import; empty if none are on record.

    `calls` are all calls of the session, or its newest ones.
    """
    if calls:
        return calls[-1].limits
    return info.imported.limits if info.imported else {}


def find_version(plans: Sequence[PlanVersion], version: int, session_id: str) -> PlanVersion:
    """Return one of a session's plans, from version 1 on; raise if there is none of that version."""
    found = next((entry for entry in plans if entry.plan.version == version), None)
    if found is None:
        newest = plans[-1].plan.version if plans else 0
        hint = f"its versions are 0 to {newest}" if newest else "it was never compacted: there is only version 0"
        raise CompactError(f"session {session_id!r} has no plan version {version}", hint=hint)
    return found


def version_before_compaction(current: CompactionPlan, plans: Sequence[PlanVersion]) -> int | None:
    """Return the version before the last compaction that is in force; None if none is."""
    by_version = {entry.plan.version: entry.plan for entry in plans}
    plan = current
    while True:
        version = plan.version if plan.origin is None else plan.origin
        shown = by_version.get(version, plan)
        if not version or shown.reason != EDITED_PAST:
            return version - 1 if version else None
        # An edited past only leaves out records: the plan before it came of the same compaction.
        plan = by_version.get(version - 1) or CompactionPlan(current.session_id)
