"""The OpenAI Agents SDK, the real package with a fake model that is as strict as the provider."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import json
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, RunHooks, Runner, Session, SessionSettings, SQLiteSession, function_tool, handoff
from agents.run import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tracing import add_trace_processor, set_trace_processors, set_tracing_disabled
from agents.tracing.processor_interface import TracingProcessor
from agents.usage import InputTokensDetails, Usage
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel

from adapters.adapter_checks import CACHED_TOKENS
from adapters.scenario import PROTECTED, Call, Rejected, Watch, fact, look_up
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.adapters.openai_agents import (
    SUPPORTED_VERSIONS,
    CompactionHooks,
    CompactSession,
    compaction_filter,
    recall_tool,
)
from compact.adapters.openai_agents.schemas import tool_schemas
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, NoticeEvent
from compact.testing import RecordingSink

PROTECTED_ITEM: Any = {"role": "user", "content": PROTECTED, "meta": {"protected": True}}


@function_tool
def look_up_depot(depot: int) -> str:
    """The stock list of one depot.

    Args:
        depot: The number of the depot.
    """
    return look_up(depot)


class StrictModel(ScriptedModel):
    """Answers by the scenario's script, and rejects what the provider would."""

    def __init__(self, watch: Watch, *, reports_usage: bool = True) -> None:
        super().__init__(())
        self.watch = watch
        self.reports_usage = reports_usage

    def _prepare(self, system_instructions: str | None, items: Any, tools: Any) -> None:
        schemas = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.params_json_schema}
            for t in tools
        ]
        step = self.watch.ask(items, "responses", tools=schemas, instructions=system_instructions or "")
        if isinstance(step, Call):
            output = function_call(step.name, step.arguments, call_id=step.call_id, item_id=f"fc_{step.call_id}")
        else:
            output = assistant_message(step.text, item_id=f"msg_{len(self.watch.requests)}")
        tokens = self.watch.tokens[-1] if self.reports_usage else 0
        cached = InputTokensDetails(cached_tokens=CACHED_TOKENS if tokens else 0, cache_write_tokens=0)
        usage = Usage(requests=1, input_tokens=tokens, output_tokens=10, total_tokens=tokens + 10)
        self.set_default_usage(replace(usage, input_tokens_details=cached))
        self.enqueue([output])

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        self._prepare(system_instructions, input, kwargs["tools"])
        return await super().get_response(system_instructions, input, *args, **kwargs)

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        self._prepare(system_instructions, input, args[1])
        async for event in super().stream_response(system_instructions, input, *args, **kwargs):
            yield event


def auditor(watch: Watch, manager: CompactManager, **parts: Any) -> Agent[Any]:
    tools = [look_up_depot, recall_tool(manager)]
    return Agent(
        name="Auditor", instructions=watch.scenario.instructions, tools=tools, model=StrictModel(watch), **parts
    )


def run_config(manager: CompactManager, **options: Any) -> RunConfig:
    return RunConfig(call_model_input_filter=compaction_filter(manager, **options), tracing_disabled=True)


def texts(items: list[Any]) -> list[str]:
    return [json.dumps(item) for item in items]


def turn_inputs(watch: Watch) -> list[list[Any]]:
    first, *rest = watch.scenario.prompts
    opening = [PROTECTED_ITEM, {"role": "user", "content": first}]
    return [opening, *([{"role": "user", "content": prompt}] for prompt in rest)]


# -- the scenario -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "compact"])
@pytest.mark.parametrize("streamed", [False, True], ids=["at once", "streamed"])
def test_the_scenario(kind: str, streamed: bool) -> None:
    """With a session of the SDK or our own: never over the budget, never illegal, the stored history whole."""
    watch = Watch()
    manager = watch.manager()
    agent = auditor(watch, manager)
    session: Session = SQLiteSession("chat-1") if kind == "sqlite" else CompactSession("chat-1", manager)
    hooks, config = CompactionHooks(manager), run_config(manager, session_id="chat-1")

    async def main() -> None:
        for items in turn_inputs(watch):
            if streamed:
                result = Runner.run_streamed(
                    agent, items, session=session, run_config=config, hooks=hooks, max_turns=30
                )
                async for _ in result.stream_events():
                    pass
            else:
                await Runner.run(agent, items, session=session, run_config=config, hooks=hooks, max_turns=30)
        watch.check(manager, "chat-1", stored=texts(await session.get_items()))
        newest = manager.model_calls("chat-1")[-1]
        assert newest.tokens_reported == watch.tokens[-1]
        assert newest.details["cache_read_tokens"] == CACHED_TOKENS
        if isinstance(session, SQLiteSession):
            session.close()

    asyncio.run(main())


