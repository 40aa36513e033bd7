"""The scripted model, asked by the providers' own clients: it rejects what they reject and fails as they fail."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.testing import (
    ReceivedRequest,
    ScriptedAnswer,
    ScriptedModel,
    assistant,
    cut,
    echo,
    empty,
    fail,
    held,
    malformed,
    overlong,
    refuse,
    say,
    say_json,
    slow,
    system,
    think,
    tool_exchange,
    truncated,
    user,
    wrong_type,
)

openai: Any = pytest.importorskip("openai", reason="pip install 'compact-context[openai]'")
anthropic: Any = pytest.importorskip("anthropic", reason="pip install 'compact-context[anthropic]'")

HELLO = [user("hello")]


# Made once: a client takes longer to make than all its requests to loopback.
OPENAI = openai.OpenAI(base_url="http://127.0.0.1", api_key="sk-test", max_retries=0, timeout=10)
ANTHROPIC = anthropic.Anthropic(base_url="http://127.0.0.1", api_key="sk-test", max_retries=0, timeout=10)


def ask_openai(server: ScriptedModel, /, **body: Any) -> Any:
    """One chat completion through the real client, without its retries."""
    client = OPENAI.with_options(base_url=server.base_url)
    return client.chat.completions.create(**{"model": "m", "messages": HELLO, **body})


def ask_anthropic(server: ScriptedModel, /, **body: Any) -> Any:
    """One message through the real client, without its retries."""
    client = ANTHROPIC.with_options(base_url=server.anthropic_url)
    return client.messages.create(**{"model": "m", "max_tokens": 100, "messages": HELLO, **body})


def post(url: str, payload: bytes, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """A request that no client would send: status, and the JSON that came back."""
    try:
        with urlopen(Request(url, payload, headers or {}), timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A server that is well."""
    with ScriptedModel(say("fine")) as started:
        yield started


# -- answers -----------------------------------------------------------------------------------------------------------


def test_a_script_is_followed_and_its_last_step_repeats() -> None:
    """One step for each request, whoever asks."""
    with ScriptedModel(say("one"), say_json({"two": ["ü"]}), say("three")) as model:
        texts = [ask_openai(model).choices[0].message.content for _ in range(2)]
        texts += [ask_anthropic(model).content[0].text for _ in range(2)]
    assert texts == ["one", '{"two": ["ü"]}', "three", "three"]


def test_a_function_answers_by_the_request() -> None:
    """A step may be computed from the body that arrived."""

    def reply(request: ReceivedRequest) -> ScriptedAnswer:
        return say(f"{request.number}: {request.body['temperature']} {request.asked}")

    with ScriptedModel(say("first"), reply) as model:
        ask_openai(model)
        answer = ask_openai(model, temperature=0.5, messages=[system("S"), user("why?"), assistant("so")])
    assert answer.choices[0].message.content == "2: 0.5 why?"


def test_answers_carry_usage_and_the_model_that_was_asked(model: ScriptedModel) -> None:
    """Tokens in and out, counted by the server's own rule."""
    messages = [system("Be short."), user("How are you today?")]
    chat = ask_openai(model, messages=messages)
    assert (chat.model, chat.choices[0].finish_reason) == ("m", "stop")
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens, chat.usage.total_tokens) == (16, 1, 17)
    message = ask_anthropic(model, system="Be short.", messages=messages[1:])
    assert (message.usage.input_tokens, message.usage.output_tokens, message.stop_reason) == (16, 1, "end_turn")


def test_requests_are_recorded_and_keys_are_not(model: ScriptedModel) -> None:
    """What was sent can be read afterwards; the key is masked."""
    ask_openai(model, seed=42)
    ask_anthropic(model, system="Be short.")
    first, second = model.requests
    assert (first.api, first.path, first.body["seed"]) == ("openai", "/v1/chat/completions", 42)
    assert (second.api, second.path, second.prompt) == ("anthropic", "/v1/messages", "Be short.\nhello")
    assert first.headers["authorization"] == second.headers["authorization"] == "***"
    assert "sk-test" not in repr(model.requests)
    assert model.rejections == ()


def test_the_key_of_older_anthropic_clients_is_masked_too() -> None:
    """They send it in a header of its own."""
    with ScriptedModel(say("in"), api_key="sk-right") as model:
        body = json.dumps({"model": "m", "max_tokens": 5, "messages": HELLO}).encode()
        status, _ = post(
            f"{model.base_url}/messages", body, {"x-api-key": "sk-right", "anthropic-version": "2023-06-01"}
        )
        assert (status, model.requests[0].headers["x-api-key"]) == (200, "***")


