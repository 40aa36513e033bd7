"""Price compactions: before they are put in force, and afterwards. A price that is not known stops nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.engine.emitter import EventEmitter
from compact.core.engine.events import ComputeEconomics
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Slot
from compact.core.plan.economics import (
    USD,
    Economics,
    ModelPrices,
    Pricer,
    PromptChange,
    measure_change,
    price_by_ratios,
)
from compact.core.plan.plan import CompactionRun, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.planning.coordinator import CompactionResult
from compact.core.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot:
    """A session's prompt at one moment, to compare a later one with."""

    slots: tuple[Slot, ...]
    tokens: tuple[int, ...]
    last_sent: tuple[Slot, ...]
    fixed_tokens: int
    summary: SummarizationRecord | None

    @classmethod
    def of(cls, session: Session) -> PromptSnapshot:
        """Return the prompt of this moment."""
        return cls(
            slots=session.prompt.slots,
            tokens=tuple(session.prompt.slot_tokens),
            last_sent=session.last_sent,
            fixed_tokens=session.budget.fixed_tokens if session.budget else 0,
            summary=session.plan.summary,
        )

    def change_to(
        self, slots: Sequence[Slot], *, tokens: int, summary: SummarizationRecord | None, session: Session
    ) -> PromptChange:
        """Return what changes if these slots, of so many tokens and with this summary, take its place."""
        is_new = summary is not None and not (self.summary and self.summary.version == summary.version)
        read, written = self._summary_tokens(summary, session) if summary and is_new else (0, 0)
        return measure_change(
            self.slots,
            slots,
            sent=self.last_sent,
            tokens=self.tokens,
            tokens_after=tokens,
            fixed_tokens=self.fixed_tokens,
            summary_input_tokens=read,
            summary_output_tokens=written,
        )

    def _summary_tokens(self, summary: SummarizationRecord, session: Session) -> tuple[int, int]:
        """Return what a new summary reads and puts out: as it was counted if it is written, else as it is planned.

        It reads the messages that are new to it, and the summary before it.
        """
        writing = summary.summary.writing if summary.summary else None
        if writing and writing.is_counted:
            return writing.input_tokens, writing.output_tokens
        before = self.summary
        span, beside = summary.span.ids, session.structure.outside(before.span.ids if before else frozenset())
        new = (session.log.view[place] for place in beside)
        read = sum(session.tokens.of_messages(message for message in new if message.id in span))
        return read + (before.tokens_after if before else 0), summary.tokens_after


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPricing:
    """Prices compactions; one that nothing forces must pay for itself within `expected_calls`."""

    emitter: EventEmitter
    renderer: PromptRenderer = field(default_factory=PromptRenderer)
    price: Pricer = price_by_ratios
    expected_calls: int = 20
    prices: ModelPrices = field(default_factory=ModelPrices)

    def with_planned_price(self, session: Session, result: CompactionResult) -> CompactionResult:
        """Return the result of planning with its price; this may wait for a price list."""
        if result.tokens_freed <= 0:
            return result
        outside = result.plan.places_outside(session.structure)
        slots, _ = repair_chat(self.renderer.render(session.log.view, result.plan, outside).slots)
        change = PromptSnapshot.of(session).change_to(
            slots, tokens=session.prompt_tokens - result.tokens_freed, summary=result.plan.summary, session=session
        )
        return replace(result, economics=self._economics(session, change, may_wait=True))

    def run_of(self, session: Session, before: PromptSnapshot, *, seconds: float) -> CompactionRun:
        """Return how the compaction in force went, priced by what the prompt takes now; this never waits."""
        change = before.change_to(
            session.prompt.slots, tokens=session.prompt_tokens, summary=session.plan.summary, session=session
        )
        now, after = self.prices.of(change.tokens_before), self.prices.of(change.tokens_after)
        return CompactionRun(
            seconds=seconds,
            failures=session.failures,
            model=self.prices.model,
            change=change,
            economics=self._economics(session, change, may_wait=False),
            prices=now,
            prices_after=after if after != now else None,
            summary_model=self.prices.summary_model,
            summary_prices=self.prices.of_summary(change.summary_input_tokens),
        )

    def price_later(self, change: PromptChange | None, known: Economics | None) -> ComputeEconomics:
        """Return what prices a change when it is asked for, as far as it is not `known` in money yet."""

        def compute(may_wait: bool) -> Mapping[str, Any]:
            nonlocal known
            if change is not None and known is not None and known.currency != USD:
                try:
                    known = self.price(change, may_wait=may_wait)
                except Exception:  # noqa: BLE001 - prices are a plug-in; the first try has been reported
                    return known.to_dict()
            return known.to_dict() if known else {}

        return compute

    def reason_to_decline(self, result: CompactionResult) -> str:
        """Return why an optional compaction should not be done; "" if it pays, or if its price is not known."""
        economics = result.economics
        if economics is None or economics.pays_back_within(self.expected_calls):
            return ""
        late = f", more than the {self.expected_calls:,} expected" if economics.break_even_calls else ""
        cost = economics.amount(economics.upfront_cost)
        return f"not compacted: it would cost {cost}, which {economics.payback()}{late}"

    def _economics(self, session: Session, change: PromptChange, *, may_wait: bool) -> Economics | None:
        try:
            return self.price(change, may_wait=may_wait)
        except Exception as error:  # noqa: BLE001 - prices are a plug-in
            self.emitter.error(session, error, fallback="continued without a price")
            return None
