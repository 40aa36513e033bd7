"""What people and the agent name themselves is likelier to be needed again than what only a tool printed."""

from __future__ import annotations

from hypothesis import given

from compact.core.facts.pieces import cut_into_pieces
from compact.core.facts.score import HistoryScores
from compact.core.messages.message import Message
from conversations import Wire, histories
from numbered import exchange, numbered


def worth_of(*history: Message | tuple[Message, ...]) -> HistoryScores:
    flat = [message for item in history for message in (item if isinstance(item, tuple) else (item,))]
    return HistoryScores(cut_into_pieces(numbered(flat)))


def user(text: str) -> Message:
    return Message("user", text)


def agent(text: str) -> Message:
    return Message("assistant", text)


@given(histories(max_size=10))
def test_every_need_is_a_chance(history: list[Wire]) -> None:
    pieces = cut_into_pieces(numbered(history))
    worth = HistoryScores(pieces)
    needs = [*worth.string_scores.values(), *worth.word_scores.values()]
    assert all(0.0 < need < 1.0 for need in needs)
    assert {text for piece in pieces for text in piece.strings} == set(worth.string_scores)


def test_what_the_agent_took_up_is_needed_more_than_what_was_only_printed() -> None:
    printed = exchange("lookup", "ORD-4711 paid\nORD-4712 paid", customer="x")
    need = worth_of(user("go"), printed, agent("ORD-4711 it is")).string_scores
    assert need["ORD-4711"] > need["ORD-4712"]


def test_what_is_named_again_and_again_is_needed_more() -> None:
    history = [user("go"), agent("look at module_alpha and module_beta")]
    history += [agent(f"module_alpha again, step {n}") for n in range(4)]
    need = worth_of(*history).string_scores
    assert need["module_alpha"] > need["module_beta"]


def test_a_result_that_nobody_has_read_yet_is_needed_more() -> None:
    read = exchange("lookup", "ORD-4711 paid", customer="x")
    unread = exchange("lookup", "ORD-4712 paid", customer="y")
    need = worth_of(user("go"), read, agent("fine"), unread).string_scores
    assert need["ORD-4712"] > need["ORD-4711"]


def test_what_nobody_has_used_counts_more_if_it_is_about_what_is_talked_of() -> None:
    printed = exchange("grep", "shipping_label_printer\nunrelated_widget_factory", pattern="x")
    need = worth_of(user("the shipping label is wrong"), agent("looking for the shipping label"), printed).string_scores
    assert need["shipping_label_printer"] > need["unrelated_widget_factory"]


def test_words_that_people_use_are_needed_more_than_words_of_tools() -> None:
    printed = exchange("bash", "brontosaurus everywhere", command="ls")
    need = worth_of(user("find the pterodactyl"), printed).word_scores
    assert need["pterodactyl"] > need["brontosaurus"]
