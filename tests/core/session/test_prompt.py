"""The prompt as it stands: what its places stand for and weigh, as it is made, grows, changes a form and is copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.log.log import Log
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.line_index import LineIndex
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import ClearRecord, CompactionPlan, DropRecord, SpanReference, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.session.prompt import CurrentPrompt
from compact.core.summary.summary import StructuredSummary
from compact.testing import Wire, WordTokenizer, assistant, dialogue, system, tool_exchange, user

COUNT = WordTokenizer().count_message
RULES = KeepRules()
# m1 system, m2 user, m3 call, m4 result, m5 call, m6 result, m7 user
HISTORY = [
    system("be careful"),
    user("look at both files"),
    *tool_exchange("c1", "the first file " * 20, path="a.py"),
    *tool_exchange("c2", "what is open " * 9, tool="list_issues"),
    user("and now?"),
]
SUMMARY = StructuredSummary(ledger=Ledger((Fact(FactKind.FILE, "a.py", "read"),)), narrative="looked at both")


def log_of(items: Sequence[Wire]) -> Log:
    log = Log()
    log.match(items, output=CurrentPrompt().items, read=read_entry)
    return log


def prompt_of(
    log: Log, plan: CompactionPlan | None = None, count_message: Callable[[Message], int] = COUNT, like: object = None
) -> CurrentPrompt:
    """What a plan shows of a log: repaired, and counted as a session does it."""
    rendered = PromptRenderer().render(log.view, plan := plan or CompactionPlan("s"))
    return CurrentPrompt.built(
        log,
        plan,
        rendered,
        repair_chat(rendered.slots)[0],
        covered=len(log.view),
        view_tokens=sum(map(COUNT, log.view)),
        tools=dict(LineIndex(log.view).tools),
        rules=RULES,
        message_tokens=lambda message_id: COUNT(log.now(message_id)),
        count_message=count_message,
        like=like,
    )


def record(kind: Any, *message_ids: str, tokens_after: int = 0, **fields: Any) -> Any:
    return kind(
        span=SpanReference(message_ids),
        strategy="mine",
        reason="old",
        tokens_after=tokens_after,
        tokens_before=99,
        **fields,
    )


def plan_of(*records: Any, lines: Mapping[str, str] | None = None) -> CompactionPlan:
    return CompactionPlan("s", version=1, records=records, pinned=("m1",), lines=lines or {})


COMPACTED = plan_of(
    record(SummarizationRecord, "m2", "m3", "m4", tokens_after=20, summary=SUMMARY),
    record(ClearRecord, "m6", tokens_after=7),
)


def state_of(prompt: CurrentPrompt) -> dict[str, Any]:
    """All that a prompt says of itself."""
    items = prompt.items
    return {
        "messages": prompt.messages,
        "items": (list(items.originals), list(items.ids), list(items.owners), list(items.ours)),
        "tokens": (prompt.tokens, prompt.view_tokens, list(prompt.slot_tokens), list(prompt.slot_parts)),
        "parts": {part: tokens for part, tokens in prompt.tokens_by_part.items() if tokens},
        "contents": prompt.contents,
        "places": (len(prompt), prompt.covered, prompt.summary_place),
    }


def grown(prompt: CurrentPrompt, log: Log, items: Sequence[Wire]) -> CurrentPrompt:
    """The prompt with what is new in a list behind it."""
    match = log.match(items, output=prompt.items, read=read_entry)
    assert match is not None
    prompt.extend(match.new, list(map(COUNT, match.new)), PromptRenderer(), RULES)
    return prompt


def test_what_is_shown_as_it_is_are_the_callers_own_items() -> None:
    log = log_of(HISTORY)
    prompt = prompt_of(log, COMPACTED)
    ids = [("m1",), ("m2", "m3", "m4"), ("m5",), ("m6",), ("m7",)]
    assert prompt.items.ids == [slot.ids for slot in prompt.slots] == ids
    assert prompt.items.owners == ["m1", "", "m5", "", "m7"], "a summary and a stub are ours"
    for place, original in ((0, HISTORY[0]), (2, HISTORY[4]), (4, HISTORY[6])):
        assert prompt.items.originals[place] == original
    assert prompt.items.originals[1] == assistant(prompt.messages[1].text)


def test_what_we_make_is_written_as_the_callers_kind() -> None:
    log = log_of(HISTORY)
    assert isinstance(prompt_of(log, COMPACTED, like=Message("user", "hi")).items.originals[1], Message)
    assert isinstance(prompt_of(log, COMPACTED, like=user("hi")).items.originals[1], dict)


def test_what_a_plan_has_weighed_is_not_counted_again() -> None:
    def refuse(message: Message) -> int:
        raise AssertionError(message)

    prompt, log = prompt_of(log_of(HISTORY), COMPACTED, refuse), log_of(HISTORY)
    first, _, _, _, call, _, last = map(COUNT, log.view)
    assert prompt.slot_tokens == [first, 20, call, 7, last]
    assert prompt.tokens == sum(prompt.slot_tokens)
    assert prompt.view_tokens == sum(map(COUNT, log.view)), "what the history would take without the plan"


def test_each_place_counts_for_its_part() -> None:
    prompt = prompt_of(log_of(HISTORY), COMPACTED)
    first, _, call, _, last = prompt.slot_tokens
    ledger = prompt.tokens_by_part[PromptPart.LEDGER]
    assert 0 < ledger < 20
    assert {part: tokens for part, tokens in prompt.tokens_by_part.items() if tokens} == {
        PromptPart.SYSTEM: first,
        PromptPart.LEDGER: ledger,
        PromptPart.SUMMARY: 20 - ledger,
        PromptPart.STUBS: 7,
        PromptPart.DIALOGUE: call + last,
    }
    assert prompt.summary_place == 1
    assert prompt_of(log_of(HISTORY)).summary_place is None


def test_its_contents_are_told_by_who_said_them() -> None:
    prompt = prompt_of(log_of(HISTORY))
    _, asked, call, first, other, second, last = prompt.slot_tokens
    assert prompt.contents == {
        "dialogue": {"assistant": call + other, "user": asked + last},
        "tool_results": {"read_file": first, "list_issues": second},
    }
    assert prompt_of(log_of(HISTORY), COMPACTED).contents["stubs"] == {"list_issues": 7}


def test_a_line_between_turns_is_a_stub_and_a_placeholder_for_a_result_is_a_result() -> None:
    log = log_of([*dialogue(3), tool_exchange("c1", "gone")[0]])
    whole = sum(map(COUNT, log.view))
    prompt = prompt_of(log, plan_of(record(DropRecord, "m2"), lines={"m3": "assistant"}))
    line, placeholder = prompt.slots[1], prompt.slots[-1]
    assert line.ids == placeholder.ids == ()
    assert [prompt.slot_parts[1], prompt.slot_parts[-1]] == [PromptPart.STUBS, PromptPart.TOOL_RESULTS]
    assert [prompt.slot_tokens[1], prompt.slot_tokens[-1]] == [COUNT(line.message), COUNT(placeholder.message)]
    assert prompt.view_tokens == whole + COUNT(placeholder.message), "the whole history would need that repair, too"


def test_a_result_without_its_call_weighs_what_the_repair_makes_of_it() -> None:
    log = log_of([user("go on"), tool_exchange("c1", "one two three")[1]])
    prompt = prompt_of(log)
    assert prompt.items.owners == ["m1", ""]
    assert prompt.slot_tokens[1] == COUNT(prompt.messages[1]) > COUNT(log.view[1])
    assert prompt.view_tokens == prompt.tokens
    assert prompt.slot_parts[1] is PromptPart.DIALOGUE


def test_a_prompt_that_grew_is_the_one_that_is_made_anew() -> None:
    log = log_of(HISTORY[:2])
    prompt = grown(prompt_of(log), log, HISTORY)
    assert state_of(prompt) == state_of(prompt_of(log))
    empty = Log()
    assert state_of(grown(CurrentPrompt(), empty, HISTORY)) == state_of(prompt)


def test_with_nothing_new_nothing_is_made() -> None:
    log = log_of(HISTORY)
    prompt = prompt_of(log)
    rendered = prompt.rendered
    assert grown(prompt, log, HISTORY).rendered is rendered


@pytest.mark.parametrize("content", ["[cleared]", "the first file " * 30])
def test_an_entry_in_another_form_weighs_what_that_form_does(content: str) -> None:
    log = log_of(HISTORY)
    prompt = prompt_of(log)
    form = Message("tool", content, tool_call_id="c1", id="m4", original={**HISTORY[3], "content": content})
    assert prompt.take_forms({"m4": (form, COUNT(form))})
    changed = log_of([*HISTORY[:3], {**HISTORY[3], "content": content}, *HISTORY[4:]])
    assert state_of(prompt) == state_of(prompt_of(changed))


def test_a_form_of_what_is_not_shown_as_it_is_needs_a_prompt_that_is_made_anew() -> None:
    """It stays as it was until then."""
    prompt = prompt_of(log_of(HISTORY), COMPACTED)
    before = state_of(prompt)
    form, empty = Message("user", "and now, quickly?", id="m7"), Message("user", None, id="m7")
    for forms in ({"m4": (form, 3)}, {"m6": (form, 3)}, {"m7": (empty, 3)}, {"m7": (form, 3), "m4": (form, 3)}):
        assert not prompt.take_forms(forms)
        assert state_of(prompt) == before
    assert prompt.take_forms({"m7": (form, 3)})


def test_a_copy_is_the_same_and_on_its_own() -> None:
    log = log_of(HISTORY)
    prompt = prompt_of(log, COMPACTED)
    before, twin = state_of(prompt), prompt.copy()
    assert state_of(twin) == before
    more = [*HISTORY, *tool_exchange("c3", "more", tool="run"), assistant("done")]
    assert state_of(grown(twin, log, more)) != before
    assert state_of(prompt) == before


def test_the_beginning_of_a_prompt_weighs_what_its_places_do() -> None:
    prompt = prompt_of(log_of(HISTORY), COMPACTED)
    assert [prompt.leading_tokens(n) for n in range(6)] == [sum(prompt.slot_tokens[:n]) for n in range(6)]
