"""How large a summary may be, and what it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compact.core.facts.constraints import Constraint, ConstraintFinder, NoConstraints
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan, SpanReference, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import Goal
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult
from compact.core.summary.summary import StructuredSummary
from compact.strategies import ClearStrategy, SummarizeStrategy
from compact.testing import WordTokenizer, assistant, dialogue, system, tool_run, user
from numbered import numbered

count = WordTokenizer().count_message
HISTORY = numbered([*dialogue(50, words=20), user("go on")])  # 2,002 tokens


def result_of(
    strategy: SummarizeStrategy,
    messages: Sequence[Message] = HISTORY,
    *,
    plan: CompactionPlan | None = None,
    before: Sequence[Any] = (),
    prefetched: SummarizationRecord | None = None,
    constraints: ConstraintFinder | None = None,
    **goal: Any,
) -> CompactionResult:
    limits = {"target_tokens": 500, "settle_tokens": 700, "ceiling_tokens": 1000, **goal}
    return CompactionCoordinator([*before, strategy]).coordinate(
        messages,
        plan or CompactionPlan("t"),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(recent_turns=1, tool_io_pairs=1),
        goal=Goal(**limits),
        prefetched=prefetched,
        constraints=constraints,
    )


class Held(NoConstraints):
    """Finds a constraint of so many words in the first message, or in another one."""

    def __init__(self, words: int, place: int = 0) -> None:
        self.words, self.place = words, place

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        return (Constraint("hold " * self.words, messages[self.place].id),)


def room(strategy: SummarizeStrategy, messages: Sequence[Message] = HISTORY, **more: Any) -> int:
    pending = result_of(strategy, messages, **more).pending_summary
    assert pending is not None
    return pending.max_tokens


def test_a_summary_has_its_share_of_the_room_and_no_more_than_its_own_limit() -> None:
    """What is left of the room when messages of 20 tokens have filled theirs is its own, too."""
    beside = 500 - 2
    assert 0.25 * beside <= room(SummarizeStrategy()) < 0.25 * beside + 20
    assert 0.5 * beside <= room(SummarizeStrategy(), summary_share=0.5) < 0.5 * beside + 20
    assert room(SummarizeStrategy(max_tokens=90)) == 90


def test_what_is_pinned_is_no_room_for_it() -> None:
    messages = numbered([system("word " * 300), *dialogue(50, words=20), user("go on")])
    assert 0.15 * (700 - 300) <= room(SummarizeStrategy(), messages) < 0.15 * (700 - 300) + 20


def test_kept_messages_give_way_to_the_least_of_a_summary() -> None:
    messages = numbered([*dialogue(50, words=20), user("word " * 600)])
    assert room(SummarizeStrategy(), messages) == int(0.15 * 700)


def test_what_users_asked_to_hold_has_room_where_the_least_of_a_summary_is_less() -> None:
    messages = numbered([*dialogue(50, words=20), user("word " * 600)])
    frame = room(SummarizeStrategy(), messages, constraints=Held(200)) - 200
    assert 0 < frame < 20
    assert room(SummarizeStrategy(), messages, constraints=Held(300)) == 300 + frame
    assert room(SummarizeStrategy(), messages, constraints=Held(20)) == int(0.15 * 700)


def test_what_users_asked_to_hold_has_no_more_room_than_a_third_of_all_and_the_limit_of_the_summary() -> None:
    messages = numbered([*dialogue(50, words=20), user("word " * 600)])
    assert room(SummarizeStrategy(), messages, constraints=Held(400)) == 1000 // 3
    assert room(SummarizeStrategy(max_tokens=150), messages, constraints=Held(400)) == 150
    assert room(SummarizeStrategy(max_tokens=150, fills_target=True), messages, constraints=Held(400)) == 1000 // 3


def test_what_stays_as_a_message_has_no_room_in_the_summary() -> None:
    messages = numbered([*dialogue(50, words=20), user("word " * 600)])
    assert room(SummarizeStrategy(), messages, constraints=Held(200, place=-1)) == int(0.15 * 700)


def test_a_summary_frees_something_whatever_users_asked_to_hold() -> None:
    messages = numbered([*dialogue(4, words=50), user("go on")])
    goal = {"target_tokens": 10, "settle_tokens": 3000, "ceiling_tokens": 3000}
    assert room(SummarizeStrategy(), messages, constraints=Held(390), **goal) == 4 * 2 * 50 - 100


def test_a_free_summary_fills_its_share_even_beyond_its_own_limit() -> None:
    assert room(SummarizeStrategy(max_tokens=90, fills_target=True)) > 0.25 * (500 - 2)


def test_what_has_most_value_stays_as_messages_and_the_room_is_used() -> None:
    """The newest of it; the summary has its share of the room."""
    result = result_of(SummarizeStrategy(fills_target=True))
    (record,) = result.plan.summarizations
    stays = [message for message in HISTORY if message.id not in set(record.span)]
    assert [message.id for message in HISTORY[-10:]] == [message.id for message in stays[-10:]]
    assert 480 <= result.tokens_after <= 500


def test_of_what_is_equally_old_the_words_stay_and_the_results_go() -> None:
    messages = numbered([*tool_run(20, words=60)[1:], *dialogue(3, words=60), user("go on")])
    (record,) = result_of(SummarizeStrategy(fills_target=True), messages, target_tokens=700).plan.summarizations
    gone = {message.id for message in messages if message.id in set(record.span)}
    assert {message.role for message in messages if message.id in gone} == {"assistant", "tool"}
    assert not gone & {message.id for message in messages[-7:]}


def test_an_answer_stays_with_its_question_and_of_equals_the_newest_stay() -> None:
    messages = numbered([*dialogue(40, words=12), user("go on")])
    (record,) = result_of(SummarizeStrategy(fills_target=True), messages).plan.summarizations
    stays = [message for message in messages if message.id not in set(record.span)]
    questions = {message.text.split()[0].removeprefix("question-") for message in stays if message.role == "user"}
    answers = {message.text.split()[0].removeprefix("answer-") for message in stays if message.role == "assistant"}
    assert answers <= questions
    assert answers == {str(number) for number in range(41 - len(answers), 41)}
    assert len(answers) > 6


def test_a_greeting_does_not_stay_where_there_is_room_for_it() -> None:
    greeting, said = assistant("Hi! How can I help you today?"), assistant("The booking is KX-9314.")
    messages = numbered([greeting, said, *dialogue(40, words=12), user("go on")])
    (record,) = result_of(SummarizeStrategy(fills_target=True), messages, target_tokens=560).plan.summarizations
    assert messages[0].id in set(record.span)


def test_what_is_pinned_keeps_its_place_where_something_older_stays() -> None:
    pairs = dialogue(40, words=12)
    messages = numbered([system("rule one"), *pairs[:-8], system("rule two"), *pairs[-8:], user("go on")])
    plan = result_of(SummarizeStrategy(fills_target=True), messages).plan
    shown = [message.text.split(" word")[0] for message in PromptRenderer().render(messages, plan).messages]
    assert shown[0] == "rule one"
    assert plan.pinned == (messages[0].id,)
    assert shown[shown.index("rule two") - 1] == "answer-36"


def test_a_summary_that_is_asked_for_without_need_takes_all_that_is_old() -> None:
    goal = {"target_tokens": 3000, "settle_tokens": 4000, "ceiling_tokens": 5000, "must_run": frozenset({"summarize"})}
    (record,) = result_of(SummarizeStrategy(), **goal).plan.summarizations
    assert len(record.span) == len(HISTORY) - 1


def test_a_summary_is_never_more_than_its_ratio_of_what_it_replaces() -> None:
    messages = numbered([*dialogue(4, words=50), user("go on")])
    replaced = 4 * 2 * 50
    goal = {"target_tokens": 10, "settle_tokens": 3000, "ceiling_tokens": 3000}
    assert room(SummarizeStrategy(), messages, **goal) == replaced // 2
    assert room(SummarizeStrategy(target_token_ratio=0.2), messages, **goal) == replaced // 5


def test_what_was_cleared_before_counts_in_full_for_the_ratio() -> None:
    """A summary may say more than the stubs it takes the place of, but must free something."""
    messages = numbered([*tool_run(30, words=60), user("go on")])
    cleared = room(SummarizeStrategy(), messages, before=[ClearStrategy(min_tokens=1, keep_last=0)], target_tokens=10)
    assert cleared == int(0.15 * 700)


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_summary_of_next_to_nothing_says_nothing(share: float) -> None:
    assert 40 <= room(SummarizeStrategy(), summary_share=share) < 40 + 20


def test_the_next_summary_stands_for_what_the_last_one_did_and_more() -> None:
    first = result_of(SummarizeStrategy(), HISTORY[:60]).plan
    (record,) = first.summarizations
    written = replace(record, summary=StructuredSummary(narrative="so far"), tokens_after=12)
    second = result_of(SummarizeStrategy(), plan=first.adding(written)).plan.summary
    assert isinstance(second, SummarizationRecord)
    assert second.version == 2
    assert set(second.span) >= set(record.span)
    assert list(second.span) == [message.id for message in HISTORY if message.id in set(second.span)]
    assert len(second.span) > len(record.span)
    assert second.summary is None


def test_one_message_alone_is_not_worth_a_summary() -> None:
    messages = numbered([user("word " * 500), user("go on")])
    assert result_of(SummarizeStrategy(), messages, target_tokens=10).plan.summary is None


def test_a_prefetched_summary_that_is_too_long_is_written_anew() -> None:
    """It was written under other settings; with a limit it keeps to, it is used as it is."""
    summary = StructuredSummary(narrative="word " * 120)
    span = SpanReference(tuple(message.id for message in HISTORY[:90]))
    record = SummarizationRecord(span=span, strategy="summarize", reason="prefetched", summary=summary)
    assert result_of(SummarizeStrategy(max_tokens=400), prefetched=record).pending_summary is None
    assert result_of(SummarizeStrategy(fills_target=True), prefetched=record).pending_summary is None
    written_anew = result_of(SummarizeStrategy(max_tokens=100), prefetched=record).pending_summary
    assert written_anew is not None
    assert written_anew.max_tokens <= 100