def test_without_a_name_or_a_session_a_conversation_is_known_by_its_history() -> None:
    """The usual loop of `to_input_list()`: one session for all turns, kept apart from others by content."""
    watch = Watch()
    manager = watch.manager()
    agent, config = auditor(watch, manager), run_config(manager)

    async def main() -> list[Any]:
        history: list[Any] = []
        for items in turn_inputs(watch):
            result = await Runner.run(agent, [*history, *items], run_config=config, max_turns=30)
            history = result.to_input_list()
        return history

    history = asyncio.run(main())
    (session,) = manager.sessions()
    watch.check(manager, session.session_id, stored=texts(history))


def test_without_the_filter_the_scenario_is_rejected() -> None:
    """The fake model is no pushover."""
    watch = Watch()
    agent = auditor(watch, watch.manager())
    items = [{"role": "user", "content": PROTECTED}, {"role": "user", "content": watch.scenario.prompts[0]}]
    with pytest.raises(Rejected, match="tokens, more than"):
        asyncio.run(Runner.run(agent, items, run_config=RunConfig(tracing_disabled=True), max_turns=30))


# -- several agents -----------------------------------------------------------------------------------------------


def small(sink: RecordingSink | None = None, **settings: Any) -> CompactManager:
    return CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=4_000, **settings), on_event=sink)


@function_tool
def read_page(page: int) -> str:
    """One page of the book."""
    return look_up(page)


def reads(first: int, last: int, final: str, prefix: str = "r") -> list[Any]:
    """Steps of a model that reads pages, and says something at the end."""
    calls = [
        [function_call("read_page", {"page": n}, call_id=f"{prefix}{n}", item_id=f"fc_{prefix}{n}")]
        for n in range(first, last + 1)
    ]
    return [*calls, [assistant_message(final, item_id=f"msg_{prefix}{last}")]]


def test_an_agent_that_is_a_tool_has_a_state_of_its_own() -> None:
    """Its calls are compacted too, in a session below the one that asked for it; neither sees the other's pages."""
    sink = RecordingSink()
    manager = small(sink)
    reader = Agent(name="Reader", tools=[read_page], model=ScriptedModel(reads(1, 8, "Read it all.", "inner")))
    ask = [function_call("ask_reader", {"input": "Read the pages 1 to 8."}, call_id="ask", item_id="fc_ask")]
    chief = Agent(
        name="Chief",
        tools=[reader.as_tool("ask_reader", "Reads pages.", max_turns=20), read_page],
        model=ScriptedModel([ask, *reads(20, 27, "Done.", "outer")]),
    )
    config = run_config(manager, session_id="book")
    result = asyncio.run(Runner.run(chief, "Have the book read.", run_config=config, max_turns=30))

    assert result.final_output == "Done."
    inner, outer = sorted((session.session_id for session in manager.sessions()), reverse=True)
    assert outer == "book"
    assert inner.startswith("book/Reader-")
    assert {event.session_id for event in sink.of(CompactionCompletedEvent)} == {inner, outer}
    assert "Depot 3 " in logged(manager, inner)
    assert "Depot 3 " not in logged(manager, outer)
    assert "Depot 21 " in logged(manager, outer)
    assert "Depot 21 " not in logged(manager, inner)
    assert not sink.of(CompactionErrorEvent)


def test_a_handoff_goes_on_with_the_same_session() -> None:
    """Another agent, the same conversation: what was compacted stays so."""
    sink = RecordingSink()
    manager = small(sink)
    second = Agent(name="Second", tools=[read_page], model=ScriptedModel(reads(9, 14, "Done.", "b")))
    away = [function_call("transfer_to_second", {}, call_id="away", item_id="fc_away")]
    first = Agent(
        name="First",
        tools=[read_page],
        handoffs=[handoff(second)],
        model=ScriptedModel([*reads(1, 8, "", "a")[:-1], away]),
    )
    config = run_config(manager, session_id="book")
    result = asyncio.run(Runner.run(first, "Have the book read.", run_config=config, max_turns=30))

    assert result.last_agent is second
    assert [session.session_id for session in manager.sessions()] == ["book"]
    assert len(sink.of(CompactionCompletedEvent)) >= 2
    assert "Depot 1 is run by" in logged(manager, "book")
    assert "Depot 14 is run by" in logged(manager, "book")
    assert not sink.of(CompactionErrorEvent)


