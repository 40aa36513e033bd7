"""Builders, fakes and conformance suites: what our own tests use, for yours.

Histories are built as plain Chat Completions dicts; a suite raises AssertionError with what a plug got wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compact.core.engine.events import CompactionEvent
from compact.core.log.entries import read_entry
from compact.core.log.legality import check_chat
from compact.core.log.messages import Message, copy_plain
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.coordinator import CompactionCoordinator
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import CompactionStrategy, Goal
from compact.dialects import Dialect
from compact.dialects.translation import Translator
from compact.testing.store_checks import (
    check_compaction_store,
    check_store_claims,
    check_store_for_engine,
    check_store_for_readers,
)
from compact.testing.store_part_checks import check_artifact_store, check_summary_cache, check_summary_claims
from compact.testing_model import (
    Answer,
    ModelRequest,
    ScriptedModel,
    cut,
    echo,
    empty,
    fail,
    held,
    malformed,
    overlong,
    refuse,
    say,
    say_json,
    slow,
    think,
    truncated,
    wrong_type,
)

__all__ = [
    "Answer",
    "ModelRequest",
    "RecordingSink",
    "ScriptedModel",
    "Wire",
    "WordTokenizer",
    "assistant",
    "check_artifact_store",
    "check_compaction_store",
    "check_dialect",
    "check_store_claims",
    "check_store_for_engine",
    "check_store_for_readers",
    "check_strategy",
    "check_summary_cache",
    "check_summary_claims",
    "check_tokenizer",
    "cut",
    "dialogue",
    "echo",
    "empty",
    "fail",
    "held",
    "malformed",
    "overlong",
    "refuse",
    "say",
    "say_json",
    "slow",
    "system",
    "think",
    "tool_exchange",
    "tool_run",
    "truncated",
    "user",
    "wrong_type",
]

Wire = dict[str, Any]
E_ = TypeVar("E_", bound=CompactionEvent)


def system(text: str) -> Wire:
    """A system message."""
    return {"role": "system", "content": text}


def user(text: str, *, protected: bool = False) -> Wire:
    """A user message, pinned if asked."""
    return {"role": "user", "content": text, **({"meta": {"protected": True}} if protected else {})}


def assistant(text: str) -> Wire:
    """A plain reply."""
    return {"role": "assistant", "content": text}


def tool_exchange(call_id: str, result: str, *, tool: str = "read_file", **arguments: Any) -> list[Wire]:
    """A call and its result."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def dialogue(pairs: int, *, words: int = 1) -> list[Wire]:
    """User/assistant pairs, each message with so many words."""
    history: list[Wire] = []
    for number in range(1, pairs + 1):
        filler = " word" * (words - 1)
        history += [user(f"question-{number}{filler}"), assistant(f"answer-{number}{filler}")]
    return history


def tool_run(exchanges: int, *, words: int = 50, tool: str = "read_file") -> list[Wire]:
    """One request and a long run of tool calls, each result with so many words."""
    history = [user("do the whole thing")]
    for number in range(1, exchanges + 1):
        result = f"result-{number}" + " word" * (words - 1)
        history += tool_exchange(f"call-{number}", result, tool=tool, path=f"src/file_{number}.py")
    return history


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """A token is a word: sizes in tests can be read off the text. Messages cost nothing but their words."""

    name: str = "words"
    is_exact: bool = True

    def count_text(self, text: str) -> int:
        """Words between white space."""
        return len(text.split())

    def count_message(self, message: Message) -> int:
        """The words of content and arguments."""
        return self.count_text(message.text) + sum(self.count_text(call.arguments) for call in message.tool_calls)

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """The words of the schemas as JSON."""
        return sum(self.count_text(json.dumps(tool)) for tool in tools)


@dataclass(slots=True)
class RecordingSink:
    """Keeps every event it is given."""

    events: list[CompactionEvent] = field(default_factory=list[CompactionEvent])

    def __call__(self, event: CompactionEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[E_]) -> list[E_]:
        """The events of one kind, oldest first."""
        return [event for event in self.events if isinstance(event, kind)]


def check_tokenizer(tokenizer: ProviderAwareTokenizer) -> None:
    """What the engine relies on in a token counter."""
    assert tokenizer.name, "a tokenizer has a name"
    assert tokenizer.count_text("") == 0, "nothing weighs nothing"
    assert tokenizer.count_text("hello world") > 0, "text has weight"
    for text in ("a\ud800b", "<|endoftext|>", "\x00", "ſ's 'ſ", "🧠" * 10):
        assert tokenizer.count_text(text) >= 0, f"cannot count {text!r}"
    short, long = Message("user", "word"), Message("user", "word " * 100)
    assert tokenizer.count_message(short) < tokenizer.count_message(long), "longer messages weigh more"
    assert tokenizer.count_message(long) == tokenizer.count_message(long), "counting is deterministic"
    assert tokenizer.count_tools([]) == 0, "no tools weigh nothing"


def check_dialect(dialect: Dialect, sample: Sequence[object]) -> None:
    """What the doors rely on in a dialect; `sample` is a legal history in it, as it goes to the provider."""
    before = copy_plain(list(sample))
    assert not dialect.check(sample), "the sample is not legal in its own dialect"
    assert not any(dialect.recognises(item) is False for item in sample), "a dialect knows its own items"
    blocks = list(dialect.read(sample, 0))
    there = [item for block in blocks for item in block.items]
    assert len(there) == len(sample), "every item is in one block"
    assert all(a is b for a, b in zip(there, sample, strict=True)), "blocks hold the items themselves, in order"
    translator = Translator(dialect)
    entries = translator.entries(sample)
    given_back = translator.items(entries)
    assert all(a is b for a, b in zip(given_back, sample, strict=True)), "what nobody changed is given back as it is"
    messages = [read_entry(entry, f"entries[{place}]") for place, entry in enumerate(entries)]
    assert not check_chat(messages), "entries are legal Chat Completions"
    stored = json.loads(json.dumps(entries))
    rebuilt = [item for block in dialect.join(list(dialect.write(stored))) for item in block.items]
    assert rebuilt == list(sample), "items can be made from their entries alone, after these were stored"
    assert list(sample) == before, "the caller's items are not touched"


def check_strategy(strategy: CompactionStrategy, messages: Sequence[Message], rules: KeepRules | None = None) -> None:
    """What the coordinator relies on in a strategy: it touches no kept message, and proposes the same every time."""
    rules = rules or KeepRules(recent_turns=1, tool_io_pairs=1)
    counter = WordTokenizer()
    tokens = [counter.count_message(message) for message in messages]
    results = [
        CompactionCoordinator([strategy]).coordinate(
            messages,
            CompactionPlan("suite"),
            tokens=tokens,
            count_message=counter.count_message,
            rules=rules,
            goal=Goal(target_tokens=0, settle_tokens=10**9, ceiling_tokens=10**9),
        )
        for _ in range(2)
    ]
    first, second = results
    assert not first.failures, f"{strategy.name} failed: {first.failures}"
    assert first.plan.to_dict() == second.plan.to_dict(), f"{strategy.name} proposes something else the second time"
    assert CompactionPlan.from_dict(first.plan.to_dict()) == first.plan, (
        f"{strategy.name}: its plan does not round-trip"
    )
    for index in first.layers.kept:
        assert first.plan.get_action(messages[index].id)[1] is None, f"{strategy.name} touched a kept message"
    prompt = PromptRenderer().render(messages, first.plan)
    shown = {message_id for slot in prompt.slots for message_id in slot.ids} | set(prompt.hidden)
    assert shown == {message.id for message in messages}, f"{strategy.name} lost a message"
