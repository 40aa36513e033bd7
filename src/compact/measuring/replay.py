"""Makes every call of a recorded session again under a policy, with a provider's prompt cache.

What stands at the beginning of a prompt since the call before is read from the cache, the rest is written to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compact.core.errors import CompactError
from compact.core.plan.economics import USUAL_RATIOS, Prices
from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt
from compact.measuring.recordings import Wire

# From the size of a prompt, what its tokens cost.
PriceOf = Callable[[int], Prices | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCall:
    """One call: what was read from the cache and written to it, and how long its prompt took to make."""

    read_tokens: int
    written_tokens: int
    summary_input_tokens: int = 0
    summary_output_tokens: int = 0
    is_changed: bool = False
    has_failed: bool = False
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """The size of the prompt."""
        return self.read_tokens + self.written_tokens

    def cost(self, price_of: PriceOf) -> float:
        """Return what the input costs, and the summary that was written for it."""
        prices = price_of(self.tokens) or USUAL_RATIOS
        paid = self.read_tokens * prices.cache_read + self.written_tokens * prices.cache_write
        return paid + self.summary_input_tokens * prices.fresh + self.summary_output_tokens * prices.output


@dataclass(frozen=True, slots=True)
class Replayed:
    """All calls of a session under one policy, and the prompts that were asked for."""

    calls: tuple[ReplayedCall, ...]
    prompts: Mapping[int, list[Wire]]


def replay_session(
    history: SessionHistory, policy: Policy, limits: PolicyLimits, *, keep: Sequence[int] = ()
) -> Replayed:
    """Make every call again; `keep` names the calls, by the messages they had, whose prompts are returned."""
    prepare = policy.start(history, limits)
    wanted, kept = set(keep), dict[int, list[Wire]]()
    calls: list[ReplayedCall] = []
    before: list[Wire] = []
    for end in history.calls:
        started, has_failed = time.perf_counter(), False
        try:
            sent = prepare(end)
        except CompactError:
            # What an agent would do: its adapters send the history as it is when it cannot be compacted.
            sent, has_failed = PolicyPrompt(list(history.messages[:end])), True
        seconds = time.perf_counter() - started
        same = shared_messages(before, sent.messages)
        sizes = [history.sizes(message) for message in sent.messages]
        cached = history.fixed_tokens if calls else 0
        calls.append(
            ReplayedCall(
                read_tokens=cached + sum(sizes[:same]),
                written_tokens=history.fixed_tokens - cached + sum(sizes[same:]),
                summary_input_tokens=sent.summary_input_tokens,
                summary_output_tokens=sent.summary_output_tokens,
                is_changed=same < len(before),
                has_failed=has_failed,
                seconds=seconds,
            )
        )
        if end in wanted:
            kept[end] = sent.messages
        before = sent.messages
    return Replayed(tuple(calls), kept)


def shared_messages(first: Sequence[Wire], second: Sequence[Wire]) -> int:
    """Return how many messages two prompts begin with in common."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one is not other and one != other:
            return place
    return min(len(first), len(second))
