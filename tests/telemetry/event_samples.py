"""One event of each kind, and sessions in which they are emitted."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from compact import CompactConfig, CompactManager
from compact.core.engine import events
from compact.core.engine.events import EVENTS, CompactionEvent
from compact.testing import Wire, WordTokenizer, dialogue, system, tool_exchange, user

WHERE: dict[str, Any] = {"session_id": "s-1", "turn_number": 3, "plan_version": 2}
_CHANGED: dict[str, Any] = {
    "strategy": "clear",
    "message_ids": ("m1", "m2"),
    "tokens_before": 900,
    "tokens_after": 100,
    "tokens_freed": 800,
}


@dataclass(frozen=True)
class Report:
    """What a report event reads of a report."""

    removed_ids: tuple[str, ...] = ("m1", "m2")
    missing_constraints: tuple[str, ...] = ()
    check: None = None

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Of one kind, some in each place."""
        return {"path": {"kept": 3, "in_ledger": 1, "retrievable": 2, "lost": 1}}


def one_of_each() -> list[CompactionEvent]:
    """One event of every kind; a kind without a sample of its own gets simple values."""
    samples = _samples()
    return samples + [_simple(kind) for kind in EVENTS.values() if kind not in map(type, samples)]


def _simple(kind: type[CompactionEvent]) -> CompactionEvent:
    values: dict[str, Any] = {"str": "text", "int": 7, "float": 0.5, "bool": True}
    needed = [field for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    return kind(**{field.name: values.get(str(field.type), {}) for field in needed if field.name not in WHERE}, **WHERE)


def _samples() -> list[CompactionEvent]:
    e = events
    return [
        e.CompactionCheckStartedEvent(**WHERE),
        e.OperationStartedEvent(**WHERE, operation="compaction"),
        e.OperationEndedEvent(**WHERE, operation="compaction", error_type="ValueError"),
        e.TokenEstimateEvent(
            **WHERE, model="gpt-4o", t_est=900, max_tokens=1000, usage_pct=0.9, breakdown={"system": 1, "messages": 899}
        ),
        e.TriggerDecisionEvent(
            **WHERE,
            triggered=True,
            reason="900 of 1,000 tokens",
            policy={"trigger_pct": 0.85, "hard_cap_buffer": 1500, "strategy": "task_state"},
            kept={"pinned": 1, "recent_turns": 6, "tool_pairs": 4},
            pruned_count=5,
            note="now",
        ),
        e.SummaryCreatedEvent(
            **WHERE,
            strategy="task_state",
            input_messages=47,
            summary_tokens=480,
            compression_ratio=0.04,
            summary="The task is to refactor.",
        ),
        e.PromptReadyEvent(**WHERE, model="gpt-4o", tokens=450, max_tokens=1000, usage_pct=0.45, messages=12),
        e.PrunedMessagesEvent(
            **WHERE,
            pruned_count=2,
            message_ids=("m1", "m2"),
            layers={"pinned": 1, "recent": 4},
            kept={"pinned": 1, "recent_turns": 6, "tool_pairs": 4},
            protected_ids=("m0",),
            protected_labels={"m0": "Security Policy"},
        ),
        e.CompactionErrorEvent(**WHERE, error_type="SummaryFailed", message="no answer", fallback="pruning-only"),
        e.SummarizerCallEvent(
            **WHERE,
            model="small",
            provider="openai",
            input_tokens=800,
            output_tokens=90,
            cache_read_tokens=64,
            started_at=1_700_000_000.0,
            ended_at=1_700_000_001.5,
        ),
        e.CompactionCompletedEvent(
            **WHERE,
            tokens_before=900,
            tokens_after=450,
            messages_before=30,
            messages_after=12,
            proposals={"clear": 2},
            reason="900 of 1,000 tokens",
            compute_economics=lambda may_wait: {"freed_tokens": 450},
        ),
        e.CompactionReportEvent(**WHERE, compute_report=Report),  # pyright: ignore[reportArgumentType]
        e.HistoryBranchedEvent(**WHERE, left_ids=("m1",), new_ids=("m9",)),
        e.HistoryRepairedEvent(**WHERE, repairs=("orphan at m1: removed",)),
        e.NoticeEvent(**WHERE, message="a protection is off", severity="high"),
        e.ArchivalEvent(**WHERE, step=1, storage_adapter="fs", place="archive/s-1/transcript.jsonl"),
        e.VersionConflictEvent(**WHERE, message="somebody was quicker"),
        e.EventsDroppedEvent(**WHERE, exporter="ariadne", count=7),
        e.ProposalGeneratedEvent(**WHERE, strategy="clear", proposals=2, tokens_freed=800),
        e.ProposalRejectedEvent(**WHERE, strategy="window", proposals=1, reason="it would free nothing"),
        e.ContentClearedEvent(**WHERE, **_CHANGED),
        e.ContentSummarizedEvent(**WHERE, **_CHANGED),
        e.ContentExternalizedEvent(**WHERE, **_CHANGED, artifact_ids=("art-1",)),
        e.ContentDroppedEvent(**WHERE, **_CHANGED),
        e.ContentRehydratedEvent(**WHERE, artifact_id="art-1"),
        e.RehydrationBlockedEvent(**WHERE, artifact_id="art-2", reason="cooldown"),
        e.ContentRecalledEvent(**WHERE, query="migrations", message_ids=("m1",), tokens=40),
        e.RegretEvent(
            **WHERE,
            message_id="m1",
            found_in="m9",
            tool="read_file",
            action="clear",
            strategy="clear",
            how="reread",
            tokens=40,
        ),
    ]


def all_kinds() -> set[type[CompactionEvent]]:
    """Every class of events with a name of its own."""
    known = vars(events).values()
    classes = {kind for kind in known if isinstance(kind, type) and issubclass(kind, CompactionEvent)}
    return {kind for kind in classes if hasattr(kind, "type")}


def watched(*, window: int = 4_000, **settings: Any) -> CompactManager:
    """A manager that counts words, in memory; what is given beside `telemetry` goes to it."""
    telemetry = settings.pop("telemetry", {"exporter": "none"})
    sections = [name for name in ("redaction", "summarizer", "storage") if isinstance(settings.get(name), dict)]
    configured = {name: settings.pop(name) for name in sections}
    config = CompactConfig(max_context_tokens=window, policy={"hard_cap_buffer": 0}, telemetry=telemetry, **configured)
    return CompactManager(config, **{"tokenizer": WordTokenizer(), **settings})


def full_history(secret: str = "") -> list[Wire]:
    """More than a window of 4,000 words takes."""
    history = [system("be careful"), user(f"Refactor the service. Never touch the migrations. {secret}")]
    for number in range(10):
        history += tool_exchange(f"call-{number}", f"{secret} " + "word " * 300, path=f"src/file_{number}.py")
        history += dialogue(1, words=60)
    return history
