"""Keys go through and leave no trace; strangers stay outside."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from compact import CompactConfig
from compact.core.errors import ConfigError
from compact.proxy.settings import ProxySettings
from proxying.agents import AGENTS, Caller
from proxying.conftest import eventually, running
from proxying.models import Model
from proxying.provider import Cut, Provider, as_json, request, talk
from reachable import texts_with

KEY = "sk-live-Zq81xxVerySecretKey77"


@pytest.mark.parametrize("wire", AGENTS)
def test_a_key_is_in_no_log_and_in_no_file(
    wire: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even at the most talkative level, nor after failures; only the provider sees it."""
    caplog.set_level(logging.DEBUG)
    config = CompactConfig(
        max_context_tokens=4_000,
        policy={"hard_cap_buffer": 200},
        state={"url": f"sqlite:///{tmp_path}/state.db"},
        storage={"adapter": "fs", "path": str(tmp_path / "archive")},
    )
    with Provider(Model(Caller())) as provider, running(provider.url, config) as proxy:
        agent = AGENTS[wire](proxy.url, "Read.", key=KEY, headers={"X-Compact-Session": "mine"})
        agent.run(8)
        talk(proxy.url, request("GET", f"/v1/models?key={KEY}"))
    assert "compacted" in agent.statuses
    assert KEY in provider.received[0].head.decode()
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 2
    assert not any(KEY.encode() in content for content in written)
    assert KEY not in caplog.text
    assert KEY not in "".join(capfd.readouterr())
    assert not any(KEY in line for line in agent.said)
    with closing(sqlite3.connect(tmp_path / "state.db")) as store, store:
        assert store.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    store.close()


def test_a_key_is_kept_no_longer_than_its_request(tmp_path: Path) -> None:
    """And nothing of a conversation once its session has left memory."""
    state = {"url": f"sqlite:///{tmp_path}/state.db"}
    config = CompactConfig(model="gpt-4o", state=state, telemetry={"exporter": "none"})
    answers = Provider(lambda _: as_json({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}))
    with answers as provider, running(provider.url, config, max_sessions_per_key=1) as proxy:
        for word in ("breakwater", "lighthouse"):
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"Go to the {word}."}]}
            httpx2.post(f"{proxy.v1}/chat/completions", json=body, headers={"authorization": f"Bearer {KEY}"})
        eventually(lambda: not texts_with(KEY, proxy.app))
        eventually(lambda: not texts_with("breakwater", proxy.app))
        assert texts_with("lighthouse", proxy.app)


def test_a_broken_exchange_does_not_tell_the_key_either(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    keys = (f"Authorization: Bearer {KEY}", f"X-Api-Key: {KEY}")
    with Provider(lambda _: [Cut()]) as provider, running(provider.url) as proxy:
        raw = request("POST", f"/v1/messages?key={KEY}", *keys, "Content-Length: 16", body=b'{"messages":[1]}')
        answer = talk(proxy.url, raw)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert "cannot be reached" in caplog.text
    assert KEY not in caplog.text
    assert KEY.encode() not in answer


def test_with_a_token_only_those_who_have_it_come_in() -> None:
    """It is ours alone: the provider never sees it, and Authorization is the provider's."""
    with (
        Provider(lambda _: as_json({"ok": True})) as provider,
        running(provider.url, token="open sesame, please") as proxy,
    ):
        ask = {"authorization": "Bearer sk-1"}
        wrong = [httpx2.get(f"{proxy.v1}/models", headers={**ask, **more}) for more in ({}, {"x-compact-token": "no"})]
        right = httpx2.get(f"{proxy.v1}/models", headers={**ask, "X-Compact-Token": "open sesame, please"})
    assert [answer.status_code for answer in (*wrong, right)] == [401, 401, 200]
    assert wrong[0].json()["error"]["code"] == "wrong_token"
    (received,) = provider.received
    assert received.header("authorization") == "Bearer sk-1"
    assert "sesame" not in received.head.decode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_page_in_the_browser_cannot_use_it(headers: dict[str, str]) -> None:
    """Neither from another site, nor by a name that it gave our address; an agent on this machine can."""
    with Provider(lambda _: as_json({"ok": True})) as provider, running(provider.url) as proxy:
        refused = httpx2.post(f"{proxy.v1}/chat/completions", json={"messages": []}, headers=headers)
        taken = httpx2.get(f"{proxy.v1}/models", headers={"Origin": "http://localhost:3000", "Sec-Fetch-Site": "none"})
    assert (refused.status_code, taken.status_code) == (403, 200)
    assert refused.json()["error"]["code"] == "not_an_agent"
    assert len(provider.received) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_strangers_need_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="could use this proxy") as error:
        ProxySettings(upstream="https://api.openai.com", host=host)
    assert "COMPACT_PROXY_TOKEN" in error.value.hint
    assert ProxySettings(upstream="https://api.openai.com", host=host, token="t" * 16).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_token_that_can_be_guessed_is_refused(host: str) -> None:
    """As the viewer refuses it: whoever comes in can read what conversations say."""
    with pytest.raises(ConfigError, match="a token of 15 characters can be guessed; use at least 16"):
        ProxySettings(upstream="https://api.openai.com", host=host, token="t" * 15)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_needs_none(host: str) -> None:
    assert ProxySettings(upstream="https://api.openai.com", host=host).token == ""
