"""Modules and names of former times: they still work, with a DeprecationWarning that says what to import instead.

`import compact` appends a finder that is only asked for modules that are not there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CORE = "compact.core."
# Where the names of what was one module of the session are now.
_SESSION = tuple(
    f"{_CORE}session.{name}" for name in ("decisions", "store_state", "turn_state", "tails", "past_plans", "session")
)
# Where the names of a former module are now; the first that has a name is meant.
FORMER_MODULES: dict[str, tuple[str, ...]] = {
    **{_CORE + name: (f"{_CORE}messages.{name}",) for name in ("groups", "legality")},
    **{
        f"{_CORE}log.{name}": (f"{_CORE}messages.{name}",)
        for name in (
            *("entries", "attachments", "attachment_use", "pdf_pages", "groups", "turn_order"),
            *("legality", "sensitivity", "tokenizer", "structure", "own_compaction"),
        )
    },
    _CORE + "log.messages": (_CORE + "messages.message",),
    _CORE + "thread": (_CORE + "log.log",),
    **{
        _CORE + name: (f"{_CORE}facts.{name}",)
        for name in ("entities", "outcomes", "open_items", "ledger", "grounding", "pieces", "selection")
    },
    _CORE + "constraints": (_CORE + "facts.constraints", "compact.constraints"),
    _CORE + "tool_use": (_CORE + "facts.tool_calls",),
    _CORE + "fact_finding": (_CORE + "facts.extraction",),
    _CORE + "ranges": (_CORE + "facts.text",),
    _CORE + "worth": (_CORE + "facts.score",),
    _CORE + "verification": (_CORE + "summary.verification",),
    _CORE + "summary_caching": (_CORE + "summary.summarizer",),
    _CORE + "summary_joining": (_CORE + "summary.fitting",),
    **{
        _CORE + name: (f"{_CORE}plan.{name}",)
        for name in ("layers", "budget", "renderer", "stubs", "durability", "turn")
    },
    **{_CORE + name: (f"{_CORE}planning.{name}",) for name in ("shortening", "constraint_guard")},
    **{
        f"{_CORE}plan.{name}": (f"{_CORE}planning.{name}",)
        for name in ("coordinator", "shortening", "constraint_guard")
    },
    _CORE + "coordinator": (_CORE + "plan.strategy", _CORE + "planning.coordinator"),
    _CORE + "economics": (_CORE + "plan.economics",),
    _CORE + "cut_arguments": (_CORE + "plan.stubs",),
    _CORE + "records": (_CORE + "audit.records", _CORE + "audit.store"),
    **{_CORE + name: (f"{_CORE}audit.{name}",) for name in ("artifacts", "report", "why")},
    _CORE + "removed": (_CORE + "audit.diff",),
    _CORE + "events": (_CORE + "engine.events",),
    _CORE + "content_events": (_CORE + "engine.events",),
    **{_CORE + name: (f"{_CORE}engine.{name}",) for name in ("status", "call_record")},
    _CORE + "engine.session": _SESSION,
    _CORE + "engine.prompt": (_CORE + "session.prompt",),
    _CORE + "waiting": (_CORE + "steps",),
    **{
        f"compact.summarizers.{name}": (f"compact.summarizers.clients.{name}",)
        for name in (
            *("anthropic_client", "api_errors", "call_settings", "litellm_client", "model_client"),
            *("observed", "openai_client", "providers", "retrying"),
        )
    },
    "compact.summarizers.templates": ("compact.summarizers.llm.templates",),
    "compact.telemetry.console": ("compact.telemetry.log",),
    "compact.telemetry.dispatcher": ("compact.telemetry.emitters",),
    "compact.stores.memory_parts": ("compact.stores.memory",),
    "compact.stores.wire": ("compact.stores.entry_text",),
    "compact.recall.rehydrator": ("compact.recall.rehydration",),
    "compact.archive.errors": (_CORE + "audit.archive",),
    "compact.archive.lines": ("compact.archive.json_lines",),
    "compact.archive.layout": ("compact.archive.names",),
    "compact.archive.folder": ("compact.archive.private_folder",),
    "compact.testing_stores": ("compact.testing",),
    "compact.testing_model": ("compact.testing",),
    "compact.background": ("compact.prefetching.background",),
    "compact.job_queue": ("compact.prefetching.job_queue",),
    "compact.driving": ("compact.runner",),
    "compact.session_lock": ("compact.session_registry",),
    "compact.dialects.entries": (_CORE + "messages.entries",),
    "compact.dialects.doorway": ("compact.dialects.gateway",),
}
# Modules that are a package by now, and where the names are that they had.
FORMER_PACKAGES: dict[str, tuple[str, ...]] = {
    _CORE + "plan": (_CORE + "plan.plan",),
    _CORE + "summary": (_CORE + "summary.summary", _CORE + "summary.summarizer", _CORE + "summary.fitting"),
    _CORE + "engine": (_CORE + "engine.engine",),
    _CORE + "messages": (_CORE + "messages.message",),
    _CORE + "session": _SESSION,
    "compact.assembly": tuple(
        f"compact.assembly.{name}"
        for name in ("rules", "summaries", "recall", "storage", "budget", "prices", "prefetch")
    ),
}
# Names that are another by now, in the module where they are today.
RENAMED: dict[str, dict[str, str]] = {
    _CORE + "steps": {"Trip": "Steps"},
    "compact.runner": {"drive": "run_steps", "adrive": "arun_steps"},
    _CORE + "log.log": {"Thread": "Log"},
    _CORE + "session.decisions": {"Decision": "TriggerDecision"},
    _CORE + "engine.status": {"LayerStatus": "PartStatus"},
    _CORE + "audit.records": {"Beside": "AddedMessage", "PreparedSummary": "PrefetchedSummary"},
    "compact.dialects.gateway": {"Doorway": "Gateway"},
    "compact.summarizers.clients.retrying": {"Patience": "RetryPolicy"},
    "compact.summarizers.llm.templates": {"Prompts": "PromptTemplates"},
}


class FormerModules(MetaPathFinder, Loader):
    """Finds former modules; each is empty, and looks its names up where they are now."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a former module."""
        return ModuleSpec(fullname, self) if fullname in FORMER_MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Use an ordinary module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Let the module look its names up."""
        homes = FORMER_MODULES[module.__name__]

        def find(name: str) -> Any:
            return former_name(module.__name__, name, homes)

        vars(module)["__getattr__"] = find


def former_name(module: str, name: str, homes: tuple[str, ...] | None = None) -> Any:
    """Return a name that was in a module, from where it is now, with a warning."""
    for home in homes or FORMER_PACKAGES[module]:
        found = import_module(home)
        today = RENAMED.get(home, {}).get(name, name)
        if not name.startswith("__") and hasattr(found, today):
            message = f"{module}.{name} is now {home}.{today}"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            return getattr(found, today)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def install() -> None:
    """Have former modules found; once is enough."""
    if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(FormerModules())
