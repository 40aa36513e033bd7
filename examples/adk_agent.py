"""A Google ADK agent that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Write `model="gemini-2.5-pro"` instead, and nothing else changes.

    pip install "compact-context[google-adk]"
    python adk_agent.py
"""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from compact import CompactConfig, CompactManager
from compact.adapters.google_adk import AdkCompactionPlugin, protected

RULE = "Never quote station 12: its sensor is broken."
requests: list[str] = []


class Script(BaseLlm):
    """Asks for one report after the other, and remembers how large each request was."""

    model: str = "script"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        requests.append(str(llm_request.contents))
        number = len(requests) - 1
        if number in (0, 41):
            part = types.Part(text="Noted." if number == 0 else "All reports are read.")
        else:
            part = types.Part.from_function_call(name="read_report", args={"number": number})
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=len(requests[-1]) // 4)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gemini-2.5-pro", max_context_tokens=8_000))
agent = LlmAgent(name="reader", model=Script(), instruction="Read every report.", tools=[read_report])
app = App(name="station", root_agent=agent, plugins=[AdkCompactionPlugin(manager)])


def said(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


async def main() -> None:
    sessions = InMemorySessionService()
    runner = Runner(app=app, session_service=sessions)
    await sessions.create_session(app_name="station", user_id="ada", session_id="reports")
    for message in (protected(said(RULE)), said("Read the reports 1 to 40.")):
        async for event in runner.run_async(user_id="ada", session_id="reports", new_message=message):
            if event.is_final_response() and event.content and event.content.parts:
                print(event.content.parts[0].text)
    stored = await sessions.get_session(app_name="station", user_id="ada", session_id="reports")
    print(f"events in the session: {len(stored.events) if stored else 0}")


asyncio.run(main())
print(f"largest request: {max(map(len, requests)):,} characters")
print(f"compactions: {len(manager.plans('station/ada/reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
manager.close()
