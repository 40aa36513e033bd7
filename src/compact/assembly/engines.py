"""Put an engine together: from what the caller brings, and for all else from what the configuration names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.assembly.prices import build_pricer
from compact.assembly.recall import build_rehydration, usual_sensitivity
from compact.assembly.rules import build_constraints, build_rules, build_strategies
from compact.assembly.storage import build_shared
from compact.assembly.summaries import build_circuit_breaker, build_summarizer, build_writer
from compact.config import MODEL_SUMMARY_TOKENS, CompactConfig
from compact.core.audit.archive import StorageAdapter
from compact.core.audit.store import SessionStore, SharedStore
from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.compaction import Compactor
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.engine import Engine
from compact.core.engine.events import EventSink
from compact.core.engine.persistence import SessionPersistence
from compact.core.engine.pricing import CompactionPricing
from compact.core.engine.summarization import SummaryWriter
from compact.core.engine.trigger import Trigger
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.strategy import CompactionStrategy
from compact.core.planning.coordinator import CompactionCoordinator
from compact.core.summary.summarizer import Summarizer
from compact.injection import Injection, Injector
from compact.pricing import ModelPricer
from compact.recall.rehydration import RehydrationConfig
from compact.redaction import Redactor
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.tokens import get_tokenizer

# Chosen: how long a claim on a summary is held, by code and by a model; no other process writes it meanwhile.
_CODE_CLAIM_SECONDS, _MODEL_CLAIM_SECONDS = 30.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBuilder:
    """Builds the engine of a configuration; what the caller brings is the same for all.

    `shared` are the claims and cached summaries; by default those of the store, or some for each engine alone.
    """

    emit: EventSink
    store: SessionStore
    shared: SharedStore | None = None
    archive: StorageAdapter | None = None
    archive_name: str = "none"
    redactor: Redactor = field(default_factory=Redactor)
    tokenizer: ProviderAwareTokenizer | None = None
    strategies: Sequence[CompactionStrategy] | None = None
    summarizer: Summarizer | None = None
    constraints: ConstraintFinder = field(default_factory=build_constraints)
    rehydration: RehydrationConfig | None = None
    circuit_breaker: CircuitBreaker | None = None
    injectors: Sequence[Injector] = ()

    def with_one_summarizer(self, config: CompactConfig) -> EngineBuilder:
        """Return this with one model that writes summaries for all engines: it has an account of what it spent."""
        summarizer, circuit_breaker = self.summarizer, self.circuit_breaker
        if summarizer is None and config.summarizer.uses_model:
            summarizer = build_summarizer(config, self.redactor, self.emit)
        if summarizer is not None and circuit_breaker is None:
            circuit_breaker = build_circuit_breaker(config)
        return replace(self, summarizer=summarizer, circuit_breaker=circuit_breaker)

    def __call__(self, config: CompactConfig) -> Engine:
        """Build everything that a configuration names, with whatever the caller brings in its place."""
        policy, store, injectors = config.policy, self.store, tuple(self.injectors)
        tokenizer = get_tokenizer(config.model, config.tokenizer) if self.tokenizer is None else self.tokenizer
        emitter = EventEmitter(self.emit, config.model, _policy_of_events(config))
        injection = Injection(injectors=injectors, tokenizer=tokenizer, emitter=emitter)
        return Engine(
            trigger=Trigger(enabled=policy.enabled, every_call=policy.cadence == "every_call", injects=bool(injectors)),
            compactor=self._compactor(config, tokenizer, emitter),
            rehydrate=build_rehydration(config, self.rehydration, store, tokenizer),
            inject=injection if injectors else None,
            adding=frozenset(injector.name for injector in injectors),
        )

    def _compactor(self, config: CompactConfig, tokenizer: ProviderAwareTokenizer, emitter: EventEmitter) -> Compactor:
        is_by_code = self._is_by_code(config)
        shared = build_shared(self.store) if self.shared is None else self.shared
        pricer = build_pricer(config, self.summarizer)
        strategies, expected_calls = self.strategies, config.policy.expected_calls
        persistence = self._persistence(config, emitter, pricer)
        claiming = self._claiming(config, persistence, shared)
        if strategies is None:
            strategies = build_strategies(config, fills_target=is_by_code)
        return Compactor(
            tokenizer=tokenizer,
            coordinator=CompactionCoordinator(strategies, constraints=self.constraints),
            writer=self._writer(config, tokenizer, claiming, shared),
            emitter=emitter,
            persistence=persistence,
            claiming=claiming,
            constraints=self.constraints,
            rules=build_rules(config),
            max_summary_tokens=config.summarizer.max_tokens or (None if is_by_code else MODEL_SUMMARY_TOKENS),
            missed_share=config.regret.max_share if config.regret.keep_longer else 0.0,
            pricing=CompactionPricing(
                emitter=emitter, price=pricer, expected_calls=expected_calls, prices=pricer.at_hand
            ),
            clock=time.perf_counter,
        )

    def _is_by_code(self, config: CompactConfig) -> bool:
        return self.summarizer is None and not config.summarizer.uses_model

    def _persistence(self, config: CompactConfig, emitter: EventEmitter, pricer: ModelPricer) -> SessionPersistence:
        return SessionPersistence(
            store=self.store,
            emitter=emitter,
            archive=self.archive,
            archive_name=self.archive_name,
            redact=self.redactor.message,
            default_sensitivity=usual_sensitivity(config, self.strategies),
            tenant_id=config.state.tenant_id,
            prices=pricer.at_hand,
        )

    def _claiming(self, config: CompactConfig, persistence: SessionPersistence, shared: SharedStore) -> SummaryClaiming:
        claim_seconds = _CODE_CLAIM_SECONDS if self._is_by_code(config) else _MODEL_CLAIM_SECONDS
        return SummaryClaiming(
            claims=shared.claims,
            persistence=persistence,
            emitter=persistence.emitter,
            claim_seconds=claim_seconds,
            wait_seconds=min(claim_seconds, config.policy.max_wait_seconds),
        )

    def _writer(
        self,
        config: CompactConfig,
        tokenizer: ProviderAwareTokenizer,
        claiming: SummaryClaiming,
        shared: SharedStore,
    ) -> SummaryWriter:
        is_by_code, summarizer = self._is_by_code(config), self.summarizer
        return build_writer(
            config,
            build_summarizer(config, self.redactor, self.emit) if summarizer is None else summarizer,
            tokenizer=tokenizer,
            claiming=claiming,
            cache=shared.summaries,
            constraints=self.constraints,
            circuit_breaker=None if is_by_code else self.circuit_breaker or build_circuit_breaker(config),
            default_sensitivity=usual_sensitivity(config, self.strategies),
        )


def _policy_of_events(config: CompactConfig) -> dict[str, Any]:
    """Return the policy as events have it; the specification calls the form of the summary its strategy."""
    policy = config.policy
    return {**policy.model_dump(mode="json"), "strategy": policy.summary_form}
