"""LiteLLM, the real package with a provider of our own that is as strict as OpenAI's."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import ChatCompletionMessageToolCall as ToolCall
from litellm.types.utils import Choices, Function, GenericStreamingChunk, Message, ModelResponse, Usage
from packaging.specifiers import SpecifierSet

from adapters.adapter_checks import CACHED_TOKENS
from adapters.litellm_worker import all_logged
from adapters.scenario import INSTRUCTIONS, TOOL_SCHEMA, Call, Final, Step, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.litellm import SUPPORTED_VERSIONS, CompactionLogger
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, NoticeEvent
from compact.recall.tool import TOOL_SCHEMA as RECALL_SCHEMA
from compact.testing import RecordingSink, tool_run

TOOLS = [TOOL_SCHEMA, RECALL_SCHEMA]
MODEL = "strict/any"


class StrictProvider(litellm.CustomLLM):
    """Answers by the scenario's script, and rejects what the provider would."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def ask(self, messages: list[Any], optional_params: dict[str, Any]) -> Step:
        plain = [
            message if isinstance(message, dict) else message.model_dump(exclude_none=True) for message in messages
        ]
        return self.watch.ask(plain, "chat", tools=optional_params.get("tools") or ())

    def answer(self, step: Step, response: ModelResponse) -> ModelResponse:
        if isinstance(step, Call):
            function = Function(name=step.name, arguments=step.arguments_json)
            message = Message(content=None, tool_calls=[ToolCall(id=step.call_id, type="function", function=function)])
        else:
            message = Message(content=step.text)
        response.choices = [Choices(message=message)]
        tokens = self.watch.tokens[-1]
        response.usage = Usage(  # pyright: ignore
            prompt_tokens=tokens, completion_tokens=9, total_tokens=tokens + 9, cache_read_input_tokens=CACHED_TOKENS
        )
        return response

    def completion(self, model: str, messages: list[Any], *args: Any, **kwargs: Any) -> ModelResponse:
        return self.answer(self.ask(messages, kwargs["optional_params"]), kwargs["model_response"])

    async def acompletion(self, model: str, messages: list[Any], *args: Any, **kwargs: Any) -> ModelResponse:
        return self.completion(model, messages, *args, **kwargs)

    def chunks(self, messages: list[Any], optional_params: dict[str, Any]) -> Iterator[GenericStreamingChunk]:
        step = self.ask(messages, optional_params)
        tokens = self.watch.tokens[-1]
        usage: Any = {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}
        use: Any = None
        if isinstance(step, Call):
            function: Any = {"name": step.name, "arguments": step.arguments_json}
            use = {"id": step.call_id, "type": "function", "function": function, "index": 0}
        text = step.text if isinstance(step, Final) else ""
        yield GenericStreamingChunk(
            text=text,
            tool_use=use,
            is_finished=True,
            finish_reason="tool_calls" if use else "stop",
            usage=usage,
            index=0,
        )

    async def astreaming(
        self, model: str, messages: list[Any], *args: Any, **kwargs: Any
    ) -> AsyncIterator[GenericStreamingChunk]:
        for chunk in self.chunks(messages, kwargs["optional_params"]):
            yield chunk


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch behind LiteLLM's provider `strict`, and LiteLLM as it was afterwards."""
    watch = Watch()
    monkeypatch.setattr(
        litellm, "custom_provider_map", [{"provider": "strict", "custom_handler": StrictProvider(watch)}]
    )
    monkeypatch.setattr(litellm, "callbacks", [])
    for kind in ("success_callback", "_async_success_callback", "failure_callback", "_async_failure_callback"):
        monkeypatch.setattr(litellm, kind, [])
    litellm.utils.custom_llm_setup()
    return watch


def answer(watch: Watch, manager: CompactManager, session_id: str, call: Any) -> dict[str, Any]:
    arguments = json.loads(call.function.arguments)
    is_recall = call.function.name == "recall"
    text = str(manager.recall(session_id, arguments["query"])) if is_recall else look_up(**arguments)
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def opening(watch: Watch) -> list[Any]:
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": watch.scenario.protected, "meta": {"protected": True}},
    ]


