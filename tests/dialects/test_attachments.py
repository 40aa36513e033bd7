"""Attachments in every dialect: whole while they are in use, a pointer afterwards, and back by recall as they were."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.core.messages.attachments import attached_part, attachment_id, attachments_of
from compact.core.messages.message import Message
from compact.core.planning.last_resort import LAST_RESORT
from compact.dialects import DIALECTS
from compact.testing import WordTokenizer
from conversations import SMALL_STRATEGIES
from dialect_conversations import DOCUMENT, IMAGE, WRITERS, Call, Step, Wire, conversations, document_name
from sizes import SCALE

PDF = base64.b64decode(DOCUMENT)
# Ollama takes images only.
WITH_DOCUMENTS = [name for name in WRITERS if name != "ollama"]
few = settings(max_examples=10 * SCALE)


@dataclass(frozen=True)
class PageTokenizer(WordTokenizer):
    """Counts words, and a flat rate for each attachment."""

    attachment_tokens: int = 60

    def count_message(self, message: Message) -> int:
        return super().count_message(message) + self.attachment_tokens * len(attachments_of(message))


def manager_for(window: int, *, attachment_tokens: int = 60, **settings: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 2, "keep_attachment_turns": 2},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        **settings,
    )
    tokenizer = PageTokenizer(attachment_tokens=attachment_tokens)
    return CompactManager(config, tokenizer=tokenizer, strategies=SMALL_STRATEGIES)


def talk(turns: int, *, first: str = "Please read this.", attached_in: tuple[int, ...] = (0,)) -> list[Step]:
    """A conversation of long answers; the user attaches a document, and an image, in some turns."""
    steps: list[Step] = []
    for turn in range(turns):
        text = first if turn == 0 else f"question {turn} " + "about it " * 20
        has = turn in attached_in
        steps.append(Step("user", text, has_image=has, has_document=has, number=len(steps)))
        steps.append(Step("model", f"answer {turn} " + "word " * 100, number=len(steps)))
    return [*steps, Step("user", "And now?", number=len(steps))]


def shows_document(out: list[Wire]) -> bool:
    text = repr(out)
    return DOCUMENT in text or repr(PDF) in text


def same_parts(shown: Wire, sent: Wire) -> bool:
    """Say whether a message begins with the parts of another; in some dialects the summary joins it."""
    parts = sent.get("content") or sent["parts"]
    return (shown.get("content") or shown["parts"])[: len(parts)] == parts


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_an_attachment_leaves_a_pointer_and_comes_back_as_it_was(name: str) -> None:
    """Out of use, it is one line; recall has its bytes; and whoever names it sees it again, in a legal list."""
    manager, steps = manager_for(1_000), talk(12)
    items = WRITERS[name](steps)
    out = manager.preflight("s", items, dialect=name)
    assert not shows_document(out)
    assert IMAGE not in repr(out)
    moved = manager.current_plan("s").artifacts
    assert len(moved) == 2
    text = json.dumps(out, default=repr)
    assert all(record.artifact_id in text for record in moved)
    assert "application/pdf" in text
    assert "1 page" in text
    assert document_name(steps[0]) in text
    found = manager.recall("s", document_name(steps[0])).found[0]
    original = manager.history("s")[0]
    assert [one.part for one in found.attachments] == [attached_part(original, one) for one in attachments_of(original)]
    (document,) = (one for one in found.attachments if one.attachment.kind == "document")
    assert document.data == PDF
    assert str(document) in str(manager.recall("s", document.artifact_id))
    asked = Step("user", f"Look at {document_name(steps[0])} again.", number=len(steps) + 1)
    answered = [*steps, Step("model", "What about it?", number=len(steps)), asked]
    again = manager.preflight("s", WRITERS[name](answered), dialect=name)
    assert shows_document(again)
    assert IMAGE not in repr(again), "only what was asked for comes back"
    assert DIALECTS[name].check(again) == ()
    assert len(manager.history("s")) == len(answered), "what is shown again is not in the log a second time"


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_recall_by_the_agent_shows_it_again_in_the_next_prompt(name: str) -> None:
    manager, steps = manager_for(1_000), talk(12)
    manager.preflight("s", WRITERS[name](steps), dialect=name)
    artifact = next(r.artifact_id for r in manager.current_plan("s").artifacts if "pdf" in r.attachments[0].line)
    answer = str(manager.recall("s", artifact))
    call = Call("call_r", "recall", {"query": artifact}, answer)
    again = manager.preflight("s", WRITERS[name]([*steps, Step("model", calls=(call,), number=99)]), dialect=name)
    assert shows_document(again)
    assert DIALECTS[name].check(again) == ()


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Answer from this document only.", ""),
        ("Use only the attached file for your answers, please.", ""),
        ("Please read this.", "What does document 0 say about fees?"),
    ],
)
def test_an_attachment_in_use_stays(name: str, first: str, later: str) -> None:
    """A standing instruction is about it, or the newest turns name it."""
    manager, steps = manager_for(1_000), talk(12, first=first)
    steps[-1] = Step("user", later or "And now?", number=len(steps) - 1)
    items = WRITERS[name](steps)
    out = manager.preflight("s", items, dialect=name)
    assert manager.current_plan("s").version == 1
    assert shows_document(out)
    assert same_parts(out[0], items[0]), "word for word, before the summary: a cache goes on serving it"
    assert DIALECTS[name].check(out) == ()


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_what_does_not_fit_is_moved_although_it_is_in_use(name: str) -> None:
    """The oldest go first; a prompt that can be sent is worth more than an error."""
    manager, steps = manager_for(1_000, attachment_tokens=380), talk(12, attached_in=(11,))
    out = manager.preflight("s", WRITERS[name](steps), dialect=name)
    assert shows_document(out), "what fits stays"
    manager = manager_for(1_000, attachment_tokens=600)
    out = manager.preflight("s", WRITERS[name](steps), dialect=name)
    assert not shows_document(out)
    assert manager.status("s").used_tokens <= 990
    assert all("no room" in record.reason for record in manager.current_plan("s").artifacts)


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_of_the_same_attachment_one_stays(name: str) -> None:
    steps = talk(12, first="Answer from this document only.", attached_in=(0, 11))
    manager = manager_for(1_000)
    out = manager.preflight("s", WRITERS[name](steps), dialect=name)
    text = repr(out)
    assert text.count(DOCUMENT) + text.count(repr(PDF)) == 1
    assert sum("sent again later" in record.reason for record in manager.current_plan("s").artifacts) == 2


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
@given(steps=conversations(min_turns=3, max_turns=7), window=st.sampled_from([500, 1200]))
@few
def test_every_attachment_is_in_the_prompt_or_is_named_in_it(name: str, steps: list[Step], window: int) -> None:
    """Whatever is compacted: the list is legal and fits, and no attachment of a user vanishes without a line."""
    manager = manager_for(window)
    try:
        out = manager.preflight("s", WRITERS[name](steps), dialect=name)
    except InsufficientBudget:
        assume(False)
        raise
    assert [one for one in DIALECTS[name].check(out) if "x_unknown" not in one.detail] == []
    assert manager.status("s").used_tokens <= window - 10
    plan = manager.current_plan("s")
    named = {record.artifact_id for record in plan.artifacts}
    for message in manager.history("s"):
        for attachment in attachments_of(message) if message.role == "user" else ():
            record = plan.get_action(message.id)[1]
            # Where not even a stub of everything fits, the oldest goes, and a notice says so.
            is_said = record is None or record.strategy == LAST_RESORT
            assert is_said or attachment_id("s", attachment) in named
