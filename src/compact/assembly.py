"""Put an engine together from a configuration: the one place that chooses plug-ins."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from compact.archive import FilesystemArchive, Retention, S3Archive
from compact.archive.names import tenant_place
from compact.config import MODEL_SUMMARY_TOKENS, CompactConfig
from compact.constraints import LearnedConstraints
from compact.core.audit.archive import StorageAdapter
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.store import CompactionStore, SessionStore, SharedStore, SummaryCache, TracedStore
from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.compaction import Compactor
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.engine import Engine
from compact.core.engine.events import EventSink, NoticeEvent
from compact.core.engine.persistence import SessionPersistence
from compact.core.engine.prefetch import Prefetch
from compact.core.engine.pricing import CompactionPricing
from compact.core.engine.summarization import SummaryWriter, always_available, ignore_outcome
from compact.core.engine.trigger import Trigger
from compact.core.errors import ConfigError
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.sensitivity import SENSITIVITIES, is_open
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import DEFAULT_TRIGGER_TOKENS, LARGE_WINDOW_TOKENS, TokenBudget
from compact.core.plan.durability import ToolDurabilityPolicy
from compact.core.plan.economics import USUAL_RATIOS, Prices
from compact.core.plan.layers import KeepRules
from compact.core.plan.strategy import CompactionStrategy
from compact.core.plan.turn import Rehydrate
from compact.core.planning.coordinator import CompactionCoordinator
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.core.summary.summarizer import Summarizer
from compact.core.summary.writing import BY_CODE
from compact.injection import Injection, Injector
from compact.own_folder import why_not_writable
from compact.prefetching.background import InProcessPrefetcher
from compact.pricing import ModelPricer, model_prices
from compact.recall.packaged_model import load_packaged_model
from compact.recall.rehydration import RehydrationConfig, RehydrationInterceptor
from compact.recall.semantic import Embed, SemanticSearch
from compact.redaction import Redactor
from compact.stores.memory import InMemoryCompactionStore, InProcessSharedStore
from compact.strategies import (
    ClearStrategy,
    DeduplicateStrategy,
    DropStrategy,
    ExternalizeStrategy,
    SummarizeStrategy,
    WindowStrategy,
)
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.summarizers.clients.call_settings import CallSettings
from compact.summarizers.clients.observed import EventEmittingClient
from compact.summarizers.clients.providers import connect
from compact.summarizers.clients.retrying import RetryPolicy
from compact.summarizers.extractive import extractive_summary
from compact.summarizers.llm import LlmSummarizer
from compact.summarizers.llm.templates import PromptTemplates
from compact.summarizers.spending import SpendLimits
from compact.telemetry.worker import ExportWorker
from compact.tokens import get_tokenizer, model_info
from compact.tokens.models import ModelProvider

# Chosen: how long a claim on a summary is held, by code and by a model; no other process writes it meanwhile.
_CODE_CLAIM_SECONDS, _MODEL_CLAIM_SECONDS = 30.0, 60.0
_SQLITE = "sqlite:///"
_LARGE_WINDOW_SOURCE = f"the default for windows above {LARGE_WINDOW_TOKENS:,} tokens"


def build_engine(
    config: CompactConfig,
    *,
    emit: EventSink,
    store: SessionStore,
    shared: SharedStore | None = None,
    archive: StorageAdapter | None = None,
    archive_name: str = "none",
    redactor: Redactor | None = None,
    tokenizer: ProviderAwareTokenizer | None = None,
    strategies: Sequence[CompactionStrategy] | None = None,
    summarizer: Summarizer | None = None,
    constraints: ConstraintFinder | None = None,
    rehydration: RehydrationConfig | None = None,
    circuit_breaker: CircuitBreaker | None = None,
    injectors: Sequence[Injector] = (),
) -> Engine:
    """Build everything the configuration names, with whatever the caller brings in its place.

    `shared` are the claims and cached summaries; by default those of the store, or some for this engine alone.
    """
    policy = config.policy
    shared = build_shared(store) if shared is None else shared
    tokenizer = get_tokenizer(config.model, config.tokenizer) if tokenizer is None else tokenizer
    redactor = redactor or Redactor()
    constraints = build_constraints() if constraints is None else constraints
    is_by_code = summarizer is None and not config.summarizer.uses_model
    usual = usual_sensitivity(config, strategies)
    emitter = EventEmitter(emit, config.model, _policy_of_events(config))
    pricer = build_pricer(config, summarizer)
    persistence = SessionPersistence(
        store=store,
        emitter=emitter,
        archive=archive,
        archive_name=archive_name,
        redact=redactor.message,
        default_sensitivity=usual,
        tenant_id=config.state.tenant_id,
        prices=pricer.at_hand,
    )
    claim_seconds = _CODE_CLAIM_SECONDS if is_by_code else _MODEL_CLAIM_SECONDS
    claiming = SummaryClaiming(
        claims=shared.claims,
        persistence=persistence,
        emitter=emitter,
        claim_seconds=claim_seconds,
        wait_seconds=min(claim_seconds, config.policy.max_wait_seconds),
    )
    compactor = Compactor(
        tokenizer=tokenizer,
        coordinator=CompactionCoordinator(
            build_strategies(config, fills_target=is_by_code) if strategies is None else strategies,
            constraints=constraints,
        ),
        writer=build_writer(
            config,
            build_summarizer(config, redactor, emit) if summarizer is None else summarizer,
            tokenizer=tokenizer,
            claiming=claiming,
            cache=shared.summaries,
            constraints=constraints,
            circuit_breaker=None if is_by_code else circuit_breaker or build_circuit_breaker(config),
            default_sensitivity=usual,
        ),
        emitter=emitter,
        persistence=persistence,
        claiming=claiming,
        constraints=constraints,
        rules=build_rules(config),
        max_summary_tokens=config.summarizer.max_tokens or (None if is_by_code else MODEL_SUMMARY_TOKENS),
        missed_share=config.regret.max_share if config.regret.keep_longer else 0.0,
        pricing=CompactionPricing(
            emitter=emitter, price=pricer, expected_calls=policy.expected_calls, prices=pricer.at_hand
        ),
        clock=time.perf_counter,
    )
    injection = Injection(injectors=tuple(injectors), tokenizer=tokenizer, emitter=emitter)
    return Engine(
        trigger=Trigger(enabled=policy.enabled, every_call=policy.cadence == "every_call", injects=bool(injectors)),
        compactor=compactor,
        rehydrate=build_rehydration(config, rehydration, store, tokenizer),
        inject=injection if injectors else None,
        adding=frozenset(injector.name for injector in injectors),
    )


def _policy_of_events(config: CompactConfig) -> dict[str, Any]:
    """Return the policy as events have it; the specification calls the form of the summary its strategy."""
    policy = config.policy
    return {**policy.model_dump(mode="json"), "strategy": policy.summary_form}


def build_rules(config: CompactConfig) -> KeepRules:
    """Build the rules for what stays verbatim."""
    policy = config.policy
    return KeepRules(
        recent_turns=policy.keep_recent_turns,
        tool_io_pairs=policy.keep_tool_io_pairs,
        attachment_turns=policy.keep_attachment_turns,
        pinned_roles=frozenset(policy.roles_never_prune),
        protected_flag=policy.protected_flag,
    )


def build_constraints() -> ConstraintFinder:
    """Build the finder of constraints."""
    return LearnedConstraints()


def build_strategies(config: CompactConfig, *, fills_target: bool = True) -> tuple[CompactionStrategy, ...]:
    """Build the strategies that are enabled, cheapest first; a free summary fills the room up to the target."""
    settings, summarizer = config.strategies, config.summarizer
    policies = {pattern: ToolDurabilityPolicy(**tool.model_dump()) for pattern, tool in settings.clear.tools.items()}
    clear, externalize, window = settings.clear, settings.externalize, settings.window
    ratio = {name: value for name, value in summarizer.former.items() if name == "target_token_ratio"}
    strategies: dict[str, CompactionStrategy] = {
        "deduplicate": DeduplicateStrategy(
            near_duplicates=settings.deduplicate.near_duplicates,
            never_evict=clear.never_evict,
            policies=policies,
            **settings.deduplicate.former,
        ),
        "clear": ClearStrategy(
            min_tokens=clear.min_tokens,
            keep_last=clear.keep_last,
            default_sensitivity=externalize.default_sensitivity,
            never_evict=clear.never_evict,
            policies=policies,
            **clear.former,
        ),
        "externalize": ExternalizeStrategy(
            min_tokens=externalize.min_tokens,
            default_sensitivity=externalize.default_sensitivity,
            never_evict=clear.never_evict,
            policies=policies,
            **externalize.former,
        ),
        "window": WindowStrategy(max_turns=window.max_turns, **window.former),
        "summarize": SummarizeStrategy(
            max_tokens=summarizer.max_tokens or MODEL_SUMMARY_TOKENS,
            fills_target=fills_target and summarizer.max_tokens is None,
            never_evict=clear.never_evict,
            policies=policies,
            **ratio,
        ),
        "drop": DropStrategy(policies=policies),
    }
    return tuple(strategy for name, strategy in strategies.items() if name in settings.enabled)


def build_rehydration_config(config: CompactConfig) -> RehydrationConfig | None:
    """Build the limits of rehydration; None if it is switched off."""
    settings = config.rehydration
    if not settings.enabled:
        return None
    return RehydrationConfig(
        max_total_tokens=settings.max_total_tokens,
        allowed_sensitivities=settings.allowed_sensitivities,
        reserve_tokens=config.policy.former.get("rehydration_reserve", 0),
        **settings.former,
    )


def usual_sensitivity(config: CompactConfig, strategies: Sequence[CompactionStrategy] | None = None) -> str:
    """Return the sensitivity of results that do not name theirs: the strictest that the caller's own strategies say."""
    own = [config.strategies.externalize.default_sensitivity]
    own += [s.default_sensitivity for s in strategies or () if isinstance(s, ExternalizeStrategy | ClearStrategy)]
    return max(own, key=SENSITIVITIES.index)


