"""Alignment: where the items of a changed list are in one that is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from compact.core.log import alignment
from compact.core.log.alignment import Alignment, align, common_pairs, fingerprint
from compact.testing import Wire, assistant, system, tool_exchange, user

S, A, B, C, D, E, F = system("be brief"), *(user(letter) for letter in "abcdef")
X, Y, Z = (user(letter) for letter in "xyz")
CALL, RESULT = tool_exchange("c1", "the whole file")
CALL_2, RESULT_2 = tool_exchange("c2", "another file")
CLEARED, CLEARED_2 = {**RESULT, "content": "[cleared]"}, {**RESULT_2, "content": "[cleared]"}


def found(known: Sequence[Wire], incoming: Sequence[Wire]) -> tuple[list[int | None], dict[int, int], list[int]]:
    """Where the items of a list are, which of them stand where another stood, and which are lost."""
    result = align(known, incoming)
    return result.places, result.changed, list(result.lost)


@pytest.mark.parametrize(
    ("known", "incoming", "places", "changed"),
    [
        ([], [A], [None], {}),
        ([A, B, C], [A, B, C, D], [0, 1, 2, None], {}),
        ([A, B, C], [A, X, C, D], [0, None, 2, None], {1: 1}),
        ([A, B, C, D], [A, X, C, Y], [0, None, 2, None], {1: 1, 3: 3}),
        ([S, CALL, RESULT, A], [S, CALL, CLEARED, A, B], [0, 1, None, 3, None], {2: 2}),
        ([CALL, RESULT, CALL_2, RESULT_2], [CALL, CLEARED, CALL_2, CLEARED_2], [0, None, 2, None], {1: 1, 3: 3}),
        ([CALL, RESULT, RESULT_2, A], [CALL, CLEARED, CLEARED_2, A], [0, None, None, 3], {1: 1, 2: 2}),
        ([A, B, C], [A, B, X, assistant("y"), C], [0, 1, None, None, None], {2: 2}),
        ([A, CALL, RESULT], [A, CALL, CLEARED, CALL, RESULT], [0, 1, None, None, None], {2: 2}),
    ],
)
def test_what_was_changed_where_it_stands(
    known: list[Wire], incoming: list[Wire], places: list[int | None], changed: dict[int, int]
) -> None:
    assert found(known, incoming) == (places, changed, [])


# Calls of a dialect without ids, which are numbered in each message.
NUMBERED, OF_NUMBERED = tool_exchange("call#1", "the whole file", path="a.py")
NUMBERED_2, OF_NUMBERED_2 = tool_exchange("call#1", "another file", path="b.py")
OTHER, OTHER_2 = ({**RESULT, "tool_call_id": f"call#{n}", "content": f"a third file {n}"} for n in (2, 3))
GONE = {**RESULT, "content": "[cleared]", "tool_call_id": "call#1"}


@pytest.mark.parametrize(
    ("incoming", "places", "changed"),
    [
        # An exchange was deleted, and another one follows: what is known is not where it was.
        ([A, NUMBERED_2, OF_NUMBERED_2, B, C], [0, 3, 4, None, None], {}),
        ([A, NUMBERED_2, OF_NUMBERED_2, NUMBERED, GONE], [0, 3, 4, None, None], {}),
        # Results were cleared where they stand, also such as stand in a row.
        ([A, NUMBERED, GONE, NUMBERED_2, GONE], [0, 1, None, 3, None], {2: 2, 4: 4}),
        ([A, NUMBERED, OF_NUMBERED, NUMBERED_2, GONE, B], [0, 1, 2, 3, None, None], {4: 4}),
    ],
)
def test_an_id_that_is_used_again_and_again_does_not_say_that_an_item_was_changed(
    incoming: list[Wire], places: list[int | None], changed: dict[int, int]
) -> None:
    assert found([A, NUMBERED, OF_NUMBERED, NUMBERED_2, OF_NUMBERED_2], incoming) == (places, changed, [])


def test_results_in_a_row_that_were_cleared_are_where_they_stood_though_their_ids_are_used_again() -> None:
    known = [A, NUMBERED, OF_NUMBERED, OTHER, B, NUMBERED_2, OF_NUMBERED_2, OTHER_2]
    cleared = [A, NUMBERED, GONE, {**OTHER, "content": "[cleared]"}, B, NUMBERED_2, OF_NUMBERED_2, OTHER_2]
    assert found(known, cleared) == ([0, 1, None, None, 4, 5, 6, 7], {2: 2, 3: 3}, [])


def test_what_is_hidden_before_the_last_item_has_not_taken_its_place() -> None:
    """Without that, the last one was edited, and its words are said again behind the answer to that."""
    incoming = [A, X, assistant("y"), B, C]
    assert found([A, B], incoming) == ([0, None, None, None, None], {1: 1}, [])
    behind = align([A, B], incoming, lambda item: item == X)
    assert (behind.places, behind.changed) == ([0, None, None, 1, None], {})
    other = align([A, B], [A, X, assistant("y"), C], lambda item: item == X)
    assert (other.places, other.changed) == ([0, None, None, None], {1: 1})


@pytest.mark.parametrize(
    ("known", "incoming", "places"),
    [
        ([A, B, C, D], [A, X, Y, D], [0, None, None, 3]),
        ([A, B, C], [A, assistant("x"), C], [0, None, 2]),
        ([CALL, RESULT, A], [CALL, CLEARED_2, A], [0, None, 2]),
        ([CALL, A], [CALL_2, A], [None, 1]),
        ([A, B, C], [X, Y], [None, None]),
        ([A, B, C], [A, B, X, C], [0, 1, None, 2]),
        ([A, B, C], [A, B, X, Y, C, D], [0, 1, None, None, 2, None]),
        ([A, assistant("b"), C], [A, assistant("b"), X, C], [0, 1, None, 2]),
    ],
)
def test_words_that_differ_in_a_row_or_are_of_somebody_else_are_new(
    known: list[Wire], incoming: list[Wire], places: list[int | None]
) -> None:
    assert found(known, incoming) == (places, {}, [])


@pytest.mark.parametrize(
    ("known", "incoming", "places", "changed", "lost"),
    [
        ([A, B, C, D], [C, D], [2, 3], {}, [0, 1]),
        ([S, A, B], [S, B], [0, 2], {}, [1]),
        # Six tenths of it are known, of these one as it was.
        ([A, B, RESULT, RESULT_2], [B, CLEARED, CLEARED_2, Y, Z], [1, *[None] * 4], {1: 2, 2: 3}, [0]),
        ([A, B, C, D], [C, D, E], [2, 3, None], {}, [0, 1]),
        ([A, B, C], [B, C], [1, 2], {}, [0]),
        ([S, A, B, C], [S, B, C], [0, 2, 3], {}, [1]),
        ([S, A, B, C, D, E], [S, C, D, E], [0, 3, 4, 5], {}, [1, 2]),
        ([S, A, B, C, D], [C, D], [3, 4], {}, [0, 1, 2]),
        ([S, A, B, C, D, E], [system("today"), C, D, E], [None, 3, 4, 5], {0: 0}, [1, 2]),
        ([S, A, B, C, D, E], [S, C, X, E], [0, 3, None, 5], {2: 4}, [1, 2]),
        ([S, S, A, B, C, D], [S, system("today"), C, X], [0, None, 4, None], {1: 1, 3: 5}, [2, 3]),
        ([A, B, A, C, A, D], [A, D], [4, 5], {}, [0, 1, 2, 3]),
        ([A, B, C, D, E], [C, D, X, E], [2, 3, None, None], {2: 4}, [0, 1]),
        # And was edited, too: something is new between, or gone.
        ([S, A, B, C, D, E], [S, C, X, D, E], [0, 3, None, 4, 5], {}, [1, 2]),
        ([S, A, B, C, D, E], [S, B, C, E], [0, 2, 3, 5], {}, [1]),
        ([S, A, B, C, D, E], [system("today"), C, X, D, E], [None, 3, None, 4, 5], {0: 0}, [1, 2]),
        ([A, B, C, D, E, F], [C, D, X], [2, 3, None], {}, [0, 1]),
    ],
)
def test_a_list_that_lost_its_oldest_items(
    known: list[Wire], incoming: list[Wire], places: list[int | None], changed: dict[int, int], lost: list[int]
) -> None:
    assert found(known, incoming) == (places, changed, lost)


@pytest.mark.parametrize(
    ("known", "incoming", "places"),
    [
        ([S, A, B, C], [S], [0]),
        ([S, A, B, C], [A, B, C], [1, 2, 3]),
        ([S, A, B, C, D], [S, system("more"), C, D], [0, None, 3, 4]),
        ([S, S, A, B, C, D], [S, C, D], [0, 4, 5]),
        ([A, B, C, D], [D, E, F], [3, None, None]),
        ([*[A] * 12, B], [A, B], [0, 12]),
        ([S, A, B, C, D, E], [S, C, A, D, E], [0, 3, None, 4, 5]),
        ([S, A, B, C, D, E], [S, C, X], [0, 3, None]),
    ],
)
def test_other_lists_are_not_taken_for_trimmed_ones(
    known: list[Wire], incoming: list[Wire], places: list[int | None]
) -> None:
    """Only instructions, all but these, others than before, little that is known, or too many places to begin at."""
    assert found(known, incoming) == (places, {}, [])


def test_a_list_is_trimmed_if_two_in_a_row_or_six_tenths_of_it_are_known() -> None:
    known = [A, B, C, D, E]
    assert list(align(known, [D, E, X, Y, Z, F]).lost) == [0, 1, 2]
    assert list(align(known, [E, X]).lost) == []
    assert list(align(known, [E]).lost) == [0, 1, 2, 3]
    assert list(align(known, [C, X, E, Y, Z]).lost) == [0, 1], "what may be changed is known"
    assert list(align(known, [D, X, Y, Z]).lost) == [], "and so it is one of them alone"


def test_a_list_is_not_trimmed_where_more_of_it_is_known_otherwise() -> None:
    assert found([A, B, A, C, X, A, B], [A, B, C, D, E, F]) == ([0, 1, 3, None, None, None], {}, [])


def test_nothing_was_lost_where_what_seems_new_equals_it() -> None:
    """Of two equal exchanges the second call was edited: the list does not begin with the second one."""
    known = [S, CALL, RESULT, CALL, RESULT]
    assert found(known, [S, CALL, RESULT, X, RESULT]) == ([0, 1, 2, None, 4], {}, [])
    assert found(known, [S, CALL, RESULT, RESULT]) == ([0, 1, 2, 4], {}, [])
    assert found([A, B, A, C], [A, C, B]) == ([2, 3, None], {}, [0, 1]), "but it was, where no more is known otherwise"


@pytest.mark.parametrize(
    ("known", "incoming", "places", "changed"),
    [
        ([A, CALL, RESULT, B, C], [A, CALL, CLEARED, C], [0, 1, None, 4], {2: 2}),
        ([A, B, CALL, RESULT, C], [A, CALL, CLEARED, C], [0, 2, None, 4], {2: 3}),
        # Without any item behind it, and with none before it.
        ([A, B, CALL, RESULT], [A, CALL, CLEARED], [0, 2, None], {2: 3}),
        ([RESULT, A, B, C], [CLEARED, B, C], [None, 2, 3], {0: 0}),
        # Both, one behind the other, and only in their order.
        ([A, B, RESULT, RESULT_2, C], [A, CLEARED, CLEARED_2, C], [0, None, None, 4], {1: 2, 2: 3}),
        ([A, B, RESULT, RESULT_2, C], [A, CLEARED_2, CLEARED, C], [0, None, None, 4], {1: 3}),
        # What stood before or behind the items around it is another one.
        ([A, RESULT, B, C, D], [A, B, CLEARED, D], [0, 2, None, 4], {}),
        ([A, B, C, RESULT, D], [A, CLEARED, C, D], [0, None, 2, 4], {}),
        # Words that are alone where others were, and words that are not, or are of somebody else.
        ([A, B, C, D], [X, B, C], [None, 1, 2], {0: 0}),
        ([A, B, C, D, E], [A, X, C, D], [0, None, 2, 3], {1: 1}),
        ([A, B, C, D, E], [A, X, D], [0, None, 3], {}),
        ([A, B, C, D, E], [A, X, Y, C], [0, None, None, 2], {}),
        ([A, B, C, D, E], [A, X, C, Y], [0, None, 2, None], {1: 1}),
        ([A, assistant("b"), C, D], [A, X, C], [0, None, 2], {}),
        ([A, B, C, RESULT, D], [A, X, CLEARED], [0, None, None], {2: 3}),
        # Ids that are used again say nothing, but for what stands behind the same item.
        ([A, E, RESULT, B, {**RESULT, "content": "more"}, C, D], [A, CLEARED, C, D], [0, None, 5, 6], {}),
        ([A, RESULT, B, {**RESULT, "content": "more"}, C, D], [A, CLEARED, C, D], [0, None, 4, 5], {1: 1}),
        ([A, RESULT, RESULT, B], [A, CLEARED, B], [0, None, 3], {1: 1}),
        ([A, RESULT, RESULT, B], [A, RESULT, B], [0, 1, 3], {}),
        # One that is there as it was is not there a second time.
        ([A, RESULT, B, C], [A, RESULT, CLEARED, C], [0, 1, None, 3], {}),
        ([A, B, RESULT, C], [A, CLEARED, RESULT, C], [0, None, 2, 3], {}),
        ([A, B, C, D, E], [A, X, Y, CALL, E], [0, None, None, None, 4], {}),
    ],
)
def test_a_result_that_was_cleared_in_a_list_that_was_changed_elsewhere(
    known: list[Wire], incoming: list[Wire], places: list[int | None], changed: dict[int, int]
) -> None:
    assert found(known, incoming) == (places, changed, [])


def test_what_an_alignment_says_of_a_list() -> None:
    one = Alignment([0, None, 4, None], {1: 2})
    assert (one.unchanged, one.matched, one.known_until, one.missing) == (2, 3, 3, [1, 3])
    ended = Alignment([1, None, None], {2: 5})
    assert (ended.matched, ended.known_until, ended.missing) == (2, 3, [0, 2, 3, 4])
    nothing = Alignment([None, None])
    assert (nothing.unchanged, nothing.matched, nothing.known_until, nothing.missing) == (0, 0, 0, [])
    assert (Alignment([0]).known_until, Alignment([]).known_until) == (1, 0)


def most_in_common(known: Sequence[object], incoming: Sequence[object]) -> int:
    """The length of the longest common subsequence, by the table that everybody learns."""
    row = [0] * (len(incoming) + 1)
    for item in known:
        before, row = row, [0]
        for n, other in enumerate(incoming):
            row.append(before[n] + 1 if item == other else max(before[n + 1], row[n]))
    return row[-1]


def are_common(pairs: Sequence[tuple[int, int]], known: Sequence[object], incoming: Sequence[object]) -> bool:
    """Whether all are places of equal items, and in order in both lists."""
    steps = pairwise(pairs)
    is_in_order = all(x < next_x and y < next_y for (x, y), (next_x, next_y) in steps)
    return is_in_order and all(known[x] == incoming[y] for x, y in pairs)


def lists(seed: int, letters: str, most: int) -> tuple[str, str]:
    """Two lists by chance."""
    chance = random.Random(seed)
    known, incoming = (chance.choices(letters, k=chance.randint(0, most)) for _ in range(2))
    return "".join(known), "".join(incoming)


@pytest.mark.parametrize("letters", ["ab", "abcd"])
def test_as_much_as_two_lists_have_in_common_is_found(letters: str) -> None:
    for seed in range(400):
        known, incoming = lists(seed, letters, 12)
        pairs = common_pairs(known, incoming)
        assert are_common(pairs, known, incoming), (known, incoming)
        assert len(pairs) == most_in_common(known, incoming), (known, incoming)


@pytest.mark.parametrize("letters", ["ab", "abcd"])
def test_what_is_as_it_was_is_the_most_that_is_in_order(letters: str) -> None:
    for seed in range(600):
        known, incoming = lists(seed, letters, 8)
        aligned = align(known, incoming)
        pairs = [(place, n) for n, place in enumerate(aligned.places) if place is not None]
        assert are_common(pairs, known, incoming), (known, incoming)
        if not aligned.changed and not aligned.lost:
            assert len(pairs) == most_in_common(known, incoming), (known, incoming)


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have lists that differ in more than six items be compared in pieces, each until it differs in three."""
    monkeypatch.setattr(alignment, "_MAX_DIFFERENCES", 6)
    monkeypatch.setattr(alignment, "_PIECE_DIFFERENCES", 3)


