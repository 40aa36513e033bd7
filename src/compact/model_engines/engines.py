"""The engine for each model that a manager is asked for, made when it is first needed, and the budget of a request.

What is set (`max_context_tokens`, `max_input_tokens`, `tokenizer`, `pricing`) holds for every model. Whatever is not
set follows the model of the request: its window, its largest input, its token counter, its prices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from compact.arguments import Tools
from compact.assembly.budget import build_budget
from compact.assembly.engines import EngineBuilder
from compact.assembly.prefetch import Prefetcher, build_prefetch
from compact.config import CompactConfig
from compact.core.engine.engine import Engine
from compact.core.engine.events import ContextOverflowEvent
from compact.core.messages.message import copy_plain
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.session.session import Session
from compact.model_engines.overflows import OverflowLesson, ReportedOverflow, lesson_of
from compact.model_engines.window_notices import model_notices, threshold_notices
from compact.tokens import model_info

# One process may run several agents, each with tools of its own.
_REMEMBERED_TOOLS = 8
# Chosen: more models than the agents of one process use. Names may come from outside: whoever invents one for every
# request gets the model that is configured.
_MOST_MODELS = 32


@dataclass(frozen=True, slots=True)
class AnswerReserve:
    """How much of a window an answer takes: all that the request allows it, where the window is the provider's own.

    A window that is set may be smaller than the model's, because its user wants short prompts: the answer may have what
    is left of the model's. One that is assumed, because the model is not known, is no reason to leave no prompt at all.
    """

    window_tokens: int
    is_set: bool = False
    known_tokens: int | None = None

    @classmethod
    def of(cls, config: CompactConfig, window_tokens: int) -> AnswerReserve:
        """Return the rule for the model of a configuration.

        Beside a window that is set, the model's own is known only if the model is named; and of an open model only its
        host knows how much is served.
        """
        info, is_set = model_info(config.model), config.max_context_tokens is not None
        is_named = "model" in config.model_fields_set and not info.is_open
        is_known = not info.window_notice and (is_named or not is_set)
        return cls(window_tokens, is_set, info.window_tokens if is_known else None)

    def __call__(self, output_tokens: int) -> int:
        """Return what to set aside for an answer of up to so many tokens."""
        if self.known_tokens is not None:
            return max(0, output_tokens - max(0, self.known_tokens - self.window_tokens))
        if self.is_set:  # an answer as long as the window says that the provider's is larger
            return output_tokens if output_tokens < self.window_tokens else 0
        return min(output_tokens, self.window_tokens // 2)


class RequestBudget:
    """Knows the budget of a window, and what tool schemas, instructions and the answer take of it."""

    def __init__(self, window: TokenBudget, tokenizer: ProviderAwareTokenizer, reserve: AnswerReserve) -> None:
        self.window = window
        self._reserve = reserve
        self._tokenizer = tokenizer
        self._count_instructions = lru_cache(maxsize=64)(tokenizer.count_text)
        self._counted: list[tuple[object, int]] = []
        self._lock = threading.Lock()

    def of_request(self, tools: Tools, instructions: str, output_tokens: int = 0) -> TokenBudget:
        """Return the budget of a request with these tools and instructions, and an answer of up to so many tokens."""
        if not tools and not instructions and not output_tokens:
            return self.window
        system = self._count_instructions(instructions) if instructions else 0
        return replace(
            self.window,
            tool_schema_tokens=self._count_tools(list(tools)) if tools else 0,
            system_tokens=system,
            output_reserve=max(self.window.output_reserve, self._reserve(output_tokens)),
        )

    def learn(self, lesson: OverflowLesson, *, limits_input: bool) -> None:
        """Take in what a refusal of the provider taught; it holds for every later request of this model."""
        with self._lock:
            self.window = _taught(self.window, lesson, limits_input=limits_input)
            if lesson.limit_tokens is not None and not limits_input:
                self._reserve = AnswerReserve(self.window.max_context_tokens, is_set=True)

    def _count_tools(self, tools: list[Mapping[str, Any]]) -> int:
        """Count schemas, which are the same from call to call: they are compared, in C, and not counted again."""
        known = next((tokens for counted, tokens in self._counted if counted == tools), None)
        if known is not None:
            return known
        tokens = self._tokenizer.count_tools(tools)
        self._counted = [(copy_plain(tools), tokens), *self._counted[: _REMEMBERED_TOOLS - 1]]
        return tokens


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """What compacts for one model: the engine that counts as it does, and the budget of its window."""

    model: str
    engine: Engine
    budget: RequestBudget

    def budget_of(self, session: Session) -> TokenBudget:
        """Return the budget of a session's last request, or of the whole window if it has made none here."""
        return session.budget or self.budget.window

    def observe_overflow(self, session: Session, report: ReportedOverflow) -> ContextOverflowEvent:
        """Learn from a refusal of a session's last request, and return the event that says so."""
        budget, trigger = self.budget_of(session), self.engine.trigger
        estimated, used = trigger.estimated_tokens(session, budget), trigger.used_tokens(session, budget)
        lesson = lesson_of(report, budget, estimated_tokens=estimated, used_tokens=used)
        self.budget.learn(lesson, limits_input=report.limits_input)
        session.set_budget(_taught(budget, lesson, limits_input=report.limits_input))
        if lesson.reported_tokens is not None:
            session.observe_usage(estimated_tokens=estimated, reported_tokens=lesson.reported_tokens)
        known = budget.input_tokens if report.limits_input else budget.max_context_tokens
        return ContextOverflowEvent(
            session_id=session.session_id,
            message=lesson.message,
            model=self.model,
            estimated_tokens=estimated,
            window_tokens=known,
            learned_tokens=known if lesson.limit_tokens is None else lesson.limit_tokens,
            limit_tokens=report.limit_tokens or 0,
            prompt_tokens=report.prompt_tokens or 0,
        )


def _taught(budget: TokenBudget, lesson: OverflowLesson, *, limits_input: bool) -> TokenBudget:
    """Return a budget with what a refusal taught."""
    if lesson.limit_tokens is not None:
        budget = budget.lowered(lesson.limit_tokens, limits_input=limits_input)
    return replace(budget, output_reserve=max(budget.output_reserve, lesson.output_reserve))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEngineBuilder:
    """Builds the engine and the budget for a configuration; prefetching and plug-ins are the same for all."""

    engines: EngineBuilder
    prefetcher: Prefetcher | None = None

    def __call__(self, config: CompactConfig) -> ModelEngine:
        """Return what compacts for the model of a configuration."""
        engine = self.engines(config)
        if self.prefetcher:
            engine = replace(engine, prefetch=build_prefetch(engine, self.prefetcher))
        window = build_budget(config, self.engines.injectors, self.engines.rehydration)
        reserve = AnswerReserve.of(config, window.max_context_tokens)
        return ModelEngine(config.model, engine, RequestBudget(window, engine.tokenizer, reserve))


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
