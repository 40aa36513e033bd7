"""What a compaction cost and when it has paid for itself, worked out again from what was sent before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compact.core.audit.records import ModelCall, SessionInfo
from compact.core.log.messages import Slot
from compact.core.plan.economics import USD, Economics, measure_change
from compact.core.plan.plan import CompactionPlan
from compact.viewer.source import Source


def price_view(
    source: Source, info: SessionInfo, calls: Sequence[ModelCall], plan: CompactionPlan
) -> dict[str, Any] | None:
    """The price of the step to a plan; nothing for one that nobody has paid for: brought back, or never sent."""
    place = next((n for n, call in enumerate(calls) if call.plan_version == plan.version), 0)
    if not place or plan.origin is not None or calls[place - 1].branch != calls[place].branch:
        return None
    economics = _economics(source, info, calls[place - 1], calls[place], plan)
    is_money = economics.currency == USD
    return {
        "lines": [str(economics), *economics.notes, f"prices of {source.pricing_model}, as set for this viewer"],
        "freed_tokens": economics.tokens_freed,
        "kept_prefix_tokens": economics.prefix_kept_tokens,
        "broken_prefix_tokens": economics.prefix_broken_tokens,
        "broken_prefix_usd": economics.rewrite_cost if is_money else None,
        "summary_usd": economics.summary_cost if is_money else None,
        "saving_per_call_usd": economics.saving_per_call if is_money else None,
        "break_even_calls": economics.break_even_calls,
    }


def _economics(source: Source, info: SessionInfo, last: ModelCall, first: ModelCall, plan: CompactionPlan) -> Economics:
    """Compares the last prompt before, with what had come since, and the first prompt after."""
    before, after = source.prompt(info, last.number), source.prompt(info, first.number)
    new = source.store.messages(info.session_id, after_seq=last.last_seq, limit=first.last_seq - last.last_seq)
    read, written = _summary_tokens(source, info, before.sent.plan, plan)
    change = measure_change(
        [*before.slots, *(Slot(entry.message, (entry.message.id,)) for entry in new)],
        after.slots,
        sent=before.slots,
        tokens=[*before.tokens, *(entry.tokens for entry in new)],
        tokens_after=sum(after.tokens),
        fixed_tokens=after.fixed_tokens,
        summary_input_tokens=read,
        summary_output_tokens=written,
    )
    return source.price(change, may_wait=True)


def _summary_tokens(
    source: Source, info: SessionInfo, before: CompactionPlan, after: CompactionPlan
) -> tuple[int, int]:
    """What writing the summary read and put out; nothing if it is the one that stood already."""
    old, new = before.summary, after.summary
    if new is None or (old and old.version == new.version):
        return 0, 0
    fresh = set(new.span) - set(old.span if old else ())
    read = sum(tokens for message_id, tokens in source.store.outline(info.session_id) if message_id in fresh)
    return read + (old.tokens_after if old else 0), new.tokens_after
