"""Compact keeps a long-running LLM agent inside its context window without losing what matters.

from compact import CompactManager

manager = CompactManager()
messages = manager.preflight("session-1", messages)  # before each model call
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module
from typing import TYPE_CHECKING

from compact.core.python_version import complaint_here as _complaint

if _too_old := _complaint():
    # A command gets the line alone; whoever imports the package may want to catch it.
    raise SystemExit(_too_old) if _sys.argv[:1] == ["-m"] else ImportError(_too_old)

from compact.core.former_names import install as _install_former_names

__version__ = "0.1.0"
_install_former_names()

# Loaded on first use, so that `import compact` stays light. `compact.core` has the rest.
_HOMES = {
    "compact.config": (
        "ClearConfig",
        "CompactConfig",
        "CompactPolicy",
        "DeduplicateConfig",
        "ExternalizeConfig",
        "PricingConfig",
        "RecallSettings",
        "RedactionConfig",
        "RegretConfig",
        "RehydrationSettings",
        "StateConfig",
        "StorageConfig",
        "StrategiesConfig",
        "SummarizerConfig",
        "TelemetryConfig",
        "ToolConfig",
        "WindowConfig",
    ),
    "compact.manager": ("CompactManager",),
    "compact.core.plan.budget": ("TokenBudget",),
    "compact.core.planning.coordinator": ("CompactionCoordinator", "CompactionResult"),
    "compact.core.plan.strategy": ("CompactionProposal", "PlanningContext"),
    "compact.core.plan.economics": ("Economics",),
    "compact.core.errors": (
        "CompactError",
        "ConfigError",
        "InjectionTooLarge",
        "InsufficientBudget",
        "InvalidHistory",
        "UnknownSession",
    ),
    "compact.core.engine.events": ("CompactionEvent",),
    "compact.core.messages.message": ("Message", "ToolCall"),
    "compact.core.plan.plan": ("CompactionAction", "CompactionPlan", "SpanReference"),
    "compact.core.plan.renderer": ("PromptRenderer", "RenderedPrompt"),
    "compact.core.audit.report": ("CompactionReport",),
    "compact.core.engine.status": ("SessionStatus",),
    "compact.core.summary.summarizer": ("SummaryRequest",),
    "compact.core.summary.summary": ("StructuredSummary",),
    "compact.injection": ("InjectionContext", "Injector"),
    "compact.stateless": (
        "compact",
        "estimate_messages_tokens",
        "estimate_tokens",
        "safe_compact",
        "select_messages_to_compact",
        "should_compact",
    ),
    "compact.adapters.clients.wrap": ("wrap",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from compact.adapters.clients.wrap import wrap as wrap
    from compact.config import ClearConfig as ClearConfig
    from compact.config import CompactConfig as CompactConfig
    from compact.config import CompactPolicy as CompactPolicy
    from compact.config import DeduplicateConfig as DeduplicateConfig
    from compact.config import ExternalizeConfig as ExternalizeConfig
    from compact.config import PricingConfig as PricingConfig
    from compact.config import RecallSettings as RecallSettings
    from compact.config import RedactionConfig as RedactionConfig
    from compact.config import RegretConfig as RegretConfig
    from compact.config import RehydrationSettings as RehydrationSettings
    from compact.config import StateConfig as StateConfig
    from compact.config import StorageConfig as StorageConfig
    from compact.config import StrategiesConfig as StrategiesConfig
    from compact.config import SummarizerConfig as SummarizerConfig
    from compact.config import TelemetryConfig as TelemetryConfig
    from compact.config import ToolConfig as ToolConfig
    from compact.config import WindowConfig as WindowConfig
    from compact.core.audit.report import CompactionReport as CompactionReport
    from compact.core.engine.events import CompactionEvent as CompactionEvent
    from compact.core.engine.status import SessionStatus as SessionStatus
    from compact.core.errors import CompactError as CompactError
    from compact.core.errors import ConfigError as ConfigError
    from compact.core.errors import InjectionTooLarge as InjectionTooLarge
    from compact.core.errors import InsufficientBudget as InsufficientBudget
    from compact.core.errors import InvalidHistory as InvalidHistory
    from compact.core.errors import UnknownSession as UnknownSession
    from compact.core.messages.message import Message as Message
    from compact.core.messages.message import ToolCall as ToolCall
    from compact.core.plan.budget import TokenBudget as TokenBudget
    from compact.core.plan.economics import Economics as Economics
    from compact.core.plan.plan import CompactionAction as CompactionAction
    from compact.core.plan.plan import CompactionPlan as CompactionPlan
    from compact.core.plan.plan import SpanReference as SpanReference
    from compact.core.plan.renderer import PromptRenderer as PromptRenderer
    from compact.core.plan.renderer import RenderedPrompt as RenderedPrompt
    from compact.core.plan.strategy import CompactionProposal as CompactionProposal
    from compact.core.plan.strategy import PlanningContext as PlanningContext
    from compact.core.planning.coordinator import CompactionCoordinator as CompactionCoordinator
    from compact.core.planning.coordinator import CompactionResult as CompactionResult
    from compact.core.summary.summarizer import SummaryRequest as SummaryRequest
    from compact.core.summary.summary import StructuredSummary as StructuredSummary
    from compact.injection import InjectionContext as InjectionContext
    from compact.injection import Injector as Injector
    from compact.manager import CompactManager as CompactManager
    from compact.stateless import compact as compact
    from compact.stateless import estimate_messages_tokens as estimate_messages_tokens
    from compact.stateless import estimate_tokens as estimate_tokens
    from compact.stateless import safe_compact as safe_compact
    from compact.stateless import select_messages_to_compact as select_messages_to_compact
    from compact.stateless import should_compact as should_compact


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'compact' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
