"""The sockets: everything that can be plugged in, on one page.

Each is defined in the room whose data it speaks of; `compact.testing` has a conformance suite for each.
"""

from __future__ import annotations

from compact.core.audit.archive import PrunedArchive, StorageAdapter
from compact.core.audit.artifacts import ArtifactStore
from compact.core.audit.store import (
    CallHistoryReader,
    CompactionStore,
    EventStore,
    SessionReader,
    SessionStore,
    SharedStore,
    SummaryCache,
    SummaryClaims,
    TracedStore,
)
from compact.core.engine.events import EventSink
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.economics import Pricer
from compact.core.plan.strategy import CompactionStrategy
from compact.core.summary.summarizer import ModelSummarizer, Summarizer

__all__ = [
    "ArtifactStore",
    "CallHistoryReader",
    "CompactionStore",
    "CompactionStrategy",
    "ConstraintFinder",
    "EventSink",
    "EventStore",
    "ModelSummarizer",
    "Pricer",
    "ProviderAwareTokenizer",
    "PrunedArchive",
    "SessionReader",
    "SessionStore",
    "SharedStore",
    "StorageAdapter",
    "Summarizer",
    "SummaryCache",
    "SummaryClaims",
    "TracedStore",
]