def test_conversations_that_begin_alike_are_kept_apart() -> None:
    """Fifty at once, with the same first words: none reads anything of another's."""
    manager = small()
    config = run_config(manager)

    async def talk(number: int) -> None:
        steps = reads(number, number, f"It was page {number}.", f"c{number}-")
        agent = Agent(name="Reader", tools=[read_page], model=ScriptedModel(steps))
        await Runner.run(agent, "Read.", run_config=config)

    async def main() -> None:
        await asyncio.gather(*(talk(number) for number in range(1, 51)))

    asyncio.run(main())
    logs = [logged(manager, session.session_id) for session in manager.sessions()]
    assert len(logs) == 50
    assert all(log.count("is run by") == 1 for log in logs)


def logged(manager: CompactManager, session_id: str) -> str:
    return "\n".join(message.text for message in manager.history(session_id))


def test_the_session_may_be_told_from_the_context() -> None:
    """One configuration for all users, each with a session of their own."""
    manager = small()
    config = run_config(manager, session_id=lambda data: f"user-{data.context}")
    for name in ("ann", "bob"):
        agent = Agent(name="Clerk", model=ScriptedModel([[assistant_message("Hello.")]]))
        asyncio.run(Runner.run(agent, "Hi.", context=name, run_config=config))
    assert sorted(session.session_id for session in manager.sessions()) == ["user-ann", "user-bob"]


# -- when not to, and when it fails -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"conversation_id": "conv_1"}, {"auto_previous_response_id": True}, {"previous_response_id": "resp_1"}]
)
def test_it_stands_down_where_the_server_keeps_the_conversation(options: dict[str, Any]) -> None:
    """Only what is new is sent there: it goes out as it is, and a notice says so once."""
    sink = RecordingSink()
    manager = small(sink)
    model = ScriptedModel(reads(1, 6, "Done."))
    agent = Agent(name="Reader", tools=[read_page], model=model)
    config = run_config(manager, session_id="kept elsewhere")
    result = asyncio.run(Runner.run(agent, "Read.", run_config=config, max_turns=20, **options))

    assert result.final_output == "Done."
    later = [call.input for call in model.calls[1:]]
    assert len(later) == 6
    for number, items in enumerate(later, 1):
        (item,) = typing.cast(list[Any], items)
        assert item["type"] == "function_call_output"
        assert item["output"] == look_up(number)
    assert [event.message for event in sink.of(NoticeEvent) if "provider keeps" in event.message] == [
        "the provider keeps the history of this conversation (only new items are sent): nothing is compacted here"
    ]
    assert not sink.of(CompactionErrorEvent)


class Broken(RuntimeError):
    """What a summariser of somebody else may raise, and any other part."""


def call_data(items: list[Any], agent: Agent[Any] | None = None) -> CallModelData[Any]:
    return CallModelData(ModelInputData(items, None), agent or Agent(name="A"), None)


