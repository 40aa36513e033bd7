"""An agent of the OpenAI Agents SDK that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Put your own model's name in its place and nothing else changes.

    pip install "compact-context[openai-agents]"
    python agents_sdk_minimal.py
"""

import asyncio

from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

# compaction begins
from compact import CompactConfig, CompactManager
from compact.adapters.openai_agents import compaction_filter

manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
config = RunConfig(call_model_input_filter=compaction_filter(manager, session_id="reports"))
# compaction ends

set_tracing_disabled(True)  # traces are sent to OpenAI


@function_tool
def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


calls = [[function_call("read_report", {"number": n}, call_id=f"c{n}", item_id=f"fc{n}")] for n in range(1, 41)]
model = ScriptedModel([*calls, [assistant_message("All forty reports are read.")]])
agent = Agent(name="Reader", instructions="Read every report.", tools=[read_report], model=model)


async def main() -> None:
    result = await Runner.run(agent, "Read the reports 1 to 40.", run_config=config, max_turns=50)
    print(result.final_output)
    print(f"items in the history: {len(result.to_input_list())}")
    print(f"largest request: {max(len(str(call.input)) for call in model.calls):,} characters")


asyncio.run(main())