def build_semantic_search(config: CompactConfig, embed: Embed | None, usual: str) -> SemanticSearch | None:
    """Build the search by meaning, if it is asked for; confidential content is not shown to its model."""
    if embed is None:
        if not config.recall.semantic:
            return None
        embed = load_packaged_model()
    return SemanticSearch(embed, is_open=lambda message: is_open(message, usual))


def build_rehydration(
    config: CompactConfig,
    limits: RehydrationConfig | None,
    store: SessionStore,
    tokenizer: ProviderAwareTokenizer,
) -> Rehydrate | None:
    """Build what shows externalised content again when it is named."""
    if limits is None:
        return None
    security = SecurityContext(tenant_id=config.state.tenant_id)
    count_text, count_message = tokenizer.count_text, tokenizer.count_message
    return RehydrationInterceptor(store.artifacts, count_text, limits, security, count_message).rehydrate


# -- summaries --------------------------------------------------------------------------------------------------------


def build_writer(
    config: CompactConfig,
    summarizer: Summarizer,
    *,
    tokenizer: ProviderAwareTokenizer,
    claiming: SummaryClaiming,
    cache: SummaryCache,
    constraints: ConstraintFinder,
    circuit_breaker: CircuitBreaker | None,
    default_sensitivity: str = "internal",
) -> SummaryWriter:
    """Build what writes summaries; without a circuit breaker code writes them, which does not fail."""
    settings, is_by_code = config.summarizer, circuit_breaker is None
    return SummaryWriter(
        summarizer=summarizer,
        tokenizer=tokenizer,
        claiming=claiming,
        emitter=claiming.emitter,
        constraints=constraints,
        form=config.policy.summary_form,
        on_failure=settings.on_failure,
        may_be_empty=is_by_code,
        cache=cache if settings.cache and not is_by_code else None,
        tenant_id=config.state.tenant_id,
        by_code=None if is_by_code else extractive_summary,
        check_available=circuit_breaker.check if circuit_breaker else always_available,
        report_outcome=circuit_breaker.report if circuit_breaker else ignore_outcome,
        name=BY_CODE if is_by_code else _summarizer_name(summarizer),
        timeout_seconds=settings.timeout_seconds,
        clock=time.perf_counter,
        default_sensitivity=default_sensitivity,
    )


