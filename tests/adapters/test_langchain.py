"""The middleware on real LangChain agents, with a model that rejects what a provider would."""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel

from adapters.adapter_checks import usage_is_told
from adapters.langchain_parts import (
    ScriptedChat,
    StreamingChat,
    look_up_depot,
    play,
    texts,
    turns,
    wire,
)
from adapters.scenario import WINDOW_TOKENS, Rejected, Watch
from compact import CompactConfig, CompactManager
from compact.adapters.langchain import (
    SUPPORTED_VERSIONS,
    LangChainCompactionMiddleware,
    protected,
    session_of,
)
from compact.adapters.langchain.messages import MARK
from compact.adapters.langchain.middleware import schemas_of
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.core.errors import InsufficientBudget
from compact.testing import RecordingSink, WordTokenizer

THREAD: Any = {"configurable": {"thread_id": "thread-1"}, "recursion_limit": 200}


def agent_of(watch: Watch, manager: CompactManager, model: type[ScriptedChat] = ScriptedChat, **options: Any) -> Any:
    """The agent of the scenario, with compaction."""
    return create_agent(
        model(answer=play(watch)),
        [look_up_depot],
        system_prompt=watch.scenario.instructions,
        middleware=[LangChainCompactionMiddleware(manager)],
        **{"checkpointer": InMemorySaver(), **options},
    )


def test_the_scenario() -> None:
    watch = Watch()
    manager = watch.manager()
    agent = agent_of(watch, manager)
    for said in turns(watch.scenario):
        state = agent.invoke({"messages": said}, THREAD)
    watch.check(manager, "thread-1", stored=texts(state["messages"]))
    assert state["messages"][0].additional_kwargs[MARK] == {"protected": True}, "the mark stays in the state"
    usage_is_told(watch, manager, "thread-1")


def test_the_scenario_in_an_event_loop() -> None:
    watch = Watch()
    manager = watch.manager()
    agent = agent_of(watch, manager)

    async def run() -> Any:
        for said in turns(watch.scenario):
            state = await agent.ainvoke({"messages": said}, THREAD)
        return state

    watch.check(manager, "thread-1", stored=texts(asyncio.run(run())["messages"]))
    assert all(call.tokens_reported for call in manager.model_calls("thread-1"))


def test_the_scenario_streamed() -> None:
    """Tokens arrive one by one, and what is streamed was compacted all the same."""
    watch = Watch()
    manager = watch.manager()
    agent = agent_of(watch, manager, StreamingChat)

    async def run() -> list[str]:
        heard: list[str] = []
        for said in turns(watch.scenario):
            async for chunk, _ in agent.astream({"messages": said}, THREAD, stream_mode="messages"):
                heard.append(str(chunk.content))
        return heard

    heard = asyncio.run(run())
    assert "audited. " in heard, "the answers came in pieces"
    # A streamed answer ends with the blank behind its last word.
    watch.check(manager, "thread-1", stored=texts(agent.get_state(THREAD).values["messages"]))


def test_without_compaction_the_model_rejects() -> None:
    watch = Watch()
    agent = create_agent(ScriptedChat(answer=play(watch)), [look_up_depot], system_prompt=watch.scenario.instructions)
    said = [HumanMessage(watch.scenario.protected), HumanMessage(watch.scenario.prompts[0])]
    with pytest.raises(Rejected, match="tokens, more than"):
        agent.invoke({"messages": said}, {"recursion_limit": 200})


def test_another_process_goes_on(tmp_path: Path) -> None:
    """The store has all that is needed to know the agent's messages again, and to write those that were changed."""
    watch = Watch()
    config = watch.config.model_copy(
        update={"state": watch.config.state.model_copy(update={"url": f"sqlite:///{tmp_path}/state.db"})}
    )
    checkpointer = InMemorySaver()
    for said in turns(watch.scenario):
        with CompactManager(config, on_event=watch.sink) as manager:
            state = agent_of(watch, manager, checkpointer=checkpointer).invoke({"messages": said}, THREAD)
    with CompactManager(config) as manager:
        watch.check(manager, "thread-1", stored=texts(state["messages"]))
        assert len(manager.history("thread-1")) == len(state["messages"]) - 1, "nothing was taken for something new"


