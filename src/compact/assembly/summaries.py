"""Build what writes summaries: code, or the model that the configuration names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from compact.assembly.prices import own_prices
from compact.config import CompactConfig
from compact.core.audit.store import SummaryCache
from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.events import EventSink, NoticeEvent
from compact.core.engine.summarization import SummaryWriter, always_available, ignore_outcome
from compact.core.errors import ConfigError
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.economics import Prices
from compact.core.summary.summarizer import Summarizer
from compact.core.summary.writing import BY_CODE
from compact.pricing import model_prices
from compact.redaction import Redactor
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.summarizers.clients.call_settings import CallSettings
from compact.summarizers.clients.observed import EventEmittingClient
from compact.summarizers.clients.providers import connect
from compact.summarizers.clients.retrying import RetryPolicy
from compact.summarizers.extractive import extractive_summary
from compact.summarizers.llm import LlmSummarizer
from compact.summarizers.llm.templates import PromptTemplates
from compact.summarizers.spending import SpendLimits
from compact.tokens import get_tokenizer, model_info
from compact.tokens.models import ModelProvider


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
            price=_summary_price(model, own_prices(config) if model == config.model else None),
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