def _summarizer_name(summarizer: Summarizer) -> str:
    """Return the model that writes summaries, or the name of the function that does."""
    named = getattr(summarizer, "model", None) or getattr(summarizer, "__name__", None)
    return str(named or type(summarizer).__name__)


def build_circuit_breaker(config: CompactConfig) -> CircuitBreaker:
    """Build what leaves a summariser alone for a while after several failures."""
    former = config.summarizer.former
    return CircuitBreaker(
        failures=former.get("pause_after_failures", 3), pause_seconds=former.get("pause_seconds", 30.0)
    )


def build_summarizer(config: CompactConfig, redactor: Redactor, emit: EventSink) -> Summarizer:
    """Build the summariser: code, or the model that the configuration names."""
    settings = config.summarizer
    if not settings.uses_model:
        return extractive_summary
    model = settings.model or config.model
    counter = get_tokenizer(model, config.tokenizer)
    parameters: dict[str, Any] = {"seed": settings.seed, "temperature": settings.temperature}
    if settings.former.get("response_format", "json") == "json":
        parameters["response_format"] = {"type": "json_object"}
    provider = summary_provider(config)
    client = connect(provider, model, base_url=settings.base_url or None, api_key=_summary_key(config))
    return LlmSummarizer(
        EventEmittingClient(client=client, emit=emit, model=model, provider=provider),
        model=model,
        window_tokens=summary_window(config, model, emit),
        # An estimate is raised by a fifth: the request must fit in any case.
        count_text=counter.count_text if counter.is_exact else lambda text: counter.count_text(text) * 6 // 5 + 1,
        templates=PromptTemplates.load(settings.prompts_dir, settings.former.get("prompts")),
        settings=CallSettings(
            {name: value for name, value in parameters.items() if value is not None}, settings.options
        ),
        retries=RetryPolicy(total_seconds=settings.timeout_seconds),
        limits=SpendLimits(
            max_usd=settings.max_spend_usd_per_session,
            max_calls=settings.max_calls_per_session,
            price=_summary_price(model, _own_prices(config) if model == config.model else None),
        ),
        redact=redactor.message if settings.redact else None,
    )


