"""`compact plan`: what a compaction would do, why, what it frees and what it costs; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, File, Focus, Index, Limit, Now, RecordedModel, TargetTokens, Window
from compact.cli.settings import for_recorded_model, in_memory, load_agent_config
from compact.cli.transcripts.files import read_transcript
from compact.cli.transcripts.measure import SESSION, MeasuredTranscript, measure, nothing_to_do

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.plan.economics import Economics
    from compact.core.plan.plan import Record
    from compact.core.planning.coordinator import CompactionResult
    from compact.core.summary.summarizer import SummaryRequest
    from compact.core.summary.summary import StructuredSummary
    from compact.manager import CompactManager


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordMessages:
    """A record of the plan with the messages that it decides about, and their tokens before it."""

    record: Record
    places: list[int]
    tokens_before: int


def plan(
    file: File,
    now: Now = False,
    target_tokens: TargetTokens = None,
    focus: Focus = None,
    limit: Limit = 30,
    index: Index = 0,
    model: RecordedModel = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a compaction would do with a transcript, and its cost.

    Below the trigger nothing is compacted; --now shows what compacting anyway would do. Nothing is written and no model
    is called: a summary is counted with the most tokens that it may have. Prices are those of the model, and assume
    that the transcript is in the provider's cache.
    """
    settings = load_agent_config(config, model=model, window=window)
    transcript = read_transcript(file, index)
    settings = for_recorded_model(settings, transcript.model)
    with screen.spinner(f"planning for {screen.quantity(len(transcript.messages), 'message')}"):
        measured = measure(settings, transcript)
        result = _planner(settings).plan(
            SESSION,
            transcript.messages,
            now=now,
            target_tokens=target_tokens,
            focus=focus,
            **transcript.options,
        )
    screen.show_warnings(measured.events)
    for failure in result.failures:
        screen.notice(f"the strategy {failure.strategy} failed: {failure.error}", label="warning", style="yellow")
    if as_json:
        screen.write_json(_as_data(result))
    else:
        _show(measured, result, limit)


def _planner(settings: CompactConfig) -> CompactManager:
    """Return the manager that plans: as if a model wrote the summary if one does, without its package or its key."""
    from compact.manager import CompactManager

    return CompactManager(in_memory(settings), summarizer=_no_summary if settings.summarizer.uses_model else None)


def _no_summary(request: SummaryRequest) -> StructuredSummary:
    raise AssertionError("a plan is made without writing a summary")


def _as_data(result: CompactionResult) -> dict[str, Any]:
    return {
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "reason": result.reason,
        "proposals": dict(result.proposals),
        "economics": result.economics.to_dict() if result.economics else None,
        "plan": result.plan.to_dict(),
    }


def _show(measured: MeasuredTranscript, result: CompactionResult, limit: int) -> None:
    rows = sorted(_rows(measured, result), key=lambda row: (_strategy_order(row, result), row.places[0]))
    messages = screen.quantity(len(measured.messages), "message")
    if not rows:
        status, count = measured.manager.status(SESSION), len(measured.messages)
        screen.line(
            nothing_to_do(
                status,
                messages=count,
                tokens=result.tokens_before,
                is_manual=result.reason == "manual",
                reason=result.reason,
            )
        )
        return
    left = screen.percentage(result.tokens_after, result.tokens_before)
    screen.line(f"{messages}, {result.tokens_before:,} → {result.tokens_after:,} tokens ({left} left)", style="bold")
    screen.heading("by strategy")
    screen.table(("strategy", "messages", "before", "after", "freed"), list(_totals(rows, measured, result)))
    if result.economics:
        _show_costs(result.economics, measured.manager.config, summary_tokens=_summary_tokens(result))
    screen.heading("what would change, and why")
    listed = [_cells(row, measured) for row in rows[:limit]]
    if listed:
        screen.table(("message", "role, tool", "strategy", "before", "after", "reason"), listed)
    if len(rows) > limit:
        screen.line(f"and {len(rows) - limit:,} more; --limit {len(rows)} lists them all")


def _summary_tokens(result: CompactionResult) -> int:
    summary = result.plan.summary
    return summary.tokens_after if summary else 0


def _show_costs(economics: Economics, settings: CompactConfig, *, summary_tokens: int) -> None:
    """Show what is paid once, what every call saves, and after how many calls the two are even."""
    broken, freed = economics.prefix_broken_tokens, economics.tokens_freed
    writer = settings.summarizer.model or settings.model
    rows = [
        ("kept in the provider's cache", economics.prefix_kept_tokens, economics.amount(0)),
        ("after the first change, cached again", max(0, broken - freed), economics.amount(economics.rewrite_cost)),
        (f"the summary, by {writer}", summary_tokens, economics.amount(economics.summary_cost)),
        ("no longer read, at every call", freed, economics.amount(-economics.saving_per_call)),
    ]
    if not economics.summary_cost:
        del rows[2]
    screen.heading(f"what it costs with {settings.model}")
    screen.table(("what", "tokens", "cost"), rows)
    screen.line(economics.payback())
    for note in economics.notes:
        screen.notice(note, label="note", style="yellow")


def _rows(measured: MeasuredTranscript, result: CompactionResult) -> Iterator[_RecordMessages]:
    """Yield the records that decide about messages; each message is counted with the one record that decides."""
    places: dict[int, list[int]] = {}
    for place, message in enumerate(measured.messages):
        record = result.plan.get_action(message.id)[1]
        if record:
            places.setdefault(id(record), []).append(place)
    for record in result.plan.records:
        own = places.get(id(record))
        if own:
            yield _RecordMessages(record=record, places=own, tokens_before=sum(measured.tokens[place] for place in own))


def _strategy_order(row: _RecordMessages, result: CompactionResult) -> int:
    """Return the place of a strategy in the order they ran; messages that were shortened come last."""
    order = list(result.proposals)
    return order.index(row.record.strategy) if row.record.strategy in order else len(order)


def _totals(
    rows: list[_RecordMessages], measured: MeasuredTranscript, result: CompactionResult
) -> Iterator[tuple[object, ...]]:
    decided = 0
    for strategy in dict.fromkeys(row.record.strategy for row in rows):
        own = [row for row in rows if row.record.strategy == strategy]
        before, after = sum(row.tokens_before for row in own), sum(row.record.tokens_after for row in own)
        messages = sum(len(row.places) for row in own)
        decided += messages
        yield strategy, messages, before, after, before - after
    unchanged = sum(measured.tokens) - sum(row.tokens_before for row in rows)
    yield "unchanged", len(measured.messages) - decided, unchanged, unchanged, 0
    if result.line_tokens:
        yield "lines between turns", 0, 0, result.line_tokens, -result.line_tokens
    yield "all", len(measured.messages), result.tokens_before, result.tokens_after, result.tokens_freed


def _cells(row: _RecordMessages, measured: MeasuredTranscript) -> tuple[object, ...]:
    first, last = row.places[0], row.places[-1]
    message_id = measured.messages[first].id
    if len(row.places) == 1:
        span, label = message_id, measured.label(first)
    else:
        span, label = f"{message_id} … {measured.messages[last].id}", f"{len(row.places):,} messages"
    record = row.record
    return span, screen.truncate(label, 24), record.strategy, row.tokens_before, record.tokens_after, record.reason
