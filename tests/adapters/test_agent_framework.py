"""Microsoft Agent Framework: the shared scenario on the real package, and what is particular to it."""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    CompactionProvider,
    CompactionStrategy,
    ContextProvider,
    InMemoryHistoryProvider,
    Message,
    apply_compaction,
    tool,
)
from packaging.specifiers import SpecifierSet

from adapters.adapter_checks import seen_and_counted, usage_is_told
from adapters.agent_framework_parts import (
    FakeClient,
    build,
    explode,
    inputs,
    look_up_depot,
    run,
    stored,
    texts,
    tool_history,
)
from adapters.scenario import Final, Scenario, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.agent_framework import (
    SUPPORTED_VERSIONS,
    CompactProvider,
    CompactStrategy,
    recall_tool,
)
from compact.adapters.agent_framework.messages import message_data
from compact.adapters.agent_framework.requests import DIALECT, input_tokens, tool_schemas
from compact.adapters.support import instruction_text
from compact.core.engine.events import CompactionErrorEvent, HistoryBranchedEvent, NoticeEvent


class TestScenario:
    """Forty calls in a window of 8k."""

    @pytest.mark.parametrize("stream", [False, True])
    def test_every_request_is_legal_and_fits(self, stream: bool) -> None:
        """Never over the budget, never illegal, protected text always there, session whole and unmarked."""
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, context_providers=[CompactProvider(manager)])
        session = AgentSession(session_id="s")
        asyncio.run(run(agent, session, inputs(watch.scenario), stream=stream))
        watch.check(manager, "s", stored=texts(stored(session)))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)
        assert not any(message.additional_properties.get("_excluded") for message in stored(session))
        usage_is_told(watch, manager, "s")

    def test_history_that_is_kept_call_by_call(self) -> None:
        """The framework then loads the history behind all other middleware; we stand behind that."""
        watch = Watch()
        manager = watch.manager()
        providers = [InMemoryHistoryProvider(), CompactProvider(manager)]
        agent = build(watch, context_providers=providers, require_per_service_call_history_persistence=True)
        session = AgentSession(session_id="s")
        asyncio.run(run(agent, session, inputs(watch.scenario)))
        watch.check(manager, "s", stored=texts(stored(session)))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)

    @pytest.mark.parametrize("session_id", ["s", None])
    def test_as_a_strategy(self, session_id: str | None) -> None:
        """The strategy is told of tools and instructions; what it leaves out is flagged, and all there."""
        watch = Watch()
        manager = watch.manager()
        found = session_id or ""
        recall = tool(
            lambda query: str(manager.recall(found or manager.sessions()[0].session_id, query)), name="recall"
        )
        tools = [look_up_depot, recall_tool(manager, "s") if session_id else recall]
        strategy = CompactStrategy(
            manager, session_id=session_id, tools=tools, instructions=watch.scenario.instructions
        )
        agent = build(watch, tools=tools[1:], compaction_strategy=strategy)
        session = AgentSession(session_id="x")
        asyncio.run(run(agent, session, inputs(watch.scenario)))
        watch.check(manager, found or manager.sessions()[0].session_id, stored=texts(stored(session)))
        assert not watch.sink.of(HistoryBranchedEvent)
        assert len(manager.sessions()) == 1

    def test_on_stored_history(self) -> None:
        """Even a provider that compacts what is stored loses nothing: what leaves the prompt is flagged."""
        watch = Watch()
        manager = watch.manager()
        strategy = CompactStrategy(manager, session_id="after")
        providers = [CompactionProvider(after_strategy=strategy), CompactProvider(manager)]
        agent = build(watch, context_providers=providers)
        session = AgentSession(session_id="s")
        asyncio.run(run(agent, session, inputs(watch.scenario)[:2]))
        flagged = [message for message in stored(session) if message.additional_properties.get("_excluded")]
        assert flagged
        assert all(look_up(depot) in texts(stored(session)) for depot in range(1, 28))