def summary_provider(config: CompactConfig) -> str:
    """Return whose API the model that writes summaries speaks: by its name, unless that is set."""
    settings = config.summarizer
    if settings.provider != "auto":
        return settings.provider
    is_anthropic = model_info(settings.model or config.model).provider is ModelProvider.ANTHROPIC
    return "anthropic" if is_anthropic else "openai"


def _summary_key(config: CompactConfig) -> str | None:
    """Return the key that is set, or None for the provider's own variable."""
    settings = config.summarizer
    if settings.api_key_env:
        key = os.environ.get(settings.api_key_env)
        if not key:
            hint = f"set {settings.api_key_env}, or name another variable"
            field = "summarizer.api_key_env"
            raise ConfigError(f"the variable {settings.api_key_env} is not set", field=field, hint=hint)
        return key
    return settings.api_key.get_secret_value() if settings.api_key else None


def summary_window(config: CompactConfig, model: str, emit: EventSink) -> int:
    """Return the window of the model that writes summaries; one that is not known is taken to be small."""
    settings = config.summarizer
    is_the_agents = model == config.model and not settings.base_url
    given = settings.max_context_tokens or (config.max_context_tokens if is_the_agents else None)
    if given:
        return given
    info = model_info(model)
    if info.window_notice:
        notice = f"the window of the summariser's model {model!r} is not known: using {info.window_tokens:,} tokens"
        emit(NoticeEvent(session_id="", message=f"{notice}; summarizer.max_context_tokens sets it"))
    return info.largest_input_tokens


def _summary_price(model: str, own: Prices | None) -> Callable[[int, int], float | None]:
    def price(input_tokens: int, output_tokens: int) -> float | None:
        prices = own or model_prices(model, input_tokens=input_tokens)
        return prices.fresh * input_tokens + prices.output * output_tokens if prices else None

    return price