@pytest.mark.usefixtures("short_limits")
def test_lists_that_differ_in_little_have_in_common_all_that_they_have() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        known = chance.choices("ab", k=30)
        incoming = list(known)
        for _ in range(2):  # an exchange is two differences
            incoming[chance.randrange(30)] = chance.choice("abx")
        del incoming[chance.randrange(30)]
        assert len(common_pairs(known, incoming)) == most_in_common(known, incoming), (known, incoming)
        assert len(common_pairs(incoming, known)) == most_in_common(known, incoming), (known, incoming)


@pytest.mark.usefixtures("short_limits")
def test_lists_that_differ_in_much_have_in_common_what_is_quick_to_find() -> None:
    found = best = 0
    for seed in range(200):
        chance = random.Random(seed)
        known = chance.choices("abc", k=chance.choice((4, 8, 40)))
        kept = (letter for letter in known if chance.random() > 0.1)
        incoming = [letter if chance.random() > 0.25 else chance.choice("abcxyz") for letter in kept]
        for one, other in ((known, incoming), (incoming, known)):
            pairs = common_pairs(one, other)
            assert are_common(pairs, one, other), (one, other)
            found, best = found + len(pairs), best + most_in_common(one, other)
    assert found >= 0.9 * best
    for known, incoming in (("ccacbcca", "azccx"), ("bbbbab", "aabaabx"), ("abaaa", "cbcbcaab")):
        assert len(common_pairs(known, incoming)) == 3, (known, incoming)


