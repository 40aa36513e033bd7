"""Which tokenizer counts for a model."""

from __future__ import annotations

from functools import cache, lru_cache

from compact.core.errors import ConfigError
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.tokens.exact import TiktokenTokenizer
from compact.tokens.images import ImageRule
from compact.tokens.models import ModelProvider, model_info
from compact.tokens.simple import SimpleTokenizer

KINDS = ("auto", "simple")

_IMAGE_RULES: dict[ModelProvider, ImageRule] = {
    ModelProvider.OPENAI: "tiles",
    ModelProvider.AZURE_OPENAI: "tiles",
    ModelProvider.ANTHROPIC: "area",
    ModelProvider.GOOGLE: "gemini",
}


@lru_cache(maxsize=1024)
def get_tokenizer(model: str, kind: str = "auto") -> ProviderAwareTokenizer:
    """Return the tokenizer for a model: exact where its encoding is published, otherwise an estimate."""
    if kind not in KINDS:
        raise ConfigError(f"unknown tokenizer {kind!r}", field="tokenizer", hint=f"use one of {', '.join(KINDS)}")
    info = model_info(model)
    if kind == "auto" and info.encoding is not None:
        return _exact(info.encoding)
    rule = _IMAGE_RULES.get(info.provider, "largest")
    return _simple("gemini_3" if rule == "gemini" and "gemini-3" in model else rule)


@cache
def _exact(encoding: str) -> TiktokenTokenizer:
    return TiktokenTokenizer(encoding)


@cache
def _simple(image_rule: ImageRule) -> SimpleTokenizer:
    return SimpleTokenizer(image_rule=image_rule)
