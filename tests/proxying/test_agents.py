"""Real clients in a tool loop, with a window that is soon full, in front of a provider that takes nothing illegal."""

from __future__ import annotations

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from compact import CompactConfig
from proxying.agents import AGENTS, Caller, ChatAgent
from proxying.conftest import eventually, running
from proxying.models import Model, Turn
from proxying.provider import Provider, Received

WINDOW = 8_000
SMALL = CompactConfig(
    model="gpt-4o",
    max_context_tokens=WINDOW,
    policy={"hard_cap_buffer": 500},
    state={"url": "memory:"},
    storage={"adapter": "none"},
    telemetry={"exporter": "none"},
)
PROTECTED = "Whatever happens, the code word is marzipan."


def conversation(request: Received) -> list[object]:
    body = request.json
    return body.get("messages") or body["input"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", AGENTS)
def test_a_long_tool_loop_is_compacted_again_and_again(wire: str, stream: bool) -> None:
    """The agent notices nothing, no request is illegal or too large, and what is protected is in every one."""
    model = Model(Caller(), window_tokens=WINDOW)
    with Provider(model) as provider, running(provider.url, SMALL) as proxy:
        agent = AGENTS[wire](proxy.url, "Read all the files.", stream=stream, protect=PROTECTED)
        agent.run(24)
    assert not model.rejections
    assert agent.statuses.count("compacted") >= 2
    assert agent.statuses[0] == "unchanged"
    assert len(agent.sessions) == 1
    for request in provider.received:
        sent = json.dumps(conversation(request))
        assert PROTECTED in sent
        assert '"meta"' not in sent
    assert sum(len(json.dumps(item)) for item in agent.history) > 12 * WINDOW


def test_between_compactions_each_prompt_extends_the_last() -> None:
    """The provider's cache stays warm."""
    with Provider(Model(Caller())) as provider, running(provider.url, SMALL) as proxy:
        agent = ChatAgent(proxy.url, "Read all the files.")
        agent.run(20)
    prompts = [conversation(request) for request in provider.received]
    breaks = [n for n in range(1, 20) if prompts[n][: len(prompts[n - 1])] != prompts[n - 1]]
    assert breaks == [n for n, word in enumerate(agent.statuses) if word == "compacted"]
    assert 1 <= len(breaks) <= 10


def test_fifty_conversations_are_kept_apart() -> None:
    """No prompt holds a word of another conversation, though all of them begin alike, at the same time."""
    model = Model(Caller(), window_tokens=WINDOW)

    def run(number: int) -> ChatAgent:
        agent = ChatAgent(proxy.url, "Read all the files.", headers={"X-Agent": str(number)}, stream=number % 2 == 0)
        agent.begin()
        for step in range(9):
            agent.step(f"conversation-{number}- step {step}: " + "word " * 1000)
        return agent

    with Provider(model) as provider, running(provider.url, SMALL) as proxy:
        with ThreadPoolExecutor(50) as pool:
            agents = list(pool.map(run, range(50)))
        logs = {agent.said[-1].split("session=")[1]: proxy.app.managers.all["gpt-4o"] for agent in agents}
        histories = [manager.history(session_id) for session_id, manager in logs.items()]
    assert not model.rejections
    assert all("compacted" in agent.statuses for agent in agents)
    seen: Counter[str] = Counter()
    for request in provider.received:
        assert set(re.findall(r"conversation-(\d+)-", request.body.decode())) <= {request.header("x-agent")}
        seen[request.header("x-agent")] += 1
    assert seen == {str(number): 9 for number in range(50)}
    assert len(logs) == 50
    for history in histories:
        assert len({mark for message in history for mark in re.findall(r"conversation-(\d+)-", message.text)}) == 1


def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path) -> None:
    """The same session, and the same prompt with what is new behind it."""
    config = CompactConfig(max_context_tokens=WINDOW, state={"url": f"sqlite:///{tmp_path}/state.db"})
    with Provider(Model(Caller())) as provider:
        with running(provider.url, config) as proxy:
            agent = ChatAgent(proxy.url, "Read all the files.")
            agent.run(13)
        with running(provider.url, config) as proxy:
            again = ChatAgent(proxy.url, "Read all the files.", history=agent.history)
            again.client = agent.client.with_options(base_url=proxy.v1)
            again.step("one more")
    assert "compacted" in agent.statuses
    assert again.sessions == agent.sessions
    assert again.statuses == ["in-force"]
    before, after = (conversation(request) for request in provider.received[-2:])
    assert after[: len(before)] == before


def test_a_named_session_is_one_whatever_it_begins_with() -> None:
    with Provider(Model(Caller())) as provider, running(provider.url, SMALL) as proxy:
        for task in ("One thing.", "Another thing."):
            agent = ChatAgent(proxy.url, task, headers={"X-Compact-Session": "build-7"})
            agent.run(1)
            assert re.fullmatch(r"build-7-[0-9a-f]{16}", agent.sessions.pop())
    assert not any(request.header("x-compact-session") for request in provider.received)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", AGENTS)
def test_what_the_provider_counted_corrects_the_estimate(wire: str, stream: bool) -> None:
    """A provider that counts twice as much is believed: from then on, half as much is sent."""
    model = Model(Caller())
    counted = model._count
    model._count = lambda text: 2 * counted(text)
    with Provider(model) as provider, running(provider.url, SMALL) as proxy:
        agent = AGENTS[wire](proxy.url, "Read all the files.", stream=stream)
        agent.run(12)
        (session_id,) = agent.sessions
        manager = proxy.app.managers.all["gpt-4o"]
        eventually(lambda: all(call.tokens_reported for call in manager.model_calls(session_id)))
    largest = max(len(json.dumps(conversation(request))) for request in provider.received)
    assert model.largest <= WINDOW * 1.1, largest


def test_each_model_has_its_own_window() -> None:
    """Unless one is set, the window is that of the model which is asked for."""
    config = CompactConfig(state={"url": "memory:"}, storage={"adapter": "none"})
    long = [{"role": "user", "content": f"note {n}: " + "word " * 500} for n in range(60)]
    messages = [*long, {"role": "user", "content": "And now?"}]
    with Provider(Model(lambda body: Turn("Now this."))) as provider, running(provider.url, config) as proxy:
        agent = ChatAgent(proxy.url, "")
        agent.begin()
        said = {}
        for name in ("gpt-4o", "gpt-4"):
            raw = agent.client.chat.completions.with_raw_response.create(model=name, messages=messages)
            said[name] = raw.headers["x-compact"].split(";")[0]
    assert said == {"gpt-4o": "unchanged", "gpt-4": "compacted"}
