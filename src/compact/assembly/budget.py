"""Build the budget of a model's window."""

from __future__ import annotations

from collections.abc import Sequence

from compact.config import CompactConfig
from compact.core.errors import ConfigError
from compact.core.plan.budget import DEFAULT_TRIGGER_TOKENS, LARGE_WINDOW_TOKENS, TokenBudget
from compact.injection import Injector
from compact.recall.rehydration import RehydrationConfig
from compact.tokens import model_info

_LARGE_WINDOW_SOURCE = f"the default for windows above {LARGE_WINDOW_TOKENS:,} tokens"


def window_limits(config: CompactConfig) -> tuple[int, int]:
    """Return the window and the largest input: what is set, else the model's own.

    A window that is set above the one we know is believed, and with it that the whole of it is taken as input.
    """
    info, window, largest = model_info(config.model), config.max_context_tokens, config.max_input_tokens
    if window is None:
        window = info.window_tokens if not info.window_notice else max(info.window_tokens, largest or 0)
    known = info.largest_input_tokens if window <= info.window_tokens else window
    return window, min(window, largest or known)


def build_budget(
    config: CompactConfig, injectors: Sequence[Injector] = (), rehydration: RehydrationConfig | None = None
) -> TokenBudget:
    """Build the budget of a model; what is sent beside the messages is filled in at each call."""
    policy = config.policy
    injected = sum(injector.reserve_tokens for injector in injectors)
    window, largest_input = window_limits(config)
    is_large = policy.trigger_tokens is None and window > LARGE_WINDOW_TOKENS
    budget = TokenBudget(
        max_context_tokens=window,
        largest_input_tokens=largest_input,
        trigger_limit_tokens=DEFAULT_TRIGGER_TOKENS if is_large else policy.trigger_tokens,
        trigger_limit_source=_LARGE_WINDOW_SOURCE if is_large else "policy.trigger_tokens",
        target_limit_tokens=policy.target_tokens,
        safety_buffer=policy.hard_cap_buffer,
        output_reserve=policy.output_reserve,
        injection_reserve=policy.former.get("injection_reserve", 0) + injected,
        rehydration_reserve=rehydration.reserve_tokens if rehydration else 0,
        trigger_pct=policy.trigger_pct,
        prefetch_pct=policy.prefetch_pct,
        target_pct=policy.target_pct,
        part_caps={part: round(share * window) for part, share in policy.part_caps.items()},
    )
    if budget.ceiling_tokens <= 0:
        raise ConfigError(
            f"a window of {window:,} tokens leaves nothing to use: {window - budget.ceiling_tokens:,} are reserved",
            field="policy.hard_cap_buffer",
            hint="lower policy.hard_cap_buffer and the other reserves (injectors' too), or raise max_context_tokens",
        )
    return budget