def test_what_was_not_changed_is_the_agents_own_object() -> None:
    requests: list[list[BaseMessage]] = []

    class Witness(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            requests.append(request.messages)
            state.append(list(request.state["messages"]))
            return handler(request)

    state: list[list[BaseMessage]] = []
    watch = Watch()
    middleware = [LangChainCompactionMiddleware(watch.manager()), Witness()]
    agent = create_agent(
        ScriptedChat(answer=play(watch)),
        [look_up_depot],
        system_prompt=watch.scenario.instructions,
        middleware=middleware,
    )
    agent.invoke({"messages": turns(watch.scenario)[0]}, {"recursion_limit": 200})
    assert len(watch.compactions) >= 1
    known = {message.id: message for message in state[-1]}
    pairs = [(known[message.id], message) for message in requests[-1] if message.id in known]
    (_, unmarked), *stubs = [(was, now) for was, now in pairs if was is not now]
    assert unmarked.content == watch.scenario.protected
    assert 0 < len(stubs) < len(pairs) / 2
    assert len(pairs) >= len(requests[-1]) - 1, "all but a summary"
    for was, stub in stubs:
        assert isinstance(stub, ToolMessage)
        assert (stub.id, stub.name) == (was.id, "look_up_depot")
        assert len(stub.content) < len(was.content)


class BrokenTokenizer(WordTokenizer):
    """A plug-in that fails."""

    def count_message(self, message: Any) -> int:
        raise RuntimeError("out of order")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_of_ours_never_stops_the_run(is_async: bool) -> None:
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(), tokenizer=BrokenTokenizer(), on_event=sink)
    seen: list[Any] = []

    def answer(messages: list[BaseMessage], tools: Any) -> AIMessage:
        seen.append(wire(messages))
        return AIMessage("fine")

    agent = create_agent(ScriptedChat(answer=answer), middleware=[LangChainCompactionMiddleware(manager)])
    said = {"messages": [protected(HumanMessage("hello"))]}
    state = asyncio.run(agent.ainvoke(said, THREAD)) if is_async else agent.invoke(said, THREAD)
    assert state["messages"][-1].content == "fine"
    assert seen == [[{"role": "user", "content": "hello"}]], "the request went out as it was, without our mark"
    (failure,) = sink.of(CompactionErrorEvent)
    assert (failure.error_type, failure.session_id) == ("RuntimeError", "thread-1")
    assert failure.fallback == "the request goes out as it is"


class WordlessTokenizer(WordTokenizer):
    """Fails where a single text is to be measured, as for what is recalled."""

    def count_text(self, text: str) -> int:
        raise RuntimeError("out of words")

    def count_message(self, message: Any) -> int:
        return 1

    def count_tools(self, tools: Any) -> int:
        return 1


def recalls(messages: list[BaseMessage], tools: Any) -> AIMessage:
    """A model that asks for something, and says what it was told."""
    if isinstance(messages[-1], ToolMessage):
        return AIMessage(messages[-1].content)
    return AIMessage("", tool_calls=[{"name": "recall", "args": {"query": "m1"}, "id": "c1"}])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_recall_that_fails_is_told_to_the_agent(is_async: bool) -> None:
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(), tokenizer=WordlessTokenizer(), on_event=sink)
    agent = create_agent(ScriptedChat(answer=recalls), middleware=[LangChainCompactionMiddleware(manager)])
    said = {"messages": [HumanMessage("hello")]}
    state = asyncio.run(agent.ainvoke(said, THREAD)) if is_async else agent.invoke(said, THREAD)
    assert "nothing can be read now" in state["messages"][-1].content
    assert "the answer says so" in [failure.fallback for failure in sink.of(CompactionErrorEvent)]


def test_what_cannot_fit_is_told_loudly_and_sent() -> None:
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(max_context_tokens=WINDOW_TOKENS), on_event=sink)
    model = ScriptedChat(answer=lambda messages, tools: AIMessage("fine"))
    said = {"messages": [protected(HumanMessage("word " * 9_000))]}
    state = create_agent(model, middleware=[LangChainCompactionMiddleware(manager)]).invoke(said)
    assert state["messages"][-1].content == "fine"
    assert "cannot be made to fit" in next(n.message for n in sink.of(NoticeEvent) if n.severity == "high")
    with pytest.raises(InsufficientBudget):
        create_agent(model, middleware=[LangChainCompactionMiddleware(manager, strict=True)]).invoke(said)


def test_an_agent_that_is_a_tool_has_sessions_of_its_own() -> None:
    watch = Watch()
    manager = watch.manager()
    shared = LangChainCompactionMiddleware(manager)
    helper = create_agent(ScriptedChat(answer=lambda messages, tools: AIMessage("sub done")), middleware=[shared])

    @tool
    def delegate(task: str) -> str:
        """Have somebody else do it."""
        return str(helper.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)

    def answer(messages: list[BaseMessage], tools: Any) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("all done")
        calls = [{"name": "delegate", "args": {"task": f"task {n}"}, "id": f"c{n}"} for n in (1, 2)]
        return AIMessage("", tool_calls=calls)  # type: ignore[arg-type]

    main = create_agent(ScriptedChat(answer=answer), [delegate], middleware=[shared], checkpointer=InMemorySaver())
    main.invoke({"messages": [HumanMessage("start")]}, THREAD)
    logs = {info.session_id: [m.text for m in manager.history(info.session_id)] for info in manager.sessions()}
    assert logs.pop("thread-1") == ["start", "", "sub done", "sub done"]
    assert sorted(log for (log,) in logs.values()) == ["task 1", "task 2"]
    assert all(session_id.startswith("thread-1/tools:") for session_id in logs)


