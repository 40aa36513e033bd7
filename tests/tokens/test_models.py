"""What a model's name tells, and what is said when it tells nothing."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.tokens import ModelProvider, model_info
from compact.tokens.price_table import snapshot_window_tokens
from compact.tokens.windows import UNKNOWN_WINDOW_TOKENS, WINDOWS, first_match

# Ours is what the provider's own page says; the snapshot rounds or mixes families.
DELIBERATE = {"claude-2": 100_000, "gpt-3.5-turbo-instruct": 4_096, "gemini-1.5-pro": 2_097_152}


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("GPT-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("gpt-5.4-pro", "o200k_base"),
        ("gpt-5-codex", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini-2025-01-31", "o200k_base"),
        ("o4-mini", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("codex-mini-latest", "o200k_base"),
        ("gpt-oss-120b", "o200k_harmony"),
        ("openai/gpt-oss-20b", "o200k_harmony"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
        ("azure/gpt-35-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc123", "o200k_base"),
        ("ft:gpt-3.5-turbo:acme:bot:xyz", "cl100k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("openai:gpt-4o", "o200k_base"),
        ("openrouter/openai/gpt-4.1", "o200k_base"),
        ("openai.gpt-oss-120b-1:0", "o200k_harmony"),
        ("claude-sonnet-4-5", None),
        ("gemini-2.5-pro", None),
        ("gpt-6-sol", None),
        ("o1x", None),
        ("codestral", None),
        ("", None),
    ],
)
def test_encoding_by_family(model: str, encoding: str | None) -> None:
    """Dates, fine-tunes and prefixes do not hide the family."""
    assert model_info(model).encoding == encoding


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("azure/gpt-4o-2024-08-06", 128_000),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-5", 400_000),
        ("gpt-5-chat-latest", 128_000),
        ("gpt-5.4", 1_050_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.1-codex-max", 400_000),
        ("gpt-4", 8_192),
        ("gpt-4-32k-0613", 32_768),
        ("gpt-4-0125-preview", 128_000),
        ("gpt-3.5-turbo", 16_385),
        ("o3", 200_000),
        ("o1-mini", 128_000),
        ("ft:gpt-4o:acme::1", 128_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("claude-opus-4-20250514", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-4.6", 1_000_000),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("anthropic/claude-sonnet-5", 1_000_000),
        ("vertex_ai/claude-sonnet-4@20250514", 200_000),
        ("gemini-1.5-pro-002", 2_097_152),
        ("models/gemini-2.5-pro", 1_048_576),
        ("google-gla:gemini-3-flash-preview", 1_048_576),
        ("gpt-4o-realtime-preview", 32_000),
        ("grok-3", 131_072),
        ("deepseek/deepseek-v3.2", 128_000),
    ],
)
def test_window_by_family_or_snapshot(model: str, window: int) -> None:
    """Known windows come without a notice about them."""
    info = model_info(model)
    assert info.window_tokens == window
    assert not any("context window" in notice for notice in info.notices)


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-4o", ModelProvider.OPENAI),
        ("ft:gpt-4o:acme::1", ModelProvider.OPENAI),
        ("azure/gpt-4o", ModelProvider.AZURE_OPENAI),
        ("azure/our-deployment", ModelProvider.AZURE_OPENAI),
        ("azure:gpt-4o", ModelProvider.AZURE_OPENAI),
        ("azure_ai/claude-opus-4-6", ModelProvider.ANTHROPIC),
        ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", ModelProvider.ANTHROPIC),
        ("gemini/gemini-2.5-flash", ModelProvider.GOOGLE),
        ("llama-3.3-70b", ModelProvider.UNKNOWN),
        ("", ModelProvider.UNKNOWN),
    ],
)
def test_provider(model: str, provider: ModelProvider) -> None:
    """The family decides; a route through Azure makes an OpenAI model Azure's."""
    assert model_info(model).provider is provider


def test_every_fallback_is_said() -> None:
    """The notices name the model and what is used instead."""
    info = model_info("made-up-model-9000")
    assert info.window_tokens == UNKNOWN_WINDOW_TOKENS
    assert len(info.notices) == 2
    assert all("'made-up-model-9000'" in notice for notice in info.notices)
    assert "32,000" in info.notices[0]
    assert "simple" in info.notices[1]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-6", "claude-3-5-sonnet-latest", "gemini-2.5-pro", "grok-3"])
def test_a_well_known_model_needs_no_notice(model: str) -> None:
    """Nor is it worth one that a provider's vocabulary is not published: there is nothing to set."""
    assert model_info(model).notices == ()


def test_without_the_snapshot_the_window_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is a missing answer, not an error."""
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert snapshot_window_tokens("grok-3") is None


def test_our_windows_agree_with_the_snapshot() -> None:
    """Within five per cent wherever both know a model, but for the listed differences."""
    from genai_prices.data_snapshot import get_snapshot

    compared = 0
    for provider in get_snapshot().providers:
        if provider.id not in ("openai", "anthropic", "google"):
            continue
        for model in provider.models:
            limits = first_match(WINDOWS, model.id)
            if limits is None or not model.context_window:
                continue
            compared, ours = compared + 1, limits.window_tokens
            expected = DELIBERATE.get(model.id, model.context_window)
            assert abs(ours - expected) <= 0.05 * expected, (model.id, ours, model.context_window)
    assert compared > 50


@given(st.text(max_size=30))
@settings(deadline=None)
def test_any_name_has_an_answer(model: str) -> None:
    info = model_info(model)
    assert info.model == model
    assert info.window_tokens > 0
