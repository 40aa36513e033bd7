"""Which tokenizer a model gets."""

from __future__ import annotations

import time

import pytest

from compact.core.errors import ConfigError
from compact.core.messages.message import Message
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.tokens import SimpleTokenizer, TiktokenTokenizer, get_tokenizer

IMAGE = Message("user", ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("azure/gpt-oss-20b", "o200k_harmony"),
        ("claude-3-opus", "simple"),
    ],
)
def test_exact_for_openai_models_and_an_estimate_for_others(model: str, name: str) -> None:
    tokenizer: ProviderAwareTokenizer = get_tokenizer(model)
    assert tokenizer.name == name
    assert tokenizer.is_exact == (name != "simple")
    assert isinstance(tokenizer, TiktokenTokenizer | SimpleTokenizer)


def test_simple_can_be_asked_for() -> None:
    assert get_tokenizer("gpt-4o", "simple").name == "simple"
    assert get_tokenizer("gpt-4o", kind="auto").name == "o200k_base"


@pytest.mark.parametrize("kind", ["", "exact", "AUTO", "tiktoken"])
def test_an_unknown_kind_is_a_config_error(kind: str) -> None:
    with pytest.raises(ConfigError, match="auto, simple") as caught:
        get_tokenizer("gpt-4o", kind)
    assert caught.value.field == "tokenizer"


def test_models_of_one_encoding_share_a_tokenizer() -> None:
    assert get_tokenizer("gpt-4o") is get_tokenizer("o3") is get_tokenizer("gpt-4o")


def test_asking_again_is_cheap() -> None:
    get_tokenizer("gpt-4o")
    started = time.perf_counter()
    for _ in range(10_000):
        get_tokenizer("gpt-4o")
    assert time.perf_counter() - started < 3.0


def test_images_follow_the_providers_rule() -> None:
    """Unknown size: 1,445 by OpenAI's tiles, 1,600 by Anthropic's area, the larger one for strangers."""
    plain = {
        model: get_tokenizer(model, "simple").count_message(Message("user", ()))
        for model in ("gpt-4o", "claude-3", "x")
    }
    costs = {model: get_tokenizer(model, "simple").count_message(IMAGE) - bare for model, bare in plain.items()}
    assert costs == {"gpt-4o": 1445, "claude-3": 1600, "x": 1600}
