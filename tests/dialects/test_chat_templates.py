"""Compacted chats through the real templates of open models, which refuse what their model was not trained on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import files
from typing import Any

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from compact import CompactConfig, CompactManager
from compact.core.messages.turn_order import LEFT_OUT
from compact.dialects.chat_check import check_turns
from compact.testing import WordTokenizer
from dialect_conversations import Wire

# Those in which user and assistant must alternate, and four that take any order; Gemma has no system message.
STRICT = ("gemma", "gemma3", "mistral_v1", "mistral_v2v3", "mistral_v3_tekken", "cohere", "aya")
STRICT_WITH_TOOLS = ("mistral_v2v3", "mistral_v3_tekken")
FREE = ("llama3", "llama4", "qwen3", "deepseek_v3")
WITHOUT_SYSTEM = ("gemma",)


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


def rendered(name: str, messages: Sequence[Wire], **more: Any) -> str:
    return template(name).render(
        messages=messages, bos_token="<s>", eos_token="</s>", add_generation_prompt=True, **more
    )


@pytest.fixture
def manager() -> Iterator[CompactManager]:
    config = CompactConfig(
        max_context_tokens=3_000,
        policy={"hard_cap_buffer": 10},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        yield manager


class Chat:
    """A chat of a hundred turns; the caller keeps all of it, or goes on from what was sent."""

    def __init__(self, seed: int, *, is_sent_back: bool = False, has_system: bool = True, uses_tools: bool = False):
        self.chance = random.Random(seed)
        self.is_sent_back, self.has_system, self.uses_tools = is_sent_back, has_system, uses_tools
        self.messages = 0

    def prompts(self, manager: CompactManager) -> Iterator[list[Wire]]:
        history: list[Wire] = [{"role": "system", "content": "Be brief."}] if self.has_system else []
        for turn in range(100):
            for new in ([self._asked(turn)], *self._exchanges(turn)):
                history += new
                self.messages += len(new)
                prompt = manager.preflight("s", history)
                yield prompt
                history = list(prompt) if self.is_sent_back else history
            history.append({"role": "assistant", "content": f"answer {turn} " + self._words(80)})
            self.messages += 1
        self.messages += self.has_system - 1  # the last answer was not shown to the manager

    def _words(self, most: int) -> str:
        return "word " * self.chance.randrange(5, most)

    def _asked(self, turn: int) -> Wire:
        asked: Wire = {"role": "user", "content": f"question {turn} " + self._words(60)}
        if self.chance.random() < 0.1:
            asked["meta"] = {"protected": True}
        return asked

    def _exchanges(self, turn: int) -> Iterator[list[Wire]]:
        for number in range(self.chance.randrange(4) if self.uses_tools else 0):
            call_id = f"call{turn:03d}{number:02d}"  # nine characters: Mistral wants no other
            arguments = '{"path": "a.py"}'
            call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}
            yield [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call_id, "content": self._words(120)},
            ]


@pytest.mark.parametrize("is_sent_back", [False, True])
@pytest.mark.parametrize("name", [*STRICT, *FREE])
def test_every_prompt_of_a_chat_is_taken(manager: CompactManager, name: str, is_sent_back: bool) -> None:
    chat = Chat(len(name), is_sent_back=is_sent_back, has_system=name not in WITHOUT_SYSTEM)
    for turn, prompt in enumerate(chat.prompts(manager)):
        text = rendered(name, prompt)
        assert f"question {turn} word" in text
        assert list(check_turns(prompt)) == []
        if (summary := manager.current_plan("s").summary) is not None:
            assert f"<COMPACT-SUMMARY v{summary.version}>" in text
    assert manager.current_plan("s").version > 3
    assert len(manager.history("s")) == chat.messages, "lines of ours are known when they come back"


@pytest.mark.parametrize("is_sent_back", [False, True])
@pytest.mark.parametrize("name", STRICT_WITH_TOOLS)
def test_every_prompt_of_a_chat_with_tools_is_taken(manager: CompactManager, name: str, is_sent_back: bool) -> None:
    chat = Chat(len(name) + 1, is_sent_back=is_sent_back, uses_tools=True)
    for prompt in chat.prompts(manager):
        assert rendered(name, prompt)
        assert list(check_turns(prompt)) == []
    assert manager.current_plan("s").version > 3
    assert len(manager.history("s")) == chat.messages


@pytest.mark.parametrize("seed", range(6))
def test_what_was_protected_stays_a_message_of_its_own(manager: CompactManager, seed: int) -> None:
    for prompt in Chat(seed).prompts(manager):
        protected = [message.text for message in manager.history("s") if message.meta.get("protected")]
        assert set(protected) <= {item["content"] for item in prompt}
    assert protected


@pytest.mark.parametrize("name", STRICT)
def test_a_template_refuses_what_does_not_alternate(name: str) -> None:
    """So that the tests above can fail."""
    user, assistant = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    assert rendered(name, [user, assistant, user])
    for messages in ([assistant, user], [user, user], [user, assistant, assistant, user]):
        with pytest.raises(TemplateError):
            rendered(name, messages)
        assert list(check_turns(messages))


def test_a_list_that_does_not_alternate_gets_no_lines(manager: CompactManager) -> None:
    """Its model takes it as it is."""
    history: list[Wire] = [{"role": "user", "content": f"note {n} " + "word " * 30} for n in range(120)]
    prompt = manager.preflight("s", history)
    assert manager.current_plan("s").version > 0
    assert len(prompt) > 3
    lines = [place for place, item in enumerate(prompt) if item["content"] == LEFT_OUT]
    assert lines == [0], "the summary never stands first"
