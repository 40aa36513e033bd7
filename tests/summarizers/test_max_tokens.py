"""`summarizer.max_tokens`: no summary is longer, whoever writes it, whatever its form and what it has to hold."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.summary.summary import Decision
from compact.summarizers.extractive import extractive_summary
from compact.summarizers.llm.templates import FORMS
from compact.testing import ScriptedModel, WordTokenizer, assistant, dialogue, say_json, system, tool_exchange, user

COUNTER = WordTokenizer()
THINGS = (
    *("billing", "parser", "gateway", "invoice", "migration", "cluster", "snapshot", "pipeline", "firewall", "webhook"),
    *("dashboard", "calendar", "inventory", "printer", "satellite", "translator", "scheduler", "compiler", "turbine"),
)
RULES = [f"Never delete the {thing} without asking me first." for thing in THINGS]
HISTORY = [
    system("be brief"),
    user("Fix the importer in src/importer.py."),
    *(
        message
        for number, rule in enumerate(RULES * 2)
        for message in (
            user(rule if number < len(RULES) else f"Now look at part {number}."),
            *tool_exchange(f"c{number}", f"line {number} of the file\n" * 60, path=f"src/{number}.py"),
            assistant(f"I use option {number}, because it is faster than option {number + 1}."),
        )
    ),
    *dialogue(4, words=30),
]
TOLD = {"narrative": "The importer was read. " * 60, "decisions": [{"decision": f"use option {n}"} for n in range(60)]}


def verbose(request: SummaryRequest) -> StructuredSummary:
    """A summariser that takes no heed of its room."""
    return StructuredSummary(narrative="word " * 5_000, decisions=tuple(Decision(f"take {n}") for n in range(500)))


def failing(request: SummaryRequest) -> StructuredSummary:
    raise RuntimeError("no summary today")


def summary_tokens(manager: CompactManager) -> int:
    found = [slot.message for slot in manager.prompt("s").slots if slot.message.id.startswith("compact-summary")]
    return COUNTER.count_message(found[0])


def compacted(form: str, limit: int | None, plug: Any = None, **summarizer: Any) -> CompactManager:
    """Return a manager whose one session was compacted, with a large window so that there is room for more."""
    settings = {"prefetch": "never", **summarizer} if limit is None else {"max_tokens": limit, **summarizer}
    config = CompactConfig(
        max_context_tokens=60_000,
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        policy={"summary_form": form, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
        summarizer=settings,
    )
    manager = CompactManager(config, summarizer=plug, tokenizer=COUNTER)
    manager.manual_compact("s", HISTORY)
    return manager


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [128, 400])
@pytest.mark.parametrize("plug", [None, verbose, failing], ids=["by code", "too long", "failing"])
def test_no_summary_is_longer(form, limit, plug):
    """By code, by a function that writes too much, and where the summary failed and code stands in."""
    assert 0 < summary_tokens(compacted(form, limit, plug)) <= limit


@pytest.mark.parametrize("form", FORMS)
def test_no_summary_by_a_model_is_longer(form):
    """Whatever it answers."""
    with ScriptedModel(say_json(TOLD)) as model:
        manager = compacted(form, 200, base_url=model.base_url, model="gpt-4o-mini", prefetch="never")
        assert model.requests
    assert 0 < summary_tokens(manager) <= 200


def test_constraints_that_have_no_room_in_it_are_shown_as_messages():
    """Neither the limit nor what a user asked to hold gives way."""
    manager = compacted("task_state", 128)
    shown = "\n".join(str(slot.message.content) for slot in manager.prompt("s").slots)
    assert all(rule in shown for rule in RULES)
    assert summary_tokens(manager) <= 128


def test_unset_it_is_what_the_reference_says():
    """A summary by code takes the room there is; anybody else's at most 4,096."""
    assert CompactConfig().summarizer.max_tokens is None
    assert summary_tokens(compacted("task_state", None)) > 400
    asked: list[int] = []

    def noting(request: SummaryRequest) -> StructuredSummary:
        asked.append(request.max_tokens)
        return extractive_summary(request)

    compacted("task_state", None, noting)
    assert asked
    assert max(asked) <= 4096
