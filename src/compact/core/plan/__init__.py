"""What is sent: plans as data, and the prompt that is made of one.

plan              records, the action they come to for each message, and how the compaction went
budget            how much fits, when to act, how far to go; calibration by reported usage
layers            which messages are kept verbatim
line_index        which messages of a line are of the few kinds that planning asks for
strategy          the socket for strategies: what one may look at, what it proposes
renderer          log and plan in, prompt out
stubs             the text that stands for what left
edited            what is left of a plan when the past was edited
parts             the one division of a prompt
durability        how long the result of a tool matters
economics         what a compaction costs and saves
regret            what was removed and asked for again, as data
turn              the turn in hand, and what is rehydrated in it
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
