"""The engine and the budget for each model that a manager is asked for, made when they are first needed.

What is set (`max_context_tokens`, `max_input_tokens`, `tokenizer`, `pricing`) holds for every model. Whatever is not
set follows the model of the request: its window, its largest input, its token counter, its prices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compact.assembly import Prefetcher, build_budget, build_prefetch
from compact.config import CompactConfig
from compact.core.engine.engine import Engine
from compact.core.engine.session import Session
from compact.core.plan.budget import TokenBudget
from compact.injection import Injector
from compact.recall.rehydration import RehydrationConfig
from compact.request_budget import RequestBudget
from compact.tokens import model_info
from compact.window_notices import model_notices, threshold_notices

# Chosen: more models than the agents of one process use. Names may come from outside: whoever invents one for every
# request gets the model that is configured.
_MOST_MODELS = 32


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """What compacts for one model: the engine that counts as it does, and the budget of its window."""

    model: str
    engine: Engine
    budget: RequestBudget

    def budget_of(self, session: Session) -> TokenBudget:
        """Return the budget of a session's last request, or of the whole window if it has made none here."""
        return session.budget or self.budget.window


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEngineBuilder:
    """Builds the engine and the budget for a configuration; prefetching and plug-ins are the same for all."""

    build: Callable[[CompactConfig], Engine]
    injectors: Sequence[Injector] = ()
    rehydration: RehydrationConfig | None = None
    prefetcher: Prefetcher | None = None

    def __call__(self, config: CompactConfig) -> ModelEngine:
        """Return what compacts for the model of a configuration."""
        engine = self.build(config)
        if self.prefetcher:
            engine = replace(engine, prefetch=build_prefetch(engine, self.prefetcher))
        window = build_budget(config, self.injectors, self.rehydration)
        is_assumed = config.max_context_tokens is None and bool(model_info(config.model).window_notice)
        return ModelEngine(config.model, engine, RequestBudget(window, engine.tokenizer, is_assumed=is_assumed))


class ModelEngines:
    """Engines by the name of their model; safe between threads.

    `notice` is told, once for each model, what had to be assumed: a text and its severity.
    """

    def __init__(
        self,
        config: CompactConfig,
        build: Callable[[CompactConfig], ModelEngine],
        notice: Callable[[str, str], None],
    ) -> None:
        self._config, self._build, self._notice = config, build, notice
        self._lock = threading.Lock()
        self._engines: dict[str, ModelEngine] = {}
        self.configured = self._make(config)

    def for_model(self, model: str) -> ModelEngine:
        """Return the engine for a model; for no name, and for one that says nothing, that of the configured model."""
        found = self._engines.get(model) if model else self.configured
        if found:
            return found
        with self._lock:
            if model not in self._engines and len(self._engines) >= _MOST_MODELS:
                return self.configured
            return self._engines.get(model) or self._add(model)

    def of_session(self, session: Session) -> ModelEngine:
        """Return the engine for the model that a session's newest call was for."""
        return self.for_model(session.model)

    def _add(self, model: str) -> ModelEngine:
        set_model = self._config.model if "model" in self._config.model_fields_set else ""
        if set_model and model_info(model).window_notice:
            # The name of a deployment, or a model of one's own: whoever has set a model has said what it is.
            if self._config.max_context_tokens is None:
                self._notice(f"the model {model!r} is not known: taken for {set_model!r}, the model that is set", "low")
            self._engines[model] = self.configured
            return self.configured
        return self._make(self._config_for(model))

    def _config_for(self, model: str) -> CompactConfig:
        """Return the configuration with another model for the agent; summaries are written by the same one."""
        config, summarizer = self._config, self._config.summarizer
        if summarizer.uses_model and not summarizer.model:
            summarizer = summarizer.model_copy(update={"model": config.model})
        return config.model_copy(update={"model": model, "summarizer": summarizer})

    def _make(self, config: CompactConfig) -> ModelEngine:
        made = self._engines[config.model] = self._build(config)
        for text in model_notices(config):
            self._notice(text, "normal")
        for text in threshold_notices(config, made.budget.window):
            self._notice(text, "low")
        return made
