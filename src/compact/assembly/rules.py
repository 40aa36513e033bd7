"""Build what decides which messages leave: the rules for what stays, what finds constraints, and the strategies."""

from __future__ import annotations

from compact.config import MODEL_SUMMARY_TOKENS, CompactConfig
from compact.constraints import LearnedConstraints
from compact.core.facts.constraints import ConstraintFinder
from compact.core.plan.durability import ToolDurabilityPolicy
from compact.core.plan.layers import KeepRules
from compact.core.plan.strategy import CompactionStrategy
from compact.strategies import (
    ClearStrategy,
    DeduplicateStrategy,
    DropStrategy,
    ExternalizeStrategy,
    SummarizeStrategy,
    WindowStrategy,
)


def build_rules(config: CompactConfig) -> KeepRules:
    """Build the rules for what stays verbatim."""
    policy = config.policy
    return KeepRules(
        recent_turns=policy.keep_recent_turns,
        tool_io_pairs=policy.keep_tool_io_pairs,
        attachment_turns=policy.keep_attachment_turns,
        pinned_roles=frozenset(policy.roles_never_prune),
        protected_flag=policy.protected_flag,
    )


def build_constraints() -> ConstraintFinder:
    """Build the finder of constraints."""
    return LearnedConstraints()


def build_strategies(config: CompactConfig, *, fills_target: bool = True) -> tuple[CompactionStrategy, ...]:
    """Build the strategies that are enabled, cheapest first; a free summary fills the room up to the target."""
    settings, summarizer = config.strategies, config.summarizer
    policies = {pattern: ToolDurabilityPolicy(**tool.model_dump()) for pattern, tool in settings.clear.tools.items()}
    clear, externalize, window = settings.clear, settings.externalize, settings.window
    ratio = {name: value for name, value in summarizer.former.items() if name == "target_token_ratio"}
    strategies: dict[str, CompactionStrategy] = {
        "deduplicate": DeduplicateStrategy(
            near_duplicates=settings.deduplicate.near_duplicates,
            never_evict=clear.never_evict,
            policies=policies,
            **settings.deduplicate.former,
        ),
        "clear": ClearStrategy(
            min_tokens=clear.min_tokens,
            keep_last=clear.keep_last,
            default_sensitivity=externalize.default_sensitivity,
            never_evict=clear.never_evict,
            policies=policies,
            **clear.former,
        ),
        "externalize": ExternalizeStrategy(
            min_tokens=externalize.min_tokens,
            default_sensitivity=externalize.default_sensitivity,
            never_evict=clear.never_evict,
            policies=policies,
            **externalize.former,
        ),
        "window": WindowStrategy(max_turns=window.max_turns, **window.former),
        "summarize": SummarizeStrategy(
            max_tokens=summarizer.max_tokens or MODEL_SUMMARY_TOKENS,
            fills_target=fills_target and summarizer.max_tokens is None,
            never_evict=clear.never_evict,
            policies=policies,
            **ratio,
        ),
        "drop": DropStrategy(policies=policies),
    }
    return tuple(strategy for name, strategy in strategies.items() if name in settings.enabled)
