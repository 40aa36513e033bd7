"""Headroom: `compress`, at every call from the trigger on; without its learned model, which must be downloaded."""

from __future__ import annotations

import copy

from headroom import compress

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare


def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Compress what has reached the trigger."""

    def prepare(end: int) -> PolicyPrompt:
        if history.tokens_before[end] < limits.trigger_tokens:
            return PolicyPrompt(list(history.messages[:end]))
        messages = copy.deepcopy(list(history.messages[:end]))
        result = compress(messages, model="gpt-4o", model_limit=limits.window_tokens, kompress_model="disabled")
        return PolicyPrompt(result.messages)

    return prepare


POLICIES = (Policy("headroom compress", "compresses tool results, at every call; knows no window to keep to", start),)
