"""A wrapped model on real agents of smolagents, with a provider that rejects what a provider would."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from PIL import Image as Picture
from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model, OpenAIModel, Tool, ToolCallingAgent
from smolagents.models import ChatMessageStreamDelta, ChatMessageToolCall, ChatMessageToolCallFunction
from smolagents.monitoring import TokenUsage

import compact
from adapters.enforced_window import INSTRUCTIONS, TURNS, enforced, question
from adapters.scenario import TOOL, Call, Scenario, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.smolagents import SUPPORTED_VERSIONS, SmolagentsDialect, recall_tool
from compact.adapters.smolagents.messages import message_data, message_of
from compact.core.engine.events import CompactionErrorEvent, TokenEstimateEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.testing import RecordingSink, WordTokenizer
from compact.tokens import get_tokenizer


class ScriptedSmolModel(Model):
    """A model whose answers are a function of what smolagents itself puts on the wire."""

    def __init__(self, answer: Any, **options: Any) -> None:
        super().__init__(model_id="gpt-4o", **options)
        self.answer = answer
        self.sent: list[list[Any]] = []

    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        self.sent.append(list(messages))
        body = self._prepare_completion_kwargs(messages, *args, convert_images_to_image_urls=True, **options)
        wire = [
            {"role": str(getattr(m["role"], "value", m["role"])), "content": m["content"]} for m in body["messages"]
        ]
        return self.answer(wire, body.get("tools", []))


class StreamingSmolModel(ScriptedSmolModel):
    """The same in pieces."""

    def generate_stream(self, messages: Any, *args: Any, **options: Any) -> Iterator[ChatMessageStreamDelta]:
        whole = self.generate(messages, *args, **options)
        yield ChatMessageStreamDelta(content=whole.content or "")  # type: ignore[arg-type]
        yield ChatMessageStreamDelta(content="", token_usage=whole.token_usage)


class DepotTool(Tool):
    """The tool of the scenario."""

    name = TOOL
    description = "The stock list of one depot."
    inputs = {"depot": {"type": "integer", "description": "The number of the depot."}}  # noqa: RUF012
    output_type = "string"

    def forward(self, depot: int) -> str:
        return look_up(depot)


def play(watch: Watch) -> Any:
    """The model of the scenario; it ends a turn by a call, as smolagents wants it."""

    def answer(wire: list[dict[str, Any]], tools: list[dict[str, Any]]) -> ChatMessage:
        step = watch.ask(wire, "chat", tools=tools)
        usage = TokenUsage(input_tokens=watch.tokens[-1], output_tokens=5)
        name, arguments = (
            (step.name, step.arguments) if isinstance(step, Call) else ("final_answer", {"answer": step.text})
        )
        call_id = step.call_id if isinstance(step, Call) else f"final_{len(watch.requests)}"
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), call_id, "function")
        return ChatMessage(MessageRole.ASSISTANT, f"I call {name}.", tool_calls=[call], token_usage=usage)

    return answer


def play_code(watch: Watch) -> Any:
    """The same for an agent that writes code."""

    def answer(wire: list[dict[str, Any]], tools: list[dict[str, Any]]) -> ChatMessage:
        step = watch.ask(wire, "chat", tools=tools)
        usage = TokenUsage(input_tokens=watch.tokens[-1], output_tokens=5)
        if isinstance(step, Call):
            (argument,) = step.arguments.values()
            code = f"print({step.name}({argument!r}))"
        else:
            code = f"final_answer({step.text!r})"
        return ChatMessage(MessageRole.ASSISTANT, f"Thought: on.\n<code>\n{code}\n</code>", token_usage=usage)

    return answer


def instructions(scenario: Scenario) -> str:
    """What the agent is told, with what must stay."""
    return f"{scenario.instructions}\n{scenario.protected}"


def run_agent(agent: Any, watch: Watch) -> list[str]:
    """Run the scenario; return all text of the agent's own memory."""
    for number, prompt in enumerate(watch.scenario.prompts):
        agent.run(prompt, reset=number == 0, max_steps=60)
    texts = [str(part.get("text")) for message in agent.write_memory_to_messages() for part in message.content]
    return [text.replace("\\n", "\n") for text in texts]


