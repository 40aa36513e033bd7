"""A provider whose window is smaller than the proxy is told: it refuses once, and the agent never sees it."""

from __future__ import annotations

import gzip
import json

import httpx
import openai
import pytest

from compact import CompactConfig
from proxying.agents import AGENTS, Caller, ChatAgent
from proxying.conftest import running
from proxying.models import Model
from proxying.provider import Provider, as_json

TRUE_WINDOW, TOLD_WINDOW = 8_000, 32_000
TOLD = CompactConfig(
    model="gpt-4o",
    max_context_tokens=TOLD_WINDOW,
    state={"url": "memory:"},
    storage={"adapter": "none"},
    telemetry={"exporter": "none"},
)
TOO_LONG = {"error": {"message": f"prompt is too long: 9000 tokens > {TRUE_WINDOW} maximum", "type": "invalid_request"}}


def messages(count: int = 12) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{number}: " + "word " * 700} for number in range(count)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", AGENTS)
def test_a_refusal_is_answered_by_the_proxy_and_the_next_requests_fit(wire: str, stream: bool) -> None:
    """Real clients: none of them sees the error, and one request more than they made was sent."""
    model = Model(Caller(), window_tokens=TRUE_WINDOW)
    with Provider(model) as provider, running(provider.url, TOLD) as proxy:
        agent = AGENTS[wire](proxy.url, "Read all the files.", stream=stream)
        agent.run(16)
        windows = {
            manager.status(next(iter(agent.sessions))).max_context_tokens for manager in proxy.app.managers.all.values()
        }
    assert len(model.rejections) == 1
    assert len(provider.received) == 16 + 1
    assert windows == {TRUE_WINDOW}
    assert "compacted" in agent.statuses
    assert len(agent.sessions) == 1


def test_a_second_refusal_is_passed_on() -> None:
    """One more request, no loop, and the provider's own error."""
    answer = json.dumps({"error": {"message": "Please reduce the length of the messages or completion."}})
    with (
        Provider(lambda _: as_json(json.loads(answer), "400 Bad Request")) as provider,
        running(provider.url, TOLD) as proxy,
    ):
        client = openai.OpenAI(base_url=proxy.v1, api_key="any", max_retries=0)
        with pytest.raises(openai.BadRequestError, match="reduce the length"):
            client.chat.completions.create(model="gpt-4o", messages=messages())  # pyright: ignore
        client.close()
    assert len(provider.received) == 2
    assert len(provider.received[1].body) < len(provider.received[0].body)


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_a_refusal_that_cannot_be_answered_is_passed_on_byte_for_byte(is_packed: bool) -> None:
    """A prompt that cannot be made smaller, and an error about something else."""
    for said in (TOO_LONG, {"error": {"message": "messages.1.role: must be one of user, assistant"}}):
        body = json.dumps(said, indent=1).encode()
        sent = gzip.compress(body) if is_packed else body
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(sent)}\r\n"
        head += "content-encoding: gzip\r\n" if is_packed else ""
        with (
            Provider(lambda _: [f"{head}\r\n".encode(), sent]) as provider,  # noqa: B023 - used in this round only
            running(provider.url, TOLD) as proxy,
        ):
            request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
            response = httpx.post(f"{proxy.v1}/chat/completions", json=request)
        assert (response.status_code, response.content) == (400, body)
        assert len(provider.received) == 1


def test_a_packed_refusal_is_read() -> None:
    """The client asked for gzip, and the provider packs its errors too."""
    model = Model(Caller(), window_tokens=TRUE_WINDOW)
    refusals = [gzip.compress(json.dumps(TOO_LONG).encode())]

    def answer(request):  # pyright: ignore
        if refusals and len(request.body) > 20_000:
            packed = refusals.pop()
            head = f"HTTP/1.1 400 Bad Request\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
            return [head.encode(), packed]
        return model(request)

    with Provider(answer) as provider, running(provider.url, TOLD) as proxy:
        agent = ChatAgent(proxy.url, "Read all the files.")
        agent.run(12)
    assert not refusals
    assert not model.rejections
    assert len(provider.received) == 12 + 1
