"""The capability on real pydantic-ai agents, with a model that rejects what a provider would."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from adapters.adapter_checks import CACHED_TOKENS, usage_is_told
from adapters.scenario import WINDOW_TOKENS, Call, Rejected, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.pydantic_ai import (
    SUPPORTED_VERSIONS,
    CompactionCapability,
    protected,
)
from compact.adapters.pydantic_ai.capability import tool_schemas
from compact.adapters.pydantic_ai.messages import PydanticAIDialect
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.core.errors import InsufficientBudget
from compact.testing import RecordingSink, WordTokenizer

DIALECT = PydanticAIDialect()
LIMITS = UsageLimits(request_limit=None)


@pytest.fixture(autouse=True)
def _loop() -> Iterator[None]:
    """The event loop that `run_sync` takes; one of its own making it would leave open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def asked(watch: Watch, messages: list[ModelMessage], info: AgentInfo) -> Any:
    """Check a request as the model gets it."""
    tools = tool_schemas(info.model_request_parameters)
    return watch.ask(messages, DIALECT, tools=tools, instructions=info.instructions or "")


def play(watch: Watch) -> Any:
    """The model of the scenario; it reports the tokens that it has counted."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = asked(watch, messages, info)
        is_call = isinstance(step, Call)
        part = ToolCallPart(step.name, step.arguments, step.call_id) if is_call else TextPart(step.text)
        return ModelResponse(
            [part], usage=RequestUsage(input_tokens=watch.tokens[-1], cache_read_tokens=CACHED_TOKENS, output_tokens=5)
        )

    return answer


def look_up_depot(depot: int) -> str:
    """The stock list of one depot."""
    return look_up(depot)


def agent_of(watch: Watch, manager: CompactManager, **options: Any) -> Agent[None, str]:
    """The agent of the scenario, with compaction."""
    return Agent(
        FunctionModel(**({"function": play(watch)} | options)),
        tools=[look_up_depot],
        instructions=watch.scenario.instructions,
        capabilities=[CompactionCapability(manager)],
    )


def prompts(watch: Watch) -> list[Any]:
    """What the user says, turn by turn; the protected text comes before the first task."""
    first, *rest = watch.scenario.prompts
    return [[protected(watch.scenario.protected), first], *rest]


def texts(messages: list[ModelMessage]) -> list[str]:
    """Everything in a stored history."""
    return [
        part.model_response_str() if hasattr(part, "model_response_str") else str(part)
        for m in messages
        for part in m.parts
    ]


def run(agent: Agent[None, str], watch: Watch, **options: Any) -> list[ModelMessage]:
    """All turns of the scenario; the history that the caller keeps."""
    history: list[ModelMessage] = []
    for prompt in prompts(watch):
        given = {"message_history": history, "conversation_id": "chat-1", "usage_limits": LIMITS, **options}
        history = agent.run_sync(prompt, **given).all_messages()
    return history


def test_the_scenario() -> None:
    watch = Watch()
    manager = watch.manager()
    history = run(agent_of(watch, manager), watch)
    watch.check(manager, "chat-1", stored=texts(history))
    usage_is_told(watch, manager, "chat-1")


def test_the_scenario_streamed() -> None:
    watch = Watch()
    manager = watch.manager()
    heard: list[Any] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        step = asked(watch, messages, info)
        if isinstance(step, Call):
            yield {0: DeltaToolCall(step.name, step.arguments_json, tool_call_id=step.call_id)}
        else:
            for word in step.text.split(" "):
                yield word if word.endswith(".") else f"{word} "

    async def listen(ctx: RunContext[None], events: Any) -> None:
        async for event in events:
            heard.append(event)

    agent = agent_of(watch, manager, function=None, stream_function=stream)
    history = run(agent, watch, event_stream_handler=listen)
    assert len(heard) > 100
    watch.check(manager, "chat-1", stored=texts(history))


def test_without_compaction_the_model_rejects() -> None:
    watch = Watch()
    agent = Agent(FunctionModel(play(watch)), tools=[look_up_depot], instructions=watch.scenario.instructions)
    with pytest.raises(Rejected, match="tokens, more than"):
        run(agent, watch)


def test_another_process_goes_on_with_a_history_from_json(tmp_path: Path) -> None:
    """The store has all that is needed to know the agent's messages again, and to write those that were changed."""
    watch = Watch()
    url = f"sqlite:///{tmp_path}/state.db"
    config = watch.config.model_copy(update={"state": watch.config.state.model_copy(update={"url": url})})
    rule = ModelRequest([UserPromptPart([protected(watch.scenario.protected)])])
    history: list[ModelMessage] = [rule]
    for prompt in watch.scenario.prompts:
        with CompactManager(config, on_event=watch.sink) as manager:
            agent = agent_of(watch, manager)
            result = agent.run_sync(prompt, message_history=history, conversation_id="chat-1", usage_limits=LIMITS)
            history = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    with CompactManager(config) as manager:
        watch.check(manager, "chat-1", stored=texts(history))
        log = manager.history("chat-1")
        assert len(log) == len(texts(history)) - 1, "nothing was taken for something new"