def check(watch: Watch, manager: CompactManager, model: Any, stored: list[str]) -> None:
    """Everything happened, and smolagents' own memory is whole."""
    watch.check(manager, "chat-1", stored=stored)
    assert [call.tokens_reported for call in manager.model_calls("chat-1")] == watch.tokens
    assert watch.sink.of(TokenEstimateEvent)[0].model == "gpt-4o"


def test_the_scenario() -> None:
    watch = Watch()
    manager = watch.manager()
    model = ScriptedSmolModel(play(watch))
    agent = ToolCallingAgent(
        tools=[DepotTool(), recall_tool(manager, "chat-1")],
        model=compact.wrap(model, manager, session_id="chat-1"),
        instructions=instructions(watch.scenario),
        verbosity_level=LogLevel.OFF,
    )
    check(watch, manager, model, run_agent(agent, watch))
    assert watch.sink.of(TokenEstimateEvent)[0].breakdown["tools_schema"] > 40
    read = {message.role for message in manager.history("chat-1")}
    assert "tool" in read, "what is text in smolagents is a result here"


def test_the_scenario_in_code() -> None:
    """An agent that writes code has its tools in its prompt, and its calls are code."""
    watch = Watch()
    manager = watch.manager()
    model = StreamingSmolModel(play_code(watch))
    agent = CodeAgent(
        tools=[DepotTool(), recall_tool(manager, "chat-1")],
        model=compact.wrap(model, manager, session_id="chat-1"),
        instructions=instructions(watch.scenario),
        stream_outputs=True,
        verbosity_level=LogLevel.OFF,
    )
    check(watch, manager, model, run_agent(agent, watch))


def test_without_compaction_the_model_rejects() -> None:
    watch = Watch()
    agent = ToolCallingAgent(
        tools=[DepotTool()],
        model=ScriptedSmolModel(play(watch)),
        instructions=instructions(watch.scenario),
        verbosity_level=LogLevel.OFF,
    )
    with pytest.raises(Exception, match="tokens, more than"):
        agent.run(watch.scenario.prompts[0], max_steps=60)


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
    model = ScriptedSmolModel(lambda wire, tools: ChatMessage(MessageRole.ASSISTANT, "fine"))
    wrapped = compact.wrap(model, manager, session_id=fails if fault == "session_id" else "chat-1")
    said = [ChatMessage(MessageRole.USER, [{"type": "text", "text": "hello"}])]
    assert wrapped.generate(said).content == "fine"
    assert model.sent[0][0] is said[0]
    (failure,) = sink.of(CompactionErrorEvent)
    assert failure.error_type == ("RuntimeError" if fault == "tokenizer" else "KeyError")


def test_planning_has_a_session_of_its_own() -> None:
    """The agent plans with another prompt: its history is not that of the run."""
    manager = Watch().manager()
    step = iter([{"n": 1}, {"n": 2}])

    def answer(wire: Any, tools: Any) -> ChatMessage:
        if not tools:
            return ChatMessage(MessageRole.ASSISTANT, "the plan", token_usage=TokenUsage(9, 1))
        arguments = next(step, None)
        name, given = (TOOL, {"depot": arguments["n"]}) if arguments else ("final_answer", {"answer": "done"})
        call = ChatMessageToolCall(ChatMessageToolCallFunction(given, name), f"c{id(given)}", "function")
        return ChatMessage(MessageRole.ASSISTANT, None, tool_calls=[call], token_usage=TokenUsage(9, 1))

    model = compact.wrap(ScriptedSmolModel(answer), manager, session_id="chat-1")
    agent = ToolCallingAgent(tools=[DepotTool()], model=model, planning_interval=2, verbosity_level=LogLevel.OFF)
    assert agent.run("audit") == "done"
    sessions = [info.session_id for info in manager.sessions()]
    assert len(sessions) >= 2
    assert any(call for call in sessions if call.startswith("chat-1/"))