def test_a_failure_of_ours_never_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The input goes out as it is, but for our own marks, and an event tells what happened."""
    sink = RecordingSink()
    manager = small(sink)

    async def fails(*args: Any, **kwargs: Any) -> Any:
        raise Broken("no luck today")

    monkeypatch.setattr(manager, "apreflight", fails)
    model = ScriptedModel([[assistant_message("Done.")]])
    agent = Agent(name="A", model=model)
    result = asyncio.run(Runner.run(agent, [PROTECTED_ITEM], run_config=run_config(manager, session_id="s")))

    assert result.final_output == "Done."
    assert model.calls[0].input == [{"role": "user", "content": PROTECTED}]
    (event,) = sink.of(CompactionErrorEvent)
    assert (event.session_id, event.error_type, event.message) == ("s", "Broken", "no luck today")
    assert event.fallback == "the request goes out as it is"


def test_what_cannot_fit_is_told_loudly_and_goes_out_unless_strict() -> None:
    """An agent that may fail at the provider is better than one that certainly fails here; `strict` has it raised."""
    sink = RecordingSink()
    manager = small(sink)
    huge = [{"role": "developer", "content": "word " * 6_000}, {"role": "user", "content": "Go."}]
    data = call_data(huge)
    sent = asyncio.run(compaction_filter(manager, session_id="s")(data))  # pyright: ignore[reportArgumentType]

    assert sent.input == huge
    assert [event.error_type for event in sink.of(CompactionErrorEvent)] == ["InsufficientBudget"]
    assert any(event.severity == "high" and "cannot be made to fit" in event.message for event in sink.of(NoticeEvent))
    with pytest.raises(InsufficientBudget):
        asyncio.run(compaction_filter(manager, session_id="s", strict=True)(data))  # pyright: ignore[reportArgumentType]


def test_below_the_trigger_nothing_is_touched() -> None:
    """The very objects of the SDK go on."""
    items: list[Any] = [{"role": "user", "content": "Hello."}]
    sent = asyncio.run(compaction_filter(small())(call_data(items)))  # pyright: ignore[reportArgumentType]
    assert len(sent.input) == 1
    assert sent.input[0] is items[0]


def test_a_failing_store_of_usage_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = RecordingSink()
    manager = small(sink)

    def fails(*args: Any) -> None:
        raise Broken("no")

    monkeypatch.setattr(manager, "aobserve_usage", fails)
    usage = Usage(requests=1, input_tokens=10, output_tokens=1, total_tokens=11)
    agent = Agent(name="A", model=ScriptedModel([[assistant_message("Done.")]], default_usage=usage))
    run = Runner.run(agent, "Hi.", run_config=run_config(manager), hooks=CompactionHooks(manager))
    assert asyncio.run(run).final_output == "Done."
    assert [event.fallback for event in sink.of(CompactionErrorEvent)] == ["the reported usage is not taken in"]


# -- usage, spans, schemas ----------------------------------------------------------------------------------------


class Counting(ScriptedModel):
    """Reports so many tokens for each character it is sent."""

    def __init__(self, steps: list[Any], tokens_per_character: float) -> None:
        super().__init__(steps)
        self.tokens_per_character = tokens_per_character

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        tokens = int(len(json.dumps(input)) * self.tokens_per_character)
        self.set_default_usage(Usage(requests=1, input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1))
        return await super().get_response(system_instructions, input, *args, **kwargs)


def test_reported_usage_moves_the_trigger() -> None:
    """A provider that counts twice what we do makes it compact earlier."""

    def compactions(tokens_per_character: float) -> int:
        sink = RecordingSink()
        manager = small(sink)
        agent = Agent(name="A", tools=[read_page], model=Counting(reads(1, 3, "Done."), tokens_per_character))
        run = Runner.run(agent, "Read.", run_config=run_config(manager), hooks=CompactionHooks(manager))
        assert asyncio.run(run).final_output == "Done."
        assert not sink.of(CompactionErrorEvent)
        return len(sink.of(CompactionCompletedEvent))

    assert compactions(0.2) == 0
    assert compactions(0.6) > 0


class Spans(TracingProcessor):
    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def on_span_end(self, span: Any) -> None:
        self.ended.append(span)

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def test_a_span_for_each_check_hangs_below_the_turn() -> None:
    spans = Spans()
    set_tracing_disabled(False)  # a guide may have run in this process
    set_trace_processors([])
    add_trace_processor(spans)
    manager = small()
    agent = Agent(name="A", tools=[read_page], model=ScriptedModel(reads(1, 7, "Done.")))
    config = RunConfig(call_model_input_filter=compaction_filter(manager, session_id="s"))
    asyncio.run(Runner.run(agent, "Read.", run_config=config, max_turns=20))
    set_trace_processors([])

    ours = [span for span in spans.ended if getattr(span.span_data, "name", "") == "compact.preflight"]
    assert len(ours) == 8
    assert all(span.parent_id in {other.span_id for other in spans.ended} for span in ours)
    last = ours[-1].span_data.data
    assert last["session_id"] == "s"
    assert last["items_after"] <= last["items_before"] == 15


def test_the_schemas_of_tools_and_handoffs_are_counted() -> None:
    """What is counted is what the SDK sends, name by name."""
    other = Agent(name="Other")
    agent = Agent(name="A", tools=[look_up_depot, recall_tool(small())], handoffs=[other, handoff(other)])
    schemas = tool_schemas(agent)
    assert [schema["name"] for schema in schemas] == [
        "look_up_depot",
        "recall",
        "transfer_to_other",
        "transfer_to_other",
    ]
    assert schemas[0]["parameters"]["properties"]["depot"]["description"] == "The number of the depot."

    class Verdict(BaseModel):
        is_sound: bool

    (output,) = tool_schemas(Agent(name="A", output_type=Verdict))
    assert "is_sound" in output["parameters"]["properties"]
    assert tool_schemas(Agent(name="A", output_type=str)) == []


def test_usage_of_other_runs_is_not_taken_in() -> None:
    """In one task: a run of ours, one that the server keeps, and one without the filter. Only the first is ours."""
    manager = small()
    hooks = CompactionHooks(manager)
    usage = Usage(requests=1, input_tokens=3_333, output_tokens=1, total_tokens=3_334)

    def reader(last: int) -> Agent[Any]:
        return Agent(name="A", tools=[read_page], model=ScriptedModel(reads(1, last, "Done."), default_usage=usage))

    async def main() -> None:
        config = run_config(manager, session_id="ours")
        agent = Agent(name="A", model=ScriptedModel([[assistant_message("Hi.")]], default_usage=Usage(input_tokens=20)))
        await Runner.run(agent, "Hi.", run_config=config, hooks=hooks)
        kept = run_config(manager, session_id="theirs")
        await Runner.run(reader(2), "Read.", run_config=kept, hooks=hooks, conversation_id="conv")
        await Runner.run(reader(2), "Read.", run_config=RunConfig(tracing_disabled=True), hooks=hooks)

    asyncio.run(main())
    assert [call.tokens_reported for call in manager.model_calls("ours")] == [20]


# -- the recall tool ----------------------------------------------------------------------------------------------


def test_the_recall_tool_answers_for_the_conversation_that_calls_it() -> None:
    """Without a name it knows where it is; outside of any conversation it says so."""
    manager = small()
    asks = [[function_call("recall", {"query": fact(2)}, call_id="q", item_id="fc_q")]]
    model = ScriptedModel([*reads(1, 7, "")[:-1], *asks, [assistant_message("Done.")]])
    agent = Agent(name="A", tools=[read_page, recall_tool(manager)], model=model)
    asyncio.run(Runner.run(agent, "Read.", run_config=run_config(manager), max_turns=20))
    answer = typing.cast(list[Any], model.calls[-1].input)[-1]
    assert answer["type"] == "function_call_output"
    assert look_up(2).splitlines()[0] in answer["output"]

    other = ScriptedModel([*asks, [assistant_message("Done.")]])
    lost = Agent(name="B", tools=[recall_tool(manager)], model=other)
    asyncio.run(Runner.run(lost, "Hi.", run_config=RunConfig(tracing_disabled=True)))
    assert typing.cast(list[Any], other.calls[-1].input)[-1]["output"] == "nothing has left this conversation"


# -- our own session ----------------------------------------------------------------------------------------------

ITEMS: list[Any] = [
    {"role": "user", "content": "Hello.", "meta": {"protected": True}},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "ä\ud800 漢字"}]},
    {"type": "something_new", "id": "x", "nested": {"deep": [1, None, True]}},
    {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]},
]


def stores(tmp_path: Path) -> dict[str, str]:
    return {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/state.db"}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_our_session_keeps_the_protocol(kind: str, tmp_path: Path) -> None:
    """Items come back as they were, newest last; the last one can be taken away; others are not touched."""
    manager = CompactManager(CompactConfig(state={"url": stores(tmp_path)[kind]}))

    async def main() -> None:
        session, other = CompactSession("s", manager), CompactSession("t", manager)
        assert isinstance(session, Session)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        await session.add_items(ITEMS[:2])
        await session.add_items(ITEMS[2:])
        await other.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        assert await session.get_items(limit=99) == ITEMS
        assert await session.pop_item() == ITEMS[-1]
        assert await session.pop_item() == ITEMS[-2]
        await session.add_items(ITEMS[-1:])
        assert await session.get_items() == [*ITEMS[:4], ITEMS[5]]
        limited = CompactSession("s", manager, session_settings=SessionSettings(limit=1))
        assert await limited.get_items() == ITEMS[-1:]
        await session.clear_session()
        assert await session.get_items() == []
        assert await other.get_items() == ITEMS[:1]

    with manager:
        asyncio.run(main())


def test_what_a_caller_changes_later_does_not_reach_our_session() -> None:
    session = CompactSession("s", small())
    item: Any = {"role": "user", "content": [{"type": "input_text", "text": "as it was"}]}
    asyncio.run(session.add_items([item]))
    item["content"][0]["text"] = "changed"
    (kept,) = typing.cast(list[Any], asyncio.run(session.get_items()))
    assert kept["content"][0]["text"] == "as it was"
    kept["content"][0]["text"] = "changed"
    (again,) = typing.cast(list[Any], asyncio.run(session.get_items()))
    assert again["content"][0]["text"] == "as it was"


ANOTHER_PROCESS = """
import asyncio, sys
from compact import CompactConfig, CompactManager
from compact.adapters.openai_agents import CompactSession