class TestStrategy:
    """In place, as the framework wants it."""

    def test_the_projection_is_the_prompt_and_the_list_is_whole(self) -> None:
        """Called again with the same list, nothing changes."""
        manager = Watch().manager()
        messages = tool_history()
        originals = list(messages)
        strategy = CompactStrategy(manager, session_id="s")
        first = asyncio.run(apply_compaction(messages, strategy=strategy))
        assert all(any(one is message for one in messages) for message in originals)
        assert any(all(message is not one for one in originals) for message in first)
        assert not DIALECT.check([message_data(message) for message in first])
        kept = [message for message in messages if any(message is one for one in originals)]
        assert [id(message) for message in kept] == [id(message) for message in originals]
        again = asyncio.run(apply_compaction(messages, strategy=strategy))
        assert [message_data(message) for message in again] == [message_data(message) for message in first]
        assert len(messages) == len(originals) + sum(message not in originals for message in first)

    def test_what_others_excluded_stays_excluded(self) -> None:
        messages = [Message("user", ["a"]), Message("user", ["b"])]
        messages[0].additional_properties.update({"_excluded": True, "_exclude_reason": "sliding_window"})
        shown = asyncio.run(apply_compaction(messages, strategy=CompactStrategy(Watch().manager(), session_id="s")))
        assert shown == messages[1:]

    def test_undone_means_included_again(self) -> None:
        """After `undo` the flags are taken back as far as the budget allows; here it is a larger window."""
        watch = Watch()
        messages = tool_history()
        asyncio.run(apply_compaction(messages, strategy=CompactStrategy(watch.manager(), session_id="s")))
        large = CompactManager(CompactConfig(model="gpt-4o"), on_event=watch.sink)
        shown = asyncio.run(apply_compaction(messages, strategy=CompactStrategy(large, session_id="s2")))
        assert len(shown) == 29

    def test_a_failure_of_ours_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", explode)
        messages = tool_history()
        before = list(messages)
        assert asyncio.run(CompactStrategy(manager, session_id="s")(messages)) is False
        assert messages == before
        assert watch.sink.of(CompactionErrorEvent)


