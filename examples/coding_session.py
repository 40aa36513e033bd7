"""A coding session of three turns that survives restarts, and can be looked at afterwards.

Every turn runs in a new manager, as if the process had been started again. The history is kept in `./.compact/state.db`
by `CompactSession`; requests stay within 8,000 tokens; the agent reads again, with the recall tool, what had left its
prompt. It runs offline: a script stands for the model.

    pip install "compact-context[openai-agents,viewer]"
    compact view                     # in a second terminal: the page shows the session while it happens
    python coding_session.py
    compact show coding-session      # the same in the terminal

Without a viewer nothing changes but one line on stderr, which says that nobody listens.
"""

import asyncio

from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from compact import CompactConfig, CompactManager
from compact.adapters.openai_agents import CompactionHooks, CompactSession, compaction_filter, recall_tool

set_tracing_disabled(True)  # traces are sent to OpenAI
SESSION = "coding-session"
CONFIG = CompactConfig(model="gpt-4o", max_context_tokens=8_000, telemetry={"exporter": "ariadne"})
FILES = {
    f"src/booking/{name}.py": "\n".join(f"def {name}_{n}(seat: int) -> int:\n    return seat * {n}" for n in range(45))
    for name in ("seats", "prices", "refunds", "tickets", "trains", "staff", "meals", "cars", "maps", "mail")
}


@function_tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return FILES[path]


@function_tool
def run_tests() -> str:
    """Run the tests."""
    return "tests/test_refunds.py::test_limit FAILED: assert 900 == 250\n2 failed, 41 passed in 3.1s"


def step(tool: str, call_id: str, **arguments: str) -> list[object]:
    """The model calls a tool."""
    return [function_call(tool, arguments, call_id=call_id, item_id=f"fc_{call_id}")]


TURNS = [
    (
        "Find out why test_limit fails. Never touch src/booking/staff.py: the union has signed it off.",
        [step("run_tests", "t1"), *(step("read_file", f"r{n}", path=path) for n, path in enumerate(FILES))],
        "The refund limit is 900 in refunds.py, and should be 250.",
    ),
    (
        "Good. Is anything like it in the other files?",
        [step("read_file", f"s{n}", path=path) for n, path in enumerate(FILES)],
        "No: only refunds.py has a limit.",
    ),
    (
        "What exactly did the failing test say?",
        [step("recall", "q1", query="test_limit FAILED")],
        "It said: assert 900 == 250.",
    ),
]


async def turn(ask: str, steps: list[list[object]], answer: str) -> None:
    """One turn in a process of its own."""
    with CompactManager(CONFIG) as manager:
        model = ScriptedModel([*steps, [assistant_message(answer, item_id=f"msg_{len(answer)}")]])
        agent = Agent(name="Coder", tools=[read_file, run_tests, recall_tool(manager)], model=model)
        result = await Runner.run(
            agent,
            ask,
            session=CompactSession(SESSION, manager),
            run_config=RunConfig(call_model_input_filter=compaction_filter(manager, session_id=SESSION)),
            hooks=CompactionHooks(manager),
            max_turns=30,
        )
        print(f"> {ask}\n{result.final_output}")


async def main() -> None:
    for ask, steps, answer in TURNS:
        await turn(ask, steps, answer)
    with CompactManager(CONFIG) as manager:
        items = await CompactSession(SESSION, manager).get_items()
        lost = sum(report.counts.get("constraint", {}).get("lost", 0) for report in manager.report(SESSION))
        calls = manager.model_calls(SESSION)
        print(f"{len(items)} items kept, {len(calls)} requests, {len(manager.plans(SESSION))} compactions")
        print(f"largest request: {max(call.tokens_estimated for call in calls):,} tokens; constraints lost: {lost}")
    print(f"look at it: compact view --session {SESSION}")


asyncio.run(main())
