"""Puts together who writes summaries: the model that is named, what it may cost, and what is remembered of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from compact.config import CompactConfig
from compact.core.engine.events import EventSink, NoticeEvent
from compact.core.errors import ConfigError
from compact.core.plan.economics import Prices
from compact.core.summary.summarizer import Summarizer
from compact.pricing import model_prices
from compact.redaction import Redactor
from compact.summarizers.call_settings import CallSettings
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.summarizers.extractive import extractive_summary
from compact.summarizers.llm import LlmSummarizer
from compact.summarizers.observed import ObservedClient
from compact.summarizers.providers import connect
from compact.summarizers.retrying import Patience
from compact.summarizers.spending import Accounts
from compact.summarizers.templates import Prompts
from compact.tokens import get_tokenizer, model_info
from compact.tokens.models import ModelProvider

# For a model that nobody knows: servers of one's own are often started with little, and cut without a word.
_UNKNOWN_WINDOW_TOKENS = 32_000


def build_summarizer(
    config: CompactConfig, redactor: Redactor, emit: EventSink, *, prices: Prices | None = None
) -> Summarizer:
    """Who writes summaries: code, or the model that the configuration names; `prices` are the agent's model's own."""
    settings = config.summarizer
    if not settings.uses_model:
        return extractive_summary
    model = settings.model or config.model
    counter = get_tokenizer(model, config.tokenizer)
    wishes: dict[str, Any] = {"seed": settings.seed, "temperature": settings.temperature}
    if settings.response_format == "json":
        wishes["response_format"] = {"type": "json_object"}
    accounts = Accounts(
        max_usd=settings.max_spend_usd_per_session,
        max_calls=settings.max_calls_per_session,
        price=_summary_price(model, prices if model == config.model else None),
    )
    provider = summary_provider(config)
    client = connect(provider, model, base_url=settings.base_url or None, api_key=_summary_key(config))
    return LlmSummarizer(
        ObservedClient(client=client, emit=emit, model=model, provider=provider),
        model=model,
        window_tokens=summary_window(config, model, emit),
        # What is only estimated is taken for more than it may be: the request must fit in any case.
        count_text=counter.count_text if counter.is_exact else lambda text: counter.count_text(text) * 6 // 5 + 1,
        prompts=Prompts.load(settings.prompts_dir, settings.prompts),
        settings=CallSettings({name: wish for name, wish in wishes.items() if wish is not None}, settings.options),
        patience=Patience(total_seconds=settings.timeout_seconds),
        accounts=accounts,
        redact=redactor.message if settings.redact else None,
    )


def summary_provider(config: CompactConfig) -> str:
    """Whose dialect the model that writes summaries speaks, by its name unless that is set."""
    settings = config.summarizer
    if settings.provider != "auto":
        return settings.provider
    is_anthropic = model_info(settings.model or config.model).provider is ModelProvider.ANTHROPIC
    return "anthropic" if is_anthropic else "openai"


def _summary_key(config: CompactConfig) -> str | None:
    """The key that is set, or None for the provider's own variable."""
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
    """The window of the model that writes summaries; one that nobody knows is taken for small."""
    settings = config.summarizer
    is_the_agents = model == config.model and not settings.base_url
    given = settings.max_context_tokens or (config.max_context_tokens if is_the_agents else None)
    if given:
        return given
    info = model_info(model)
    if not any("window" in notice for notice in info.notices):
        return info.window_tokens
    notice = f"the window of the summariser's model {model!r} is not known: using {_UNKNOWN_WINDOW_TOKENS:,} tokens"
    emit(NoticeEvent(thread_id="", message=f"{notice}; summarizer.max_context_tokens sets it"))
    return _UNKNOWN_WINDOW_TOKENS


def _summary_price(model: str, own: Prices | None) -> Callable[[int, int], float | None]:
    def price(input_tokens: int, output_tokens: int) -> float | None:
        prices = own or model_prices(model, input_tokens=input_tokens)
        return prices.fresh * input_tokens + prices.output * output_tokens if prices else None

    return price


def build_guard(config: CompactConfig) -> CircuitBreaker:
    """Who says when a summariser is to be left alone."""
    settings = config.summarizer
    return CircuitBreaker(failures=settings.pause_after_failures, pause_seconds=settings.pause_seconds)
