"""What a compaction did, as events: what each strategy proposed, and what was done to which messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compact.core.content_events import (
    ContentChangedEvent,
    ContentClearedEvent,
    ContentDroppedEvent,
    ContentExternalizedEvent,
    ContentSummarizedEvent,
    ProposalGeneratedEvent,
    ProposalRejectedEvent,
)
from compact.core.coordinator import Tally
from compact.core.events import CompactionEvent
from compact.core.plan import CompactionPlan, DropRecord, ExternalizationRecord, Record, SummarizationRecord


def content_events(
    where: Mapping[str, Any], tallies: Iterable[Tally], before: CompactionPlan, after: CompactionPlan
) -> Iterator[CompactionEvent]:
    """The events of one compaction; records that one strategy made alike are told together."""
    for tally in tallies:
        if tally.accepted:
            yield ProposalGeneratedEvent(
                **where, strategy=tally.strategy, proposals=tally.accepted, tokens_freed=tally.tokens_freed
            )
        if tally.rejected:
            yield ProposalRejectedEvent(
                **where, strategy=tally.strategy, proposals=tally.rejected, reason="it would free nothing"
            )
    standing = {id(record) for record in before.records}
    alike: dict[tuple[type[Record], str], list[Record]] = {}
    for record in after.records:
        if id(record) not in standing:
            alike.setdefault((type(record), record.strategy), []).append(record)
    for (_, strategy), records in alike.items():
        yield _changed(where, strategy, records)


def _changed(where: Mapping[str, Any], strategy: str, records: list[Record]) -> ContentChangedEvent:
    told: dict[str, Any] = {
        **where,
        "strategy": strategy,
        "message_ids": tuple(message_id for record in records for message_id in record.span),
        "tokens_before": sum(record.tokens_before for record in records),
        "tokens_after": sum(record.tokens_after for record in records),
    }
    match records[0]:
        case SummarizationRecord():
            return ContentSummarizedEvent(**told)
        case ExternalizationRecord():
            artifacts = [record.artifact_id for record in records if isinstance(record, ExternalizationRecord)]
            return ContentExternalizedEvent(**told, artifact_ids=tuple(artifacts))
        case DropRecord():
            return ContentDroppedEvent(**told)
        case _:
            return ContentClearedEvent(**told)
