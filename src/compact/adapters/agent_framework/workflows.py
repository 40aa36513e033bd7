"""Workflows of Microsoft Agent Framework: one executor makes the plan, another runs the agent on it.

    compaction = CompactionExecutor(manager, session_id="chat-1")
    turn = AgentTurnExecutor(agent, manager)
    workflow = WorkflowBuilder(start_executor=compaction).add_edge(compaction, turn).build()
    await workflow.run([Message("user", ["…"])])

Only the plan is in shared state, as plain data: message ids, and the summary. Messages stay in the manager's store:
the plan and the store give the same prompt, in this process or in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_framework import (
    AgentExecutorResponse,
    Executor,
    Message,
    SupportsAgentRun,
    WorkflowContext,
    handler,
)

from compact.adapters.agent_framework.messages import message_of
from compact.adapters.agent_framework.requests import DIALECT, outgoing, shown_prompt, tool_schemas, with_shown_history
from compact.adapters.support import report_failure
from compact.core.errors import UnknownSession
from compact.core.messages.entries import write_entry
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message as LoggedMessage
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer, RenderedPrompt
from compact.manager import CompactManager

HARNESS_COMPACTION_PLAN_KEY = "harness.compaction_plan"
HARNESS_COMPACTION_METRICS_KEY = "harness.compaction_metrics"


@dataclass(frozen=True, slots=True)
class CompactionComplete:
    """The message that a check is done and the plan is in shared state.

    A `CompactionExecutor` sends it; an executor of your own may take it in place of `AgentTurnExecutor`.

    Attributes:
        session_id: The conversation.
        plan_version: The plan in force.
        is_compacted: True if the check made a new plan.

    Example:
        >>> from compact.adapters.agent_framework import CompactionComplete
        >>> CompactionComplete("chat-1", plan_version=2, is_compacted=True).plan_version
        2
    """

    session_id: str
    plan_version: int = 0
    is_compacted: bool = False


class CompactionExecutor(Executor):
    """Takes a conversation, compacts it if need be, and puts the plan into shared state.

    It is sent the whole conversation: a list of messages, or what an agent has answered. If compaction fails an event
    says why, and the plan in force stays.

    Args:
        manager: Keeps the sessions.
        session_id: Names the conversation.
        id: The name of the executor in the workflow.
        tools: The tools of the agent that the conversation goes to, so that their schemas are counted.
        instructions: The instructions of that agent, so that they are counted.
        output_tokens: The tokens that its answer may have (`max_tokens`).
        model: Its model, if the manager has another.

    Example:
        >>> from agent_framework import Message, WorkflowBuilder
        >>> from compact import CompactManager
        >>> from compact.adapters.agent_framework import CompactionExecutor
        >>> compaction = CompactionExecutor(CompactManager(), session_id="chat-1")
        >>> workflow = WorkflowBuilder(start_executor=compaction).build()
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: str,
        id: str = "compaction",
        tools: Sequence[Any] = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
    ) -> None:
        super().__init__(id=id)
        self._manager, self._session_id = manager, session_id
        self._tools, self._instructions = tool_schemas(tools), instructions
        self._output_tokens, self._model = output_tokens, model

    @handler
    async def check_messages(self, messages: list[Message], ctx: WorkflowContext[CompactionComplete]) -> None:
        """Check a conversation; the workflow calls it for a list of messages.

        Args:
            messages: The whole conversation.
            ctx: The workflow's context, which gets the plan.

        Example:
            >>> import asyncio
            >>> result = asyncio.run(workflow.run([Message("user", ["Hello"])]))
        """
        await self._check(messages, cast(Any, ctx))

    @handler
    async def check_response(self, response: AgentExecutorResponse, ctx: WorkflowContext[CompactionComplete]) -> None:
        """Check a conversation after an agent's turn; the workflow calls it for an agent's response.

        Args:
            response: What the agent has answered, with the whole conversation.
            ctx: The workflow's context, which gets the plan.

        Example:
            >>> import asyncio
            >>> from agent_framework import AgentExecutorResponse, AgentResponse
            >>> conversation = [Message("user", ["Hello"]), Message("assistant", ["Hi."])]
            >>> response = AgentExecutorResponse("agent", AgentResponse(messages=conversation[1:]), conversation)
            >>> result = asyncio.run(workflow.run(response))
        """
        await self._check(response.full_conversation, cast(Any, ctx))

    async def compact_thread(self, messages: Sequence[Message]) -> list[Message]:
        """Return the conversation as it should be sent, for callers who have it at hand.

        Args:
            messages: The whole conversation.

        Raises:
            InsufficientBudget: What must stay takes more tokens than there are.

        Example:
            >>> import asyncio
            >>> [message.text for message in asyncio.run(compaction.compact_thread([Message("user", ["Hello"])]))]
            ['Hello']
        """
        whole = with_shown_history(self._session_id, messages)
        request = outgoing(
            whole,
            tools=self._tools,
            instructions=self._instructions,
            output_tokens=self._output_tokens,
            model=self._model,
        )
        return request.restore(await self._manager.apreflight(self._session_id, request.items, **request.options))

    async def _check(self, messages: Sequence[Message], ctx: WorkflowContext[CompactionComplete]) -> None:
        before = (await self._plan()).version
        try:
            await self.compact_thread(messages)
        except Exception as error:  # noqa: BLE001 - whatever fails in the compaction must not stop the workflow
            report_failure(self._manager, self._session_id, error, "the plan in force stays")
        plan = await self._plan()
        ctx.set_state(HARNESS_COMPACTION_PLAN_KEY, plan.to_dict())
        ctx.set_state(HARNESS_COMPACTION_METRICS_KEY, await self._metrics())
        await ctx.send_message(CompactionComplete(self._session_id, plan.version, plan.version != before))

    async def _plan(self) -> CompactionPlan:
        return await self._manager.acurrent_plan(self._session_id)

    async def _metrics(self) -> dict[str, Any]:
        try:
            status = await self._manager.astatus(self._session_id)
        except UnknownSession:
            return {}
        return {
            "used_tokens": status.used_tokens,
            "max_context_tokens": status.max_context_tokens,
            "messages_in_log": status.messages_in_log,
            "reason": status.decision.reason if status.decision else "",
        }


