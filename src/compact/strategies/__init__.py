"""What can be done to make a prompt smaller, one strategy a file, cheapest first."""

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