# -- prices, store, archive, budget -----------------------------------------------------------------------------------


def build_pricer(config: CompactConfig, summarizer: Summarizer | None = None) -> ModelPricer:
    """Build what prices compactions; a summary that code writes is free."""
    is_free = summarizer is None and not config.summarizer.uses_model
    return ModelPricer(
        model=config.model,
        own=_own_prices(config),
        summary_model=None if is_free else config.summarizer.model or config.model,
        # Compacting at every call makes sense only where there is no cache to lose.
        has_cache=config.policy.cadence != "every_call",
    )


def _own_prices(config: CompactConfig) -> Prices | None:
    """Return the prices that are set; cached tokens without one cost what fresh ones do."""
    pricing = config.pricing
    fresh = pricing.input_per_mtok
    if fresh is None:
        return None
    read, write = pricing.cache_read_per_mtok, pricing.cache_write_per_mtok
    output = pricing.output_per_mtok
    return Prices(
        fresh=fresh / 1_000_000,
        cache_read=(fresh if read is None else read) / 1_000_000,
        cache_write=(fresh if write is None else write) / 1_000_000,
        output=(fresh * USUAL_RATIOS.output if output is None else output) / 1_000_000,
    )


def without_unwritable(
    config: CompactConfig, *, with_store: bool = True, with_archive: bool = True
) -> tuple[CompactConfig, str]:
    """Return settings that write only where that is possible, and what to tell the user about the rest, if any.

    Found out once, when a manager is made: a folder that is read-only would fail at every call. What the manager does
    not build from the settings, its store or its archive, is not looked at.
    """
    state, storage, reasons, kept = config.state, config.storage, dict[str, None](), list[str]()
    file = Path(state.url.removeprefix(_SQLITE).split("?")[0]) if state.url.startswith(_SQLITE) else None
    if with_store and file and (why := why_not_writable(file, is_folder=False)):
        state = state.model_copy(update={"url": "memory:"})
        reasons[why] = None
        kept.append("sessions are kept in memory, and end with this process (state.url names another place)")
    if with_archive and storage.adapter == "fs" and (why := why_not_writable(Path(storage.path), is_folder=True)):
        storage = storage.model_copy(update={"adapter": "none"})
        reasons[why] = None
        kept.append("nothing is archived (storage.path names another place)")
    usable = config.model_copy(update={"state": state, "storage": storage})
    return usable, f"{'; '.join(reasons)}: {', and '.join(kept)}" if kept else ""


def build_store(config: CompactConfig, *, read_only: bool = False) -> CompactionStore:
    """Build the store of log, plans and calls; a database is opened when it is first needed."""
    if config.state.url == "memory:":
        return InMemoryCompactionStore()
    from compact.stores.database import Database  # SQLAlchemy is only loaded where it is used
    from compact.stores.sql import SqlCompactionStore

    return SqlCompactionStore(Database(config.state.url, read_only=read_only), tenant_id=config.state.tenant_id)


def build_event_writer(config: CompactConfig, store: SessionStore, redactor: Redactor) -> ExportWorker | None:
    """Build what writes events to the store; None for a store that keeps none, or ends with this process."""
    if not (config.state.events_days and store.blocks and isinstance(store, TracedStore)):
        return None
    from compact.telemetry import event_store  # only loaded where it is used

    return event_store.build_event_writer(store.events, keep_days=config.state.events_days, redact=redactor.event)


def build_shared(store: SessionStore) -> SharedStore:
    """Return the claims and cached summaries of a store; for a store without them, some for this process alone."""
    return store if isinstance(store, SharedStore) else InProcessSharedStore()


def build_archive(config: CompactConfig) -> FilesystemArchive | S3Archive | None:
    """Build the archive of transcripts for people."""
    storage, tenant = config.storage, tenant_place(config.state.tenant_id)
    retention = Retention(storage.keep_days, storage.max_mb)
    if storage.adapter == "fs":
        return FilesystemArchive(Path(storage.path, tenant), retention=retention)
    if storage.adapter == "s3":
        return S3Archive(
            storage.bucket,
            "/".join(part for part in (storage.prefix.rstrip("/"), tenant) if part),
            kms_key_id=storage.kms_key_id,
            region=storage.region,
            endpoint_url=storage.endpoint_url,
            retention=retention,
        )
    return None


