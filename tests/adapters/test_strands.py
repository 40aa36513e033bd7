"""Strands Agents: the shared scenario on the real package, and what is particular to it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager, SummarizingConversationManager
from strands.middleware.stages import InvokeModelContext
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

from adapters.adapter_checks import seen_and_counted, usage_is_told
from adapters.scenario import TOOL_SCHEMA, Call, Final, Watch, fact
from adapters.strands_parts import FakeModel, build, chunks, look_up_depot, opening, texts
from compact.adapters.strands import SUPPORTED_VERSIONS, StrandsCompactionPlugin, StrandsDialect
from compact.adapters.strands.plugin import input_tokens, tool_schemas
from compact.adapters.support import instruction_text
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, HistoryBranchedEvent


class TestScenario:
    """Forty calls in a window of 8k."""

    def test_every_request_is_legal_and_fits(self) -> None:
        """Sync: never over the budget, never illegal, protected text always there, history whole."""
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, manager)
        for prompt in watch.scenario.prompts:
            agent(prompt)
        watch.check(manager, "s", stored=texts(agent.messages))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)

    async def _stream(self, agent: Agent, prompts: tuple[str, ...]) -> int:
        return sum([1 async for prompt in _each(prompts) async for _ in agent.stream_async(prompt)])

    def test_streamed_in_an_event_loop(self) -> None:
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, manager)
        assert asyncio.run(self._stream(agent, watch.scenario.prompts)) > len(watch.scenario.steps)
        watch.check(manager, "s", stored=texts(agent.messages))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)

    def test_usage_is_taken_in(self) -> None:
        """What the provider counted, cached tokens included, is kept beside each call."""
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, manager)
        agent(watch.scenario.prompts[0])
        usage_is_told(watch, manager, "s")

    def test_a_model_that_reports_nothing_is_no_error(self) -> None:
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, manager, FakeModel(watch, reports=False))
        agent(watch.scenario.prompts[0])
        assert not watch.sink.of(CompactionErrorEvent)

    def test_a_session_goes_on_in_another_process(self, tmp_path: Any) -> None:
        """Messages restored by Strands are those of the log: nothing is entered twice."""
        watch = Watch()
        manager = watch.manager()
        for prompt in watch.scenario.prompts:
            stored = FileSessionManager("s", storage_dir=str(tmp_path))
            is_new = not watch.requests
            messages = opening(watch.scenario) if is_new else None
            agent = build(watch, manager, session_manager=stored, messages=messages)
            agent(prompt)
        watch.check(manager, "s", stored=texts(agent.messages))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)
        assert sum(entry.role == "user" for entry in manager.history("s")) == 4


async def _each(prompts: tuple[str, ...]) -> AsyncIterator[str]:
    for prompt in prompts:
        yield prompt


class TestFailures:
    """An error of ours never stops a run."""

    def test_a_failure_of_ours_lets_the_request_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", _explode)
        agent = build(watch, manager)
        monkeypatch.setattr(watch.scenario.__class__, "steps", (Final("done"),))
        assert str(agent("go")).strip() == "done"
        told = watch.sink.of(CompactionErrorEvent)
        assert "goes out as it is" in told[0].fallback
        assert told[0].session_id == "s"

    def test_strict_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", _explode)
        plugin = StrandsCompactionPlugin(manager, strict=True)
        agent = Agent(model=FakeModel(watch), plugins=[plugin], callback_handler=None, retry_strategy=None)
        with pytest.raises(RuntimeError, match="broken"):
            agent("go")

    def test_an_overflow_is_answered_with_a_compaction(self) -> None:
        """What the provider found too large is sent again, smaller; the history stays."""
        watch = Watch()
        manager = watch.manager()
        agent = build(watch, manager, FakeModel(watch, overflow_at=7))
        agent(watch.scenario.prompts[0])
        assert len(watch.requests) == 15
        assert watch.sink.of(CompactionCompletedEvent)[0].reason
        assert len(agent.messages) == 2 + 1 + 14 * 2 + 1

    def test_a_second_overflow_in_a_row_is_passed_on(self) -> None:
        watch = Watch()
        model = FakeModel(watch)
        agent = build(watch, watch.manager(), model)

        async def overflow(*args: Any, **kwargs: Any) -> Any:
            raise ContextWindowOverflowException("input is too long")
            yield

        model.stream = overflow  # type: ignore[method-assign]
        with pytest.raises(ContextWindowOverflowException):
            agent("go")


def _explode(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("broken")


class ByNumber(FakeModel):
    """Calls one tool so many times, with a number that grows, then says so; and begins again."""

    def __init__(self, name: str, argument: str, watch: Watch, times: int) -> None:
        super().__init__(watch)
        self.name, self.argument, self.times = name, argument, times
        self.sent: list[str] = []

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        assert not StrandsDialect().check(messages)
        number = len(self.sent) + 1
        self.sent.append(str(messages))
        value = number if self.argument == "depot" else str(number)
        call = Call(f"call_{number}", self.name, {self.argument: value})
        for chunk in chunks(Final("done") if number % (self.times + 1) == 0 else call):
            yield chunk


class TestPlugin:
    """What it does to an agent."""

    def test_the_default_window_gives_way(self) -> None:
        """The default manager would cut `agent.messages`; one that was chosen stays."""
        watch = Watch()
        manager = watch.manager()
        assert isinstance(build(watch, manager).conversation_manager, NullConversationManager)
        chosen = SummarizingConversationManager()
        assert build(watch, manager, conversation_manager=chosen).conversation_manager is chosen

    def test_a_recall_tool_of_the_users_stays(self) -> None:
        @tool(name="recall")
        def own(query: str) -> str:
            """Mine."""
            return query

        plugin = StrandsCompactionPlugin(Watch().manager())
        agent = Agent(model=FakeModel(Watch()), tools=[own], plugins=[plugin], callback_handler=None)
        assert agent.tool_registry.registry["recall"] is own
        without = StrandsCompactionPlugin(Watch().manager(), offer_recall=False)
        agent = Agent(model=FakeModel(Watch()), plugins=[without], callback_handler=None)
        assert "recall" not in agent.tool_registry.registry

    def test_agents_that_share_a_plugin_have_sessions_of_their_own(self) -> None:
        watch = Watch()
        plugin = StrandsCompactionPlugin(watch.manager(), session_id="s")
        parts: dict[str, Any] = {"model": FakeModel(watch), "plugins": [plugin], "callback_handler": None}
        agents = [Agent(**parts), Agent(**parts, name="scout"), Agent(**parts, name="scout"), Agent(**parts)]
        names = [plugin.session_of(agent) for agent in agents]
        assert names[:2] == ["s", "s:scout"]
        assert len(set(names)) == 4
        assert plugin.session_of(agents[0]) == "s"

    def test_an_agent_as_a_tool_begins_anew(self) -> None:
        """Strands empties its history before each call: what one call has seen is not in the requests of the next."""
        watch = Watch()
        manager = watch.manager()
        inner, outer = ByNumber("look_up_depot", "depot", watch, 30), ByNumber("scout", "input", watch, 2)
        plugin = StrandsCompactionPlugin(manager, session_id="scout")
        scout = Agent(model=inner, name="scout", tools=[look_up_depot], plugins=[plugin], callback_handler=None)
        lead = Agent(model=outer, tools=[scout.as_tool(description="Looks depots up.")], callback_handler=None)
        lead("go")
        first, second = inner.sent[:31], inner.sent[31:]
        assert len(second) == 31
        assert any(fact(1) in request for request in first)
        assert not any(fact(1) in request or "[cleared" in request for request in second[:2])
        assert all(len(request) < 32_000 for request in inner.sent)

    def test_without_a_name_the_session_is_strands_own(self, tmp_path: Any) -> None:
        plugin = StrandsCompactionPlugin(Watch().manager())
        stored = FileSessionManager("audit", storage_dir=str(tmp_path))
        parts: dict[str, Any] = {"model": FakeModel(Watch()), "callback_handler": None, "plugins": [plugin]}
        assert plugin.session_of(Agent(**parts, session_manager=stored)) == "audit"
        assert plugin.session_of(Agent(**parts, agent_id="b", session_manager=stored)) == "audit:b"

    def test_system_prompt_and_tools_are_counted(self) -> None:
        assert instruction_text([{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]) == "a\nb"
        assert (instruction_text(None), instruction_text("a")) == ("", "a")
        spec = {"name": "f", "description": "d", "inputSchema": {"json": TOOL_SCHEMA["function"]["parameters"]}}
        assert tool_schemas([spec])[0]["function"]["parameters"]["required"] == ["depot"]

    def test_input_tokens_include_the_cache(self) -> None:
        """Bedrock and Anthropic report cached tokens beside the input, OpenAI in it."""
        beside = {"inputTokens": 10, "cacheReadInputTokens": 90, "outputTokens": 5, "totalTokens": 105}
        assert input_tokens(beside) == 100
        assert (
            input_tokens({"inputTokens": 100, "cacheReadInputTokens": 90, "totalTokens": 105, "outputTokens": 5}) == 100
        )
        assert input_tokens({}) == 0


class TestPackage:
    """The package as it is installed."""

    def test_the_version_is_supported(self) -> None:
        assert version("strands-agents") in SpecifierSet(SUPPORTED_VERSIONS)

    def test_the_hook_is_what_it_was(self) -> None:
        """A context with messages, system prompt, tool specs and agent, that can be replaced."""
        fields = set(InvokeModelContext.__dataclass_fields__)
        assert {"agent", "messages", "system_prompt", "tool_specs"} <= fields
        assert "messages" in inspect.signature(InvokeModelContext.replace).parameters
        assert list(inspect.signature(Agent.add_middleware).parameters) == ["self", "stage_or_phase", "handler"]