@pytest.mark.usefixtures("short_limits")
def test_where_each_piece_differs_in_little_nothing_is_lost() -> None:
    """Equal items are not counted through: those of one piece are no earlier or later ones."""
    for known in ("ab" * 30, "abc" * 20, "aab" * 20):
        exchanged = "".join("x" if n % 7 == 3 else letter for n, letter in enumerate(known))
        left_out = "".join(letter for n, letter in enumerate(known) if n % 7 != 3)
        for incoming in (exchanged, left_out):
            pairs = common_pairs(known, incoming)
            assert are_common(pairs, known, incoming), (known, incoming)
            assert len(pairs) == most_in_common(known, incoming), (known, incoming)


@pytest.mark.usefixtures("short_limits")
def test_items_that_are_far_from_where_they_were_are_found_by_what_they_are() -> None:
    """Where a long piece was put in, comparing piece by piece loses the rest."""
    known = "aabbccddeefghijklmnopqrstuvw"
    longer = f"{known[:5]}{'x' * 30}{known[5:]}"
    assert len(common_pairs(known, longer)) == len(common_pairs(longer, known)) == len(known)
    assert len(common_pairs("ab", "x" * 30 + "ab")) == len(common_pairs("x" * 30 + "ab", "ab")) == 2
    assert common_pairs("abc" * 9, "xyz" * 9) == []
    for seed in range(50):
        moved = random.Random(seed).sample(range(30), 30)
        assert len(common_pairs(range(30), moved)) == most_in_common(range(30), moved), moved


def test_equal_items_look_the_same_whatever_the_order_of_their_keys() -> None:
    assert fingerprint({"role": "user", "content": "a"}) == fingerprint({"content": "a", "role": "user"})
    assert fingerprint({1: "a", "b": 2}) != fingerprint({1: "a", "b": 3}), "and of keys that have no order"
