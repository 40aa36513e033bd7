"""The agent of the scenario on Google ADK, and its fake model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from adapters.adapter_checks import CACHED_TOKENS
from adapters.scenario import Call, Step, Watch, look_up
from compact.adapters.google_adk import AdkCompactionPlugin, protected
from compact.adapters.google_adk.plugin import tool_schemas
from compact.adapters.support import instruction_text

SESSION = "audit/u/s"


class FakeLlm(BaseLlm):
    """Answers by the script, and rejects what Gemini would reject."""

    watch: Any
    model: str = "fake"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        assert not any(part.part_metadata for content in llm_request.contents for part in content.parts or ())
        step = self.watch.ask(
            llm_request.contents,
            "gemini",
            tools=tool_schemas(llm_request),
            instructions=instruction_text(llm_request.config.system_instruction),
        )
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=self.watch.tokens[-1], cached_content_token_count=CACHED_TOKENS
        )
        if stream:
            yield LlmResponse(content=content_of(step), partial=True, usage_metadata=usage)
        yield LlmResponse(content=content_of(step), usage_metadata=usage)


def content_of(step: Step) -> types.Content:
    """A step as the model's answer."""
    if isinstance(step, Call):
        return types.Content(role="model", parts=[types.Part.from_function_call(name=step.name, args=step.arguments)])
    return types.Content(role="model", parts=[types.Part(text=step.text)])


def said(text: str) -> types.Content:
    """What the user says."""
    return types.Content(role="user", parts=[types.Part(text=text)])


def look_up_depot(depot: int) -> str:
    """The stock list of one depot."""
    return look_up(depot)


class Setup:
    """The scenario's agent, its session service and its runner."""

    def __init__(self, watch: Watch, plugin: AdkCompactionPlugin) -> None:
        self.watch = watch
        agent = LlmAgent(
            name="auditor", model=FakeLlm(watch=watch), instruction=watch.scenario.instructions, tools=[look_up_depot]
        )
        self.sessions = InMemorySessionService()
        app = App(name="audit", root_agent=agent, plugins=[plugin])
        self.runner = Runner(app=app, session_service=self.sessions)

    async def open(self, *, tagged: bool = True) -> None:
        """A session that begins with the protected message."""
        session = await self.sessions.create_session(app_name="audit", user_id="u", session_id="s")
        content = said(self.watch.scenario.protected)
        event = Event(author="user", content=protected(content) if tagged else content)
        await self.sessions.append_event(session, event)

    async def say(self, text: str, **settings: Any) -> list[Event]:
        """One turn."""
        run = self.runner.run_async(
            user_id="u", session_id="s", new_message=said(text), run_config=RunConfig(**settings)
        )
        return [event async for event in run]

    async def stored(self) -> list[types.Content]:
        """The history as ADK keeps it."""
        session = await self.sessions.get_session(app_name="audit", user_id="u", session_id="s")
        assert session
        return [event.content for event in session.events if event.content]


def texts(contents: list[types.Content]) -> list[str]:
    """All that is said in a history."""
    parts = [part for content in contents for part in content.parts or ()]
    results = [(part.function_response.response or {}).get("result", "") for part in parts if part.function_response]
    return [part.text for part in parts if part.text] + results


async def converse(setup: Setup, *, tagged: bool = True, **settings: Any) -> list[types.Content]:
    """The whole conversation; what ADK has stored of it."""
    await setup.open(tagged=tagged)
    for prompt in setup.watch.scenario.prompts:
        await setup.say(prompt, **settings)
    return await setup.stored()
