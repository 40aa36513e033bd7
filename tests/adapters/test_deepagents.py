"""The middleware in a deep agent: in the place of its own summariser, and in its sub-agents."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from packaging.specifiers import SpecifierSet

from adapters.langchain_parts import ScriptedChat, look_up_depot, play, texts, turns
from adapters.scenario import TOOL, WINDOW_TOKENS, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.langchain import DEEPAGENTS_SLOT, SUPPORTED_VERSIONS, LangChainCompactionMiddleware
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
from compact.testing import RecordingSink

THREAD: Any = {"configurable": {"thread_id": "thread-1"}, "recursion_limit": 200}


def test_the_scenario() -> None:
    watch = Watch()
    manager = watch.manager()
    agent = create_deep_agent(
        ScriptedChat(answer=play(watch)),
        [look_up_depot],
        system_prompt=watch.scenario.instructions,
        middleware=[LangChainCompactionMiddleware(manager, name=DEEPAGENTS_SLOT)],
        checkpointer=InMemorySaver(),
    )
    for said in turns(watch.scenario):
        state = agent.invoke({"messages": said}, THREAD)
    watch.check(manager, "thread-1", stored=texts(state["messages"]))


def test_sub_agents_are_compacted_in_sessions_of_their_own() -> None:
    """The built-in one takes over what stands in the summariser's place; a declared one names it itself."""
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=WINDOW_TOKENS), on_event=sink)
    middleware = LangChainCompactionMiddleware(manager, name=DEEPAGENTS_SLOT)
    clerk: Any = {
        "name": "clerk",
        "description": "Audits depots.",
        "system_prompt": "You audit depots.",
        "middleware": [middleware],
    }
    kinds = ("general-purpose", "clerk")

    def answer(messages: list[BaseMessage], tools: Any) -> AIMessage:
        if any(message.content == "start" for message in messages):
            results = sum(isinstance(message, ToolMessage) for message in messages)
            tasks = [{"subagent_type": kind, "description": f"audit all, {kind}"} for kind in kinds]
            calls = [{"name": "task", "args": task, "id": f"t{n}"} for n, task in enumerate(tasks)]
            return AIMessage("all done") if results else AIMessage("", tool_calls=calls)  # type: ignore[arg-type]
        # The prompt may have been compacted: the number of the last call tells how far it is.
        made = [call["args"]["depot"] for message in messages for call in getattr(message, "tool_calls", [])]
        depot = max(made, default=0) + 1
        call = {"name": TOOL, "args": {"depot": depot}, "id": f"call_{depot}"}
        seen.append("\n".join(texts(messages)))
        return AIMessage("sub done") if depot > 15 else AIMessage("", tool_calls=[call])  # type: ignore[list-item]

    seen: list[str] = []
    agent = create_deep_agent(
        ScriptedChat(answer=answer),
        [look_up_depot],
        middleware=[middleware],
        subagents=[clerk],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": [HumanMessage("start")]}, THREAD)
    assert [m.content for m in state["messages"] if isinstance(m, ToolMessage)] == ["sub done", "sub done"]
    assert not sink.of(CompactionErrorEvent)
    logs = {info.session_id: manager.history(info.session_id) for info in manager.sessions()}
    assert logs.pop("thread-1")[0].text == "start"
    assert sorted(log[0].text for log in logs.values()) == sorted(f"audit all, {kind}" for kind in kinds)
    assert {event.session_id for event in sink.of(CompactionCompletedEvent)} == set(logs), "each was compacted"
    assert all(look_up(1) in "\n".join(message.text for message in log) for log in logs.values())
    assert look_up(1) not in seen[-1], "what left the prompts is in the logs"


def test_the_version_is_supported() -> None:
    assert version("deepagents") in SpecifierSet(SUPPORTED_VERSIONS["deepagents"])