def test_an_agent_that_is_a_node_keeps_its_session_from_turn_to_turn() -> None:
    manager = Watch().manager()
    model = ScriptedChat(answer=lambda messages, tools: AIMessage("hi"))
    graph = StateGraph(MessagesState)
    graph.add_node("alice", create_agent(model, middleware=[LangChainCompactionMiddleware(manager)]))
    graph.set_entry_point("alice")
    app = graph.compile(checkpointer=InMemorySaver())
    for text in ("one", "two"):
        state = app.invoke({"messages": [HumanMessage(text)]}, THREAD)
    (info,) = manager.sessions()
    assert info.session_id == f"thread-1/alice/{state['messages'][0].id}"
    assert [message.text for message in manager.history(info.session_id)] == ["one", "hi", "two"]


def test_which_session_a_run_belongs_to() -> None:
    first = [HumanMessage("hello", id="h1")]

    def session(named: Any = None, **configurable: Any) -> str:
        return session_of({"configurable": configurable}, first, named)

    assert session(thread_id="t", checkpoint_ns="model:1") == "t"
    assert session(checkpoint_ns="model:1") == "h1", "without a thread, the first message tells"
    assert session(thread_id="t", checkpoint_ns="tools:9|1|model:1") == "t/tools:9/1"
    assert session(thread_id="t", checkpoint_ns="bob:5|model:1") == "t/bob/h1"
    assert session("mine", thread_id="t") == "mine"
    assert session(lambda config: f"user-{config['configurable']['user']}", user=7) == "user-7"


def test_the_provider_keeps_the_history_so_we_stand_down() -> None:
    watch = Watch()
    manager = watch.manager()
    model = ScriptedChat(answer=lambda messages, tools: AIMessage("hi"), use_previous_response_id=True)
    agent = create_agent(model, middleware=[LangChainCompactionMiddleware(manager)], checkpointer=InMemorySaver())
    for _ in range(2):
        agent.invoke({"messages": [HumanMessage("hello")]}, THREAD)
    assert not manager.sessions()
    # One of no harm is about the small window of these tests.
    told = [notice.message for notice in watch.sink.of(NoticeEvent) if notice.severity != "low"]
    assert ["use_previous_response_id" in message for message in told] == [True]


class Verdict(BaseModel):
    """What was found."""

    finding: str


def test_tools_answers_and_instructions_are_counted() -> None:
    counted: list[int] = []
    for options in (
        {},
        {"tools": [look_up_depot]},
        {"response_format": ToolStrategy(Verdict)},
        {"system_prompt": "x " * 99},
    ):
        manager = Watch().manager()
        call = {"name": "Verdict", "args": {"finding": "none"}, "id": "v"}
        model = ScriptedChat(
            answer=lambda messages, tools, call=call: AIMessage("", tool_calls=[call]) if tools else AIMessage("hi")
        )
        middleware = [LangChainCompactionMiddleware(manager, offer_recall=False)]
        if "tools" in options:
            model = ScriptedChat(answer=lambda messages, tools: AIMessage("hi"))
        create_agent(model, middleware=middleware, **options).invoke({"messages": [HumanMessage("hello")]}, THREAD)
        counted.append(manager.model_calls("thread-1")[0].tokens_estimated)
    plain, *others = counted
    assert all(other > plain + 10 for other in others), counted
    assert [schema["function"]["name"] for schema in schemas_of(ToolStrategy(Verdict))] == ["Verdict"]


def test_the_hook_is_as_we_know_it() -> None:
    for name in ("wrap_model_call", "awrap_model_call"):
        theirs, ours = (
            inspect.signature(getattr(kind, name)) for kind in (AgentMiddleware, LangChainCompactionMiddleware)
        )
        assert list(theirs.parameters) == list(ours.parameters) == ["self", "request", "handler"]
    assert {"messages", "system_message", "tools", "response_format", "model"} <= set(ModelRequest.__annotations__)
    for package in ("langchain", "langgraph"):
        assert version(package) in SpecifierSet(SUPPORTED_VERSIONS[package])
