"""What makes a prompt smaller: one strategy a file, in the order in which they run by default, cheapest first.

deduplicate   clears reads that were repeated later, or whose file was edited since
clear         clears old tool results, with how they begin and the lines that say how they went in their place
externalize   moves large tool results into artifacts, with a preview in their place
window        keeps only so many turns or tokens of dialogue; off unless it is configured
summarize     has one summary stand for what has the least value
drop          removes tool exchanges of which only stubs are left and which may be lost

`span` chooses for `summarize` what the summary stands for. `near_duplicates` finds for `deduplicate`, if that is
switched on, what a later result repeats almost word for word.

Each proposes records for the plan and decides nothing: the coordinator weighs them and takes as many as it needs. The
socket is `compact.core.plan.strategy`, `compact.testing.check_strategy` checks one, and `CompactManager(strategies=…)`
takes any list of them.
"""

from __future__ import annotations

from compact.strategies.clear import ClearStrategy
from compact.strategies.deduplicate import DeduplicateStrategy
from compact.strategies.drop import DropStrategy
from compact.strategies.externalize import ExternalizeStrategy
from compact.strategies.summarize import SummarizeStrategy
from compact.strategies.window import WindowStrategy

__all__ = [
    "ClearStrategy",
    "DeduplicateStrategy",
    "DropStrategy",
    "ExternalizeStrategy",
    "SummarizeStrategy",
    "WindowStrategy",
]
