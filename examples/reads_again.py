"""An agent that reads a file again after a compaction has removed it; the next compactions keep it longer, and say so.

It runs offline: a function stands for the model. The same agent runs twice, with `regret.keep_longer` on and off.

    pip install compact-context
    python reads_again.py
"""

import json
from typing import Any

from compact import CompactConfig, CompactManager

SESSION = "port"
# What the model asks for, one call after the other: it comes back to the rules twice.
FILES = [
    "rules.md",
    *(f"src/module_{number}.py" for number in range(40)),
    "rules.md",
    *(f"tests/test_{number}.py" for number in range(24)),
    "rules.md",
]


def call_model(number: int) -> dict[str, Any]:
    """The model: reads the next file, and is done after the last."""
    if number == len(FILES):
        return {"role": "assistant", "content": "Every module follows the rules."}
    function = {"name": "read_file", "arguments": json.dumps({"path": FILES[number]})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def read_file(path: str) -> str:
    """The tool."""
    return "\n".join(f"{line}: what {path} says in line {line}" for line in range(1, 41))


def run_agent(manager: CompactManager) -> None:
    """The loop: a call of the manager before each call of the model."""
    history: list[Any] = [{"role": "user", "content": "Check every module against rules.md."}]
    for number in range(len(FILES) + 1):
        manager.preflight(SESSION, history)  # what it returns is sent; the history stays whole
        reply = call_model(number)
        history.append(reply)
        for call in reply.get("tool_calls", ()):
            path = json.loads(call["function"]["arguments"])["path"]
            history.append({"role": "tool", "tool_call_id": call["id"], "content": read_file(path)})


for keep_longer in (True, False):
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=12_000,
        regret={"keep_longer": keep_longer},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config) as manager:
        run_agent(manager)
        regrets = sum(count.total for count in manager.status(SESSION).regrets)
        print(f"keep_longer: {keep_longer}; asked for again: {regrets}")
        for entry in manager.plans(SESSION):
            print(f"  plan v{entry.plan.version}: {entry.plan.reason}")