def test_models_are_listed(model: ScriptedModel) -> None:
    """GET /v1/models, as clients use it to find out who is there."""
    client = OPENAI.with_options(base_url=model.base_url)
    assert [entry.id for entry in client.models.list()] == ["scripted-model"]


def test_many_clients_at_once_each_get_their_step() -> None:
    """Steps are handed out once, whoever comes first."""
    with ScriptedModel(*(say(str(number)) for number in range(24))) as model, ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: ask_openai(model).choices[0].message.content, range(24))
        assert sorted(answers, key=int) == [str(number) for number in range(24)]


# -- answers that a summariser must not trust --------------------------------------------------------------------------


def test_refusals_come_in_three_forms() -> None:
    """In the field made for it, by a filter without a word, or only in words."""
    with ScriptedModel(refuse(), refuse(by="filter"), refuse("I cannot.", by="text")) as model:
        field, filtered, plain = (ask_openai(model).choices[0] for _ in range(3))
    assert (field.message.content, field.finish_reason) == (None, "stop")
    assert field.message.refusal == "I'm sorry, but I can't help with that."
    assert (filtered.message.content, filtered.message.refusal, filtered.finish_reason) == (
        None,
        None,
        "content_filter",
    )
    assert (plain.message.content, plain.message.refusal, plain.finish_reason) == ("I cannot.", None, "stop")


def test_anthropic_refuses_by_its_stop_reason() -> None:
    """No text, and a reason of its own."""
    with ScriptedModel(refuse(), refuse(by="filter")) as model:
        answers = [ask_anthropic(model) for _ in range(2)]
    assert [(answer.content, answer.stop_reason) for answer in answers] == [([], "refusal")] * 2


def test_empty_answers_are_empty() -> None:
    """An empty string, null, and for Anthropic no block at all."""
    with ScriptedModel(empty(), empty(null=True), empty()) as model:
        assert [ask_openai(model).choices[0].message.content for _ in range(2)] == ["", None]
        assert ask_anthropic(model).content == []


def test_an_answer_is_cut_at_the_limit_as_the_provider_would() -> None:
    """A long answer ends with `length` where max_tokens says, and says so."""
    with ScriptedModel(truncated("half an"), overlong(5_000)) as model:
        assert ask_openai(model).choices[0].finish_reason == "length"
        chat = ask_openai(model, max_tokens=7)
        message = ask_anthropic(model, max_tokens=9)
        assert len((ask_openai(model).choices[0].message.content).split()) == 5_000
    assert (chat.choices[0].message.content.split(), chat.choices[0].finish_reason) == (["word"] * 7, "length")
    assert (message.content[0].text.split(), message.stop_reason) == (["word"] * 9, "max_tokens")
    assert (chat.usage.completion_tokens, message.usage.output_tokens) == (7, 9)


def test_a_thinking_model_with_a_small_limit_says_nothing() -> None:
    """All tokens go into thoughts, the text stays empty; with room for both it speaks."""
    with ScriptedModel(think(500, "the summary")) as model:
        silent = ask_openai(model, max_completion_tokens=400)
        spoken = ask_openai(model, max_completion_tokens=600)
        unlimited = ask_openai(model)
        assert ask_anthropic(model, max_tokens=400).stop_reason == "max_tokens"
    assert (silent.choices[0].message.content, silent.choices[0].finish_reason) == ("", "length")
    assert silent.usage.completion_tokens_details.reasoning_tokens == 400
    assert spoken.choices[0].message.content == unlimited.choices[0].message.content == "the summary"
    assert spoken.usage.completion_tokens == 502


def test_an_echo_is_the_last_user_message() -> None:
    """A model that repeats its prompt instead of working on it."""
    with ScriptedModel(echo()) as model:
        messages = [system("Summarise."), user("a long history\nof two lines")]
        assert ask_openai(model, messages=messages).choices[0].message.content == "a long history\nof two lines"
        assert ask_anthropic(model).content[0].text == "hello"


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "openai_error", "anthropic_error"),
    [
        (401, openai.AuthenticationError, anthropic.AuthenticationError),
        (403, openai.PermissionDeniedError, anthropic.PermissionDeniedError),
        (404, openai.NotFoundError, anthropic.NotFoundError),
        (429, openai.RateLimitError, anthropic.RateLimitError),
        (500, openai.InternalServerError, anthropic.InternalServerError),
        (503, openai.InternalServerError, anthropic.InternalServerError),
    ],
)
def test_http_errors_are_the_clients_own(status: int, openai_error: Any, anthropic_error: Any) -> None:
    """Each status arrives as the exception that the client has for it, with our message in its body."""
    with ScriptedModel(fail(status, "scripted trouble")) as model:
        with pytest.raises(openai_error, match="scripted trouble") as from_openai:
            ask_openai(model)
        with pytest.raises(anthropic_error, match="scripted trouble") as from_anthropic:
            ask_anthropic(model)
    assert from_openai.value.status_code == from_anthropic.value.status_code == status
    assert from_anthropic.value.body["type"] == "error"
    assert from_openai.value.body["message"] == "scripted trouble"


