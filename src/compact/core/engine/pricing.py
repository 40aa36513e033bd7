"""Says of a compaction what it costs and whether it pays; a price that cannot be told stops nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compact.core.engine.emitter import Announcer
from compact.core.engine.session import Session
from compact.core.plan.coordinator import CompactionResult
from compact.core.plan.economics import Economics, Pricer, PromptChange, PromptState, price_by_ratios
from compact.core.plan.renderer import PromptRenderer
from compact.core.protocols import EntryForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraiser:
    """Prices plans before they are put in force, and compactions afterwards.

    `expected_calls` is how many calls a compaction that nothing forces has to pay for itself.
    """

    announcer: Announcer
    form: EntryForm
    renderer: PromptRenderer = field(default_factory=PromptRenderer)
    price: Pricer = price_by_ratios
    expected_calls: int = 20

    def planned(self, session: Session, result: CompactionResult) -> CompactionResult:
        """The result of planning with its price; this may wait for a price list."""
        if result.tokens_freed <= 0:
            return result
        slots, _ = self.form.repair(self.renderer.render(session.thread.view, result.plan).slots)
        tokens = session.prompt_tokens - result.tokens_freed
        change = PromptState.of(session).change_to(slots, tokens=tokens, summary=result.plan.summary, session=session)
        return replace(result, economics=self._economics(session, change, may_wait=True))

    def done(self, session: Session, before: PromptState, result: CompactionResult) -> CompactionResult:
        """The result of a compaction that is in force, by what the prompt really takes now; this never waits."""
        tokens, summary = session.prompt_tokens, session.plan.summary
        change = before.change_to(session.prompt.slots, tokens=tokens, summary=summary, session=session)
        return replace(result, economics=self._economics(session, change, may_wait=False))

    def objection(self, result: CompactionResult) -> str:
        """Why a compaction that nothing forces should not be done; empty if it pays, or if nobody can tell."""
        economics = result.economics
        if economics is None or economics.pays_back_within(self.expected_calls):
            return ""
        late = f", more than the {self.expected_calls:,} expected" if economics.break_even_calls else ""
        cost = economics.amount(economics.upfront_cost)
        return f"not compacted: it would cost {cost}, which {economics.payback()}{late}"

    def _economics(self, session: Session, change: PromptChange, *, may_wait: bool) -> Economics | None:
        try:
            return self.price(change, may_wait=may_wait)
        except Exception as error:
            self.announcer.failed(session, error, fallback="went on without a price")
            return None
