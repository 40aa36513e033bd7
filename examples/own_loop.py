"""An agent loop written by hand: one hook before each model call, and one tool to read again what has left.

It runs offline: a function stands for the model. Any client that takes Chat Completions messages fits in its place.

    pip install compact-context
    python own_loop.py
"""

import json
from dataclasses import dataclass, field
from typing import Any

from compact import CompactConfig, CompactManager, estimate_messages_tokens
from compact.adapters.own_loop import before_model_call
from compact.recall.tool import TOOL_SCHEMA, answer_tool_call

manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
hook = before_model_call(manager)


@dataclass
class Context:
    """What the loop knows before a call."""

    session_id: str
    messages: list[Any]
    tools: list[Any] = field(default_factory=lambda: [TOOL_SCHEMA])


def call_model(messages: list[Any], number: int) -> dict[str, Any]:
    """The model: reads thirty pages, asks for the second one again, and is done."""
    if number > 31:
        return {"role": "assistant", "content": "Page 2 was signed by clerk 14."}
    name, arguments = ("read_page", {"page": number}) if number <= 30 else ("recall", {"query": "clerk 14"})
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def run_tool(call: dict[str, Any]) -> str:
    """The tools: pages, and what has left the prompt."""
    arguments = call["function"]["arguments"]
    if call["function"]["name"] == "recall":
        return answer_tool_call(lambda query: manager.recall("archive", query), arguments)
    page = json.loads(arguments)["page"]
    return f"Page {page}, signed by clerk {page * 7}. " + "It lists what was delivered that day, item by item. " * 50


history: list[Any] = [
    {"role": "user", "content": "Answer in one sentence.", "meta": {"protected": True}},
    {"role": "user", "content": "Read the archive, then tell me who signed page 2."},
]
largest = 0
for number in range(1, 40):
    context = Context("archive", list(history))
    hook(context)  # context.messages is what to send; the history stays whole
    largest = max(largest, estimate_messages_tokens(context.messages))
    answer = call_model(context.messages, number)
    history.append(answer)
    if "tool_calls" not in answer:
        break
    for call in answer["tool_calls"]:
        history.append({"role": "tool", "tool_call_id": call["id"], "content": run_tool(call)})

print(history[-1]["content"])
print(f"history: {estimate_messages_tokens(history):,} tokens, largest request: {largest:,} tokens")
print(f"the tool found it: {'signed by clerk 14' in history[-2]['content']}")
manager.close()
