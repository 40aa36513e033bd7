"""A provider that errs, stalls or breaks off is passed on as it is; an agent that hangs up ends what is done for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import anthropic
import httpx2
import openai
import pytest

from proxying.agents import Caller, ChatAgent
from proxying.conftest import eventually, running
from proxying.models import Model, Turn, named, sse
from proxying.provider import END, Cut, Part, Provider, Received, as_json, chunk, head, until_the_end, whole

HELLO = [{"role": "user", "content": "hi"}]


def chat(url: str) -> openai.OpenAI:
    return until_the_end(openai.OpenAI(base_url=f"{url}/v1", api_key="sk-1", max_retries=0, timeout=30))


def claude(url: str) -> anthropic.Anthropic:
    return until_the_end(anthropic.Anthropic(base_url=url, api_key="sk-1", max_retries=0, timeout=30))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad Request", "BadRequestError"),
        ("401 Unauthorized", "AuthenticationError"),
        ("404 Not Found", "NotFoundError"),
        ("429 Too Many Requests", "RateLimitError"),
        ("500 Internal Server Error", "InternalServerError"),
        ("529 Overloaded", "OverloadedError"),
    ],
)
def test_errors_are_the_providers_own(status: str, kind: str) -> None:
    """Status, headers and body reach the client, which makes of them what it always does."""
    body = {"type": "error", "error": {"type": "its_type", "message": "its own words", "code": "its_code"}}
    headers = (("Retry-After", "17"), ("x-ratelimit-remaining", "0"), ("request-id", "req_1"))
    with Provider(lambda _: as_json(body, status, *headers)) as provider, running(provider.url) as proxy:
        with pytest.raises(openai.APIStatusError, match="its own words") as by_chat:
            chat(proxy.url).chat.completions.create(model="m", messages=HELLO)  # type: ignore[arg-type]
        with pytest.raises(anthropic.APIStatusError, match="its own words") as by_claude:
            claude(proxy.url).messages.create(model="m", max_tokens=9, messages=HELLO)  # type: ignore[arg-type]
    if kind != "OverloadedError":
        assert type(by_chat.value).__name__ == kind
    assert type(by_claude.value).__name__ in (kind, "InternalServerError")
    for error in (by_chat.value, by_claude.value):
        assert error.response.status_code == int(status[:3])
        assert error.response.json() == body
        assert [error.response.headers[name] for name, _ in headers] == [value for _, value in headers]


def test_a_client_tries_again_as_it_would_without_a_proxy() -> None:
    answers: list[Callable[[Received], list[bytes]]] = [
        lambda _: as_json({"error": {"message": "slow down"}}, "429 Too Many Requests", ("Retry-After", "0.01")),
        lambda _: as_json({"error": {"message": "oops"}}, "503 Service Unavailable", ("retry-after-ms", "1")),
        Model(Caller()),
    ]
    with Provider(lambda asked: answers.pop(0)(asked)) as provider, running(provider.url) as proxy:
        agent = ChatAgent(proxy.url, "Read.")
        agent.run(1)
    assert [request.header("x-stainless-retry-count") for request in provider.received] == ["0", "1", "2"]
    assert agent.statuses == ["unchanged"]


def test_each_event_of_a_stream_comes_as_soon_as_it_is_sent() -> None:
    """Nothing is held back until there is more: the provider sends the next one only when the last has arrived."""
    steps = [threading.Event() for _ in range(3)]

    def answer(_: Received) -> Iterator[Part]:
        yield head("200 OK", ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
        for number, step in enumerate(steps):
            yield chunk(sse({"choices": [{"index": 0, "delta": {"content": str(number)}}]}))
            yield step
        yield chunk(b"data: [DONE]\n\n")
        yield END

    with Provider(answer) as provider, running(provider.url) as proxy:
        stream = chat(proxy.url).chat.completions.create(model="m", messages=HELLO, stream=True)  # type: ignore[call-overload]
        for number, (part, step) in enumerate(zip(stream, steps, strict=False)):
            assert part.choices[0].delta.content == str(number)
            step.set()
        assert list(stream) == []


def whole_cut(_: Received) -> list[Part]:
    return [head("200 OK", ("Content-Type", "application/json"), ("Content-Length", "999")), b'{"id": "half', Cut()]


def stream_cut(_: Received) -> list[Part]:
    began = head("200 OK", ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
    return [began, chunk(named("ping")), chunk(sse({"choices": []})), Cut()]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/anything"])
@pytest.mark.parametrize("answer", [whole_cut, stream_cut])
def test_an_answer_that_is_cut_is_seen_as_cut(path: str, answer: Callable[[Received], list[Part]]) -> None:
    """What came is passed on, and then the connection breaks: nobody takes it for the end."""
    got: list[bytes] = []
    with Provider(answer) as provider, running(provider.url) as proxy, httpx2.Client(timeout=30) as client:
        asking = client.stream("POST", proxy.url + path, json={"model": "m", "messages": HELLO})
        with asking as response, pytest.raises(httpx2.RemoteProtocolError):
            got.extend(response.iter_raw())
        assert response.status_code == 200
    assert b"".join(got) in (b'{"id": "half', named("ping") + sse({"choices": []}))


def test_a_provider_that_hangs_up_without_a_word_is_a_bad_gateway() -> None:
    unreachable = pytest.raises(openai.InternalServerError, match="the upstream cannot be reached")
    with Provider(lambda _: [Cut()]) as provider, running(provider.url) as proxy, unreachable as error:
        chat(proxy.url).chat.completions.create(model="m", messages=HELLO)  # type: ignore[arg-type]
    assert error.value.status_code == 502
    assert error.value.code == "upstream_unreachable"


def test_a_provider_that_is_not_there_is_a_bad_gateway() -> None:
    with Provider(lambda _: []) as provider:
        nowhere = provider.url
    with running(nowhere) as proxy:
        with pytest.raises(anthropic.InternalServerError, match="the upstream cannot be reached") as error:
            claude(proxy.url).messages.create(model="m", max_tokens=9, messages=HELLO)  # type: ignore[arg-type]
        assert error.value.status_code == 502
        assert error.value.response.headers["x-compact"].startswith("unchanged; ")
        assert httpx2.get(f"{proxy.url}/v1/models").headers["x-compact"] == "upstream_unreachable"


def test_a_silent_provider_is_given_up_only_if_a_time_is_set() -> None:
    never = threading.Event()
    with Provider(lambda _: [never]) as provider, running(provider.url, timeout_seconds=0.3) as proxy:
        answer = httpx2.post(f"{proxy.v1}/chat/completions", json={"model": "m", "messages": HELLO}, timeout=30)
    assert answer.status_code == 504
    assert answer.json()["error"]["message"] == "compact proxy: the upstream did not answer within 0.3 seconds"


def test_a_slow_provider_is_waited_for() -> None:
    slow = threading.Event()
    threading.Timer(0.5, slow.set).start()
    model = Model(lambda _: Turn("at last"))
    with Provider(lambda asked: [slow, *model(asked)]) as provider, running(provider.url) as proxy:
        answer = chat(proxy.url).chat.completions.create(model="m", messages=HELLO)  # type: ignore[arg-type]
    assert answer.choices[0].message.content == "at last"


@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "in the middle of it"])
def test_an_agent_that_hangs_up_ends_the_providers_work(begun: bool) -> None:
    """Nobody pays for an answer that nobody reads."""
    never = threading.Event()
    start = [
        head("200 OK", ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")),
        chunk(b": hi\n\n"),
    ]
    with Provider(lambda _: [*(start if begun else []), never]) as provider, running(provider.url) as proxy:
        client = httpx2.Client(timeout=httpx2.Timeout(30, read=5))  # the first look at a request takes a while
        with pytest.raises(httpx2.ReadTimeout), client:
            client.post(f"{proxy.v1}/chat/completions", json={"messages": HELLO})
        assert provider.hangups.acquire(timeout=30)


def test_what_fails_in_here_does_not_fail_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    """The request goes on as it came, the header says so, and no word of it is in the log."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a secret of state"}]}).encode()
    with Provider(Model(lambda _: Turn("fine"))) as provider, running(provider.url) as proxy:

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("cannot read: a secret of state")

        proxy.app.managers.for_model("m").abegin_preflight = broken  # type: ignore[method-assign]
        answer = httpx2.post(f"{proxy.v1}/chat/completions", content=body, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["x-compact"] == "failed; reason=RuntimeError"
    assert provider.received[0].body == body
    assert "compacting it failed (RuntimeError)" in caplog.text
    assert "secret" not in caplog.text


def test_stopping_lets_an_answer_end() -> None:
    """Whoever is being answered gets all of it."""
    let_go = threading.Event()
    got: list[bytes] = []

    def ask(url: str) -> None:
        got.append(httpx2.get(f"{url}/v1/slow", timeout=30).content)

    with Provider(lambda _: [let_go, *whole("200 OK", b"the whole answer")]) as provider:
        with running(provider.url) as proxy:
            asking = threading.Thread(target=ask, args=(proxy.url,))
            asking.start()
            eventually(lambda: provider.received)
            threading.Timer(0.3, let_go.set).start()
        asking.join(30)
    assert got == [b"the whole answer"]
