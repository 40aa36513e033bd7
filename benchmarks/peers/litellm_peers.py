"""LiteLLM: `trim_messages`, at every call."""

from __future__ import annotations

import copy
import logging

from litellm.utils import trim_messages

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare

# It logs each failure at length and returns the messages as they were: those prompts are counted as too large.
logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)


def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Trim to the trigger; LiteLLM counts by its own tokenizer."""

    def prepare(end: int) -> PolicyPrompt:
        messages = copy.deepcopy(list(history.messages[:end]))
        room = limits.trigger_tokens - history.fixed_tokens
        kept = trim_messages(messages, model="gpt-4o", max_tokens=room)
        return PolicyPrompt(list(kept))

    return prepare


POLICIES = (Policy("litellm trim_messages", "newest messages, cut in words, at every call", start),)
