"""A strategy of your own: progress bars and heartbeats are the first to go.

A strategy proposes records for the plan, best first, and decides nothing: the coordinator takes as many as it needs,
and weighs them itself. `compact.testing.check_strategy` says whether it keeps the rules.

    pip install compact-context
    python own_strategy.py
"""

from collections.abc import Iterator
from dataclasses import dataclass

from compact import CompactConfig, CompactionProposal, CompactManager, PlanningContext, SpanReference
from compact.core.plan.plan import ClearRecord
from compact.strategies import ClearStrategy, SummarizeStrategy
from compact.testing import as_log, assistant, check_strategy, tool_exchange, user


@dataclass(frozen=True)
class ClearHeartbeats:
    """Stubs the results of tools that only say that something is still going on."""

    name: str = "heartbeats"

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        for place, call in context.answered.items():
            message = context.messages[place]
            is_open = place in context.layers.remainder and context.plan.get_action(message.id)[1] is None
            if is_open and call.name == "wait_for_build":
                span = SpanReference((message.id,))
                yield CompactionProposal(ClearRecord(span=span, strategy=self.name, reason="only a heartbeat"))


history = [user("Build the release, and tell me what broke.")]
for number in range(40):
    history += tool_exchange(f"w{number}", "still building... " * 60, tool="wait_for_build", seconds=30)
history += [
    *tool_exchange("b1", "error: no such file src/main.rs", tool="build"),
    assistant("The entry point is missing."),
]
history += [user("What now?")]

check_strategy(ClearHeartbeats(), as_log(history))
print("the strategy keeps the rules")

strategies = [ClearHeartbeats(), ClearStrategy(), SummarizeStrategy()]
config = CompactConfig(model="gpt-4o", max_context_tokens=8_000)
with CompactManager(config, strategies=strategies) as manager:
    prompt = manager.preflight("build", history)
    plan = manager.current_plan("build")
by = {name: sum(record.strategy == name for record in plan.records) for name in ("heartbeats", "clear", "summarize")}
print(f"records by strategy: {by}")
print(f"the error is still there: {'no such file src/main.rs' in str(prompt)}")
