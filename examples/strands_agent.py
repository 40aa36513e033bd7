"""A Strands agent that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Leave out `model=` (Bedrock), or name your own: nothing else changes.

    pip install "compact-context[strands]"
    python strands_agent.py
"""

from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models import Model

from compact import CompactConfig, CompactManager
from compact.adapters.strands import StrandsCompactionPlugin

RULE = "Never quote station 12: its sensor is broken."


class Script(Model):
    """Asks for one report after the other, and remembers how large each request was."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.requests.append(str(messages))
        number = len(self.requests)
        done = number > 40
        call = {"toolUse": {"name": "read_report", "toolUseId": f"c{number}"}}
        said: Any = {"text": "All reports are read."} if done else {"toolUse": {"input": f'{{"number": {number}}}'}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {} if done else call}}
        yield {"contentBlockDelta": {"delta": said}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if done else "tool_use"}}


@tool
def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="claude-sonnet-4-5", max_context_tokens=8_000))
script = Script()
agent = Agent(
    model=script,
    tools=[read_report],
    system_prompt="Read every report.",
    plugins=[StrandsCompactionPlugin(manager, session_id="reports")],
    messages=[
        {"role": "user", "content": [{"text": RULE}], "metadata": {"custom": {"protected": True}}},
        {"role": "assistant", "content": [{"text": "Noted."}]},
    ],
    callback_handler=None,
)

print(agent("Read the reports 1 to 40."))
print(f"messages in agent.messages: {len(agent.messages)}")
print(f"largest request: {max(map(len, script.requests)):,} characters")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in script.requests)}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
