"""The real model itself: it starts, answers, repeats itself word for word, and ends."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from compact.testing import system, user
from real_model import NAME, RealModel, need_packages, start

ASKED = (
    system("You write short summaries."),
    user("Summarise: the tests of booking.py fail, 3 of 20. Never touch the migrations. Ship on Friday."),
)


def test_it_answers_the_same_over_three_runs(real_model: RealModel) -> None:
    """Temperature 0 and a seed: the same words, whatever was asked in between."""
    texts: list[str] = []
    for filler in ("one", "two", "three"):
        answer = real_model.complete(*ASKED, max_tokens=16)
        texts.append(answer["choices"][0]["message"]["content"])
        real_model.complete(user(filler), max_tokens=1)
    assert texts[0].strip()
    assert texts == [texts[0]] * 3


def test_the_openai_client_talks_to_it(real_model: RealModel) -> None:
    """An ordinary client, an ordinary answer, with usage."""
    openai: Any = pytest.importorskip("openai", reason="pip install 'compact-context[openai]'")
    client = openai.OpenAI(base_url=real_model.base_url, api_key="none", max_retries=0, timeout=60)
    messages: Any = list(ASKED)
    answer = client.chat.completions.create(model=NAME, messages=messages, max_tokens=16, temperature=0, seed=42)
    assert (answer.model, answer.choices[0].finish_reason) == (NAME, "length")
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16
    assert 30 < answer.usage.prompt_tokens < 80


def test_it_can_be_held_to_a_schema(real_model: RealModel) -> None:
    """Structure is asked for as with the large providers, and comes as JSON."""
    properties = {"tests_failed": {"type": "integer"}, "risky": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "state", "schema": schema}}
    answer = real_model.complete(*ASKED, max_tokens=64, response_format=wanted)
    assert set(json.loads(answer["choices"][0]["message"]["content"])) == set(properties)


def test_it_says_when_a_prompt_is_too_long(real_model: RealModel) -> None:
    """Longer than its window is an error, not a silent cut."""
    with pytest.raises(HTTPError, match="400") as caught:
        real_model.complete(user("word " * (real_model.window_tokens + 10)))
    with caught.value as error:
        assert "exceeds the available context size" in error.read().decode()


def test_it_ends_with_the_tests_and_leaves_nothing() -> None:
    """A server of one's own: it stops by itself when its input is closed, and its log goes with it."""
    need_packages()
    own = start()
    with urlopen(f"{own.base_url}/models", timeout=10) as answer:
        assert json.load(answer)["data"][0]["id"] == NAME
    assert (own.stop(), own.stop()) == (0, 0)
    assert not own.log.exists()
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{own.base_url}/models", timeout=10)