def texts(history: list[Any]) -> list[str]:
    return [str(item["content"]) for item in history]


def test_the_scenario_async(watch: Watch) -> None:
    """A loop that appends LiteLLM's own message objects, as most do."""
    manager = watch.manager()
    litellm.callbacks = [CompactionLogger(manager)]
    history = opening(watch)

    async def main() -> None:
        for prompt in watch.scenario.prompts:
            history.append({"role": "user", "content": prompt})
            while True:
                given: Any = await litellm.acompletion(
                    model=MODEL, messages=history, tools=TOOLS, litellm_session_id="chat-1"
                )
                message = given.choices[0].message
                history.append(message)
                if not message.tool_calls:
                    break
                history.extend(answer(watch, manager, "chat-1", call) for call in message.tool_calls)
        await all_logged()

    asyncio.run(main())
    watch.check(manager, "chat-1", stored=texts(history))
    assert history[1]["meta"] == {"protected": True}, "the caller's list stays as it is"
    newest = manager.model_calls("chat-1")[-1]
    assert newest.tokens_reported == watch.tokens[-1]
    assert newest.details["cache_read_tokens"] == CACHED_TOKENS


def test_the_scenario_sync_without_a_name(watch: Watch) -> None:
    """`completion` has no hook in LiteLLM; ours does the same, and knows the conversation by its history."""
    manager = watch.manager()
    compacting = CompactionLogger(manager)
    history = opening(watch)
    for prompt in watch.scenario.prompts:
        history.append({"role": "user", "content": prompt})
        while True:
            message = compacting.completion(model=MODEL, messages=history, tools=TOOLS).choices[0].message
            session_id = compacting.session_of(messages=history)
            history.append(message)
            if not message.tool_calls:
                break
            history.extend(answer(watch, manager, session_id, call) for call in message.tool_calls)
    (session,) = manager.sessions()
    watch.check(manager, session.session_id, stored=texts(history))
    assert manager.model_calls(session.session_id)[-1].tokens_reported == watch.tokens[-1]


def test_the_scenario_streamed(watch: Watch) -> None:
    """What a stream says at its end is taken in, unless there is a newer request by then."""
    manager = watch.manager()
    litellm.callbacks = [CompactionLogger(manager, session_id="chat-1")]
    history = opening(watch)

    async def main() -> None:
        for prompt in watch.scenario.prompts:
            history.append({"role": "user", "content": prompt})
            while True:
                stream: Any = await litellm.acompletion(
                    model=MODEL,
                    messages=history,
                    tools=TOOLS,
                    stream=True,
                    stream_options={"include_usage": True},
                )
                whole: Any = litellm.stream_chunk_builder([chunk async for chunk in stream])
                message = whole.choices[0].message
                history.append(message)
                if not message.tool_calls:
                    break
                history.extend(answer(watch, manager, "chat-1", call) for call in message.tool_calls)
        deadline = time.monotonic() + 30
        while manager.model_calls("chat-1")[-1].tokens_reported is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    asyncio.run(main())
    watch.check(manager, "chat-1", stored=texts(history))
    assert manager.model_calls("chat-1")[-1].tokens_reported == watch.tokens[-1]


def test_without_the_callback_the_scenario_is_rejected(watch: Watch) -> None:
    """The fake provider is no pushover."""
    messages = [{"role": "user", "content": watch.scenario.protected}, *tool_run(30, words=300)]
    with pytest.raises(Exception, match="more than the 6,500 there are"):
        litellm.completion(model=MODEL, messages=messages)
    assert watch.rejections


# -- names, failures ----------------------------------------------------------------------------------------------


def hook(compacting: CompactionLogger, call_type: str = "acompletion", **kwargs: Any) -> dict[str, Any] | None:
    return asyncio.run(compacting.async_pre_call_deployment_hook(kwargs, call_type))


