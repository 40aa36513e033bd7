"""Compacted chats through the real templates of open models, which refuse what their model was not trained on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from importlib.metadata import files
from typing import Any

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from compact import CompactConfig, CompactManager
from compact.dialects import ALTERNATING_CHAT
from compact.dialects.alternating import alternates, check_alternation
from compact.testing import WordTokenizer
from dialect_conversations import Wire

# Those that alternate, and four that take any order; Gemma has no system message.
STRICT = ("gemma", "gemma3", "mistral_v1", "mistral_v2v3", "mistral_v3_tekken", "cohere", "aya")
FREE = ("llama3", "llama4", "qwen3", "deepseek_v3")
WITHOUT_SYSTEM = ("gemma",)
NAMES = (*STRICT, *FREE)


@cache
def template(name: str) -> Any:
    """The template of a model, as the package of a training tool has it."""
    wanted = f"chat_templates/templates/{name}.jinja"
    (file,) = [file for file in files("axolotl") or () if str(file).endswith(wanted)]
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: "2026-01-01"
    return environment.from_string(file.locate().read_text(encoding="utf-8"))


def rendered(name: str, messages: list[Wire]) -> str:
    return template(name).render(messages=messages, bos_token="<s>", eos_token="</s>", add_generation_prompt=True)


@pytest.fixture
def manager() -> Iterator[CompactManager]:
    config = CompactConfig(
        max_context_tokens=900,
        policy={"hard_cap_buffer": 10},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        yield manager


def prompts(manager: CompactManager, seed: int, *, is_sent_back: bool, has_system: bool) -> Iterator[list[Wire]]:
    """The prompts of a chat of forty turns; the caller keeps all of it, or goes on from what was sent."""
    chance = random.Random(seed)
    history: list[Wire] = [{"role": "system", "content": "Be brief."}] if has_system else []
    for turn in range(40):
        asked: Wire = {"role": "user", "content": f"question {turn} " + "word " * chance.randrange(5, 60)}
        if chance.random() < 0.05:
            asked["meta"] = {"protected": True}
        history.append(asked)
        prompt = manager.preflight("s", history)
        yield prompt
        answer = {"role": "assistant", "content": f"answer {turn} " + "word " * chance.randrange(5, 80)}
        history = [*(prompt if is_sent_back else history), answer]
    assert len(manager.history("s")) == 80 + has_system - 1, "whatever was put together is known when it comes back"


@pytest.mark.parametrize("is_sent_back", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_of_a_chat_is_taken(manager: CompactManager, name: str, is_sent_back: bool) -> None:
    has_system = name not in WITHOUT_SYSTEM
    for turn, prompt in enumerate(prompts(manager, len(name), is_sent_back=is_sent_back, has_system=has_system)):
        text = rendered(name, prompt)
        assert f"question {turn} word" in text
        assert list(check_alternation(prompt)) == []
        if (summary := manager.current_plan("s").summary) is not None:
            assert f"<COMPACT-SUMMARY v{summary.version}>" in text
    assert manager.current_plan("s").version > 3


@pytest.mark.parametrize("name", STRICT)
def test_a_template_refuses_what_does_not_alternate(name: str) -> None:
    """So that the test above can fail."""
    user, assistant = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    assert rendered(name, [user, assistant, user])
    for messages in ([assistant, user], [user, user], [user, assistant, assistant, user]):
        with pytest.raises(TemplateError):
            rendered(name, messages)
        assert list(check_alternation(messages))
        assert not alternates(messages)


def test_messages_of_one_role_are_put_together_word_for_word(manager: CompactManager) -> None:
    for prompt in prompts(manager, 3, is_sent_back=False, has_system=True):
        texts = "\n\n".join(item["content"] for item in prompt)
        protected = [message.text for message in manager.history("s") if message.meta.get("protected")]
        assert all(text in texts for text in protected)
    assert ALTERNATING_CHAT.check(prompt) == ()


def test_parts_are_put_together_as_parts() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    first: Wire = {"role": "user", "content": "look"}
    second: Wire = {"role": "user", "content": [{"type": "text", "text": "here"}, picture]}
    blocks = list(ALTERNATING_CHAT.write([first, second]))
    (joined,) = ALTERNATING_CHAT.join(blocks)
    assert joined.items[0]["content"] == [{"type": "text", "text": "look"}, *second["content"]]
    assert joined.entries == (first, second)


def test_a_list_that_does_not_alternate_goes_out_message_by_message(manager: CompactManager) -> None:
    """Its models take it as it is, so nothing is put together; a name or a call is no plain chat either."""
    history: list[Wire] = [{"role": "user", "content": f"note {n} " + "word " * 30} for n in range(60)]
    prompt = manager.preflight("s", history)
    assert manager.current_plan("s").version > 0
    assert len(prompt) > 3
    assert all("\n\nnote" not in item["content"] for item in prompt if "<COMPACT" not in item["content"])
    assert not alternates([{"role": "user", "content": "a", "name": "ann"}])
    assert not alternates([{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": []}])


def test_a_chat_that_begins_to_use_tools_keeps_what_it_knows(manager: CompactManager) -> None:
    for prompt in prompts(manager, 5, is_sent_back=True, has_system=True):
        last = prompt
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    more: list[Wire] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    before = len(manager.history("s"))
    manager.preflight("s", [*last, *more])
    assert len(manager.history("s")) == before + 2