def test_retry_after_is_obeyed_by_the_client_itself() -> None:
    """A 429 with a pause, then an answer: the client waits and asks again."""
    with ScriptedModel(fail(429, retry_after=0.3), say("now")) as model:
        started = time.monotonic()
        client = OPENAI.with_options(base_url=model.base_url, max_retries=1)
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
        assert answer.choices[0].message.content == "now"
        assert time.monotonic() - started >= 0.3
        assert len(model.requests) == 2


def test_the_code_of_an_error_can_be_chosen() -> None:
    """Clients and gateways tell errors apart by code."""
    with ScriptedModel(fail(400, code="content_filter")) as model, pytest.raises(openai.BadRequestError) as error:
        ask_openai(model)
    assert error.value.code == "content_filter"


@pytest.mark.parametrize("step", [cut(), malformed()], ids=["cut", "malformed"])
def test_broken_bodies_are_no_answers(step: Any) -> None:
    """A connection that breaks, and JSON that is none, come out of the client as errors."""
    with ScriptedModel(step) as model:
        with pytest.raises((openai.OpenAIError, ValueError)):
            ask_openai(model)
        with pytest.raises((anthropic.AnthropicError, ValueError)):
            ask_anthropic(model)
        assert len(model.requests) == 2


def test_a_page_of_html_is_no_completion() -> None:
    """The client hands such a page on as it is; it has no choices."""
    with ScriptedModel(wrong_type()) as model:
        assert not hasattr(ask_openai(model), "choices")


def test_slow_steps_take_their_time_and_close_does_not() -> None:
    """A client that does not wait is counted, and stopping the server does not wait either."""
    with ScriptedModel(slow(0.3, say("late")), slow(60, say("never"))) as model:
        started = time.monotonic()
        assert ask_openai(model).choices[0].message.content == "late"
        assert time.monotonic() - started >= 0.3
        with pytest.raises(openai.APITimeoutError):
            ask_openai(model, timeout=0.2)
        assert model.hangups == 0, "the server still sleeps"
        started = time.monotonic()
    assert time.monotonic() - started < 5


def test_a_client_that_left_is_counted() -> None:
    """The server notices when nobody is there to take the answer."""
    with ScriptedModel(slow(0.5, say("late"))) as model:
        with pytest.raises(openai.APITimeoutError):
            ask_openai(model, timeout=0.1)
        assert model.wait_for(hangups=1)


def test_a_held_step_waits_for_the_test() -> None:
    """No sleeping in tests: the answer comes when it is let go."""
    release = threading.Event()
    with ScriptedModel(held(release, say("let go"))) as model, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(ask_openai, model)
        assert model.wait_for(requests=1)
        assert not pending.done()
        release.set()
        assert pending.result(10).choices[0].message.content == "let go"
        assert not model.wait_for(requests=2, timeout_seconds=0.01)


def test_a_script_that_fails_is_not_taken_for_a_sick_model() -> None:
    """The client sees a 500; the test sees its own mistake when the server stops."""
    model = ScriptedModel(lambda request: say(request.body["no such field"]))
    with pytest.raises(openai.InternalServerError):
        ask_openai(model)
    with pytest.raises(RuntimeError, match="no such field"):
        model.close()


def test_a_script_has_a_step() -> None:
    """An empty script is a mistake, and says how to mend it."""
    with pytest.raises(ValueError, match="hint: ScriptedModel"):
        ScriptedModel()


# -- what the providers reject -----------------------------------------------------------------------------------------