def test_what_was_not_changed_is_the_agents_own_object() -> None:
    seen: list[tuple[list[ModelMessage], list[ModelMessage]]] = []

    class Witness(AbstractCapability[Any]):
        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            seen.append((list(ctx.messages), list(request_context.messages)))
            return response

    watch = Watch()
    capabilities = [CompactionCapability(watch.manager()), Witness()]
    agent = Agent(
        FunctionModel(play(watch)),
        tools=[look_up_depot],
        instructions=watch.scenario.instructions,
        capabilities=capabilities,
    )
    agent.run_sync(prompts(watch)[0], usage_limits=LIMITS)
    history, request = seen[-1]
    assert len(watch.compactions) >= 1
    own = {id(message) for message in history}
    changed = [message for message in request if id(message) not in own]
    assert 1 < len(changed) < len(request) / 2
    stubs = [part for now in changed for part in now.parts if isinstance(part, ToolReturnPart)]
    assert len(stubs) >= len(changed) - 1, "all but a summary"
    assert all(len(part.content) < len(look_up(1)) for part in stubs)
    assert look_up(1) in "\n".join(texts(history))


def test_a_newest_request_that_had_to_be_cut_says_the_same_of_itself() -> None:
    last: list[ModelRequest] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last[:] = [message for message in messages if isinstance(message, ModelRequest)][-1:]
        is_asked = isinstance(last[0].parts[-1], UserPromptPart)
        return ModelResponse([ToolCallPart("read_all", {}, "c1") if is_asked else TextPart("done")])

    def read_all() -> str:
        return "".join(f"line {number} of the whole\n" for number in range(4_000))

    capability = CompactionCapability(Watch().manager())
    agent = Agent(FunctionModel(answer), tools=[read_all], instructions="Be brief.", capabilities=[capability])
    stored = agent.run_sync("read it all").all_messages()[2]
    (sent,) = last
    assert isinstance(stored, ModelRequest)
    assert len(str(sent.parts)) < len(str(stored.parts)) / 2
    assert (sent.instructions, sent.run_id) == ("Be brief.", stored.run_id)


class BrokenTokenizer(WordTokenizer):
    """A plug-in that fails."""

    def count_message(self, message: Any) -> int:
        raise RuntimeError("out of order")


def test_a_failure_of_ours_never_stops_the_run() -> None:
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(), tokenizer=BrokenTokenizer(), on_event=sink)
    agent = Agent(answering("fine"), capabilities=[CompactionCapability(manager)])
    assert agent.run_sync("hello", conversation_id="chat-1").output == "fine"
    (failure,) = sink.of(CompactionErrorEvent)
    assert (failure.error_type, failure.session_id) == ("RuntimeError", "chat-1")
    assert failure.fallback == "the request goes out as it is"


class WordlessTokenizer(WordTokenizer):
    """Fails where a single text is to be measured, as for what is recalled."""

    def count_text(self, text: str) -> int:
        raise RuntimeError("out of words")

    def count_message(self, message: Any) -> int:
        return 1

    def count_tools(self, tools: Any) -> int:
        return 1


def test_a_recall_that_fails_is_told_to_the_agent() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = messages[-1].parts[-1]
        is_told = isinstance(part, ToolReturnPart)
        return ModelResponse([TextPart(part.content) if is_told else ToolCallPart("recall", {"query": "m1"}, "c1")])

    sink = RecordingSink()
    manager = CompactManager(CompactConfig(), tokenizer=WordlessTokenizer(), on_event=sink)
    agent = Agent(FunctionModel(answer), capabilities=[CompactionCapability(manager)])
    assert "nothing can be read now" in agent.run_sync("hello").output
    assert "the answer says so" in [failure.fallback for failure in sink.of(CompactionErrorEvent)]


def test_every_way_to_run_is_the_same_conversation() -> None:
    """A run that is iterated over, or given up, leaves nothing behind that the next one would stumble over."""
    manager = Watch().manager()

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "streamed"

    plain = answering("said")
    model = FunctionModel(plain.function, stream_function=stream)  # type: ignore[arg-type]
    agent = Agent(model, capabilities=[CompactionCapability(manager)])

    async def talk() -> None:
        first = await agent.run("one", conversation_id="chat-1")
        async with agent.run_stream("two", message_history=first.all_messages()) as result:
            await result.get_output()
        async with agent.iter("three", message_history=result.all_messages()) as given_up:
            async for _ in given_up:
                break
        async with agent.iter("three", message_history=result.all_messages()) as run:
            async for _ in run:
                pass

    asyncio.run(talk())
    assert [info.session_id for info in manager.sessions()] == ["chat-1"]
    assert [message.text for message in manager.history("chat-1")] == ["one", "said", "two", "streamed", "three"]