def window_limits(config: CompactConfig) -> tuple[int, int]:
    """Return the window and the largest input: what is set, else the model's own.

    A window that is set above the one we know is believed, and with it that the whole of it is taken as input.
    """
    info, window, largest = model_info(config.model), config.max_context_tokens, config.max_input_tokens
    if window is None:
        window = info.window_tokens if not info.window_notice else max(info.window_tokens, largest or 0)
    known = info.largest_input_tokens if window <= info.window_tokens else window
    return window, min(window, largest or known)


def build_budget(
    config: CompactConfig, injectors: Sequence[Injector] = (), rehydration: RehydrationConfig | None = None
) -> TokenBudget:
    """Build the budget of a model; what is sent beside the messages is filled in at each call."""
    policy = config.policy
    injected = sum(injector.reserve_tokens for injector in injectors)
    window, largest_input = window_limits(config)
    is_large = policy.trigger_tokens is None and window > LARGE_WINDOW_TOKENS
    budget = TokenBudget(
        max_context_tokens=window,
        largest_input_tokens=largest_input,
        trigger_limit_tokens=DEFAULT_TRIGGER_TOKENS if is_large else policy.trigger_tokens,
        trigger_limit_source=_LARGE_WINDOW_SOURCE if is_large else "policy.trigger_tokens",
        target_limit_tokens=policy.target_tokens,
        safety_buffer=policy.hard_cap_buffer,
        output_reserve=policy.output_reserve,
        injection_reserve=policy.former.get("injection_reserve", 0) + injected,
        rehydration_reserve=rehydration.reserve_tokens if rehydration else 0,
        trigger_pct=policy.trigger_pct,
        prefetch_pct=policy.prefetch_pct,
        target_pct=policy.target_pct,
        part_caps={part: round(share * window) for part, share in policy.part_caps.items()},
    )
    if budget.ceiling_tokens <= 0:
        raise ConfigError(
            f"a window of {window:,} tokens leaves nothing to use: {window - budget.ceiling_tokens:,} are reserved",
            field="policy.hard_cap_buffer",
            hint="lower policy.hard_cap_buffer and the other reserves (injectors' too), or raise max_context_tokens",
        )
    return budget


# -- prefetching ------------------------------------------------------------------------------------------------------


class Prefetcher(Protocol):
    """Has summaries written before they are needed."""

    def __call__(self, session: Session) -> None:
        """Start prefetching for a session, without waiting."""
        ...

    def close(self) -> None:
        """Wait for what is under way here."""
        ...


def build_prefetcher(
    config: CompactConfig,
    prefetch: Callable[[Session], Steps[object]],
    run: Callable[[Steps[None]], None],
    *,
    is_quick: bool,
) -> Prefetcher | None:
    """Build what prefetches summaries; those of the built-in summariser (`is_quick`) need no job in a queue."""
    when = config.summarizer.prefetch
    if when == "never":
        return None
    is_quick = is_quick and when == "auto" and not config.summarizer.uses_model
    if config.state.url.startswith("postgresql") and not is_quick:
        from compact.prefetching.job_queue import QueuePrefetcher  # procrastinate is only loaded where it is used

        return QueuePrefetcher(config.state.url, tenant_id=config.state.tenant_id)
    return InProcessPrefetcher(prefetch, run, is_quick=is_quick)


def build_prefetch(engine: Engine, prefetcher: Prefetcher) -> Prefetch:
    """Build how an engine prefetches; what a queue is asked for is under way in another process."""
    claiming, emitter = engine.compactor.claiming, engine.emitter
    if isinstance(prefetcher, InProcessPrefetcher):
        return Prefetch(
            claiming=claiming,
            emitter=emitter,
            start=prefetcher,
            running=prefetcher.running,
            is_quick=prefetcher.is_quick,
        )
    return Prefetch(claiming=claiming, emitter=emitter, start=prefetcher)
