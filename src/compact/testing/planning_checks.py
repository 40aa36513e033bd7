"""Conformance suites for what planning relies on: token counters, strategies and constraint finders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from compact.core.facts.constraints import Constraint, ConstraintFinder
from compact.core.messages.message import Message, ToolCall
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import CompactionStrategy, Goal
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult
from compact.testing.builders import WordTokenizer

_ODD_TEXTS = ("a\ud800b", "<|endoftext|>", "\x00", "ſ's 'ſ", "🧠" * 10)
# Requests of a kind that people set constraints in, and one that sets none.
_REQUESTS = (
    "Please fix the parser. Never touch the migrations, and always answer in English!",
    "Use tabs, not spaces.\nDon't add new dependencies — ever. 漢字 🧠",
    "What does this file do?",
    "Ab jetzt bitte nur noch auf Deutsch antworten.",
    "you can add dependencies now, forget what I said about that",
    "Must " * 2_000,
    *_ODD_TEXTS,
)


def check_tokenizer(tokenizer: ProviderAwareTokenizer) -> None:
    """Check what the engine relies on in a token counter.

    Args:
        tokenizer: The token counter.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact.testing import WordTokenizer, check_tokenizer
        >>> check_tokenizer(WordTokenizer())
    """
    assert tokenizer.name, "a tokenizer has a name"
    assert tokenizer.count_text("") == 0, "nothing weighs nothing"
    assert tokenizer.count_text("hello world") > 0, "text has weight"
    for text in _ODD_TEXTS:
        assert tokenizer.count_text(text) >= 0, f"cannot count {text!r}"
    short, long = Message("user", "word"), Message("user", "word " * 100)
    assert tokenizer.count_message(short) < tokenizer.count_message(long), "longer messages weigh more"
    assert tokenizer.count_message(long) == tokenizer.count_message(long), "counting is deterministic"
    assert tokenizer.count_tools([]) == 0, "no tools weigh nothing"


def check_strategy(strategy: CompactionStrategy, messages: Sequence[Message], rules: KeepRules | None = None) -> None:
    """Check what the coordinator relies on: a strategy touches no kept message, and proposes the same every time.

    Args:
        strategy: The strategy.
        messages: A log in which it has something to propose; `as_log` makes one.
        rules: What is kept verbatim; by default the newest turn and the newest tool call.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact.strategies import ClearStrategy
        >>> from compact.testing import as_log, check_strategy, tool_run
        >>> check_strategy(ClearStrategy(), as_log(tool_run(10, words=500)))
    """
    rules = rules or KeepRules(recent_turns=1, tool_io_pairs=1)
    first, second = (_coordinate(strategy, messages, rules) for _ in range(2))
    name = strategy.name
    assert not first.failures, f"{name} failed: {first.failures}"
    assert first.plan.to_dict() == second.plan.to_dict(), f"{name} proposes something else the second time"
    assert CompactionPlan.from_dict(first.plan.to_dict()) == first.plan, f"{name}: its plan does not round-trip"
    for index in first.layers.kept:
        assert first.plan.get_action(messages[index].id)[1] is None, f"{name} touched a kept message"
    prompt = PromptRenderer().render(messages, first.plan)
    shown = {message_id for slot in prompt.slots for message_id in slot.ids} | set(prompt.hidden)
    assert shown == {message.id for message in messages}, f"{name} lost a message"


def _coordinate(strategy: CompactionStrategy, messages: Sequence[Message], rules: KeepRules) -> CompactionResult:
    counter = WordTokenizer()
    return CompactionCoordinator([strategy]).coordinate(
        messages,
        CompactionPlan("suite"),
        tokens=[counter.count_message(message) for message in messages],
        count_message=counter.count_message,
        rules=rules,
        goal=Goal(target_tokens=0, settle_tokens=10**9, ceiling_tokens=10**9),
    )


def check_constraint_finder(finder: ConstraintFinder, *, example: str = "") -> None:
    """Check what the ledger and the guard rely on in a constraint finder: word for word, from users, every time.

    Args:
        finder: The constraint finder.
        example: A text in which it must find a constraint; without one, it may find none at all.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact.constraints import LearnedConstraints
        >>> from compact.testing import check_constraint_finder
        >>> check_constraint_finder(LearnedConstraints(), example="Never touch the migrations.")
    """
    for text in (*_REQUESTS, example, ""):
        _check_ranges(finder, text)
    assert not example or finder.find(example), f"no constraint was found in {example!r}"
    history = [
        Message("system", "Be careful.", id="m1"),
        *(Message("user", text, id=f"u{number}") for number, text in enumerate((*_REQUESTS, example))),
        Message("assistant", "I will never do that.", (ToolCall("c1", "read"),), id="m2"),
        Message("tool", "You must never read this file.", tool_call_id="c1", id="m3"),
    ]
    standing = finder.standing(history)
    assert finder.standing(list(history)) == standing, "the same history has the same constraints"
    assert finder.standing([]) == (), "nothing was said, nothing holds"
    _check_standing(standing, history)
    if example:
        alone = finder.standing([Message("user", example, id="u")])
        assert alone, f"what was found in {example!r} holds as long as nobody takes it back"
        answer = (Message("assistant", "Done.", id="a"), Message("user", "Thanks.", id="v"))
        kept = finder.standing([Message("user", example, id="u"), *answer])
        assert {each.text for each in alone} <= {each.text for each in kept}, "and does so in later turns"


def _check_ranges(finder: ConstraintFinder, text: str) -> None:
    ranges = finder.find(text)
    where = f"in {text[:60]!r}"
    assert finder.find(text) == ranges, f"another answer the second time {where}"
    for start, end in ranges:
        assert 0 <= start < end <= len(text), f"the range {start}-{end} is not {where}"
    assert all(first[1] <= second[0] for first, second in pairwise(ranges)), f"ranges overlap or go back {where}"


def _check_standing(standing: Sequence[Constraint], history: Sequence[Message]) -> None:
    said = {message.id: message for message in history}
    for constraint in standing:
        source = said.get(constraint.source_id)
        assert source is not None, f"{constraint.source_id!r} is no message of the history"
        assert source.role not in ("assistant", "tool"), f"{constraint.text!r} was not said by a user"
        assert constraint.text, "a constraint says something"
        there = source.text[constraint.start : constraint.start + len(constraint.text)]
        assert there == constraint.text, f"{constraint.text!r} does not stand at {constraint.start} word for word"
