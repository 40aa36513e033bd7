"""Build what finds again what left: rehydration, and the search by meaning."""

from __future__ import annotations

from collections.abc import Sequence

from compact.config import CompactConfig
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.store import SessionStore
from compact.core.messages.sensitivity import SENSITIVITIES, is_open
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.strategy import CompactionStrategy
from compact.core.plan.turn import Rehydrate
from compact.recall.packaged_model import load_packaged_model
from compact.recall.rehydration import RehydrationConfig, RehydrationInterceptor
from compact.recall.semantic import Embed, SemanticSearch
from compact.strategies import (
    ClearStrategy,
    ExternalizeStrategy,
)


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


def build_semantic_search(config: CompactConfig, embed: Embed | None, usual: str) -> SemanticSearch | None:
    """Build the search by meaning, if it is asked for; confidential content is not shown to its model."""
    if embed is None:
        if not config.recall.semantic:
            return None
        embed = load_packaged_model()
    return SemanticSearch(embed, is_open=lambda message: is_open(message, usual))


def usual_sensitivity(config: CompactConfig, strategies: Sequence[CompactionStrategy] | None = None) -> str:
    """Return the sensitivity of results that do not name theirs: the strictest that the caller's own strategies say."""
    own = [config.strategies.externalize.default_sensitivity]
    own += [s.default_sensitivity for s in strategies or () if isinstance(s, ExternalizeStrategy | ClearStrategy)]
    return max(own, key=SENSITIVITIES.index)
