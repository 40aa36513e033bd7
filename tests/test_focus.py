"""Compacting by hand with a focus: what it names is kept first, with a model and without one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import compact
from compact import CompactConfig, CompactError, CompactManager, StructuredSummary, SummaryRequest
from compact.config import CompactPolicy
from compact.core.engine.events import NoticeEvent, TriggerDecisionEvent
from compact.core.summary.summarizer import SummarizerIdentity, create_summary_cache_key
from compact.core.summary.summary import Decision
from compact.testing import RecordingSink, ScriptedModel, dialogue, say_json, system, tool_exchange, user

FORMS = CompactPolicy.model_fields["summary_form"].annotation.__args__
NAMES = [
    "parser",
    "lexer",
    "cache",
    "router",
    "gateway",
    "scheduler",
    "storage",
    "network",
    "index",
    "backup",
    "logger",
    "monitor",
    "crawler",
]
FACT = "crawler module 7-13 reads src/crawler/part_7_13.py and returns code 713"
FOCUS = "what returns code 713"


def _result(number: int) -> str:
    names = [NAMES[(7 * number + line) % len(NAMES)] for line in range(40)]
    rows = [
        f"{name} module {number}-{line} reads src/{name}/part_{number}_{line}.py and returns code {100 * number + line}"
        for line, name in enumerate(names)
    ]
    return "\n".join(FACT if (number, line) == (7, 13) else row for line, row in enumerate(rows))


HISTORY = [
    system("be brief"),
    user("look through the modules and say what you find"),
    *(part for number in range(30) for part in tool_exchange(f"c{number}", _result(number), path=f"src/{number}.py")),
    *dialogue(8, words=30),
]


def manager(**settings: Any) -> CompactManager:
    plugs = {name: settings.pop(name) for name in ("summarizer_plug", "on_event", "store") if name in settings}
    if "summarizer_plug" in plugs:
        plugs["summarizer"] = plugs.pop("summarizer_plug")
    config = {"max_context_tokens": 32_000, "state": {"url": "memory:"}, "storage": {"adapter": "none"}}
    return CompactManager(CompactConfig(**{**config, **settings}), **plugs)


def has_fact(messages: list[Any]) -> bool:
    return any("code 713" in str(message["content"]) for message in messages)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target_tokens", [None, 3000, 1200])
def test_a_line_that_would_be_lost_is_kept(form, target_tokens):
    """In every form of a summary by code, and in every size."""
    lost = manager(policy={"summary_form": form}).manual_compact("s", HISTORY, target_tokens=target_tokens)
    kept = manager(policy={"summary_form": form}).manual_compact("s", HISTORY, target_tokens=target_tokens, focus=FOCUS)
    assert not has_fact(lost)
    assert has_fact(kept)
    if target_tokens:
        assert compact.estimate_messages_tokens(kept) <= target_tokens


def test_a_message_about_it_stays_verbatim_if_there_is_room():
    """The whole result, with its call; without the focus it is summarised."""
    result = {"role": "tool", "tool_call_id": "c7", "content": _result(7)}
    assert result not in manager().manual_compact("s", HISTORY)
    assert result in manager().manual_compact("s", HISTORY, focus=FOCUS)
    assert result in manager(max_context_tokens=128_000).manual_compact("s", HISTORY, focus=FOCUS)


def test_without_the_summary_what_is_about_it_is_cleared_last():
    """Where only free strategies run, the others go first."""
    free = {"strategies": {"enabled": ["clear"]}, "max_context_tokens": 24_000}
    result = {"role": "tool", "tool_call_id": "c7", "content": _result(7)}
    assert result not in manager(**free).manual_compact("s", HISTORY)
    assert result in manager(**free).manual_compact("s", HISTORY, focus=FOCUS)


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_an_empty_focus_is_none(empty):
    """The prompt is the same, byte for byte, and so is the reason."""
    plain, focused = manager(), manager()
    assert plain.manual_compact("s", HISTORY) == focused.manual_compact("s", HISTORY, focus=empty)
    assert plain.current_plan("s") == focused.current_plan("s")
    assert plain.current_plan("s").reason == "manual"


def test_a_focus_that_everything_is_about_still_compacts():
    """What stays for it leaves something to summarise."""
    done = manager().manual_compact("s", HISTORY, focus="modules that read and return a code")
    assert compact.estimate_messages_tokens(done) <= 16_000 < compact.estimate_messages_tokens(HISTORY)


def test_the_focus_is_on_record():
    """In the event, in the plan and in the report; so is that nothing is about it."""
    sink = RecordingSink()
    watched = manager(on_event=sink)
    watched.manual_compact("s", HISTORY, "before lunch", focus="  the zeppelin ")
    assert watched.current_plan("s").reason == "compacted by hand, focus: the zeppelin: before lunch"
    assert watched.report("s")[0].reason == watched.current_plan("s").reason
    (decision,) = (event for event in sink.events if isinstance(event, TriggerDecisionEvent))
    assert (decision.focus, decision.note, decision.reason) == ("the zeppelin", "before lunch", "manual")
    notices = [event.message for event in sink.events if isinstance(event, NoticeEvent)]
    assert "nothing in the history is about the focus 'the zeppelin'" in notices


def test_a_focus_is_a_text():
    """Anything else is said to be none."""
    with pytest.raises(CompactError, match="expected a text, got list"):
        manager().manual_compact("s", HISTORY, focus=["a", "b"])  # type: ignore[arg-type]


def test_in_an_event_loop_in_a_plan_and_without_a_session():
    """The same focus, the same result."""
    expected = manager().manual_compact("s", HISTORY, target_tokens=3000, focus=FOCUS)
    assert asyncio.run(manager().amanual_compact("s", HISTORY, None, 3000, focus=FOCUS)) == expected
    plain, focused = manager().plan("s", HISTORY, now=True), manager().plan("s", HISTORY, focus=FOCUS)
    assert focused.plan.summary
    assert plain.plan.summary
    assert len(focused.plan.summary.span) < len(plain.plan.summary.span)
    stateless = compact.compact(HISTORY, config=manager().config, target_tokens=3000, focus=FOCUS)
    assert has_fact(stateless.compacted_messages)


# -- with a model -----------------------------------------------------------------------------------------------------


class _Recording:
    """A model that notes what it is asked."""

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    def identity(self, form: str) -> SummarizerIdentity:
        return SummarizerIdentity("recording", "1")

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.requests.append(request)
        return StructuredSummary(narrative="The modules were looked through.", decisions=(Decision("read on"),))


def test_a_model_is_told():
    """The focus stands in the prompt, before the record."""
    with ScriptedModel(say_json({"narrative": "The modules were read."})) as model:
        summarizer = {"base_url": model.base_url, "model": "gpt-4o-mini", "prefetch": "never"}
        manager(summarizer=summarizer).manual_compact("s", HISTORY, focus=FOCUS)
        manager(summarizer=summarizer).manual_compact("s", HISTORY)
        prompts = [request.prompt for request in model.requests]
    told = f"Keep first, with every detail, whatever has to do with this: {FOCUS}"
    assert any(told in prompt for prompt in prompts)
    assert not any(told in prompt for prompt in prompts[-1:])


def test_a_summary_without_the_focus_is_not_taken_for_one_with_it():
    """Neither one that was remembered nor one that was prefetched."""
    model = _Recording()
    asked = manager(summarizer_plug=model, summarizer={"prefetch": "never"})
    asked.preflight("s", HISTORY[:20])
    asked.prefetch_summary("s")
    before = len(model.requests)
    asked.manual_compact("s", HISTORY, focus=FOCUS)
    assert [request.focus for request in model.requests[before:]] == [FOCUS]
    asked.undo("s")
    asked.manual_compact("s", HISTORY, focus="the scheduler")
    assert model.requests[-1].focus == "the scheduler"


def test_the_key_of_a_remembered_summary_has_the_focus():
    """And without one it is what it was before there was any."""
    plain = SummaryRequest(messages=(), previous=None, max_tokens=100, count_text=len)
    focused = SummaryRequest(messages=(), previous=None, max_tokens=100, count_text=len, focus="x")
    noted = SummaryRequest(messages=(), previous=None, max_tokens=100, count_text=len, note="x")
    keys = {
        create_summary_cache_key(one, model="m", prompt_version="1").content_hash for one in (plain, focused, noted)
    }
    assert len(keys) == 3
