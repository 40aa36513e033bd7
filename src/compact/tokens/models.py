"""What we know about a model from its name: provider, context window, largest input, encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from compact.tokens.names import ModelName, parse_name
from compact.tokens.price_table import host_window_tokens, snapshot_window_tokens
from compact.tokens.windows import (
    AZURE_WINDOW_TOKENS,
    BEDROCK_WINDOWS,
    KNOWN_NAMES,
    OLLAMA_SMALLEST_TOKENS,
    OLLAMA_WINDOW_TOKENS,
    SMALLEST_OF_FAMILY,
    UNKNOWN_WINDOW_TOKENS,
    WINDOWS,
    Limits,
    first_match,
)

# Chosen: `gtp-4o` is near `gpt-4o` (0.83); names that have less in common are other models.
_NEAR_MISS = 0.8
# Chosen: a shorter known name may stand in any text.
_LEAST_LETTERS = 5


class ModelProvider(StrEnum):
    """The provider that serves a model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    AZURE_OPENAI = "azure_openai"
    GOOGLE = "google"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model's provider, window and encoding, and the largest input, which some providers set below the window.

    `window_notice` says what was assumed about the window and what to set, `counter_notice` that tokens are estimated
    for a model that is not known; both are empty for a model that is. Of an open model (`is_open`) the host decides how
    much of the window is served.
    """

    model: str
    provider: ModelProvider
    window_tokens: int
    encoding: str | None
    largest_input_tokens: int
    window_notice: str = ""
    counter_notice: str = ""
    is_open: bool = False

    @property
    def notices(self) -> tuple[str, ...]:
        """What had to be assumed."""
        return tuple(notice for notice in (self.window_notice, self.counter_notice) if notice)


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
_PROVIDERS = _families(
    (r"claude", ModelProvider.ANTHROPIC),
    (r"gemini|gemma", ModelProvider.GOOGLE),
    (r"gpt-|chatgpt|o\d(?:-|$)|codex-|text-embedding-|davinci|babbage|computer-use", ModelProvider.OPENAI),
)
_AZURE = frozenset({"azure", "azure_ai", "azure-ai", "azure-openai", "azure_openai"})


@lru_cache(maxsize=1024)
def model_info(model: str) -> ModelInfo:
    """Look a model up by name; fine-tunes, dated names, hosts and routers are understood."""
    name = parse_name(model)
    provider = _first(_PROVIDERS, name.bare) or ModelProvider.UNKNOWN
    if name.routes & _AZURE and provider in (ModelProvider.OPENAI, ModelProvider.UNKNOWN):
        provider = ModelProvider.AZURE_OPENAI
    encoding = _first(ENCODINGS, name.bare)
    limits, notice, is_known = _limits(model, name, provider)
    is_guessed = not is_known and encoding is None
    counter = f"the tokenizer of model {model!r} is not known: using estimated counts (simple)" if is_guessed else ""
    return ModelInfo(
        model=model,
        provider=provider,
        window_tokens=limits.window_tokens,
        encoding=encoding,
        largest_input_tokens=limits.largest_input_tokens,
        window_notice=notice,
        counter_notice=counter,
        is_open=limits.is_open,
    )


def _limits(model: str, name: ModelName, provider: ModelProvider) -> tuple[Limits, str, bool]:
    """Return the limits of a model, what to tell if they are assumed, and whether the model is known."""
    known = _known_limits(model, name)
    if name.is_ollama and not name.is_cloud:
        return _ollama_limits(model, known)
    if known:
        return known, "", True
    family = first_match(SMALLEST_OF_FAMILY, name.bare)
    is_deployment = provider is ModelProvider.AZURE_OPENAI
    window = family.window_tokens if family else AZURE_WINDOW_TOKENS if is_deployment else UNKNOWN_WINDOW_TOKENS
    why = ", the smallest of its family" if family else ""
    near = _near_miss(name.bare)
    guess = f"; did you mean {near!r}?" if near else ""
    notice = f"the context window of model {model!r} is not known: using {window:,} tokens{why}"
    return Limits(window, window), f"{notice}; set max_context_tokens to its window{guess}", False


def _known_limits(model: str, name: ModelName) -> Limits | None:
    """Return what our table knows; of an open model what its host serves; else what the price list knows."""
    at_bedrock = first_match(BEDROCK_WINDOWS, name.bare) if "bedrock" in name.routes else None
    listed = at_bedrock or first_match(WINDOWS, name.bare)
    if listed and not listed.is_open:
        return listed
    window = host_window_tokens(name)
    if window is None and listed is None:
        window = snapshot_window_tokens(name.bare) or snapshot_window_tokens(model)
    return Limits(window, window) if window else listed


def _ollama_limits(model: str, known: Limits | None) -> tuple[Limits, str, bool]:
    window = min(known.window_tokens if known else OLLAMA_WINDOW_TOKENS, OLLAMA_WINDOW_TOKENS)
    notice = (
        f"Ollama serves {model!r} with the num_ctx it was started with, {OLLAMA_SMALLEST_TOKENS:,} tokens on small "
        f"GPUs, and cuts what is longer without an error: using {window:,} tokens; set max_context_tokens to num_ctx"
    )
    return Limits(window, window), notice, known is not None


def _near_miss(bare: str) -> str:
    """Return the known model that was probably meant: a slip of the keys, or the model in a deployment's name.

    A name that differs from a known one in its figures only is a newer model, and no slip.
    """
    near = get_close_matches(bare, KNOWN_NAMES, n=3, cutoff=_NEAR_MISS)
    near = [known for known in near if _letters(known) != _letters(bare)]
    inside = [known for known in KNOWN_NAMES if len(known) >= _LEAST_LETTERS and known in bare]
    return near[0] if near else max(inside, key=len, default="")


def _letters(name: str) -> str:
    return re.sub(r"[\d.-]", "", name)


def _first(families: _Families[_T], bare: str) -> _T | None:
    return next((value for pattern, value in families if pattern.match(bare)), None)
