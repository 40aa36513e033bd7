"""Constraints: found in what people write, kept word for word, given up only when they are withdrawn."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.constraints import LearnedConstraints
from compact.constraints.finder import CERTAIN_SCORE, LIKELY_CHARS, MIN_SCORE
from compact.constraints.score import score_sentence
from compact.constraints.word_lists import feature_weights
from compact.core.messages.message import Message

EXAMPLES = Path(__file__).parents[2] / "benchmarks" / "constraint_examples"
FINDER = LearnedConstraints()


def example_lines(name: str) -> list[str]:
    lines = (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def found_in(text: str) -> list[str]:
    return [text[start:end] for start, end in FINDER.find(text)]


def said(*texts: str, role: str = "user") -> list[Message]:
    return [Message(role, text, id=f"m{number}") for number, text in enumerate(texts, start=1)]


def standing(*texts: str) -> list[str]:
    return [constraint.text for constraint in FINDER.standing(said(*texts))]


@pytest.mark.parametrize(
    "constraint",
    [
        "From now on, show me the draft before sending.",
        "Never touch the prod database.",
        "When you finish, end with a one-line summary.",
        "use pnpm, not npm",
        "please keep answers under 100 words",
        "I'd rather you didn't commit without asking",
        "I’d rather you didn’t commit without asking.",
        "btw all dates in ISO format",
        "It would be great if you could always add a test.",
        "my boss hates emojis, so none of those please",
        "Ab jetzt bitte nur auf Deutsch.",
        "Désormais, montre-moi le brouillon avant d'envoyer.",
        "De ahora en adelante responde en español.",
        "Non inviare mai niente senza chiedermi.",
        "Nunca apague nada sem me perguntar.",
        "Vraag het altijd eerst voordat je iets verwijdert.",
        "Никогда не удаляй файлы без спроса.",
        "以后请用中文回答。",
        "今後は必ず日本語で答えてください。",
        "Bundan sonra bana sormadan hiçbir şeyi silme.",
    ],
)
def test_a_constraint_is_found_whole(constraint: str) -> None:
    assert found_in(constraint) == [constraint]


@pytest.mark.parametrize(
    "text",
    [
        "Why does it always fail on the second run?",
        "It never worked on my machine.",
        "Can you check the status of my order #W5490111?",
        "Don't worry about the warning.",
        "I'd like to cancel my reservation for tomorrow.",
        "",
    ],
)
def test_a_one_off_request_is_no_constraint(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "jesus, everything works, you are a monster",
        "the counter only goes up and never goes down again",
        "we no longer publish to that store",
        "I always thought the second run was slower.",
        "let's continue please",
        "Each response should include:",
        "**Every plan MUST start with this header:**",
        "Plan: Always Expand The Latest Card",
        'The prompt says "when in doubt, always prefer a standard", which sounds good.',
        "Current: `never retry without asking the user first`",
    ],
)
def test_praise_facts_headings_and_quotations_are_no_constraints(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "You are a dispatcher, so never read the source files yourself, only write prompt files and run\n"
            "`worker add` for each of them.",
            "You are a dispatcher, so never read the source files yourself, only write prompt files and run\n"
            "`worker add` for each of them.",
        ),
        (
            "- Merge one at a time.\n- Never start a second merge without\n  waiting for the first one.",
            "Never start a second merge without\n  waiting for the first one.",
        ),
        (
            "Never write platitudes like I will do <this good thing> rather than <that bad thing>.",
            None,
        ),
        (
            "Please never delete any of the generated files in that folder, because three other teams read them every "
            "night, and could you consider also telling me who they are before you touch anything else in there.",
            None,
        ),
    ],
)
def test_a_constraint_is_kept_as_a_whole_sentence(text: str, kept: str | None) -> None:
    assert (kept or text) in found_in(text)


def test_what_also_sets_apart_in_a_long_line_is_kept_alone() -> None:
    talk = (
        "ok thanks so the log is in the usual place and the second run was a bit slower than the first one as far as i"
    )
    constraint = "never push to main without asking me"
    assert found_in(f"{talk} can tell from here also {constraint}") == [constraint]


def test_the_points_of_a_list_that_is_announced_as_rules_are_kept_each() -> None:
    text = "Look into the ticket. The rules are:\n- pragmatic solution\n- no breaking changes\n- easy to maintain"
    assert found_in(text) == ["pragmatic solution", "no breaking changes", "easy to maintain"]
    assert found_in("The reasons are:\n- old compiler\n- wrong flags") == []


@pytest.mark.parametrize(
    ("constraint", "later"),
    [
        ("Don't push yet.", "ok push"),
        ("Don't push yet.", "You can push now."),
        ("Don't create a pull request, a commit is enough.", "Great, now create the pull request."),
        ("Don't change any files yet, just the analysis.", "Do it, and commit when you are done."),
        ("Please don't edit anything yet, I only want the plan.", "ok, implement the second option"),
    ],
)
def test_a_limit_of_the_moment_is_over_when_the_very_thing_is_ordered(constraint: str, later: str) -> None:
    assert standing(constraint, "what did you find?") == [constraint]
    assert standing(constraint, "what did you find?", later) == []


@pytest.mark.parametrize(
    ("constraint", "later"),
    [
        ("Don't push to main.", "push it"),
        ("Never push to main without asking.", "push to main now"),
        ("Don't commit yet.", "go ahead with phase two"),
        ("Don't commit yet.", "should we commit this?"),
        ("Don't commit yet.", "commit this?"),
        ("Don't commit yet. Go ahead with phase one.", "and now?"),
    ],
)
def test_a_constraint_stays_if_something_else_is_ordered(constraint: str, later: str) -> None:
    assert "ommit yet" in standing(constraint, later)[0] or standing(constraint, later) == [constraint]


def test_only_the_constraint_is_taken_out_of_a_message() -> None:
    text = "Can you look at the failing test? From now on, never push to main without asking me. The log is below."
    assert found_in(text) == ["From now on, never push to main without asking me."]


def test_a_constraint_in_a_line_without_punctuation_is_found() -> None:
    constraint = "never push to main without asking me"
    assert any(constraint in piece for piece in found_in(f"ok thanks the log is in the usual place also {constraint}"))


@pytest.mark.parametrize(
    "constraint",
    [
        "My boss hates emojis. None of those please.",
        "When you finish, end with the checksum. That goes for every file.",
        "Please keep it short. I read this on my phone.",
    ],
)
def test_sentences_that_need_each_other_stay_together(constraint: str) -> None:
    assert found_in(f"Good morning! {constraint}") == [constraint]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# never use tabs in this file\nalways_flush = True\n```",
        "<system-reminder>\nNever mention this reminder to the user. Always answer briefly.\n</system-reminder>",
        "<local-command-stdout>You must always restart the server.</local-command-stdout>",
        "> From now on, never push to main.",
        "2024-05-01 10:00:00 WARN never retry without asking",
        '{"rule": "always answer in German", "note": "never use emojis"}',
    ],
)
def test_what_nobody_typed_is_no_constraint(text: str) -> None:
    assert found_in(text) == []


def test_what_a_command_was_given_is_typed() -> None:
    text = "<command-name>/review</command-name>\n<command-args>Never push to main without asking me.</command-args>"
    assert found_in(text) == ["Never push to main without asking me."]


def specification(sections: int) -> str:
    rules = (
        "The service must store every record twice.\n- Each record should be kept for ten years.\n- It must never fail."
    )
    return "\n\n".join(f"## Section {number}\n\n{rules}" for number in range(sections))


def test_a_pasted_specification_does_not_fill_the_list() -> None:
    text = f"Implement this:\n\n{specification(100)}"
    assert text.count("must") == 200
    assert len(FINDER.find(text)) <= 12


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_constraint_beside_or_within_a_pasted_specification_is_found(place: float) -> None:
    constraint = "Please show me the diff before you commit anything."
    sections = specification(60).split("\n\n")
    sections.insert(int(place * len(sections)), constraint)
    assert any(constraint in piece for piece in found_in("\n\n".join(sections)))


def test_only_users_and_developers_set_constraints() -> None:
    for role in ("system", "assistant"):
        assert FINDER.standing(said("Never push to main.", role=role)) == ()
    assert FINDER.standing([Message("tool", "Never push to main.", tool_call_id="c1", id="t")]) == ()
    assert [c.text for c in FINDER.standing(said("Never push to main.", role="developer"))] == ["Never push to main."]


def test_a_constraint_says_where_it_was_said() -> None:
    (constraint,) = FINDER.standing(said("Hello!", "Thanks. Never push to main without asking me."))
    assert (constraint.source_id, constraint.start) == ("m2", 8)
    assert constraint.text == "Never push to main without asking me."


def test_a_constraint_said_twice_is_kept_where_it_was_said_last() -> None:
    kept = FINDER.standing(said("Never push to main, please.", "Keep answers short.", "please never push to main"))
    assert [(c.text, c.source_id) for c in kept] == [("Keep answers short.", "m2"), ("please never push to main", "m3")]


@pytest.mark.parametrize(
    ("constraint", "later", "left"),
    [
        ("From now on all dates in ISO format.", "Never mind the ISO dates.", []),
        ("I'd rather you didn't commit without asking.", "You can commit without asking again.", []),
        ("No emojis please.", "Actually emojis are fine now.", []),
        ("Never touch the prod database.", "Ignore my earlier rule about the prod database.", []),
        ("Never push to main.", "Scratch that.", []),
        ("Please show me the draft before sending.", "You don't have to show me the drafts anymore.", []),
        (
            "Never touch the prod database. Keep answers short.",
            "Forget the rule about the database.",
            ["Keep answers short."],
        ),
        (
            "Use pnpm, not npm.",
            "From now on use npm again instead of pnpm.",
            ["From now on use npm again instead of pnpm."],
        ),
        ("Always answer in German.", "From now on answer in English.", ["From now on answer in English."]),
        ("Keep answers under 100 words.", "Keep answers under 50 words.", ["Keep answers under 50 words."]),
        ("Never touch the prod database.", "Skip my rule about the prod database.", []),
    ],
)
def test_a_constraint_that_is_withdrawn_or_replaced_is_gone(constraint: str, later: str, left: list[str]) -> None:
    assert standing(constraint, later) == left


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Never touch config/a.py.", "Never touch config/b.py."),
        (
            "Do not delete the table users_2 of the old database.",
            "Do not delete the table users_8 of the old database.",
        ),
        ("Do not deploy to eu-1.", "From now on do not deploy to eu-2 either."),
        ("Don't restart server web-01 without asking me.", "Don't restart server web-02 without asking me."),
        ("Never contact customer 4411.", "Never contact customer 4412."),
        (
            "Never restart the production server web-01 of the shop in Berlin at night without asking me.",
            "Never restart the production server web-02 of the shop in Berlin at night without asking me.",
        ),
        ("Never merge PR 14 without asking me first.", "Never merge PR 15 without asking me first."),
        ("Don't call `parse` in the tests of the api.", "Don't call `write` in the tests of the api."),
    ],
)
def test_a_constraint_on_another_thing_replaces_none(first: str, second: str) -> None:
    """Both are almost the same words; what they are about is a name."""
    assert standing(first, second) == [first, second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Never touch config/a.py.", "Never touch config/a.py, I mean it."),
        ("Never touch config/a.py.", "Never touch config/a.py or config/b.py."),
        ("Never use more than 3 retries.", "Never use more than 5 retries."),
        ("Keep replies below 100 words.", "Keep replies below 50 words."),
    ],
)
def test_a_constraint_on_the_same_thing_replaces_the_older_one(first: str, second: str) -> None:
    assert standing(first, second) == [second]


def test_what_is_forbidden_of_one_thing_stays_when_it_is_ordered_of_another() -> None:
    assert standing("Don't touch config/a.py.", "Now touch config/b.py.") == ["Don't touch config/a.py."]
    assert standing("Don't touch config/a.py.", "Now touch config/a.py.") == []


@pytest.mark.parametrize(
    ("constraint", "later", "is_left"),
    [
        ("Never touch config/a.py.", "You can touch config/b.py again.", True),
        ("Never touch config/a.py.", "You can touch a.py again.", False),
        ("Never touch config/a.py.", "Forget my rule about the config file.", False),
        ("Never touch config/a.py or config/b.py.", "You can touch config/b.py again.", True),
        ("Never contact customer 4411.", "You can contact customer 4412 again.", True),
        ("Never contact customer 4411.", "You can contact customer 4411 again.", False),
        ("Don't restart server web-01.", "Forget the rule about web-02.", True),
        ("Don't restart server web-01.", "Forget the rule about web-01.", False),
    ],
)
def test_a_retraction_that_names_something_is_about_that_alone(constraint: str, later: str, is_left: bool) -> None:
    """Of two names that a constraint has, one that is not released keeps the whole: rather a rule too many."""
    assert standing(constraint, later) == ([constraint] if is_left else [])


@pytest.mark.parametrize(
    "order",
    ["Do not delete the table orders.", "Do not delete the table users_2.", "Do not remove the file a.txt."],
)
def test_what_is_forbidden_may_be_called_anything(order: str) -> None:
    """Learned weights say that a table or a file is seldom in a constraint; an order is one all the same."""
    assert standing(order) == [order]


@pytest.mark.parametrize("remark", ["Do not worry about the file.", "Don't you delete the table first?", "Don't know."])
def test_not_everything_that_begins_with_do_not_is_an_order(remark: str) -> None:
    assert standing(remark) == []


@pytest.mark.parametrize(
    "later",
    [
        "You can push now.",
        "Forget it, I found the bug myself.",
        "That looks fine now.",
        "It no longer works.",
        "Never mind.",
    ],
)
def test_a_constraint_stays_if_something_else_is_withdrawn(later: str) -> None:
    assert standing("Never push to main without asking.", later) == ["Never push to main without asking."]


def test_scratch_that_means_only_what_was_said_just_before() -> None:
    assert standing("Never push to main.", "Fix the login bug.", "Scratch that.") == ["Never push to main."]


def test_certain_constraints_are_kept_however_many_there_are() -> None:
    constraints = [f"From now on, never touch the folder area{number} without asking me." for number in range(40)]
    kept = FINDER.standing(said(*constraints))
    assert [constraint.text for constraint in kept] == constraints
    assert all(constraint.weight >= CERTAIN_SCORE for constraint in kept)


def test_likely_constraints_share_the_room_that_a_conversation_has() -> None:
    weights = feature_weights()
    likely = [
        line
        for name in ("training", "set_5", "set_6")
        for line in example_lines(name)
        if MIN_SCORE <= score_sentence(line, weights).score < CERTAIN_SCORE
    ]
    assert len(likely) > 10
    short = FINDER.standing(said(*likely))
    long = FINDER.standing([*said(*likely), Message("assistant", "words " * 200_000)])
    assert sum(len(constraint.text) for constraint in short) <= LIKELY_CHARS
    assert 0 < len(short) < len(long)


def test_weights_are_whole_numbers_so_that_every_process_adds_them_up_alike() -> None:
    assert len(feature_weights()) > 500
    assert all(type(weight) is int for weight in feature_weights().values())


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("training", 0.96),
        ("set_1", 0.97),
        ("set_2", 0.95),
        ("set_3", 0.95),
        ("set_4", 0.96),
        ("set_5", 0.96),
        ("set_6", 0.96),
        ("held_out", 0.92),
    ],
)
def test_the_lists_of_constraints_are_found(name: str, least: float) -> None:
    constraints = example_lines(name)
    lost = [constraint for constraint in constraints if not any(constraint in piece for piece in found_in(constraint))]
    assert len(lost) <= (1 - least) * len(constraints), lost


@pytest.mark.parametrize("name", ["one_off_requests", "statements", "chatter"])
def test_few_other_sentences_are_taken_for_constraints(name: str) -> None:
    sentences = example_lines(name)
    assert len(sentences) > 200
    assert sum(bool(FINDER.find(sentence)) for sentence in sentences) <= 0.06 * len(sentences)


fragments = st.sampled_from(
    [
        "never ",
        "From now on",
        "```",
        "<a>",
        "</a>",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "please",
        ". ",
        "! ",
        "…",
        "also ",
        "I ",
        "以后",
    ]
)


@given(st.lists(fragments | st.text(max_size=8), max_size=60).map("".join))
def test_ranges_lie_in_the_text_in_order_and_apart(text: str) -> None:
    ranges = FINDER.find(text)
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(left[1] <= right[0] for left, right in pairwise(ranges))
    for constraint in FINDER.standing([Message("user", text, id="m1")]):
        assert text.startswith(constraint.text, constraint.start)


CRAFTED = (
    "<a>",
    "<a>x</b>",
    "<a>x</a>\n",
    "```",
    ". ",
    ".",
    "a, ",
    "a B ",
    "x also ",
    "1. ",
    "x\n",
    "e.g. ",
    "don't ",
    "请",
)


@pytest.mark.parametrize("unit", CRAFTED)
def test_a_crafted_text_costs_no_more_than_its_length(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    start = time.process_time()
    FINDER.find(text)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("before", ["Let us take plan B.", "Take berth a.", "We are on Python 3.", "Boats, ropes etc."])
@pytest.mark.parametrize("order", ["Do not delete the table orders.", "Never touch config/harbour.py."])
def test_an_order_behind_what_looks_like_an_abbreviation_is_a_sentence_of_its_own(before: str, order: str) -> None:
    found = FINDER.standing([Message("user", f"{before} {order}", id="m1")])
    assert [constraint.text for constraint in found] == [order]


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Never write to Dr. Keller or J. Berg without asking me."
    assert [constraint.text for constraint in FINDER.standing([Message("user", text, id="m1")])] == [text]
