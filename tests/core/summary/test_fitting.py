"""A summary that has less room: what must stay has its place first, and the oldest of the rest goes first."""

from __future__ import annotations

from dataclasses import replace

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.summary.fitting import cut_to, fit_summary, joined, required_facts, shortened, whole_steps
from compact.core.summary.summary import Excerpt, OpenItem, StructuredSummary

TASK, RULE = Fact(FactKind.TASK, "Paint the crane."), Fact(FactKind.CONSTRAINT, "Never on a Friday.")
FILES = tuple(Fact(FactKind.FILE, f"{name}.py", "modified") for name in "abcd")
LEDGER = Ledger((TASK, RULE, *FILES))
FACTS = tuple(f"fact {number}" for number in range(16))


def test_the_newest_of_each_list_stay_as_many_as_there_is_room_for() -> None:
    summary = StructuredSummary(facts=FACTS)
    for room in (16, 15, 9, 1, 0):
        assert shortened(summary, lambda one, room=room: len(one.facts) <= room).facts == FACTS[16 - room :]
    three = StructuredSummary(facts=FACTS[:3])
    assert shortened(three, lambda one: len(one.facts) <= 1).facts == FACTS[2:3], "the last one goes last"
    assert shortened(summary, lambda one: True) is summary


def test_all_lists_give_way_together() -> None:
    summary = StructuredSummary(facts=FACTS, open_items=tuple(map(OpenItem, FACTS)))
    cut = shortened(summary, lambda one: len(one.facts) + len(one.open_items) <= 16)
    assert cut == StructuredSummary(facts=FACTS[8:], open_items=tuple(map(OpenItem, FACTS[8:])))


def test_of_a_narrative_the_beginning_stays_up_to_the_end_of_a_sentence() -> None:
    story = " ".join(f"Step {number:02} went well." for number in range(16))
    summary = StructuredSummary(narrative=story)
    assert shortened(summary, lambda one: len(one.narrative) <= 70).narrative == story[: 3 * 19 - 1]
    assert shortened(summary, lambda one: len(one.narrative) <= 160).narrative == story[: 8 * 19 - 1]


def test_crumbs_of_a_narrative_are_not_left() -> None:
    """Facts give way only when nothing of its own text is left."""
    summary = StructuredSummary(narrative="word " * 64, ledger=LEDGER)
    cut = shortened(summary, lambda one: len(one.narrative) <= 4)
    assert (cut.narrative, cut.ledger) == ("", LEDGER)
    assert shortened(summary, lambda one: not one.narrative and len(one.ledger) <= 2).ledger == Ledger((TASK, RULE))


def test_no_result_stands_without_its_call() -> None:
    call, result = Excerpt("bash:", "ls"), Excerpt("→", "a.py")
    assert whole_steps((result, result, call, result)) == (call, result)
    assert whole_steps((call, result)) == (call, result)
    assert fit_summary(StructuredSummary(excerpts=(call, result)), lambda one: len(one.excerpts) <= 1).excerpts == ()


def test_no_more_entries_are_taken_out_than_have_to_be() -> None:
    for room in (16, 15, 14, 9, 1, 0):
        assert fit_summary(StructuredSummary(facts=FACTS), lambda one, room=room: len(one.facts) <= room) == (
            StructuredSummary(facts=FACTS[16 - room :])
        )


def test_a_narrative_is_halved_until_it_fits() -> None:
    summary = StructuredSummary(narrative="One two three four. Five six seven eight. Nine ten.", ledger=LEDGER)
    cut = fit_summary(summary, lambda one: len(one.narrative) <= 30)
    assert cut.ledger == LEDGER
    assert 0 < len(cut.narrative) <= 30
    assert summary.narrative.startswith(cut.narrative.rstrip(" …"))
    assert fit_summary(summary, lambda one: True) == summary


def test_what_is_required_goes_last() -> None:
    summary = StructuredSummary(narrative="We painted.", ledger=LEDGER)

    def facts_that_fit(facts: int, chars: int) -> StructuredSummary:
        return cut_to(summary, lambda one: len(one.ledger) <= facts and len(one.narrative) <= chars)

    assert facts_that_fit(6, 11) is summary
    required = Ledger((TASK, RULE))
    trimmed = facts_that_fit(4, 11)
    assert trimmed.narrative == "We painted."
    assert {TASK, RULE} < set(trimmed.ledger)
    assert facts_that_fit(2, 11) == replace(summary, ledger=required)
    assert facts_that_fit(6, 0) == replace(summary, ledger=required, narrative="")
    assert joined(summary, LEDGER, required, lambda one: len(one.ledger) <= 1) is None
    assert joined(summary, LEDGER, required, lambda one: True) == summary
    assert required_facts(LEDGER, lambda one: True) == required
    assert required_facts(LEDGER, lambda one: len(one.ledger) <= 1) == Ledger((RULE,))
