"""What is known of one session between two calls.

session       all of it, and how a call changes it
prompt        the prompt as it stands
entry_tokens  what the entries of its log weigh
past_plans    the plans and the lines before those of now
tails         what stood behind the log in earlier prompts
regret_watch  what compactions removed and the agent asked for again
turn_state    what was added behind the log in the turn in hand
decisions     what calls decided on compacting
store_state   what the store has of it
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