def test_every_kind_of_message_is_read_and_made_again() -> None:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": {"n": n}}} for n in (1, 2)]
    code = [{"id": "c3", "type": "function", "function": {"name": "python_interpreter", "arguments": "print(1)"}}]

    def message(role: str, text: str) -> ChatMessage:
        return ChatMessage(MessageRole(role), [{"type": "text", "text": text}])

    messages = [
        message("system", "be kind"),
        message("user", "New task:\nlook"),
        ChatMessage(MessageRole.USER, [{"type": "image", "image": Picture.new("RGB", (2, 2))}]),
        message("assistant", "I look."),
        message("tool-call", "Calling tools:\n" + str(calls[:1])),
        message("tool-response", "Observation:\nseen"),
        message("tool-call", "Calling tools:\n" + str(code)),
        message("tool-response", "Observation:\n1"),
        message("tool-call", "Calling tools:\nnobody knows what"),
        message("tool-response", "Error:\nno"),
    ]
    dialect = SmolagentsDialect()
    items = [message_data(one) for one in messages]
    assert not dialect.check(items)
    entries = [entry for block in dialect.read(items, 0) for entry in block.entries]
    roles = ["system", "user", "user", "assistant", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert [entry["role"] for entry in entries] == roles
    written = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
    assert written == items
    assert [message_data(message_of(item)) for item in written] == items


def test_several_calls_of_a_step_are_one_call_with_its_one_result() -> None:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": {"n": n}}} for n in (1, 2)]
    items = [
        {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools:\n" + str(calls)}]},
        {"role": "tool-response", "content": [{"type": "text", "text": "Observation:\nboth"}]},
    ]
    (block,) = SmolagentsDialect().read(items, 0)
    call, result = block.entries
    assert call["tool_calls"][0]["function"] == {"name": "look, look", "arguments": '[{"n": 1}, {"n": 2}]'}
    assert result["tool_call_id"] == call["tool_calls"][0]["id"] == "c1"


def test_calls_count_as_the_text_that_a_model_reads() -> None:
    """A model reads each call as Python's words for it, with its id: several times what name and arguments take."""
    calls = [
        {
            "id": f"call_{n}xV3rYl0nG1dOf4Pr0v1d3r",
            "type": "function",
            "function": {"name": "look", "arguments": {"n": n}},
        }
        for n in (1, 2)
    ]
    sent = {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools:\n" + str(calls)}]}
    result = {"role": "tool-response", "content": [{"type": "text", "text": "Observation:\nboth"}]}
    (block,) = SmolagentsDialect().read([sent, result], 0)
    counter = get_tokenizer("gpt-4o")
    counted = counter.count_message(read_entry(block.entries[0], "messages[0]"))
    as_text = counter.count_message(Message("assistant", sent["content"]))
    assert as_text <= counted <= as_text + 20


def test_the_versions_are_those_that_we_know() -> None:
    assert version("smolagents") in SpecifierSet(SUPPORTED_VERSIONS)


def test_a_window_that_is_enforced() -> None:
    with enforced(8_192, counted_as="gpt-4", register_tokens=24_000) as run:

        class PageTool(Tool):
            name = "read_page"
            description = "One page."
            inputs = {"page": {"type": "integer", "description": "Its number."}}  # noqa: RUF012
            output_type = "string"

            def forward(self, page: int) -> str:
                return run.register.page(page)

        # The prompt that smolagents writes takes half of this window.
        templates: Any = {
            "system_prompt": INSTRUCTIONS,
            "final_answer": {"pre_messages": INSTRUCTIONS, "post_messages": "Say it."},
        }
        templates |= {"planning": dict.fromkeys(PLANNING, ""), "managed_agent": {"task": "", "report": ""}}
        model = OpenAIModel("gpt-4", api_base=run.model.base_url, api_key="any", max_tokens=1_000)
        agent = ToolCallingAgent(
            tools=[PageTool()],
            model=compact.wrap(model, run.manager),
            prompt_templates=templates,
            verbosity_level=LogLevel.OFF,
        )
        for number in range(1, TURNS + 1):
            agent.run(question(number), reset=number == 1, max_steps=1)
        # After its last step an agent asks for an answer without tools.
        run.check("gpt-4", output_tokens=1_000, always_with_tools=False)


PLANNING = ("initial_plan", "update_plan_pre_messages", "update_plan_post_messages")


def test_a_session_that_another_framework_began_goes_on() -> None:
    """A store may have entries of another dialect under the same name: what is not known is written plainly."""
    entry = {"role": "tool", "tool_call_id": "c1", "content": "seen", "native": {"role": "tool", "extra": {}}}
    (block,) = SmolagentsDialect().write([entry])
    assert block.items == ({"role": "tool-response", "content": [{"type": "text", "text": "seen"}]},)
