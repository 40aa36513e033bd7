"""`compact plan`: what would go, why, what that frees, and what it costs; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.measured import SESSION, Measured, measure
from compact.cli.options import AsJson, ConfigFile, File, Index, Model, TargetTokens, Window
from compact.cli.settings import load_config, quiet
from compact.cli.transcripts import read_transcript

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.plan.coordinator import CompactionResult
    from compact.core.plan.economics import Economics
    from compact.core.plan.plan import Record
    from compact.core.summary.summarizer import SummaryRequest
    from compact.core.summary.summary import StructuredSummary
    from compact.manager import CompactManager

Limit = Annotated[int, typer.Option("--limit", metavar="N", min=0, help="The most rows to list.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One record with the messages it decides about; `tokens_before` is what they take as they came."""

    record: Record
    places: list[int]
    tokens_before: int


def plan(
    file: File,
    target_tokens: TargetTokens = None,
    limit: Limit = 30,
    index: Index = 0,
    model: Model = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what compacting a transcript would do, and what it costs.

    Nothing is written and no model is asked: a summary counts with the most it may take. Prices are the model's, and
    suppose that the provider has the transcript in its cache.
    """
    settings = load_config(config, model=model, window=window)
    messages = read_transcript(file, index)
    with screen.working(f"planning for {len(messages):,} messages"):
        measured = measure(settings, messages)
        result = _planner(settings, measured).plan(SESSION, messages, now=True, target_tokens=target_tokens)
    screen.warn_about(measured.events)
    for failure in result.failures:
        screen.remark(f"the strategy {failure.strategy} failed: {failure.error}", label="warning", style="yellow")
    if as_json:
        screen.write_json(_as_data(result))
    else:
        _show(measured, result, limit)


def _planner(settings: CompactConfig, measured: Measured) -> CompactManager:
    """Who plans: a summary by a model has other room and a price, and planning it needs neither package nor key."""
    if not settings.summarizer.uses_model:
        return measured.manager
    from compact.manager import CompactManager

    return CompactManager(quiet(settings, enabled=False), summarizer=_not_asked)


def _not_asked(request: SummaryRequest) -> StructuredSummary:
    raise NotImplementedError("planning asks for no summary")


def _as_data(result: CompactionResult) -> dict[str, Any]:
    return {
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "proposals": dict(result.proposals),
        "economics": result.economics.to_dict() if result.economics else None,
        "plan": result.plan.to_dict(),
    }


def _show(measured: Measured, result: CompactionResult, limit: int) -> None:
    rows = sorted(_rows(measured, result), key=lambda row: (_rank(row, result), row.places[0]))
    messages = screen.counted(len(measured.messages), "message")
    if not rows:
        screen.line(f"nothing to compact: {messages}, {result.tokens_before:,} tokens")
        return
    left = screen.share(result.tokens_after, result.tokens_before)
    screen.line(f"{messages}, {result.tokens_before:,} → {result.tokens_after:,} tokens ({left} left)", style="bold")
    screen.heading("by strategy")
    screen.table(("strategy", "messages", "before", "after", "freed"), list(_totals(rows, measured, result)))
    if result.economics:
        _show_costs(result.economics, measured.manager.config, summary_tokens=_summary_tokens(result))
    screen.heading("what would go, and why")
    listed = [_cells(row, measured) for row in rows[:limit]]
    if listed:
        screen.table(("message", "role, tool", "strategy", "before", "after", "reason"), listed)
    if len(rows) > limit:
        screen.line(f"and {len(rows) - limit:,} more; --limit {len(rows)} lists them all")


def _summary_tokens(result: CompactionResult) -> int:
    summary = result.plan.summary
    return summary.tokens_after if summary else 0


def _show_costs(economics: Economics, settings: CompactConfig, *, summary_tokens: int) -> None:
    """What is paid once, what every call saves, and when the two are even."""
    broken, freed = economics.prefix_broken_tokens, economics.tokens_freed
    writer = settings.summarizer.model or settings.model
    rows = [
        ("kept in the provider's cache", economics.prefix_kept_tokens, economics.amount(0)),
        ("behind the first change, written again", max(0, broken - freed), economics.amount(economics.rewrite_cost)),
        (f"the summary, by {writer}", summary_tokens, economics.amount(economics.summary_cost)),
        ("no longer read, at every call", freed, economics.amount(-economics.saving_per_call)),
    ]
    if not economics.summary_cost:
        del rows[2]
    screen.heading(f"what it costs with {settings.model}")
    screen.table(("part", "tokens", "cost"), rows)
    screen.line(economics.payback())
    for note in economics.notes:
        screen.remark(note, label="note", style="yellow")


def _rows(measured: Measured, result: CompactionResult) -> Iterator[_Row]:
    """The records that decide about something; each message is counted with the one record that decides."""
    places: dict[int, list[int]] = {}
    for place, message in enumerate(measured.messages):
        record = result.plan.get_action(message.id)[1]
        if record:
            places.setdefault(id(record), []).append(place)
    for record in result.plan.records:
        own = places.get(id(record))
        if own:
            yield _Row(record=record, places=own, tokens_before=sum(measured.tokens[place] for place in own))


def _rank(row: _Row, result: CompactionResult) -> int:
    """Strategies in the order they ran; cuts in kept messages come last."""
    order = list(result.proposals)
    return order.index(row.record.strategy) if row.record.strategy in order else len(order)


def _totals(rows: list[_Row], measured: Measured, result: CompactionResult) -> Iterator[tuple[object, ...]]:
    gone = 0
    for strategy in dict.fromkeys(row.record.strategy for row in rows):
        own = [row for row in rows if row.record.strategy == strategy]
        before, after = sum(row.tokens_before for row in own), sum(row.record.tokens_after for row in own)
        messages = sum(len(row.places) for row in own)
        gone += messages
        yield strategy, messages, before, after, before - after
    kept = sum(measured.tokens) - sum(row.tokens_before for row in rows)
    yield "as they are", len(measured.messages) - gone, kept, kept, 0
    yield "all", len(measured.messages), result.tokens_before, result.tokens_after, result.tokens_freed


def _cells(row: _Row, measured: Measured) -> tuple[object, ...]:
    first, last = row.places[0], row.places[-1]
    message_id = measured.messages[first].id
    if len(row.places) == 1:
        span, label = message_id, measured.label(first)
    else:
        span, label = f"{message_id} … {measured.messages[last].id}", f"{len(row.places):,} messages"
    record = row.record
    return span, screen.clipped(label, 24), record.strategy, row.tokens_before, record.tokens_after, record.reason
