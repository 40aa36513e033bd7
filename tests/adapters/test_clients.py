"""Wrapped clients against servers as strict as the providers: many turns each, nothing refused, nothing changed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from google import genai
from openai import AsyncAzureOpenAI, AsyncOpenAI, BadRequestError, OpenAI
from pydantic import BaseModel

import compact
from adapters import client_loops
from adapters.client_loops import CHAT_TOOL, CLAUDE, GEMMA, GPT, Loop, events, got
from adapters.enforced_window import TURNS, Register, enforced
from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, NoticeEvent, TokenEstimateEvent
from compact.core.errors import ConfigError
from compact.testing import RecordingSink, ScriptedModel, call_tool, fail, say, say_json
from stalls import stall_limit, watched_loop

ALL_TURNS = range(1, TURNS + 1)
WINDOW, REGISTER = 8_192, 24_000
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


def client_of(kind: str, server: ScriptedModel, *, in_loop: bool) -> Any:
    """A client of a provider, as its users make it."""
    url = server.anthropic_url
    if kind == "google":
        return genai.Client(api_key="any", http_options={"base_url": url})
    if kind == "anthropic":
        return (AsyncAnthropic if in_loop else Anthropic)(base_url=url, api_key="any")
    return (AsyncOpenAI if in_loop else OpenAI)(base_url=server.base_url, api_key="any")


def called(client: Any, *, in_loop: bool) -> Any:
    """What the calls are made on: google-genai has one client for both."""
    return client.aio if in_loop and isinstance(client, genai.Client) else client


LOOPS: Any = [
    pytest.param("openai", client_loops.chat, GPT, id="chat"),
    pytest.param("openai", client_loops.responses, GPT, id="responses"),
    pytest.param("anthropic", client_loops.messages, CLAUDE, id="anthropic"),
    pytest.param("google", client_loops.contents, GEMMA, id="google"),
]


@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("kind", "loop", "model"), LOOPS)
def test_many_turns(kind: str, loop: Loop, model: str, in_loop: bool) -> None:
    """Every other one streamed: nothing is refused, it was compacted, and the count of each prompt was taken in."""
    told = None if model == GPT else WINDOW
    with enforced(WINDOW, counted_as=GPT, register_tokens=REGISTER, told_window=told) as run:
        client = compact.wrap(client_of(kind, run.model, in_loop=in_loop), run.manager, session_id="s")
        asyncio.run(loop(called(client, in_loop=in_loop), run.register, ALL_TURNS))
        _check(run, model)


def _check(run: Any, model: str) -> None:
    assert not run.model.rejections, run.model.rejections[:3]
    assert len(run.model.requests) == 2 * TURNS
    assert not run.sink.of(CompactionErrorEvent)
    assert not [event.message for event in run.sink.of(NoticeEvent) if event.severity == "high"]
    assert run.sink.of(CompactionCompletedEvent), "everything fitted"
    calls = run.manager.model_calls("s")
    assert [call.tokens_reported for call in calls] == [request.prompt_tokens for request in run.model.requests]
    parts = run.manager.status("s").parts
    assert parts["tools"].tokens
    assert {event.model for event in run.sink.of(TokenEstimateEvent)} == {model}


# -- what a caller sees ----------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Generator[ScriptedModel]:
    with ScriptedModel(say("The hold was full of salt, and the wind came from the north.")) as scripted:
        yield scripted


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def manager(sink: RecordingSink) -> Generator[CompactManager]:
    with CompactManager(CompactConfig(telemetry={"exporter": "none"}), on_event=sink) as made:
        yield made


HELLO: Any = [{"role": "user", "content": "Say where the wind is from."}]
CHAT: Any = {"model": "gpt-4o", "messages": HELLO}


async def streams_of(client: Any, kind: str) -> list[list[Any]]:
    """Every stream of a client: what a caller sees of each, event by event."""
    contents = [{"role": "user", "parts": [{"text": "Say where the wind is from."}]}]
    if kind == "google":
        made = [client.models.generate_content_stream(model=GEMMA, contents=contents)]
    elif kind == "anthropic":
        asked: Any = {"model": CLAUDE, "max_tokens": 100, "messages": HELLO}
        made = [client.messages.create(stream=True, **asked), client.beta.messages.create(stream=True, **asked)]
    else:
        usage = {"include_usage": True}
        made = [
            client.chat.completions.create(stream=True, **CHAT),
            client.chat.completions.create(stream=True, stream_options=usage, **CHAT),
            client.responses.create(model="gpt-4o", input=HELLO, stream=True),
        ]
    return [[event.model_dump() for event in await events(await got(one))] for one in made]


@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", ["openai", "anthropic", "google"])
def test_a_stream_is_the_one_that_was_sent(kind: str, in_loop: bool, manager: CompactManager) -> None:
    """Every event, in order, with every field, also with and without the usage that OpenAI must be asked for."""

    async def seen(wrapped: bool) -> list[list[Any]]:
        with ScriptedModel(say("The hold was full of salt.")) as server:
            client = client_of(kind, server, in_loop=in_loop)
            client = compact.wrap(client, manager) if wrapped else client
            found = await streams_of(called(client, in_loop=in_loop), kind)
            assert not server.rejections
            return [[_without_headers(event) for event in one] for one in found]

    one, other = asyncio.run(seen(True)), asyncio.run(seen(False))
    assert one == other
    assert all(len(stream) > 5 for stream in one)


def _without_headers(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "sdk_http_response"}  # has the time of day


def test_usage_is_not_asked_for_on_its_own(server: ScriptedModel, manager: CompactManager) -> None:
    """OpenAI reports none in a stream unless it is asked to: the caller would get a chunk that it did not order."""
    client = compact.wrap(OpenAI(base_url=server.base_url, api_key="any"), manager, session_id="s")
    assert list(client.chat.completions.create(stream=True, **CHAT))
    assert "stream_options" not in server.requests[-1].body
    assert manager.model_calls("s")[-1].tokens_reported is None


class Wind(BaseModel):
    """What a model is asked to fill in."""

    quarter: str


@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_helpers_of_the_sdk(in_loop: bool, manager: CompactManager) -> None:
    """`parse`, `stream` and raw responses of both APIs are requests like others, with their usage."""

    async def main() -> None:
        with ScriptedModel(say_json({"quarter": "north"})) as server:
            made = (AsyncOpenAI if in_loop else OpenAI)(base_url=server.base_url, api_key="any")
            client: Any = compact.wrap(made, manager, session_id="s")
            completions, usage = client.chat.completions, {"include_usage": True}
            parsed = await got(completions.parse(response_format=Wind, **CHAT))
            assert parsed.choices[0].message.parsed == Wind(quarter="north")
            taken(server, 1)
            answer = await got(client.responses.parse(model="gpt-4o", input=HELLO, text_format=Wind))
            assert answer.output_parsed == Wind(quarter="north")
            taken(server, 2)
            final = await _streamed(completions.stream(response_format=Wind, stream_options=usage, **CHAT))
            assert (await got(final.get_final_completion())).choices[0].message.parsed == Wind(quarter="north")
            taken(server, 3)
            final = await _streamed(client.responses.stream(model="gpt-4o", input=HELLO, text_format=Wind))
            assert (await got(final.get_final_response())).output_parsed == Wind(quarter="north")
            taken(server, 4)
            raw = await got(completions.with_raw_response.create(**CHAT))
            assert raw.parse().choices[0].message.content == '{"quarter": "north"}'
            assert raw.headers["content-type"] == "application/json"
            taken(server, 5)
            assert not server.rejections

    def taken(server: ScriptedModel, calls: int) -> None:
        reported = [call.tokens_reported for call in manager.model_calls("s")]
        assert reported == [request.prompt_tokens for request in server.requests]
        assert len(reported) == calls

    asyncio.run(main())


async def _streamed(opened: Any) -> Any:
    """Read a stream that is opened by `with` to its end."""
    if hasattr(opened, "__aenter__"):
        async with opened as stream:
            assert await events(stream)
            return stream
    with opened as stream:
        assert list(stream)
        return stream


# -- the client ------------------------------------------------------------------------------------------------------


def test_a_wrapped_client_is_one_of_its_kind(server: ScriptedModel, manager: CompactManager) -> None:
    """Of the same class, with the same settings, and what is made from it compacts too; the other is as it was."""
    own = OpenAI(base_url=server.base_url, api_key="any", timeout=7, default_headers={"X-Team": "salt"})
    before = dict(vars(own))
    client = compact.wrap(own, manager, session_id="s")
    assert isinstance(client, OpenAI)
    assert type(client).__name__ == "OpenAI"
    assert (client.timeout, client.api_key, client.base_url) == (7, "any", own.base_url)
    client.with_options(max_retries=0).chat.completions.create(**CHAT)
    assert server.requests[-1].headers["x-team"] == "salt"
    assert len(manager.model_calls("s")) == 1
    assert [model.id for model in client.models.list()] == ["scripted-model"]
    assert vars(own) == before
    own.chat.completions.create(**CHAT)
    assert len(manager.model_calls("s")) == 1


def test_azure_is_a_client_of_openai(manager: CompactManager) -> None:
    client = compact.wrap(
        AsyncAzureOpenAI(api_key="any", api_version="1", azure_endpoint="http://127.0.0.1:1"), manager
    )
    assert isinstance(client, AsyncAzureOpenAI)


def test_a_google_client_stays_open(server: ScriptedModel, manager: CompactManager) -> None:
    """Nobody else holds the client that was passed in, which closes its connections when it is no longer used."""
    options: Any = {"base_url": server.anthropic_url}
    own = genai.Client(api_key="any", http_options=options)
    for client in (compact.wrap(genai.Client(api_key="any", http_options=options), manager), own):
        gc.collect()
        answer = client.models.generate_content(model=GEMMA, contents="Say where the wind is from.")
        assert answer.text
        assert isinstance(client, genai.Client)
    wrapped = compact.wrap(own, manager)
    chat = wrapped.chats.create(model=GEMMA)
    assert chat.send_message("And now?").text
    del wrapped, chat
    gc.collect()
    assert own.models.generate_content(model=GEMMA, contents="Still there?").text


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (object(), "builtins.object is not a client"),
        (OpenAI, "not the class openai.OpenAI"),
        (OpenAI(api_key="any").chat, "openai.resources.chat.chat.Chat"),
        (Anthropic(api_key="any").messages, "anthropic.resources"),
        ("gpt-4o", "builtins.str"),
    ],
)
def test_another_client_is_refused_by_name(client: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        compact.wrap(client)
    assert error.value.hint


def test_a_manager_is_made_where_none_is_given(server: ScriptedModel) -> None:
    client = compact.wrap(OpenAI(base_url=server.base_url, api_key="any"))
    assert client.chat.completions.create(**CHAT).choices[0].message.content


# -- sessions --------------------------------------------------------------------------------------------------------


def test_the_session_of_a_call(server: ScriptedModel, manager: CompactManager) -> None:
    """By the header, which is not sent on; by a function of the body; or by how the history continues."""
    own = OpenAI(base_url=server.base_url, api_key="any")
    named = compact.wrap(own, manager, session_id=lambda body: f"of-{body['user']}")
    named.chat.completions.create(user="anna", **CHAT)
    named.chat.completions.create(user="anna", extra_headers={"X-Compact-Session": "voyage"}, **CHAT)
    assert "x-compact-session" not in server.requests[-1].headers
    google = compact.wrap(genai.Client(api_key="any", http_options={"base_url": server.anthropic_url}), manager)
    asked: Any = {"model": GEMMA, "contents": "Where from?"}
    google.models.generate_content(config={"http_options": {"headers": {"X-Compact-Session": "north"}}}, **asked)
    assert "x-compact-session" not in server.requests[-1].headers
    assert {info.session_id for info in manager.sessions()} == {"of-anna", "voyage", "north"}
    unnamed, history = compact.wrap(own, manager), list(HELLO)
    for _ in range(3):
        answer = unnamed.chat.completions.create(model="gpt-4o", messages=history).choices[0].message
        history += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "And then?"}]
    (found,) = [info for info in manager.sessions() if info.session_id.startswith("openai-")]
    assert found.model_calls == 3


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_history_that_the_provider_keeps_is_left_alone(
    key: str, server: ScriptedModel, manager: CompactManager, sink: RecordingSink
) -> None:
    client = compact.wrap(OpenAI(base_url=server.base_url, api_key="any"), manager, session_id="s")
    for _ in range(3):
        kept: Any = {key: "resp_1"}
        client.responses.create(model="gpt-4o", input="And then?", **kept)
    assert server.requests[-1].body == {"model": "gpt-4o", "input": "And then?", key: "resp_1"}
    (notice,) = sink.of(NoticeEvent)
    assert key in notice.message
    assert not manager.sessions()


# -- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_does_not_stop_the_call(server: ScriptedModel, manager: CompactManager, sink: RecordingSink) -> None:
    """The request goes out as it is, without our marks, and an event says why."""

    def fails(body: Any) -> str:
        raise LookupError("no such user")

    client = compact.wrap(OpenAI(base_url=server.base_url, api_key="any"), manager, session_id=fails)
    marked: Any = [{**HELLO[0], "meta": {"protected": True}}]
    assert client.chat.completions.create(model="gpt-4o", messages=marked).choices
    assert server.requests[-1].body["messages"] == HELLO
    (error,) = sink.of(CompactionErrorEvent)
    assert error.message == "no such user"


def test_errors_of_the_provider_are_the_callers(manager: CompactManager) -> None:
    """They are raised as the SDK raises them; a retry sends the same bytes, and is one call of the session."""
    with ScriptedModel(fail(503, retry_after=0.01), say("Salt."), fail(400, "no")) as server:
        client = compact.wrap(OpenAI(base_url=server.base_url, api_key="any"), manager, session_id="s")
        assert client.chat.completions.create(**CHAT).choices[0].message.content == "Salt."
        assert server.requests[0].body == server.requests[1].body
        assert len(manager.model_calls("s")) == 1
        with pytest.raises(BadRequestError):
            client.chat.completions.create(**CHAT)


# -- many at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loop", "model"), LOOPS)
def test_twenty_at_once(kind: str, loop: Loop, model: str) -> None:
    """Twenty conversations in one event loop: none waits for another, and the loop never stalls."""
    pages = range(1, 5)
    register = Register(60 * 4_500)

    def step(request: Any) -> Any:
        page = 1 + sum(f"Read page {number} " in request.prompt for number in pages[1:])
        is_answered = f"Page {page}, line 0:" in request.asked or _is_result(request.body)
        return say(f"Page {page} is read.") if is_answered else call_tool(TOOL_NAME, f"call_{page}", page=page)

    async def converse(client: Any, number: int) -> None:
        # One after the other, because the SDKs themselves take their time before they let go of the loop.
        await asyncio.sleep(number * 0.05)
        await loop(called(client, in_loop=True), register, pages, name=f"I am {number}.")

    async def main() -> None:
        client = compact.wrap(client_of(kind, server, in_loop=True), manager)
        await converse(client, 0)  # SDKs read their own types at the first call
        async with watched_loop() as longest:
            await asyncio.gather(*(converse(client, number) for number in range(1, 21)))
        assert longest.seconds < stall_limit(), f"the loop stood still for {longest.seconds:.2f} s"

    config = CompactConfig(telemetry={"exporter": "none"}, max_context_tokens=WINDOW)
    sink = RecordingSink()
    with (
        ScriptedModel(step, window_tokens=WINDOW + 4_000) as server,
        CompactManager(config, on_event=sink) as manager,
    ):
        asyncio.run(main())
        assert not server.rejections, server.rejections[:2]
        assert len(server.requests) == 21 * 2 * len(pages)
        assert not sink.of(CompactionErrorEvent)
        assert len(manager.sessions()) == 21
        compacted = {event.session_id for event in sink.of(CompactionCompletedEvent)}
        assert len(compacted) == 21


TOOL_NAME = CHAT_TOOL["function"]["name"]


def _is_result(body: Any) -> bool:
    """Return True if the last thing in a request is the result of a tool."""
    last = (body.get("messages") or body.get("input") or body.get("contents"))[-1]
    return any(
        word in str(last) for word in ("tool_call_id", "function_call_output", "tool_result", "functionResponse")
    )