async def main():
    with CompactManager(CompactConfig(state={"url": sys.argv[1]}, storage={"adapter": "none"})) as manager:
        session = CompactSession("s", manager)
        for number in range(5):
            await session.add_items([{"role": "user", "content": f"{sys.argv[2]}-{number}"}])

asyncio.run(main())
"""


def test_several_processes_may_write_to_our_session(tmp_path: Path) -> None:
    """Nothing is lost or written twice, and each one's items are in its order."""
    url = stores(tmp_path)["sqlite"]
    CompactManager(CompactConfig(state={"url": url})).close()
    started = [
        subprocess.Popen([sys.executable, "-c", ANOTHER_PROCESS, url, name], stderr=subprocess.PIPE) for name in "ab"
    ]
    for process in started:
        assert process.wait(120) == 0, process.communicate()[1]
        process.stderr.close()  # pyright: ignore[reportOptionalMemberAccess]
    with CompactManager(CompactConfig(state={"url": url})) as manager:
        items = typing.cast(list[Any], asyncio.run(CompactSession("s", manager).get_items()))
    for name in "ab":
        assert [item["content"] for item in items if item["content"].startswith(name)] == [
            f"{name}-{number}" for number in range(5)
        ]


def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    """The same session, the same plan: the summary is not made a second time, and the budget holds at once."""
    watch = Watch()
    state = {"url": stores(tmp_path)["sqlite"]}
    for items in turn_inputs(watch):
        config = watch.config.model_copy(update={"state": CompactConfig(state=state).state})
        with CompactManager(config, on_event=watch.sink) as manager:
            before = manager.current_plan("chat-1").version
            session = CompactSession("chat-1", manager)
            run = Runner.run(
                auditor(watch, manager),
                items,
                session=session,
                run_config=run_config(manager, session_id="chat-1"),
                max_turns=30,
            )
            asyncio.run(run)
            assert manager.current_plan("chat-1").version >= before
            stored = texts(asyncio.run(session.get_items()))
    with CompactManager(CompactConfig(state=state)) as manager:
        watch.check(manager, "chat-1", stored=stored)
        versions = [entry.plan.version for entry in manager.plans("chat-1")]
    assert versions == sorted(set(versions))


# -- the seam itself ----------------------------------------------------------------------------------------------


def test_the_hooks_are_as_the_package_has_them() -> None:
    """If a release changes a hook, this says so before a user does."""
    assert importlib.metadata.version("openai-agents") in SpecifierSet(SUPPORTED_VERSIONS)
    assert "call_model_input_filter" in inspect.signature(RunConfig).parameters
    assert list(inspect.signature(CallModelData).parameters) == ["model_data", "agent", "context"]
    assert list(inspect.signature(ModelInputData).parameters) == ["input", "instructions"]
    for ours, theirs in (
        (CompactionHooks.on_llm_end, RunHooks.on_llm_end),
        (CompactSession.get_items, Session.get_items),
        (CompactSession.add_items, Session.add_items),
        (CompactSession.pop_item, Session.pop_item),
        (CompactSession.clear_session, Session.clear_session),
    ):
        mine: Callable[..., Any] = ours
        assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters), ours