def test_what_cannot_fit_is_told_loudly_and_sent() -> None:
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(max_context_tokens=WINDOW_TOKENS), on_event=sink)
    said = [protected("word " * 9_000)]
    agent = Agent(answering("fine"), capabilities=[CompactionCapability(manager)])
    assert agent.run_sync(said).output == "fine"
    assert "cannot be made to fit" in next(n.message for n in sink.of(NoticeEvent) if n.severity == "high")
    with pytest.raises(InsufficientBudget):
        Agent(answering("fine"), capabilities=[CompactionCapability(manager, strict=True)]).run_sync(said)


def answering(text: str) -> FunctionModel:
    """A model that always says the same."""
    return FunctionModel(lambda messages, info: ModelResponse([TextPart(text)]))


@pytest.mark.parametrize("hands_over", [False, True])
def test_an_agent_that_is_a_tool_has_a_session_of_its_own(hands_over: bool) -> None:
    """Even if it is handed the history of the one that calls it, and so is in the same conversation."""
    manager = Watch().manager()
    shared = CompactionCapability(manager)
    helper = Agent(answering("sub done"), name="helper", capabilities=[shared])

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        is_asked = isinstance(messages[-1].parts[-1], UserPromptPart)
        return ModelResponse([ToolCallPart("delegate", {}, "c1") if is_asked else TextPart("all done")])

    main = Agent(FunctionModel(answer), name="main", capabilities=[shared])

    @main.tool
    async def delegate(ctx: RunContext[None]) -> str:
        """Have somebody else do it."""
        history = ctx.messages[:1] if hands_over else None
        return (await helper.run("task", message_history=history)).output

    main.run_sync("start", conversation_id="chat-1")
    logs = {info.session_id: [m.text for m in manager.history(info.session_id)] for info in manager.sessions()}
    assert logs.pop("chat-1") == ["start", "", "sub done"]
    assert list(logs.values()) == [["start", "task"] if hands_over else ["task"]]
    assert next(iter(logs)).startswith("chat-1/helper-") == hands_over


def test_conversations_side_by_side_are_kept_apart() -> None:
    manager = Watch().manager()
    agent = Agent(answering("hi"), capabilities=[CompactionCapability(manager)])

    async def talk() -> None:
        await asyncio.gather(*(agent.run(f"I am {n}", conversation_id=f"chat-{n}") for n in range(8)))

    asyncio.run(talk())
    for number in range(8):
        assert [message.text for message in manager.history(f"chat-{number}")] == [f"I am {number}"]


def test_the_session_may_be_named() -> None:
    manager = Watch().manager()
    agent: Agent[int, str] = Agent(
        answering("hi"), deps_type=int, capabilities=[CompactionCapability(manager, lambda ctx: f"user-{ctx.deps}")]
    )
    agent.run_sync("hello", deps=7)
    agent = Agent(answering("hi"), deps_type=int, capabilities=[CompactionCapability(manager, "mine")])
    agent.run_sync("hello", deps=8)
    assert {info.session_id for info in manager.sessions()} == {"user-7", "mine"}


def test_the_provider_keeps_the_history_so_we_stand_down() -> None:
    watch = Watch()
    manager = watch.manager()
    agent = Agent(answering("hi"), capabilities=[CompactionCapability(manager)])
    for settings in ({"openai_conversation_id": "conv_1"}, {"openai_previous_response_id": "resp_1"}):
        agent.run_sync("hello", model_settings=settings)  # type: ignore[call-overload]
    assert not manager.sessions()
    # One of no harm is about the small window of these tests.
    told = [notice.message for notice in watch.sink.of(NoticeEvent) if notice.severity != "low"]
    assert ["keeps the history" in message for message in told] == [True, True]
    agent.run_sync("hello", model_settings={"openai_previous_response_id": "auto"})  # type: ignore[call-overload]
    assert len(manager.sessions()) == 1, "with auto, pydantic-ai itself finds out whether the past has changed"


class Verdict(BaseModel):
    """What was found."""

    finding: str


def test_tools_answers_and_instructions_are_counted() -> None:
    verdict = ModelResponse([ToolCallPart("final_result", {"finding": "none"})])
    model = FunctionModel(lambda messages, info: verdict if info.output_tools else ModelResponse([TextPart("hi")]))
    counted: list[int] = []
    for options in ({}, {"tools": [look_up_depot]}, {"output_type": Verdict}, {"instructions": "x " * 99}):
        manager = Watch().manager()
        capability = CompactionCapability(manager, offer_recall=False)
        Agent(model, capabilities=[capability], **options).run_sync("hello", conversation_id="c")  # type: ignore[arg-type]
        counted.append(manager.model_calls("c")[0].tokens_estimated)
    plain, *others = counted
    assert all(other > plain + 10 for other in others), counted


def test_the_hook_is_as_we_know_it() -> None:
    for name in ("prepare_model_request", "after_model_request", "wrap_run", "for_run", "get_toolset"):
        theirs, ours = (inspect.signature(getattr(kind, name)) for kind in (AbstractCapability, CompactionCapability))
        assert list(theirs.parameters) == list(ours.parameters)
    assert {"messages", "model_settings", "model_request_parameters"} <= set(ModelRequestContext.__annotations__)
    assert version("pydantic-ai-slim") in SpecifierSet(SUPPORTED_VERSIONS)
