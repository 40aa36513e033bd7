"""Workflows of Microsoft Agent Framework: the plan travels, the messages do not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agent_framework import (
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

from adapters.adapter_checks import seen_and_counted
from adapters.agent_framework_parts import (
    build,
    explode,
    inputs,
    look_up_depot,
    texts,
    tool_history,
)
from adapters.scenario import Scenario, Watch
from compact import CompactManager
from compact.adapters.agent_framework import (
    CompactProvider,
    recall_tool,
)
from compact.adapters.agent_framework.messages import message_data
from compact.adapters.agent_framework.workflows import (
    HARNESS_COMPACTION_METRICS_KEY,
    HARNESS_COMPACTION_PLAN_KEY,
    AgentTurnExecutor,
    CompactionComplete,
    CompactionExecutor,
    render_plan,
)
from compact.config import StateConfig
from compact.core.engine.events import CompactionErrorEvent, HistoryBranchedEvent


class TestWorkflow:
    """S2's executors: the plan travels, the messages do not."""

    def workflow(self, watch: Watch, manager: CompactManager, reader: CompactManager | None = None) -> Any:
        provider = CompactProvider(reader or manager, session_id="s")
        agent = build(watch, context_providers=[provider])
        tools = [look_up_depot, recall_tool(manager, "s")]
        compaction = CompactionExecutor(manager, session_id="s", tools=tools, instructions=watch.scenario.instructions)
        turn = AgentTurnExecutor(agent, reader or manager)
        return WorkflowBuilder(start_executor=compaction, output_from=[turn]).add_edge(compaction, turn).build()

    async def converse(self, workflow: Any, scenario: Scenario) -> list[Message]:
        conversation: list[Message] = []
        for turn in inputs(scenario):
            conversation = [*conversation, *([Message("user", [turn])] if isinstance(turn, str) else turn)]
            (answer,) = (await workflow.run(conversation)).get_outputs()
            conversation = answer.full_conversation
        return conversation

    def test_every_request_is_legal_and_fits(self) -> None:
        """The scenario through a workflow; the conversation that comes out is whole."""
        watch = Watch()
        manager = watch.manager()
        conversation = asyncio.run(self.converse(self.workflow(watch, manager), watch.scenario))
        watch.check(manager, "s", stored=texts(conversation))
        seen_and_counted(watch, manager, "s")
        assert not watch.sink.of(HistoryBranchedEvent)

    def test_only_the_plan_is_in_shared_state(self) -> None:
        """It is small, plain data, and says the same as the manager; no word of a message is in it."""
        watch = Watch()
        manager = watch.manager()
        state: dict[str, Any] = {}

        class Reader(Executor):
            @handler
            async def read(self, done: CompactionComplete, ctx: WorkflowContext[Any, CompactionComplete]) -> None:
                keys = (HARNESS_COMPACTION_PLAN_KEY, HARNESS_COMPACTION_METRICS_KEY)
                state.update({key: ctx.get_state(key) for key in keys})
                await ctx.yield_output(done)

        compaction, reader = CompactionExecutor(manager, session_id="s"), Reader(id="reader")
        builder = WorkflowBuilder(start_executor=compaction, output_from=[reader])
        workflow = builder.add_edge(compaction, reader).build()
        history = tool_history()
        (done,) = asyncio.run(workflow.run(history)).get_outputs()
        assert done == CompactionComplete("s", plan_version=1, is_compacted=True)
        plan = state[HARNESS_COMPACTION_PLAN_KEY]
        assert plan == json.loads(json.dumps(plan)) == manager.current_plan("s").to_dict()
        assert "crates damaged" not in json.dumps(plan["records"][0])
        assert state[HARNESS_COMPACTION_METRICS_KEY]["messages_in_log"] == len(history)
        compacted = asyncio.run(compaction.compact_thread(history))
        assert [message_data(message) for message in render_plan(manager, plan)] == [
            message_data(message) for message in compacted
        ]

    def test_the_plan_is_enough_for_another_process(self, tmp_path: Any) -> None:
        """One manager decides, another renders from the same store."""
        watch = Watch()
        store = f"sqlite:///{tmp_path}/state.db"
        managers = [
            CompactManager(watch.config.model_copy(update={"state": StateConfig(url=store)}), on_event=watch.sink)
            for _ in range(2)
        ]
        compaction = CompactionExecutor(managers[0], session_id="s")
        compacted = asyncio.run(compaction.compact_thread(tool_history()))
        plan = json.loads(json.dumps(managers[0].current_plan("s").to_dict()))
        elsewhere = render_plan(managers[1], plan)
        assert [message_data(message) for message in elsewhere] == [message_data(message) for message in compacted]

    def test_a_failure_of_ours_lets_the_turn_go_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch()
        manager = watch.manager()
        monkeypatch.setattr(manager, "_enter", explode)
        sent: list[Any] = []
        executor = CompactionExecutor(manager, session_id="s")

        class Context:
            def set_state(self, key: str, value: Any) -> None:
                sent.append((key, value))

            async def send_message(self, message: Any) -> None:
                sent.append(message)

        asyncio.run(executor._check([Message("user", ["a"])], Context()))  # type: ignore[arg-type]
        assert sent[-1] == CompactionComplete("s")
        assert watch.sink.of(CompactionErrorEvent)[0].fallback == "the plan in force stays"