HELLO: list[Any] = [{"role": "user", "content": "Hi."}]


@pytest.mark.parametrize(
    ("settings", "arguments", "name"),
    [
        ({"session_id": "mine"}, {"litellm_session_id": "theirs"}, "mine"),
        ({"session_id": lambda kwargs: kwargs["user"]}, {"user": "ann"}, "ann"),
        ({}, {"litellm_session_id": "theirs"}, "theirs"),
        ({}, {"metadata": {"session_id": "in metadata"}}, "in metadata"),
    ],
)
def test_who_names_the_session(settings: dict[str, Any], arguments: dict[str, Any], name: str) -> None:
    manager = CompactManager()
    hook(CompactionLogger(manager, **settings), messages=HELLO, **arguments)
    assert [session.session_id for session in manager.sessions()] == [name]


def test_other_kinds_of_calls_are_left_alone() -> None:
    """Embeddings, images and whatever comes next."""
    sink = RecordingSink()
    assert hook(CompactionLogger(CompactManager(on_event=sink)), "aembedding", input=["text"]) is None
    assert not sink.events


def test_messages_that_the_hook_is_not_shown_are_told() -> None:
    """LiteLLM passes on keyword arguments only; whoever writes the messages second would never know."""
    sink = RecordingSink()
    compacting = CompactionLogger(CompactManager(on_event=sink))
    assert hook(compacting, model="m") is None
    assert hook(compacting, model="m") is None
    (notice,) = sink.of(NoticeEvent)
    assert "messages=" in notice.message
    assert notice.severity == "high"


def test_a_failure_lets_the_request_out_as_it_is_unless_strict() -> None:
    sink = RecordingSink()
    manager = CompactManager(on_event=sink)
    messages: list[Any] = [{**HELLO[0], "meta": {"protected": True}}, {"role": "nobody"}]
    expected = [*HELLO, {"role": "nobody"}]
    changed = hook(CompactionLogger(manager, session_id="s"), messages=messages)
    assert changed is not None
    assert changed["messages"] == expected
    assert CompactionLogger(manager, session_id="s").prepare(messages=messages)["messages"] == expected
    assert [event.error_type for event in sink.of(CompactionErrorEvent)] == ["InvalidHistory"] * 2
    with pytest.raises(Exception, match="unknown role 'nobody'"):
        hook(CompactionLogger(manager, strict=True), messages=messages)


def test_late_usage_of_an_older_request_is_not_taken_in() -> None:
    """It would be compared with a prompt that it was not about."""
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(max_context_tokens=4_000), on_event=sink)
    compacting = CompactionLogger(manager, session_id="s")
    history = tool_run(3, words=350)
    hook(compacting, messages=history, litellm_call_id="first")
    hook(compacting, messages=[*history, *HELLO], litellm_call_id="second")
    late = ModelResponse()
    late.usage = Usage(prompt_tokens=3_600, completion_tokens=1, total_tokens=3_601)  # pyright: ignore
    compacting.log_success_event({"litellm_call_id": "first"}, late, None, None)
    assert [call.tokens_reported for call in manager.model_calls("s")] == [None, None]
    compacting.log_success_event({"litellm_call_id": "second"}, late, None, None)
    assert [call.tokens_reported for call in manager.model_calls("s")] == [None, 3_600]
    hook(compacting, messages=[*history, *HELLO, *HELLO], litellm_call_id="third")
    assert len(sink.of(CompactionCompletedEvent)) == 1


# -- the seam itself ----------------------------------------------------------------------------------------------


def test_the_hooks_are_as_the_package_has_them() -> None:
    """If a release changes a hook, this says so before a user does."""
    assert importlib.metadata.version("litellm") in SpecifierSet(SUPPORTED_VERSIONS)
    for name in (
        "async_pre_call_deployment_hook",
        "async_post_call_success_deployment_hook",
        "async_log_success_event",
        "log_success_event",
    ):
        ours, theirs = getattr(CompactionLogger, name), getattr(CustomLogger, name)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
