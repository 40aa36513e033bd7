"""A session that goes on in another dialect, because its id is used again or its agent was ported."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, InvalidHistory
from compact.dialects import DIALECTS
from compact.dialects.translation import ShownList, Translator
from dialect_conversations import WRITERS, Call, Step

# All that dialects have words of their own for: pictures, documents, thoughts, calls of the provider's own tools.
STEPS = [
    Step(role="user", text="What is on the map? " * 30, has_image=True, has_document=True, number=0),
    Step(
        role="model",
        text="I look.",
        thinks="Where is it?",
        serves=True,
        calls=(Call("c1", "read_file", {"path": "map.py"}, "line " * 80, has_image=True),),
        number=1,
    ),
    Step(role="model", text="A harbour. " * 40, thinks="That is it.", number=2),
    Step(role="user", text="And what else?", number=3),
]


def entries_of(name: str) -> list[dict[str, Any]]:
    """Return what the store has of the session."""
    return json.loads(json.dumps(Translator(DIALECTS[name]).entries(WRITERS[name](STEPS))))


@pytest.mark.parametrize(("before", "now"), list(permutations(WRITERS, 2)))
def test_what_was_sent_in_another_dialect_is_learned_and_the_new_list_is_read(before: str, now: str) -> None:
    """What was sent before is written in the new dialect so that it is known again; it is never in the way."""
    entries, items = entries_of(before), WRITERS[now](STEPS)
    translator = Translator(DIALECTS[now])
    translator.learn(ShownList(entries, owners=[str(n) for n in range(len(entries))]))
    roles = [entry["role"] for entry in translator.entries(items)]
    assert roles == [entry["role"] for entry in Translator(DIALECTS[now]).entries(items)]


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("has_calls", [False, True])
@pytest.mark.parametrize(("before", "now"), list(permutations(WRITERS, 2)))
def test_a_session_that_was_decided_reads_another_dialect_whole_or_refuses_it(
    before: str, now: str, has_calls: bool, goes_on: bool
) -> None:
    """In the same process the dialect of a session stays: what is half understood would go out mixed."""
    config = CompactConfig(state={"url": "memory:"}, storage={"adapter": "none"}, telemetry={"exporter": "none"})
    manager = CompactManager(config.model_copy(update={"tokenizer": "simple"}))
    first, later = WRITERS[before](STEPS), WRITERS[now](steps_of("later", has_calls=has_calls))
    manager.preflight("s", first, dialect=before)
    refused: InvalidHistory | None = None
    try:
        manager.preflight("s", [*first, *later] if goes_on else later)
    except InvalidHistory as error:
        refused = error
    if refused:
        assert "dialect=" in refused.hint
        assert refused.place.startswith("messages[")
        assert len(manager.history("s")) == len(Translator(DIALECTS[before]).entries(first))
    else:
        said = " ".join(message.text for message in manager.history("s"))
        assert all(step.text in said for step in steps_of("later", has_calls=has_calls))
        assert not has_calls, "calls are written in another way by each"
    if not goes_on:
        manager.preflight("s", later, dialect=now)


def steps_of(words: str, *, has_calls: bool) -> list[Step]:
    call = Call(f"c-{words}", "read_file", {"path": "map.py"}, f"{words} lines", has_image=False)
    return [
        Step(role="user", text=f"What is {words}?", number=0),
        Step(role="model", text=f"I look {words}.", calls=(call,) if has_calls else (), number=1),
        Step(role="user", text=f"And {words}, too?", number=2),
    ]


@pytest.mark.parametrize(("before", "now"), list(permutations(WRITERS, 2)))
def test_a_result_is_written_without_the_fields_of_the_dialect_before(before: str, now: str) -> None:
    """Where both say the same, the entry is the one that was there first, with what its own dialect has kept of it."""
    call = Call("c1", "read_file", {"path": "map.py"}, "a harbour")
    items = WRITERS[before](
        [Step(role="user", text="What is it?", number=0), Step(role="model", calls=(call,), number=1)]
    )
    blocks = DIALECTS[now].write(Translator(DIALECTS[before]).entries(items))
    written = [item for block in DIALECTS[now].join(list(blocks)) for item in block.items]
    assert "a harbour" in json.dumps(written)
    assert not DIALECTS[now].check(written)
