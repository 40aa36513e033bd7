"""Puts an engine together from a configuration: the one place that chooses plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from compact.archive import FilesystemArchive, S3Archive
from compact.background import InProcessPreparer
from compact.config import CompactConfig
from compact.core.audit.archive import StorageAdapter
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.store import CompactionStore
from compact.core.engine.compaction import Compactor
from compact.core.engine.emitter import Announcer
from compact.core.engine.engine import Engine
from compact.core.engine.events import EventSink
from compact.core.engine.persistence import Keeper
from compact.core.engine.prefetch import Ahead
from compact.core.engine.pricing import Appraiser
from compact.core.engine.session import Session
from compact.core.engine.summarization import SummaryWriter
from compact.core.engine.trigger import Decider
from compact.core.errors import ConfigError
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.plan.coordinator import CompactionCoordinator
from compact.core.plan.durability import ToolDurabilityPolicy
from compact.core.plan.economics import USUAL_RATIOS, Prices
from compact.core.plan.layers import KeepRules
from compact.core.plan.strategy import CompactionStrategy
from compact.core.summary.summarizer import Summarizer
from compact.dialects.entries import ChatEntries
from compact.injection import Injection, Injector
from compact.pricing import ModelPricer
from compact.recall.rehydration import RehydrationConfig, RehydrationInterceptor
from compact.recall.rehydrator import SessionRehydrator
from compact.redaction import Redactor
from compact.stores.memory import InMemoryCompactionStore
from compact.strategies import (
    ClearStrategy,
    DeduplicateStrategy,
    DropStrategy,
    ExternalizeStrategy,
    SummarizeStrategy,
    WindowStrategy,
)
from compact.summary_assembly import build_guard, build_summarizer
from compact.tokens import get_tokenizer, model_info


def build_engine(
    config: CompactConfig,
    *,
    emit: EventSink,
    store: CompactionStore,
    adapter: StorageAdapter | None = None,
    redactor: Redactor | None = None,
    tokenizer: ProviderAwareTokenizer | None = None,
    strategies: Sequence[CompactionStrategy] | None = None,
    summarizer: Summarizer | None = None,
    injectors: Sequence[Injector] = (),
) -> Engine:
    """Everything the configuration names, with whatever the caller brings in its place."""
    policy = config.policy
    tokenizer = tokenizer or get_tokenizer(config.model, config.tokenizer)
    redactor = redactor or Redactor()
    is_by_code = summarizer is None and not config.summarizer.uses_model
    announcer = Announcer(emit, config.model, policy.model_dump(mode="json"))
    keeper = Keeper(
        store=store,
        announcer=announcer,
        adapter=adapter,
        adapter_name=config.storage.adapter,
        redact=redactor.message,
        tenant_id=config.state.tenant_id,
        rules=build_rules(config),
        # Whoever asks a model takes longer: so long nobody else writes the same summary, or has to wait for it.
        claim_seconds=30.0 if is_by_code else 60.0,
    )
    form = ChatEntries()
    compactor = Compactor(
        tokenizer=tokenizer,
        form=form,
        coordinator=CompactionCoordinator(
            build_strategies(config, fills_target=is_by_code) if strategies is None else strategies
        ),
        writer=SummaryWriter(
            summarizer=summarizer or build_summarizer(config, redactor, emit, prices=_own_prices(config)),
            tokenizer=tokenizer,
            keeper=keeper,
            announcer=announcer,
            strategy=policy.strategy,
            on_failure=config.summarizer.on_failure,
            may_be_empty=is_by_code,
            guard=None if is_by_code else build_guard(config),
            cache=store.summaries if config.summarizer.cache and not is_by_code else None,
        ),
        announcer=announcer,
        keeper=keeper,
        rules=build_rules(config),
        appraiser=Appraiser(
            announcer=announcer,
            form=form,
            price=build_pricer(config, summarizer),
            expected_calls=policy.expected_calls,
        ),
    )
    injection = Injection(injectors=tuple(injectors), form=form, tokenizer=tokenizer, announcer=announcer)
    return Engine(
        decider=Decider(enabled=policy.enabled, every_call=policy.cadence == "every_call", injects=bool(injectors)),
        compactor=compactor,
        rehydrator=build_rehydrator(config, store, tokenizer),
        inject=injection if injectors else None,
    )


def build_rules(config: CompactConfig) -> KeepRules:
    """What stays verbatim."""
    policy = config.policy
    return KeepRules(
        recent_turns=policy.keep_recent_turns,
        tool_io_pairs=policy.keep_tool_io_pairs,
        pinned_roles=frozenset(policy.roles_never_prune),
        protected_flag=policy.protected_flag,
    )


def build_strategies(config: CompactConfig, *, fills_target: bool = True) -> tuple[CompactionStrategy, ...]:
    """The strategies that are switched on, cheapest first; a summary that is free fills the room to the target."""
    settings = config.strategies
    policies = {pattern: ToolDurabilityPolicy(**tool.model_dump()) for pattern, tool in settings.clear.tools.items()}
    clear = settings.clear.model_dump(exclude={"enabled", "tools"})
    moved = settings.externalize.model_dump(exclude={"enabled"})
    window = settings.window.model_dump(exclude={"enabled"})
    summary = config.summarizer.model_dump(include={"max_tokens", "target_token_ratio"})
    everything: tuple[tuple[bool, CompactionStrategy], ...] = (
        (settings.deduplicate.enabled, DeduplicateStrategy(min_tokens=settings.deduplicate.min_tokens)),
        (settings.clear.enabled, ClearStrategy(**clear, policies=policies)),
        (
            settings.externalize.enabled,
            ExternalizeStrategy(**moved, never_evict=settings.clear.never_evict, policies=policies),
        ),
        (settings.window.enabled, WindowStrategy(**window)),
        (config.summarizer.enabled, SummarizeStrategy(**summary, fills_target=fills_target)),
        (settings.drop.enabled, DropStrategy(policies=policies)),
    )
    return tuple(strategy for enabled, strategy in everything if enabled)


def build_rehydrator(
    config: CompactConfig, store: CompactionStore, tokenizer: ProviderAwareTokenizer
) -> SessionRehydrator | None:
    """Who shows again what was moved out and is asked for."""
    if not config.rehydration.enabled:
        return None
    limits = RehydrationConfig(**config.rehydration.model_dump(exclude={"enabled"}))
    security = SecurityContext(tenant_id=config.state.tenant_id)
    return SessionRehydrator(RehydrationInterceptor(store.artifacts, tokenizer.count_text, limits, security))


def build_pricer(config: CompactConfig, summarizer: Summarizer | None = None) -> ModelPricer:
    """Who says what a compaction costs; nobody pays for a summary that code writes."""
    is_free = summarizer is None and not config.summarizer.uses_model
    return ModelPricer(
        model=config.model,
        own=_own_prices(config),
        summary_model=None if is_free else config.summarizer.model or config.model,
        # Whoever has every call compacted says that there is no cache to lose.
        has_cache=config.policy.cadence != "every_call",
    )


def _own_prices(config: CompactConfig) -> Prices | None:
    """The prices that are set; cached tokens without one cost what fresh ones do."""
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


def build_store(config: CompactConfig) -> CompactionStore:
    """Where log, plans and calls live; a database is opened when it is first needed."""
    if config.state.url == "memory:":
        return InMemoryCompactionStore()
    from compact.stores.database import Database  # SQLAlchemy is only loaded by those who use it
    from compact.stores.sql import SqlCompactionStore

    return SqlCompactionStore(Database(config.state.url), read=ChatEntries().read, tenant_id=config.state.tenant_id)


def build_archive(config: CompactConfig) -> FilesystemArchive | S3Archive | None:
    """Where transcripts for people go."""
    storage = config.storage
    if storage.adapter == "fs":
        return FilesystemArchive(storage.path)
    if storage.adapter == "s3":
        return S3Archive(
            storage.bucket,
            storage.prefix,
            kms_key_id=storage.kms_key_id,
            region=storage.region,
            endpoint_url=storage.endpoint_url,
        )
    return None


def build_budget(config: CompactConfig, injectors: Sequence[Injector] = ()) -> TokenBudget:
    """The budget of a model; what is sent beside the messages is filled in at each call."""
    policy = config.policy
    injected = sum(injector.reserve_tokens for injector in injectors)
    window = config.max_context_tokens or model_info(config.model).window_tokens
    budget = TokenBudget(
        max_context_tokens=window,
        safety_buffer=policy.hard_cap_buffer,
        output_reserve=policy.output_reserve,
        injection_reserve=policy.injection_reserve + injected,
        rehydration_reserve=policy.rehydration_reserve,
        trigger_pct=policy.trigger_pct,
        prefetch_pct=policy.prefetch_pct,
        target_pct=policy.target_pct,
        tier_caps={tier: round(share * window) for tier, share in policy.tier_caps.items()},
    )
    if budget.ceiling_tokens <= 0:
        raise ConfigError(
            f"a window of {window:,} tokens leaves nothing to use: {window - budget.ceiling_tokens:,} are reserved",
            field="policy.hard_cap_buffer",
            hint="lower policy.hard_cap_buffer and the other reserves (injectors' too), or raise max_context_tokens",
        )
    return budget


class Preparer(Protocol):
    """Has summaries written ahead."""

    def __call__(self, session: Session) -> None:
        """Start preparing for a session, without waiting."""
        ...

    def close(self) -> None:
        """Wait for what is under way here."""
        ...


def build_preparer(config: CompactConfig, prepare: Callable[[Session], bool], *, is_quick: bool) -> Preparer | None:
    """Who has summaries written ahead: nobody for the built-in summariser (`is_quick`), which is quicker than a job."""
    wish = config.summarizer.prepare
    if wish == "never" or (wish == "auto" and is_quick and not config.summarizer.uses_model):
        return None
    if config.state.url.startswith("postgresql"):
        from compact.job_queue import QueuePreparer  # procrastinate is only loaded by those who use it

        return QueuePreparer(config.state.url, tenant_id=config.state.tenant_id)
    return InProcessPreparer(prepare)


def build_ahead(engine: Engine, preparer: Preparer) -> Ahead:
    """How an engine has summaries written ahead; what a queue is asked for is under way in another process."""
    if isinstance(preparer, InProcessPreparer):
        return Ahead(keeper=engine.keeper, announcer=engine.announcer, start=preparer, under_way=preparer.under_way)
    return Ahead(keeper=engine.keeper, announcer=engine.announcer, start=preparer)
