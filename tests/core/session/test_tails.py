"""What stood behind the log in an earlier prompt and comes back: what is ours of a list, and what is the user's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compact.core.log.known_list import KnownList
from compact.core.log.log import Log
from compact.core.messages.entries import read_entry
from compact.core.plan.turn import added_label
from compact.core.session.tails import PromptTail, PromptTails, labelled_tail
from compact.testing import Wire, assistant, dialogue, user

A, B, C, D = (user(letter) for letter in "abcd")
ANSWER = assistant("yes")
# What an injector adds: with its label, or a message of its own that is sent as it is.
NOTE, SECOND = (user(f"{added_label(name)}\nit is noon") for name in ("clock", "weather"))
BARE, MORE = user("it is noon"), user("and warm")
MARKED = {"role": "user", "content": [{"type": "text", "text": "it is noon", "cache_control": {"type": "ephemeral"}}]}


def prompt_of(items: Sequence[Wire]) -> tuple[Log, KnownList]:
    """A log that has a list, and the prompt that shows it as it is."""
    log, prompt = Log(), KnownList()
    log.match(items, output=prompt, read=read_entry)
    prompt.add_entries(log.view)
    return log, prompt


def found(incoming: Sequence[Wire], log_items: Sequence[Wire], *added: Wire) -> int | None:
    """Where a list has what was added behind a log."""
    log, prompt = prompt_of(log_items)
    tails = PromptTails().with_tail(PromptTail.of(added, len(log_items), log_items[-1]))
    tail = tails.found_in(incoming, log, prompt)
    return tail and tail.start


@pytest.mark.parametrize(
    ("incoming", "place"),
    [
        ([A, B, BARE, MORE], 2),
        ([A, B, BARE, MORE, ANSWER, C], 2),
        ([A, B, MARKED, MORE, ANSWER], 2),
        ([A, B, BARE, MORE, *dialogue(30)], 2),
        ([B, BARE, MORE, ANSWER], 1),
        ([C, D, A, B, BARE, MORE, ANSWER], 4),
        ([A, B], None),
        ([A, B, BARE, ANSWER], None),
        ([A, B, C, BARE, MORE], None),
        ([BARE, MORE, A, B], None),
        ([BARE, MORE, C, B], None),
    ],
    ids=[
        "the prompt as it was given",
        "with an answer to it",
        "with a mark of a cache on it",
        "as it was given, long ago",
        "without its oldest message",
        "with something new before all",
        "without what was added",
        "with half of it",
        "said by the user, behind something else",
        "at the very beginning",
        "at the very beginning, though what was before it comes last",
    ],
)
def test_what_was_added_is_ours_at_its_place_or_behind_what_was_before_it(
    incoming: list[Wire], place: int | None
) -> None:
    assert found(incoming, [A, B], BARE, MORE) == place


@pytest.mark.parametrize(("behind", "place"), [(31, 1), (32, None)])
def test_what_has_moved_has_little_behind_it(behind: int, place: int | None) -> None:
    """Who returns with a prompt brings an answer or two; a whole history is not searched at every call."""
    assert found([B, BARE, *[ANSWER] * behind], [A, B], BARE) == place


def test_words_of_the_log_are_no_tail_though_they_are_the_same_words_behind_the_same_message() -> None:
    assert found([B, BARE, B, C], [B, BARE, B], BARE) is None


@pytest.mark.parametrize(
    ("incoming", "place"),
    [([A, NOTE, ANSWER], 1), ([A, NOTE], None), ([C, NOTE, ANSWER], 1), ([A, BARE, ANSWER], None)],
)
def test_behind_a_deletion_what_was_added_is_told_by_its_label_if_something_was_said_to_it(
    incoming: list[Wire], place: int | None
) -> None:
    """A list that ends with it has the words of a user who quotes a label."""
    assert found(incoming, [A, B], NOTE if NOTE in incoming else BARE) == place


def test_a_label_that_the_log_has_is_a_users() -> None:
    assert found([C, NOTE, ANSWER], [A, NOTE, B], NOTE) is None


def test_of_several_tails_one_behind_the_same_message_goes_before_one_with_a_label() -> None:
    log, prompt = prompt_of([A, B])
    tails = PromptTails()
    for tail in (PromptTail.of([BARE], 2, A), PromptTail.of([NOTE], 1, A), PromptTail.of([SECOND], 2, C)):
        tails = tails.with_tail(tail)
    tail = tails.found_in([D, SECOND, A, NOTE, ANSWER], log, prompt)
    assert tail == PromptTail.of([NOTE], 3, A)


def test_the_tails_of_32_prompts_are_known_and_one_that_comes_back_is_the_newest() -> None:
    tails, log = PromptTails(), Log()
    made = [PromptTail.of([user(f"note {number}")], 1) for number in range(33)]
    for tail in made[:32]:
        tails = tails.with_tail(tail)
    tails = tails.with_tail(made[0])
    assert not tails.has_others, "all that were made are known"
    tails = tails.with_tail(made[32])
    assert tails.has_others
    known = [tails.found_in([A, user(f"note {number}")], log, KnownList()) for number in range(33)]
    assert [number for number, tail in enumerate(known) if tail is None] == [1]
    assert tails.with_tail(made[5]).has_others


@pytest.mark.parametrize(
    ("incoming", "added"),
    [
        ([A, B, NOTE, ANSWER], (2, [NOTE])),
        ([A, B, C, NOTE, SECOND, ANSWER, NOTE], (3, [NOTE, SECOND])),
        ([A, B, NOTE], (2, [NOTE])),
        ([C, NOTE], (1, [NOTE])),
        ([A, B, C, ANSWER], None),
        ([A, B, assistant(NOTE["content"])], None),
    ],
    ids=["behind what is known", "behind something new", "at the end", "in another list", "none", "said by the agent"],
)
def test_what_another_process_has_added_is_told_by_its_label(
    incoming: list[Wire], added: tuple[int, list[Wire]] | None
) -> None:
    tail = labelled_tail(incoming, *prompt_of([A, B]))
    assert tail == (None if added is None else PromptTail.of(added[1], added[0]))


def test_a_label_that_a_user_has_quoted_before_is_not_of_another_process() -> None:
    quoted = [A, NOTE, B]
    assert labelled_tail([*quoted, C], *prompt_of(quoted)) is None
    assert labelled_tail([C, NOTE, ANSWER], *prompt_of(quoted)) is None