class TestProvider:
    """What it does to an agent."""

    def test_a_failure_of_ours_lets_the_request_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", explode)
        monkeypatch.setattr(Scenario, "steps", (Final("done"),))
        agent = build(watch, context_providers=[CompactProvider(manager)])
        answer = asyncio.run(agent.run(watch.scenario.protected, session=AgentSession(session_id="s")))
        assert answer.text == "done"
        told = watch.sink.of(CompactionErrorEvent)
        assert told[0].fallback == "the request goes out as it is"
        assert told[0].session_id == "s"

    def test_a_session_that_cannot_be_found_out_lets_the_run_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        monkeypatch.setattr(Scenario, "steps", (Final("done"),))
        provider = CompactProvider(watch.manager(), session_id=lambda agent, session: session.state["user"])
        agent = build(watch, context_providers=[provider])
        answer = asyncio.run(agent.run(watch.scenario.protected, session=AgentSession(session_id="s")))
        assert answer.text == "done"
        (told,) = watch.sink.of(CompactionErrorEvent)
        assert (told.error_type, told.session_id) == ("KeyError", "s")
        assert told.fallback == "the requests of this run go out as they are"
        strict = CompactProvider(watch.manager(), session_id=lambda agent, session: session.state["user"], strict=True)
        with pytest.raises(KeyError):
            asyncio.run(build(watch, context_providers=[strict]).run("go"))

    def test_strict_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", explode)
        agent = build(watch, context_providers=[CompactProvider(manager, strict=True)])
        with pytest.raises(RuntimeError, match="broken"):
            asyncio.run(agent.run("go"))
        with pytest.raises(RuntimeError, match="broken"):
            asyncio.run(CompactStrategy(manager, session_id="s", strict=True)(tool_history()))

    def test_agents_in_one_session_have_states_of_their_own(self) -> None:
        """An agent as a tool may be handed the session of its parent; their histories stay apart."""
        watch = Watch()
        provider = CompactProvider(watch.manager())
        session = AgentSession(session_id="s")
        agents = [Agent(FakeClient(watch), name=name) for name in ("lead", "scout", "scout")]
        names = [provider.session_of(agent, session) for agent in agents]
        assert names[:2] == ["s", "s:scout"]
        assert len(set(names)) == 3
        assert provider.session_of(agents[0], session) == "s"
        assert provider.session_of(agents[1], AgentSession(session_id="t")) == "t"

    def test_the_session_may_be_named(self) -> None:
        agent = Agent(FakeClient(Watch()), name="lead")
        named = CompactProvider(Watch().manager(), session_id=lambda agent, session: f"{agent.name}-1")
        assert named.session_of(agent, AgentSession()) == "lead-1"
        assert CompactProvider(Watch().manager(), session_id="s").session_of(agent, AgentSession()) == "s"

    def test_it_stands_down_where_the_service_keeps_the_conversation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Such a request is only a part: nothing is compacted, and a notice says so."""
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(Scenario, "steps", (Final("done"),))
        agent = build(watch, context_providers=[CompactProvider(manager, offer_recall=False)])
        options: Any = {"conversation_id": "conv_1"}
        asyncio.run(agent.run(watch.scenario.protected, options=options))
        assert not manager.sessions()
        assert "the provider keeps the history of this conversation" in watch.sink.of(NoticeEvent)[-1].message

    def test_without_the_recall_tool(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        monkeypatch.setattr(Scenario, "steps", (Final("done"),))
        seen: list[list[str]] = []

        class Spy(ChatMiddleware):
            async def process(self, context: ChatContext, call_next: Any) -> None:
                seen.append([one.name for one in (context.options or {})["tools"]])
                await call_next()

        for offer in (True, False):
            provider = CompactProvider(watch.manager(), offer_recall=offer)
            agent = build(watch, context_providers=[provider], middleware=[Spy()])
            watch.requests.clear()
            asyncio.run(agent.run(watch.scenario.protected))
        assert seen == [["look_up_depot", "recall"], ["look_up_depot"]]

    def test_what_goes_out_beside_messages_is_counted(self) -> None:
        assert instruction_text(["a", {"type": "text", "text": "b"}]) == "a\nb"
        assert (instruction_text(None), instruction_text("a")) == ("", "a")
        schema = tool_schemas([look_up_depot, {"type": "web_search"}])
        assert schema[0]["function"]["name"] == "look_up_depot"
        assert schema[1] == {"type": "web_search"}
        assert tool_schemas(None) == []

    def test_input_tokens_include_the_cache(self) -> None:
        assert input_tokens({"input_token_count": 10, "output_token_count": 5, "total_token_count": 105}) == 100
        assert input_tokens({"input_token_count": 10}) == 10
        assert input_tokens({}) == 0


class TestPackage:
    """The package as it is installed."""

    def test_the_version_is_supported(self) -> None:
        assert version("agent-framework-core") in SpecifierSet(SUPPORTED_VERSIONS)

    def test_the_hooks_are_what_they_were(self) -> None:
        expected = ["self", "agent", "session", "context", "state"]
        assert list(inspect.signature(ContextProvider.before_run).parameters) == expected
        assert list(inspect.signature(ChatMiddleware.process).parameters) == ["self", "context", "call_next"]
        assert list(inspect.signature(CompactionStrategy.__call__).parameters) == ["self", "messages"]
        assert isinstance(CompactStrategy(Watch().manager()), CompactionStrategy)
        context = ChatContext(FakeClient(Watch()), [], {})
        assert {"kwargs", "options", "result", "stream_result_hooks"} <= set(vars(context))