CALL, RESULT = tool_exchange("c1", "data")
TEXT = {"type": "text", "text": "x"}
OLDER = {"extra_headers": {"anthropic-version": "2023-06-01"}}
NULL = {"role": "assistant", "content": None}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model": ""}, None, "model"),
        ({"messages": []}, "empty_array", "empty array"),
        ({"messages": "hello"}, "invalid_type", "array"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "'robot'"),
        ({"messages": [{"role": "user", "content": None}]}, "invalid_type", "null"),
        ({"messages": [{"role": "user", "content": []}]}, "empty_array", "empty array"),
        ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "invalid_value", "smell"),
        ({"messages": [user("x"), NULL]}, "invalid_type", "null"),
        ({"messages": [{**user("x"), "meta": {}}]}, "unknown_parameter", "meta"),
        ({"messages": [user("x"), RESULT]}, None, "'tool' must be a response"),
        ({"messages": [user("x"), CALL]}, None, "c1"),
        ({"messages": [user("x"), CALL, user("y"), RESULT]}, None, "c1"),
        ({"messages": [{**NULL, "tool_calls": []}]}, "invalid_type", "null"),
        ({"messages": [{**NULL, "tool_calls": ["c1"]}]}, "missing_required_parameter", "tool_calls"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "invalid_parameter_combination", "same time"),
        ({"max_tokens": 0}, "integer_below_min_value", "max_tokens"),
        ({"temperature": -0.1}, "decimal_below_min_value", "temperature"),
        ({"temperature": 2.1}, "decimal_above_max_value", "temperature"),
        ({"temperature": "cold"}, "invalid_type", "temperature"),
        ({"seed": "42"}, "invalid_type", "seed"),
        ({"response_format": {"type": "yaml"}}, "invalid_value", "json_object"),
        ({"response_format": {"type": "json_object"}}, None, "the word 'json'"),
        ({"response_format": {"type": "json_schema"}}, "missing_required_parameter", "name"),
        ({"extra_body": {"top_k": 1}}, "unknown_parameter", "top_k"),
    ],
)
def test_openai_rejects(model: ScriptedModel, body: dict[str, Any], code: str | None, words: str) -> None:
    """A 400 with OpenAI's code, and no step of the script is taken."""
    with pytest.raises(openai.BadRequestError, match=words) as error:
        ask_openai(model, **body)
    assert error.value.code == code
    assert len(model.rejections) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [system("x")]}, "top-level `system`"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "'user' or 'assistant'"),
        ({"messages": [assistant("x"), user("y")]}, "first message"),
        ({"messages": [user("")]}, "non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, "non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "smell"),
        ({"messages": [user("x"), assistant("y ")]}, "trailing whitespace"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]}, "t1"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"extra_body": {"temperature": 0}}, "temperature: Extra inputs"),
        ({"extra_body": {"top_k": 1}}, "top_k: Extra inputs"),
        ({"messages": [user("x"), {"role": "assistant", "content": [{"type": "document"}]}]}, "document"),
        ({"messages": [{"role": "user", "content": [{**TEXT, "citations": [{"cited_text": "x"}]}]}]}, "citations"),
        ({"extra_body": {"seed": 42}}, "seed: Extra inputs"),
        ({"extra_body": {"max_tokens": None}}, "max_tokens: Field required"),
        ({"extra_body": {"model": None}}, "model: Field required"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "budget_tokens"),
        ({"extra_headers": {"anthropic-version": ""}}, "anthropic-version: header is required"),
        ({"extra_headers": {"anthropic-version": "2020-01-01"}}, "not a valid version"),
        ({**OLDER, "extra_body": {"temperature": 1.5}}, "range: 0..1"),
    ],
)
def test_anthropic_rejects(model: ScriptedModel, body: dict[str, Any], words: str) -> None:
    """A 400 in Anthropic's shape."""
    with pytest.raises(anthropic.BadRequestError, match=words) as error:
        ask_anthropic(model, **body)
    assert error.value.body["error"]["type"] == "invalid_request_error"
    assert len(model.rejections) == 1


def test_anthropic_wants_every_call_answered_at_once(model: ScriptedModel) -> None:
    """A tool_use without its tool_result in the next message is no legal history; with it, it is."""
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "data"}]}
    for broken in ([user("x"), call], [user("x"), call, user("y")], [user("x"), call, user("y"), result]):
        with pytest.raises(anthropic.BadRequestError, match="t1"):
            ask_anthropic(model, messages=broken)
    assert ask_anthropic(model, messages=[user("x"), call, result]).stop_reason == "end_turn"


def test_the_older_anthropic_version_takes_a_temperature(model: ScriptedModel) -> None:
    """What the current version rejects, the one before takes."""
    assert ask_anthropic(model, **OLDER, extra_body={"temperature": 0}).content[0].text == "fine"


def test_whole_tool_exchanges_are_taken(model: ScriptedModel) -> None:
    """Calls with all their results, text parts, null content beside calls."""
    parts = {"role": "user", "content": [{"type": "text", "text": "ScriptedAnswer in JSON."}]}
    messages = [system("x"), parts, CALL, RESULT, assistant("done"), user("")]
    answer = ask_openai(model, messages=messages, response_format={"type": "json_object"}, temperature=0, seed=1)
    assert answer.choices[0].message.content == "fine"


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'{"model": NaN}', b"\xff"])
def test_a_body_that_is_no_json_object_is_rejected(model: ScriptedModel, payload: bytes) -> None:
    """Nothing to parse, nothing to record."""
    status, answer = post(f"{model.base_url}/chat/completions", payload)
    assert (status, model.requests) == (400, ())
    assert "could not parse" in answer["error"]["message"]


