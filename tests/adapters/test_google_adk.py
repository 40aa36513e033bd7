"""Google ADK: the shared scenario on the real package, and what is particular to it."""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from packaging.specifiers import SpecifierSet

from adapters.adapter_checks import seen_and_counted, usage_is_told
from adapters.google_adk_parts import SESSION, FakeLlm, Setup, content_of, converse, said, texts
from adapters.scenario import Call, Final, Scenario, Watch
from compact.adapters.google_adk import SUPPORTED_VERSIONS, AdkCompactionPlugin, protected
from compact.adapters.google_adk.plugin import may_call_functions, tags_of, tool_schemas
from compact.adapters.support import instruction_text
from compact.core.engine.events import CompactionErrorEvent, HistoryBranchedEvent, NoticeEvent


class TestScenario:
    """Forty calls in a window of 8k."""

    @pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
    def test_every_request_is_legal_and_fits(self, mode: StreamingMode) -> None:
        """Never over the budget, never illegal, protected text always there, session whole, tag and all."""
        watch = Watch()
        manager = watch.manager()
        contents = asyncio.run(converse(Setup(watch, AdkCompactionPlugin(manager)), streaming_mode=mode))
        watch.check(manager, SESSION, stored=texts(contents))
        seen_and_counted(watch, manager, SESSION)
        assert not watch.sink.of(HistoryBranchedEvent)
        assert tags_of(contents[0]) == {"protected": True}
        usage_is_told(watch, manager, SESSION)

    def test_protected_without_a_tag(self) -> None:
        """Where a session service drops tags, a function says what must stay."""
        watch = Watch()
        manager = watch.manager()
        plugin = AdkCompactionPlugin(
            manager,
            session_id="s",
            is_protected=lambda content: "House rule" in str(content.parts and content.parts[0].text),
        )
        contents = asyncio.run(converse(Setup(watch, plugin), tagged=False))
        watch.check(manager, "s", stored=texts(contents))
        seen_and_counted(watch, manager, "s")


