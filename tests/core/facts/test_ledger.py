"""A ledger keeps facts with their sources, gives way in a fixed order, and survives storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.ledger import Fact, FactKind, Ledger, MergedFacts, by_kind, by_subject, merged

CONSTRAINT = "Never deploy on a Friday."
ALL = Ledger(tuple(Fact(kind, f"{kind.value} {n}", "d", (f"m{n}",)) for n in range(3) for kind in FactKind))

texts = st.text(max_size=60)
facts = st.builds(
    Fact, st.sampled_from(FactKind), texts, texts, st.lists(st.sampled_from("abc"), max_size=3).map(tuple)
)
ledgers = st.lists(facts, max_size=25).map(lambda found: Ledger(tuple(found)))


def size(ledger: Ledger) -> int:
    return sum(len(fact.text) + 1 for fact in ledger)


def within(limit: int) -> Callable[[Ledger], bool]:
    return lambda ledger: size(ledger) <= limit


@given(ledgers)
def test_a_ledger_comes_back_from_plain_data(ledger: Ledger) -> None:
    assert Ledger.from_list(ledger.to_list()) == ledger


@given(ledgers)
def test_a_fact_told_twice_stands_once_with_all_its_sources(ledger: Ledger) -> None:
    one = merged(ledger)
    assert len({(fact.kind, fact.subject) for fact in one}) == len(one)
    for fact in ledger:
        (kept,) = [other for other in one.of(fact.kind) if other.subject == fact.subject]
        assert set(fact.source_ids) <= set(kept.source_ids)
    assert merged(one) == one


@given(st.lists(facts, max_size=12), st.lists(facts, max_size=12))
def test_facts_of_two_parts_of_a_history_are_those_of_the_whole(first: list[Fact], later: list[Fact]) -> None:
    parts = MergedFacts(), MergedFacts()
    for part, found in zip(parts, (first, later), strict=True):
        for fact in found:
            part.add(fact)
    whole = by_subject([*first, *later])
    assert list(parts[0].with_others(parts[1]).items()) == list(whole.items())


def test_what_is_known_last_counts_and_its_place_stays() -> None:
    ledger = merged(
        (
            Fact(FactKind.COMMAND, "make test", "1 failed", ("m1",)),
            Fact(FactKind.COMMAND, "ls", "ok", ("m2",)),
            Fact(FactKind.COMMAND, "make test", "ok", ("m3",)),
            Fact(FactKind.COMMAND, "ls", "", ("m4",)),
        )
    )
    assert [fact.text for fact in ledger] == ["make test (ok)", "ls (ok)"]
    assert ledger.facts[0].source_ids == ("m1", "m3")


@given(ledgers, st.integers(0, 600))
def test_a_ledger_cut_down_fits_and_says_nothing_new(ledger: Ledger, limit: int) -> None:
    fitting = ledger.fitting(within(limit))
    assert size(fitting) <= limit
    for fact in fitting:
        assert any(
            whole.kind is fact.kind and whole.subject.startswith(fact.subject) and whole.source_ids == fact.source_ids
            for whole in ledger
        )


@given(ledgers)
def test_a_ledger_that_fits_is_left_as_it_is(ledger: Ledger) -> None:
    assert ledger.fitting(lambda candidate: True) is ledger


def test_kinds_give_way_in_their_order_and_constraints_last_of_all() -> None:
    order: list[FactKind] = []
    for limit in range(size(ALL), -1, -1):
        left = ALL.fitting(within(limit))
        order += [kind for kind in FactKind if not left.of(kind) and kind not in order]
    assert order == [
        FactKind.MENTION,
        FactKind.COMMAND,
        FactKind.ERROR,
        FactKind.DECISION,
        FactKind.FILE,
        FactKind.OPEN_ITEM,
        FactKind.ARTIFACT,
        FactKind.LATEST_ASK,
        FactKind.TASK,
        FactKind.CONSTRAINT,
    ]


def test_of_a_kind_the_oldest_go_and_no_more_than_needed() -> None:
    mentions = Ledger(tuple(Fact(FactKind.MENTION, f"ID-{n:04}") for n in range(100)))
    left = mentions.fitting(lambda ledger: len(ledger) <= 97)
    assert [fact.subject for fact in left][:2] == ["ID-0003", "ID-0004"]
    assert len(left) == 97
    few = Ledger(mentions.facts[:9])
    for limit in range(10):
        assert few.fitting(lambda ledger, limit=limit: len(ledger) <= limit).facts == few.facts[9 - limit :]


@given(ledgers, st.integers(0, 400))
def test_no_constraint_is_cut_while_anything_else_is_left(ledger: Ledger, limit: int) -> None:
    fitting = ledger.fitting(within(limit))
    whole = {fact.subject for fact in ledger.of(FactKind.CONSTRAINT)}
    cut = [fact for fact in fitting.of(FactKind.CONSTRAINT) if fact.subject not in whole]
    missing = len(fitting.of(FactKind.CONSTRAINT)) < len(ledger.of(FactKind.CONSTRAINT))
    if cut or missing:
        assert {fact.kind for fact in fitting} <= {FactKind.CONSTRAINT}
    if cut:
        assert len(fitting) == 1


@pytest.mark.parametrize("kind", [kind for kind in FactKind if kind.value not in ("task", "latest_ask", "constraint")])
def test_a_name_is_left_out_rather_than_cut(kind: FactKind) -> None:
    ledger = Ledger(
        (Fact(kind, "src/compact/core/facts/ledger.py of 1234567 lines"), Fact(FactKind.CONSTRAINT, CONSTRAINT))
    )
    assert ledger.fitting(within(len(CONSTRAINT) + 30)).facts == ledger.facts[1:]


def test_a_long_task_is_cut_between_words() -> None:
    task = "Move port 8080 of src/app/main.py to port 9090 and then restart everything at 10:45"
    ledger = Ledger((Fact(FactKind.TASK, task),))
    words = set(task.split())
    for limit in range(10, len(task)):
        assert set(ledger.fitting(within(limit)).subject_of(FactKind.TASK).split()) <= words
    assert ledger.fitting(within(50)).subject_of(FactKind.TASK)


def test_facts_can_be_asked_for_by_kind() -> None:
    ledger = Ledger((Fact(FactKind.MENTION, "a"), Fact(FactKind.TASK, "t"), Fact(FactKind.MENTION, "b")))
    assert [fact.subject for fact in ledger.of(FactKind.MENTION)] == ["a", "b"]
    assert ledger.subject_of(FactKind.TASK) == "t"
    assert ledger.subject_of(FactKind.LATEST_ASK) == ""
    assert ledger.without([FactKind.MENTION]).facts == ledger.facts[1:2]
    assert list(by_kind(ledger)) == [FactKind.TASK, FactKind.MENTION]