def test_unknown_places_are_not_found(model: ScriptedModel) -> None:
    """A wrong base URL is noticed, not answered."""
    client = OPENAI.with_options(base_url=model.anthropic_url)
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        client.models.list()


def test_the_window_holds_prompt_and_answer() -> None:
    """What does not fit is rejected in the words by which clients recognise it; what fits is cut at its end."""
    with ScriptedModel(overlong(500), window_tokens=100) as model:
        long = [user("word " * 97)]
        with pytest.raises(openai.BadRequestError, match="maximum context length is 100") as error:
            ask_openai(model, messages=long)
        assert error.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match=r"\(5 in the messages, 96 in the completion\)"):
            ask_openai(model, max_tokens=96)
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 101 tokens > 100 maximum"):
            ask_anthropic(model, messages=long)
        with pytest.raises(anthropic.BadRequestError, match=r"5 \+ 96 > 100"):
            ask_anthropic(model, max_tokens=96)
        fits = ask_openai(model)
    assert (fits.choices[0].finish_reason, fits.usage.total_tokens) == ("length", 100)


def test_the_counter_can_be_replaced() -> None:
    """Tests that reckon in words get a server that does."""
    with ScriptedModel(say("a b c"), count=lambda text: len(text.split()), window_tokens=10) as model:
        assert ask_openai(model, messages=[user("two words")], max_tokens=2).choices[0].message.content.split() == [
            "a",
            "b",
        ]
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            ask_openai(model, messages=[user("w " * 7)])


def test_a_key_is_needed_when_one_is_set() -> None:
    """Another key, and none, get a 401 in each provider's shape."""
    with ScriptedModel(say("in"), api_key="sk-right") as model:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key") as error:
            ask_openai(model)
        assert error.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError, match="didn't provide"):
            ask_openai(model, extra_headers={"Authorization": ""})
        with pytest.raises(anthropic.AuthenticationError, match="authentication_error"):
            ask_anthropic(model)
        client = OPENAI.with_options(base_url=model.base_url, api_key="sk-right")
        assert [entry.id for entry in client.models.list()] == ["scripted-model"]
        assert ask_openai(model, extra_headers={"Authorization": "Bearer sk-right"}).choices[0].message.content == "in"


def test_unknown_models_are_not_found_when_models_are_set() -> None:
    """The name of a model is checked if the test says which there are."""
    with ScriptedModel(say("in"), models=["small", "large"]) as model:
        with pytest.raises(openai.NotFoundError) as error:
            ask_openai(model, model="medium")
        assert error.value.code == "model_not_found"
        assert ask_openai(model, model="large").model == "large"


def test_thinking_models_take_neither_max_tokens_nor_a_temperature() -> None:
    """As OpenAI's own reasoning models, which answer such a request with 400."""
    with ScriptedModel(say("fine"), reasoning=True) as model:
        with pytest.raises(openai.BadRequestError, match="max_completion_tokens") as error:
            ask_openai(model, max_tokens=10)
        assert error.value.code == "unsupported_parameter"
        with pytest.raises(openai.BadRequestError, match="temperature") as error:
            ask_openai(model, temperature=0)
        assert error.value.code == "unsupported_value"
        assert ask_openai(model, max_completion_tokens=10, temperature=1).choices[0].message.content == "fine"


NAMES = "model messages role content tool_calls system max_tokens temperature type text thinking response_format tools"
LEAVES = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(-3, 3) | st.sampled_from(["", "user", "text", "m"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def lasting_model() -> Iterator[ScriptedModel]:
    """One server for many examples."""
    with ScriptedModel(say("fine")) as started:
        yield started


@given(messages=JSON, more=st.dictionaries(st.sampled_from(NAMES.split()), JSON, max_size=3))
def test_whatever_arrives_gets_an_answer(lasting_model: ScriptedModel, messages: Any, more: dict[str, Any]) -> None:
    """No body makes the server fall over: it is taken, or rejected with 400."""
    body = {"model": "m", "max_tokens": 5, "messages": messages, **more}
    for path, headers in (("chat/completions", {}), ("messages", {"anthropic-version": "2023-06-01"})):
        status, answer = post(f"{lasting_model.base_url}/{path}", json.dumps(body).encode(), headers)
        assert status in (200, 400), answer
