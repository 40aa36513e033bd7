"""A wrapped model on real agents of LlamaIndex, with a model that rejects what a provider would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import httpx
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from packaging.specifiers import SpecifierSet
from pydantic import Field

import compact
from adapters.adapter_checks import CACHED_TOKENS, seen_and_counted, usage_is_told
from adapters.enforced_window import INSTRUCTIONS, TURNS, Enforced, enforced, question
from adapters.scenario import TOOL, Call, Rejected, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.llama_index import SUPPORTED_VERSIONS, LlamaIndexDialect, protected, recall_tool
from compact.adapters.llama_index.messages import MARK, message_data, message_of
from compact.core.engine.events import CompactionErrorEvent
from compact.testing import RecordingSink, WordTokenizer

# LlamaIndex looks at its own models by names that pydantic has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class ScriptedLlamaModel(FunctionCallingLLM):
    """A model for Chat Completions whose answers are a function of what it is sent; as short as it can be."""

    answer: Any
    writes_blocks: bool = True
    model: str = "gpt-4o"
    max_tokens: int | None = None
    sent: list[Any] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model, is_function_calling_model=True, context_window=10**6)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **options: Any
    ) -> Any:
        messages = [*(chat_history or []), *([user_msg] if user_msg else [])]
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **options: Any) -> Any:
        calls = [call["function"] | {"id": call["id"]} for call in wire_of(response.message).get("tool_calls", ())]
        return [
            ToolSelection(tool_id=call["id"], tool_name=call["name"], tool_kwargs=json.loads(call["arguments"]))
            for call in calls
        ]

    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        self.sent.append(list(messages))
        return self.answer(self, [wire_of(message) for message in messages], options.get("tools", []))

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return self.chat(messages, **options)

    def stream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        whole = self.chat(messages, **options)
        yield ChatResponse(message=ChatMessage(role="assistant", content=""), delta="")
        yield whole

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def pieces() -> Any:
            for piece in self.stream_chat(messages, **options):
                yield piece

        return pieces()

    def complete(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = complete

    def say(self, text: str, calls: Sequence[Any] = (), usage: Any = None) -> ChatResponse:
        """An answer, with its calls where this model writes them."""
        blocks: list[Any] = [TextBlock(text=text)] if text else []
        extra: dict[str, Any] = {}
        if self.writes_blocks:
            blocks += [ToolCallBlock(tool_call_id=i, tool_name=n, tool_kwargs=json.loads(a)) for i, n, a in calls]
        elif calls:
            written = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
            extra["tool_calls"] = written
        message = ChatMessage(role="assistant", blocks=blocks, additional_kwargs=extra)
        return ChatResponse(message=message, raw={"usage": usage})


def wire_of(message: ChatMessage) -> dict[str, Any]:
    """A message as a model of LlamaIndex for OpenAI would write it."""
    assert MARK not in message.additional_kwargs, "our mark would leave"
    calls = list(message.additional_kwargs.get("tool_calls", ()))
    for block in message.blocks:
        if isinstance(block, ToolCallBlock):
            function = {"name": block.tool_name, "arguments": json.dumps(block.tool_kwargs)}
            calls.append({"id": block.tool_call_id, "type": "function", "function": function})
    item: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if calls:
        item["tool_calls"] = calls
    if message.role == MessageRole.TOOL:
        item["tool_call_id"] = message.additional_kwargs["tool_call_id"]
    return item


def play(watch: Watch) -> Any:
    """The model of the scenario; it reports the tokens that it has counted."""

    def answer(llm: ScriptedLlamaModel, wire: list[dict[str, Any]], tools: list[dict[str, Any]]) -> ChatResponse:
        step = watch.ask(wire, "chat", tools=tools)
        usage = {"prompt_tokens": watch.tokens[-1], "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS}}
        if isinstance(step, Call):
            return llm.say("", [(step.call_id, step.name, step.arguments_json)], usage)
        return llm.say(step.text, usage=usage)

    return answer


def depot_tool() -> FunctionTool:
    """The tool of the scenario."""

    def look(depot: int) -> str:
        return look_up(depot)

    return FunctionTool.from_defaults(look, name=TOOL, description="The stock list of one depot.")


def whole_memory() -> ChatMemoryBuffer:
    """A memory that cuts nothing."""
    return ChatMemoryBuffer.from_defaults(token_limit=10**9)


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("writes_blocks", [True, False])
def test_the_scenario(is_streamed: bool, writes_blocks: bool) -> None:
    watch = Watch()
    manager = watch.manager()
    model = ScriptedLlamaModel(answer=play(watch), writes_blocks=writes_blocks)
    agent = FunctionAgent(
        llm=compact.wrap(model, manager, session_id="chat-1"),
        tools=[depot_tool(), recall_tool(manager, "chat-1")],
        system_prompt=watch.scenario.instructions,
        streaming=is_streamed,
        timeout=None,
    )
    memory = whole_memory()
    memory.put(protected(ChatMessage(watch.scenario.protected)))

    async def run() -> None:
        for prompt in watch.scenario.prompts:
            await agent.run(prompt, memory=memory, max_iterations=100)

    asyncio.run(run())
    stored = memory.get_all()
    watch.check(manager, "chat-1", stored=[str(message.content) for message in stored])
    usage_is_told(watch, manager, "chat-1")
    seen_and_counted(watch, manager, "chat-1")
    assert stored[0].additional_kwargs[MARK] == {"protected": True}, "the mark stays in the memory"


def test_unchanged_messages_are_the_agents_own_objects() -> None:
    manager = Watch().manager()
    model = ScriptedLlamaModel(answer=lambda llm, wire, tools: llm.say("fine"))
    said = [ChatMessage("hello"), ChatMessage(role="assistant", content="hi"), ChatMessage("how are you?")]
    wrapped: Any = compact.wrap(model, manager, session_id="chat-1")
    assert wrapped.chat(said).message.content == "fine"
    assert [sent is own for sent, own in zip(model.sent[0], said, strict=True)] == [True, True, True]
    assert isinstance(wrapped, ScriptedLlamaModel)
    assert type(model) is ScriptedLlamaModel


def test_without_compaction_the_model_rejects() -> None:
    watch = Watch()
    agent = FunctionAgent(
        llm=ScriptedLlamaModel(answer=play(watch)), tools=[depot_tool()], system_prompt=watch.scenario.protected
    )

    async def run() -> None:
        await agent.run(watch.scenario.prompts[0], max_iterations=100)

    with pytest.raises(Rejected, match="tokens, more than"):
        asyncio.run(run())


class BrokenTokenizer(WordTokenizer):
    """A plug-in that fails."""

    def count_message(self, message: Any) -> int:
        raise RuntimeError("out of order")


def fails(body: Any) -> str:
    """A function of the user that does not find what it wants."""
    return body["user"]


@pytest.mark.parametrize("fault", ["tokenizer", "session_id"])
def test_a_failure_never_stops_the_run(fault: str) -> None:
    sink = RecordingSink()
    parts: Any = {"tokenizer": BrokenTokenizer()} if fault == "tokenizer" else {}
    manager = CompactManager(CompactConfig(), on_event=sink, **parts)
    model = ScriptedLlamaModel(answer=lambda llm, wire, tools: llm.say("fine"))
    wrapped: Any = compact.wrap(model, manager, session_id=fails if fault == "session_id" else "chat-1")
    assert wrapped.chat([protected(ChatMessage("hello"))]).message.content == "fine"
    assert [message.content for message in model.sent[0]] == ["hello"]
    (failure,) = sink.of(CompactionErrorEvent)
    assert failure.error_type == ("RuntimeError" if fault == "tokenizer" else "KeyError")


def test_every_kind_of_message_is_read_and_made_again() -> None:
    function = {"name": "look", "arguments": '{"n":  2}'}
    messages = [
        ChatMessage(role="system", content="be kind"),
        protected(ChatMessage(blocks=[TextBlock(text="see"), ImageBlock(image=b"aGk=", image_mimetype="image/png")])),
        ChatMessage(
            role="assistant",
            blocks=[
                ThinkingBlock(content="hm", additional_information={"signature": "x"}),
                TextBlock(text="I look."),
                ToolCallBlock(tool_call_id="c1", tool_name="look", tool_kwargs={"n": 1}),
            ],
        ),
        ChatMessage(role="tool", content="seen", additional_kwargs={"tool_call_id": "c1"}),
        ChatMessage(
            role="assistant",
            blocks=[],
            additional_kwargs={"tool_calls": [{"id": "c2", "type": "function", "function": function}], "refusal": None},
        ),
        ChatMessage(role="tool", content="seen too", additional_kwargs={"tool_call_id": "c2", "name": "look"}),
        ChatMessage(role="model", content="done"),
    ]
    dialect = LlamaIndexDialect()
    items = [message_data(message) for message in messages]
    assert not dialect.check(items)
    entries = [entry for block in dialect.read(items, 0) for entry in block.entries]
    roles = ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [entry["role"] for entry in entries] == roles
    assert entries[1]["meta"] == {"protected": True}
    written = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
    assert written == items
    assert [message_data(message_of(item)) for item in written] == items


def test_the_versions_are_those_that_we_know() -> None:
    assert version("llama-index-core") in SpecifierSet(SUPPORTED_VERSIONS)
    assert {"chat", "achat", "stream_chat", "astream_chat"} <= set(dir(LLM))


def test_a_window_that_is_enforced() -> None:
    def ask(llm: ScriptedLlamaModel, wire: Any, tools: Any) -> ChatResponse:
        body = {"model": llm.model, "messages": wire, "tools": tools, "max_tokens": llm.max_tokens}
        response = httpx.post(f"{url}/chat/completions", json=body, timeout=30)
        assert response.status_code == 200, response.text
        message = response.json()["choices"][0]["message"]
        calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", ())]
        return llm.say(message["content"] or "", calls, response.json()["usage"])

    async def main(run: Enforced) -> None:
        def read_page(page: int) -> str:
            """One page."""
            return run.register.page(page)

        llm = ScriptedLlamaModel(answer=ask, model="gpt-4", max_tokens=1_000)
        agent = FunctionAgent(
            llm=compact.wrap(llm, run.manager),
            tools=[FunctionTool.from_defaults(read_page)],
            system_prompt=INSTRUCTIONS,
        )
        memory = whole_memory()
        for number in range(1, TURNS + 1):
            await agent.run(question(number), memory=memory)

    with enforced(8_192, counted_as="gpt-4", register_tokens=24_000) as run:
        url = run.model.base_url
        asyncio.run(main(run))
        run.check("gpt-4", output_tokens=1_000)