class AgentTurnExecutor(Executor):
    """Runs an agent on the prompt that the plan in shared state gives, and yields what it answered.

    The answer's `full_conversation` is whole: append the next message, and send it to the check again. The list of an
    agent that calls tools grows meanwhile: give it a `CompactProvider` of the same manager and session.

    Args:
        agent: The agent to run.
        manager: The one of the `CompactionExecutor`.
        id: The name of the executor in the workflow.

    Example:
        >>> from agent_framework import Agent, BaseChatClient, ChatResponse, Message, WorkflowBuilder
        >>> from compact import CompactManager
        >>> from compact.adapters.agent_framework import AgentTurnExecutor, CompactionExecutor
        >>> class YourClient(BaseChatClient):
        ...     async def _inner_get_response(self, **kwargs):
        ...         return ChatResponse(messages=[Message("assistant", ["Hi."])])
        >>> manager = CompactManager()
        >>> compaction = CompactionExecutor(manager, session_id="chat-1")
        >>> turn = AgentTurnExecutor(Agent(YourClient()), manager)
        >>> builder = WorkflowBuilder(start_executor=compaction, output_from=[turn])
        >>> workflow = builder.add_edge(compaction, turn).build()
    """

    def __init__(self, agent: SupportsAgentRun, manager: CompactManager, *, id: str = "agent_turn") -> None:
        super().__init__(id=id)
        self._agent, self._manager = agent, manager

    @handler
    async def run_turn(
        self, done: CompactionComplete, ctx: WorkflowContext[AgentExecutorResponse, AgentExecutorResponse]
    ) -> None:
        """Load the plan, render the prompt from it, and run the agent; the workflow calls it after a check.

        Args:
            done: The message of the check.
            ctx: The workflow's context, which has the plan.

        Example:
            >>> import asyncio
            >>> (answer,) = asyncio.run(workflow.run([Message("user", ["Hello"])])).get_outputs()
            >>> [message.text for message in answer.full_conversation]
            ['Hello', 'Hi.']
        """
        plan = CompactionPlan.from_dict(ctx.get_state(HARNESS_COMPACTION_PLAN_KEY))
        shown = await self._manager.aprompt(done.session_id)
        log = await self._manager.ahistory(done.session_id)
        prompt = _rendered(plan, shown, log)
        history = _rendered(CompactionPlan(done.session_id), shown, log)
        with shown_prompt(done.session_id, prompt, history):
            response = await self._agent.run(prompt)
        answer = AgentExecutorResponse(self.id, response, full_conversation=[*history, *response.messages])
        await ctx.yield_output(answer)
        await ctx.send_message(answer)


def render_plan(manager: CompactManager, plan: CompactionPlan | Mapping[str, Any]) -> list[Message]:
    """Return what a plan shows of the log; the same plan gives the same messages.

    Args:
        manager: Has the log in its store.
        plan: The plan, or its plain data from shared state; an empty plan shows the whole log.

    Raises:
        UnknownSession: Nothing is known of the plan's session.

    Example:
        >>> from compact import CompactionPlan, CompactManager
        >>> from compact.adapters.agent_framework import render_plan
        >>> manager = CompactManager()
        >>> prompt = manager.preflight("chat-1", [{"role": "user", "content": "Hello"}])
        >>> [message.text for message in render_plan(manager, CompactionPlan("chat-1"))]
        ['Hello']
    """
    wanted = plan if isinstance(plan, CompactionPlan) else CompactionPlan.from_dict(plan)
    return _rendered(wanted, manager.prompt(wanted.session_id), manager.history(wanted.session_id))


def _rendered(plan: CompactionPlan, prompt: RenderedPrompt, log: Sequence[LoggedMessage]) -> list[Message]:
    view_ids = {message_id for slot in prompt.slots for message_id in slot.ids} | set(prompt.hidden)
    rendered = PromptRenderer().render([message for message in log if not view_ids or message.id in view_ids], plan)
    slots, _ = repair_chat(rendered.slots)
    entries = [cast(dict[str, Any], write_entry(slot.message, None)) for slot in slots]
    return [message_of(item) for block in DIALECT.join(list(DIALECT.write(entries))) for item in block.items]
