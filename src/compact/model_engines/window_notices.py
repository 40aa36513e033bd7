"""What there is to say about a window and its thresholds: what was assumed, and which setting did not decide."""

from __future__ import annotations

from collections.abc import Iterator

from compact.config import CompactConfig, CompactPolicy
from compact.core.plan.budget import TokenBudget
from compact.tokens import model_info

# Whoever writes the default down asks for nothing else than the default.
_USUAL_TRIGGER_PCT = CompactPolicy.model_fields["trigger_pct"].default


def model_notices(config: CompactConfig) -> Iterator[str]:
    """Yield a sentence for everything that had to be assumed about the model."""
    info = model_info(config.model)
    if info.window_notice and config.max_context_tokens is None and config.max_input_tokens is None:
        yield info.window_notice
    if info.counter_notice and config.tokenizer == "auto":
        yield info.counter_notice


def threshold_notices(config: CompactConfig, budget: TokenBudget) -> Iterator[str]:
    """Yield a sentence for every threshold that is not where its setting says."""
    yield from _trigger_notices(config, budget)
    target = config.policy.target_tokens
    if target is not None and budget.target_tokens < target:
        yield (
            f"policy.target_tokens ({target:,}) is not below the tokens at which a summary is prefetched: compactions "
            f"go down to {budget.target_tokens:,}; policy.trigger_tokens and policy.prefetch_pct raise that"
        )


def _trigger_notices(config: CompactConfig, budget: TokenBudget) -> Iterator[str]:
    policy, trigger, share = config.policy, budget.trigger_tokens, budget.share_tokens
    limit = policy.trigger_tokens
    if budget.is_buffer_large and trigger == budget.ceiling_tokens:
        yield (
            f"policy.hard_cap_buffer ({policy.hard_cap_buffer:,}) leaves {trigger:,} of {budget.input_tokens:,} "
            f"tokens: compaction starts there, and not at policy.trigger_pct ({share:,} tokens)"
        )
    # A limit above the window is how the default is lifted, and meant to be without effect.
    elif limit is not None and trigger < limit < budget.max_context_tokens:
        why = budget.trigger_reason or f"policy.trigger_pct is {policy.trigger_pct}"
        yield f"policy.trigger_tokens ({limit:,}) is not reached: compaction starts at {trigger:,} tokens ({why})"
    elif (
        limit is None
        and trigger == budget.trigger_limit_tokens
        and trigger < share
        and policy.trigger_pct != _USUAL_TRIGGER_PCT
    ):
        yield (
            f"policy.trigger_pct ({policy.trigger_pct}) would be {share:,} tokens: compaction starts at {trigger:,} "
            f"({budget.trigger_reason}); policy.trigger_tokens, if set, overrules that default"
        )