def _explode(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("broken")


class TestPlugin:
    """What it does to requests."""

    def test_a_failure_of_ours_lets_the_request_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As it is, but for our tags: not every backend takes them."""
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", _explode)
        monkeypatch.setattr(Scenario, "steps", (Final("done"),))
        setup = Setup(watch, AdkCompactionPlugin(manager))

        async def talk() -> list[Event]:
            await setup.open()
            return await setup.say("go")

        events = asyncio.run(talk())
        assert events[-1].content == content_of(Final("done"))
        told = watch.sink.of(CompactionErrorEvent)
        assert told[0].fallback == "the request goes out as it is"
        assert told[0].session_id == SESSION

    def test_strict_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        manager = Watch().manager()
        monkeypatch.setattr(manager, "_enter", _explode)
        plugin = AdkCompactionPlugin(manager, session_id="s", strict=True)
        with pytest.raises(RuntimeError, match="broken"):
            asyncio.run(_before(plugin, LlmRequest(contents=[said("a")])))

    # ADK's own AgentTool builds its runner the old way.
    @pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
    def test_agents_have_states_of_their_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sub-agent sees a session with other eyes; an agent as a tool has a session of its own."""
        watch = Watch()
        manager = watch.manager()
        protected_text = watch.scenario.protected
        steps = (
            Call("1", "scout", {"request": protected_text}),
            Final("scouted"),
            Call("2", "transfer_to_agent", {"agent_name": "clerk"}),
            Final("done"),
        )
        monkeypatch.setattr(Scenario, "steps", steps)
        model = FakeLlm(watch=watch)
        scout = LlmAgent(name="scout", model=model)
        clerk = LlmAgent(name="clerk", model=model, description="Writes.")
        lead = LlmAgent(name="lead", model=model, tools=[AgentTool(scout)], sub_agents=[clerk])
        sessions = InMemorySessionService()
        app = App(name="audit", root_agent=lead, plugins=[AdkCompactionPlugin(manager)])
        runner = Runner(app=app, session_service=sessions)

        async def talk() -> None:
            await sessions.create_session(app_name="audit", user_id="u", session_id="s")
            run = runner.run_async(user_id="u", session_id="s", new_message=said(protected_text))
            assert [event async for event in run]

        asyncio.run(talk())
        assert not watch.rejections
        names = {info.session_id for info in manager.sessions()}
        assert {SESSION, f"{SESSION}/clerk"} <= names
        assert len(names) == 3

    def test_usage_counts_at_the_end_of_an_answer(self) -> None:
        """What a part of a stream reports is passed over; what cannot be taken in is told, and stops nothing."""
        watch = Watch()
        plugin = AdkCompactionPlugin(watch.manager(), session_id="nobody")
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=5)
        for partial, told in ((True, 0), (False, 1)):
            response = LlmResponse(partial=partial, usage_metadata=usage)
            asyncio.run(plugin.after_model_callback(callback_context=Context(), llm_response=response))  # type: ignore[arg-type]
            assert len(watch.sink.of(CompactionErrorEvent)) == told

    def test_it_stands_down_where_the_service_keeps_the_conversation(self) -> None:
        watch = Watch()
        manager = watch.manager()
        request = LlmRequest(contents=[said("a")], previous_interaction_id="i-1")
        asyncio.run(_before(AdkCompactionPlugin(manager, session_id="s"), request))
        assert request.contents == [said("a")]
        assert not request.tools_dict
        assert "the provider keeps the history of this conversation" in watch.sink.of(NoticeEvent)[-1].message

    def test_other_metadata_stays(self) -> None:
        """Our tag is taken off, what somebody else has put beside it is not."""
        content = protected(types.Content(role="user", parts=[types.Part(text="a", part_metadata={"source": "x"})]))
        request = LlmRequest(contents=[content])
        asyncio.run(_before(AdkCompactionPlugin(Watch().manager(), session_id="s"), request))
        (sent,) = request.contents
        assert sent.parts
        assert sent.parts[0].part_metadata == {"source": "x"}

    def test_media_and_signatures_survive(self) -> None:
        """What is not changed goes out as ADK made it."""
        parts = [types.Part(text="hm", thought=True), types.Part(text="ok", thought_signature=b"\x00\xff")]
        picture = types.Part.from_bytes(data=b"\x89PNG\xff", mime_type="image/png")
        contents = [
            protected(types.Content(role="user", parts=[types.Part(text="look"), picture])),
            types.Content(role="model", parts=parts),
            said("and?"),
        ]
        before = [content.model_copy(deep=True) for content in contents]
        request = LlmRequest(contents=list(contents))
        asyncio.run(_before(AdkCompactionPlugin(Watch().manager(), session_id="s"), request))
        assert request.contents[1] is contents[1]
        assert request.contents[1:] == before[1:]
        assert request.contents[0].parts
        assert request.contents[0].parts[1] == picture

    def test_recall_is_offered_where_functions_are_taken(self) -> None:
        """Not beside Gemini's own tools or a schema for the answer, and not over a tool of that name."""
        config = types.GenerateContentConfig
        assert may_call_functions(LlmRequest())
        assert not may_call_functions(LlmRequest(config=config(tools=[types.Tool(google_search=types.GoogleSearch())])))
        assert not may_call_functions(LlmRequest(config=config(response_schema={"type": "OBJECT"})))
        request = LlmRequest(contents=[said("a")])
        plugin = AdkCompactionPlugin(Watch().manager(), session_id="s")
        asyncio.run(_before(plugin, request))
        assert list(request.tools_dict) == ["recall"]
        assert not may_call_functions(request)
        assert tool_schemas(request)[0]["function"]["parameters"]["required"] == ["query"]
        silent = LlmRequest(contents=[said("a")])
        asyncio.run(_before(AdkCompactionPlugin(Watch().manager(), session_id="s", offer_recall=False), silent))
        assert not silent.tools_dict

    def test_what_goes_out_beside_contents_is_counted(self) -> None:
        declared = types.FunctionDeclaration(
            name="f", parameters=types.Schema(type=types.Type.OBJECT, properties={"a": types.Schema(type="STRING")})
        )
        tools = [types.Tool(function_declarations=[declared]), types.Tool(google_search=types.GoogleSearch())]
        schemas = tool_schemas(LlmRequest(config=types.GenerateContentConfig(tools=tools)))
        assert schemas[0]["function"]["parameters"]["properties"] == {"a": {"type": "STRING"}}
        assert "google_search" in schemas[1]
        assert instruction_text([said("a"), "b"]) == "a\nb"
        assert instruction_text(None) == ""

    def test_nothing_to_protect(self) -> None:
        with pytest.raises(ValueError, match="without parts"):
            protected(types.Content(role="user"))


class Context:
    """As much of a callback context as is looked at."""

    agent_name = "lead"
    session = None

    def get_invocation_context(self) -> Any:
        return None


async def _before(plugin: AdkCompactionPlugin, request: LlmRequest) -> None:
    await plugin.before_model_callback(callback_context=Context(), llm_request=request)  # type: ignore[arg-type]


class TestPackage:
    """The package as it is installed."""

    def test_the_version_is_supported(self) -> None:
        assert version("google-adk") in SpecifierSet(SUPPORTED_VERSIONS)

    @pytest.mark.parametrize(
        ("hook", "names"),
        [
            ("before_model_callback", ["self", "callback_context", "llm_request"]),
            ("after_model_callback", ["self", "callback_context", "llm_response"]),
        ],
    )
    def test_the_hooks_are_what_they_were(self, hook: str, names: list[str]) -> None:
        for owner in (BasePlugin, AdkCompactionPlugin):
            assert list(inspect.signature(getattr(owner, hook)).parameters) == names
        assert {"contents", "config", "tools_dict", "previous_interaction_id"} <= set(LlmRequest.model_fields)
