"""What we know about a model from its name: provider, context window, encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from compact.tokens.price_table import snapshot_window_tokens

FALLBACK_WINDOW_TOKENS = 128_000


class ModelProvider(StrEnum):
    """The provider that serves a model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    AZURE_OPENAI = "azure_openai"
    GOOGLE = "google"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model's provider, window and encoding; `notices` say what had to be assumed."""

    model: str
    provider: ModelProvider
    window_tokens: int
    encoding: str | None
    notices: tuple[str, ...] = ()


_T = TypeVar("_T")
_Families = tuple[tuple[re.Pattern[str], _T], ...]


def _families(*rows: tuple[str, _T]) -> _Families[_T]:
    return tuple((re.compile(pattern), value) for pattern, value in rows)


# First match wins, so the narrower family stands before the wider one.
ENCODINGS = _families(
    (r"gpt-oss", "o200k_harmony"),
    (r"gpt-4o|gpt-4\.[15]|gpt-5|chatgpt-4o|codex-|o[134](?:-|$)", "o200k_base"),
    (r"gpt-4(?:-|$)|gpt-3\.5|gpt-35|text-embedding-(?:3|ada-002)|(?:davinci|babbage)-002", "cl100k_base"),
)
_NOT_CHAT = r"(?!.*(?:realtime|transcribe|tts|image|audio|live|embedding|omni|cyber|search-api))"
WINDOWS = _families(
    (r"gpt-oss", 131_072),
    (r"gpt-5(?:\.[123])?-chat|gpt-5\.3(?:-\d|$)", 128_000),
    (r"gpt-5\.4-(?:mini|nano)", 400_000),
    (rf"gpt-5\.[46]{_NOT_CHAT}", 1_050_000),
    (rf"gpt-5\.5{_NOT_CHAT}", 1_000_000),
    (rf"gpt-5(?:\.[123])?(?:-|$){_NOT_CHAT}", 400_000),
    (r"gpt-4\.1", 1_047_576),
    (rf"gpt-4o{_NOT_CHAT}|chatgpt-4o|gpt-4-turbo|gpt-4-(?:1106|0125|vision)|gpt-4\.5", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4(?:-0|$)", 8_192),
    (r"gpt-3\.5-turbo-instruct", 4_096),
    (r"gpt-3\.5-turbo|gpt-35-turbo", 16_385),
    (r"o1-(?:mini|preview)", 128_000),
    (r"o[134](?:-|$)|codex-mini", 200_000),
    (r"text-embedding-(?:3|ada-002)", 8_191),
    (r"claude-(?:fable-5|opus-5|sonnet-5|haiku-5[-.]5|opus-4[-.][678]|sonnet-4[-.]6)", 1_000_000),
    (r"claude-(?:3|opus-4|sonnet-4|haiku-4)", 200_000),
    (r"gemini-1\.5-pro", 2_097_152),
    (rf"gemini-(?:1\.5|2\.[05]|3(?:\.\d)?)-(?:flash|pro){_NOT_CHAT}|gemini-(?:flash|pro)-latest", 1_048_576),
)
_PROVIDERS = _families(
    (r"claude", ModelProvider.ANTHROPIC),
    (r"gemini|gemma", ModelProvider.GOOGLE),
    (r"gpt-|chatgpt|o\d(?:-|$)|codex-|text-embedding-|davinci|babbage|computer-use", ModelProvider.OPENAI),
)
_AZURE = frozenset({"azure", "azure_ai", "azure-openai", "azure_openai"})
_ROUTES = re.compile(
    r"(?:(?:azure(?:[_-]ai|[_-]openai)?|openai(?:-chat|-responses)?|anthropic|google(?:-gla|-vertex)?|bedrock|vertex_ai"
    r"|openrouter|litellm):)?(?:(?:us|eu|apac|jp|au|global)\.)?(?:(?:anthropic|openai|google)\.)?"
)


@lru_cache(maxsize=1024)
def model_info(model: str) -> ModelInfo:
    """Look a model up by name; fine-tunes, dated names and provider prefixes are understood."""
    route, bare = _split(model)
    provider = _first(_PROVIDERS, bare) or ModelProvider.UNKNOWN
    if route & _AZURE and provider in (ModelProvider.OPENAI, ModelProvider.UNKNOWN):
        provider = ModelProvider.AZURE_OPENAI
    encoding = _first(ENCODINGS, bare)
    window = _first(WINDOWS, bare) or snapshot_window_tokens(bare) or snapshot_window_tokens(model)
    notices: list[str] = []
    if window is None:
        window = FALLBACK_WINDOW_TOKENS
        notices.append(f"the context window of model {model!r} is not known: using {window:,} tokens")
    if encoding is None:
        notices.append(f"the tokenizer of model {model!r} is not known: using estimated counts (simple)")
    return ModelInfo(model, provider, window, encoding, tuple(notices))


def _split(model: str) -> tuple[frozenset[str], str]:
    """Return the words before the model's own name (who routes it) and that name alone."""
    *before, last = model.strip().lower().split("/")
    if last.startswith("ft:"):
        # ft:<base model>:<organisation>:<name>:<id>
        return frozenset(before), last.split(":")[1]
    match = _ROUTES.match(last)
    end = match.end() if match else 0
    return frozenset([*before, last[:end].partition(":")[0]]), last[end:]


def _first(families: _Families[_T], bare: str) -> _T | None:
    return next((value for pattern, value in families if pattern.match(bare)), None)
