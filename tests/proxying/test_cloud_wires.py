"""The wires of Google, AWS and Ollama: their own clients in a tool loop, and providers that take nothing illegal."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, ClassVar

import pytest

from compact import CompactConfig
from proxying.agents import Caller
from proxying.cloud_agents import CLOUD_AGENTS, SIGNED, ConverseAgent, OllamaAgent
from proxying.cloud_models import CloudModel
from proxying.conftest import eventually, running
from proxying.provider import Provider, Received

WINDOW = 8_000
QUIET: dict[str, Any] = {
    "policy": {"hard_cap_buffer": 500},
    "state": {"url": "memory:"},
    "storage": {"adapter": "none"},
    "telemetry": {"exporter": "none"},
}
SMALL = CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, **QUIET)
PROXY_KEY = ("AKIAPROXY", "proxy-secret")


@pytest.fixture(autouse=True)
def _credentials_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy has others than the agent."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", PROXY_KEY[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PROXY_KEY[1])
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


def conversation(request: Received) -> list[Any]:
    return request.json.get("messages") or request.json["contents"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", CLOUD_AGENTS)
def test_a_long_tool_loop_is_compacted_again_and_again(wire: str, stream: bool) -> None:
    """The agent notices nothing, no request is refused, and what the provider counted is taken in."""
    model = CloudModel(Caller(), window_tokens=WINDOW, credentials=PROXY_KEY if wire in SIGNED else None)
    with Provider(model) as provider, running(provider.url, SMALL) as proxy:
        agent = CLOUD_AGENTS[wire](proxy.url, "Read all the files.", stream=stream)
        agent.run(26)
        (session_id,) = agent.sessions
        manager = proxy.app.managers.all["gpt-4o"]
        eventually(lambda: all(call.tokens_reported for call in manager.model_calls(session_id)))
    assert not model.rejections
    assert agent.statuses.count("compacted") >= 3, agent.statuses
    assert agent.statuses[0] == "unchanged"
    assert len(provider.received) == 26
    assert all("Read all the files." in json.dumps(conversation(request)) for request in provider.received)


@pytest.mark.parametrize("wire", ["gemini", "converse", "ollama"])
def test_the_window_is_that_of_the_model_which_the_request_names(wire: str) -> None:
    """In its path, or in its options."""
    with Provider(CloudModel(Caller())) as provider, running(provider.url, CompactConfig(**QUIET)) as proxy:
        agent = CLOUD_AGENTS[wire](proxy.url, "Read.")
        agent.run(1)
        models = set(proxy.app.managers.all) - {CompactConfig().model}
    names = {"gemini": "gemini-2.5-pro", "converse": ConverseAgent.model, "ollama": "ollama/qwen3:8b"}
    assert models == {names[wire]}


class SmallOllamaAgent(OllamaAgent):
    options: ClassVar[dict[str, Any]] = {"num_ctx": 6_000, "num_predict": 500}


def test_ollamas_num_ctx_is_the_window() -> None:
    """Ollama cuts what is longer without an error, so that nobody would notice."""
    model = CloudModel(Caller(), window_tokens=6_000)
    with Provider(model) as provider, running(provider.url, CompactConfig(**QUIET)) as proxy:
        agent = SmallOllamaAgent(proxy.url, "Read.")
        agent.run(12)
    assert not model.rejections
    assert agent.statuses.count("compacted") >= 2
    assert model.largest <= 5_500


def test_a_signed_request_is_passed_on_as_it_is_without_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its header says so, and the log says once what to do."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with Provider(CloudModel(Caller())) as provider, running(provider.url, SMALL) as proxy:
        agent = ConverseAgent(proxy.url, "Read.")
        with caplog.at_level(logging.WARNING):
            agent.run(2)
    assert agent.said == ["skipped; reason=signed-body"] * 2
    assert [request.header("authorization")[:39] for request in provider.received] == [
        "AWS4-HMAC-SHA256 Credential=AKIAAGENT/2"
    ] * 2
    assert caplog.text.count("AWS_BEARER_TOKEN_BEDROCK") == 1


def test_no_trace_of_the_agents_signature_is_left(caplog: pytest.LogCaptureFixture) -> None:
    model = CloudModel(Caller(), credentials=PROXY_KEY)
    with Provider(model) as provider, running(provider.url, SMALL) as proxy:
        ConverseAgent(proxy.url, "Read.").run(1)
    (received,) = provider.received
    assert b"AKIAAGENT" not in received.head
    assert b"agent-token" not in received.head
    assert PROXY_KEY[1] not in caplog.text
