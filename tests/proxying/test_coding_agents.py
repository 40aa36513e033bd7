"""Real coding agents through the proxy, against a model that enforces its window: they work on, and notice nothing.

Runs if COMPACT_TEST_CODING_AGENTS names a folder into which the agents are installed once; CI sets it wherever the
registry of npm can be reached. One agent may be missing, since not all have a package for every processor; two may not.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig
from compact.testing.provider_api import RequestRejected
from conftest import NO_CODING_AGENTS
from proxying.coding_agents import AGENTS, KEY, TASK, VERSIONS, CodingAgent, NotInstallable, install, node_version, run
from proxying.conftest import running
from proxying.provider import Provider, Received
from proxying.turns import Call, Said, TurnModel

CALLS = 44
# One for each recall, in the first notes, which have left the prompt by then.
SECRETS = ("the code word of pier seven is marzipan", "the pilot of the ferry to Malta is called Rosalind")
QUERIES = ("code word of pier seven", "pilot of the ferry to Malta")
DONE = "All the notes are read; the code word is marzipan."
FOLDER = os.environ.get("COMPACT_TEST_CODING_AGENTS", "")
# What Claude Code sends with its header for betas, and its endpoint takes.
_BETA_KEYS = ("context_management",)


class CodingModel(TurnModel):
    """Reads one note after the other with the agent's own shell; recalls what left its prompt, alone and beside a call.

    What is not this conversation (titles, memories) gets a short text.
    """

    def __init__(self, agent: CodingAgent) -> None:
        super().__init__(self._say, window_tokens=agent.window_tokens)
        self._agent = agent
        self._lock = threading.Lock()
        self.calls = 0
        self.recalls: list[str] = []
        self.found: set[str] = set()
        self.is_done = False
        self.side_requests = 0

    def _judge(self, wire: Any, request: Received) -> int:
        body = {key: value for key, value in request.json.items() if key not in _BETA_KEYS}
        wire.check({key: value for key, value in body.items() if key != "stream"}, request)
        parts = (
            body.get("messages") or body.get("input"),
            body.get("system"),
            body.get("instructions"),
            body.get("tools"),
        )
        tokens = sum(self._count(json.dumps(part, ensure_ascii=False)) for part in parts if part)
        self.largest = max(self.largest, tokens)
        if tokens > self.window_tokens:
            raise RequestRejected(f"prompt is too long: {tokens} tokens > {self.window_tokens} maximum")
        return tokens

    def _say(self, body: dict[str, Any]) -> Said:
        names = {(tool.get("function") or tool).get("name") for tool in body.get("tools") or []}
        with self._lock:
            if self._agent.shell_tool not in names or self.is_done:
                self.side_requests += 1
                return Said("Reading notes")
            return self._next(body, can_recall="recall" in names)

    def _next(self, body: dict[str, Any], *, can_recall: bool) -> Said:
        items = json.dumps((body.get("messages") or body["input"])[-4:])
        for call_id, secret in zip(self.recalls, SECRETS, strict=False):
            if call_id in items and secret in items.split(call_id)[-1]:
                self.found.add(call_id)
        if can_recall and self.calls >= 20 and not self.recalls:
            return Said("I look it up.", (self._recall(),), thinking="What was the word?")
        if self.calls >= CALLS:
            self.is_done = True
            return Said(DONE)
        own = (self._read(),)
        if can_recall and self.calls >= 30 and len(self.recalls) == 1:
            own = (*own, self._recall())
        return Said(f"Note {self.calls}." if self.calls % 3 else "", own, thinking=f"Now note {self.calls}.")

    def _recall(self) -> Call:
        self.recalls.append(f"recall_{len(self.recalls) + 1}")
        return Call(self.recalls[-1], "recall", {"query": QUERIES[len(self.recalls) - 1]})

    def _read(self) -> Call:
        self.calls += 1
        command = {self._agent.shell_argument: f"cat notes/part_{self.calls}.txt"}
        return Call(f"call_{self.calls:05d}", self._agent.shell_tool, {**command, **_required(self._agent)})


def _required(agent: CodingAgent) -> dict[str, Any]:
    """What some agents want with a command."""
    return {"claude": {"description": "Read a note"}, "qwen": {"is_background": False}}.get(agent.command, {})


def write_notes(folder: Path) -> None:
    (folder / "work" / "notes").mkdir(parents=True)
    for number in range(1, CALLS + 1):
        lines = [f"berth {n} of quay {number}: {n * number % 97} crates of cargo {number * 31 + n}" for n in range(110)]
        if number <= len(SECRETS):
            lines[60] += f"; {SECRETS[number - 1]}"
        (folder / "work" / "notes" / f"part_{number}.txt").write_text("\n".join(lines))


NAMES = [name for name, agent in AGENTS.items() if not FOLDER or agent.node <= node_version()]
needs_agents = pytest.mark.skipif(not FOLDER, reason=f"{NO_CODING_AGENTS} names no folder to install the agents into")


@needs_agents
def test_all_coding_agents_but_one_can_be_installed() -> None:
    missing: list[str] = []
    for name in NAMES:
        try:
            install(AGENTS[name], Path(FOLDER))
        except NotInstallable as error:
            missing.append(f"{name}: {error}")
    assert len(missing) <= 1, missing


@needs_agents
@pytest.mark.parametrize("name", NAMES)
def test_a_coding_agent_works_through_many_compactions(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    agent = AGENTS[name]
    try:
        command = install(agent, Path(FOLDER))
    except NotInstallable as error:
        pytest.skip(f"{NO_CODING_AGENTS}: {name} is not installed: {error}")
    write_notes(tmp_path)
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=agent.window_tokens,
        state={"url": f"sqlite:///{tmp_path}/state.db"},
        storage={"adapter": "fs", "path": str(tmp_path / "archive")},
        telemetry={"exporter": "none"},
    )
    model = CodingModel(agent)
    with Provider(model) as provider, running(provider.url, config) as proxy:
        done = run(agent, command, tmp_path, proxy.url)
        manager = proxy.app.managers.all["gpt-4o"]
        sessions = sorted(manager.sessions(), key=lambda session: -session.model_calls)
        main = sessions[0]
        log = manager.history(main.session_id)
    with capsys.disabled():
        facts = (
            f"{model.calls} calls, {main.plan_version} compactions, {len(sessions)} sessions, largest {model.largest}"
        )
        line = f"{agent.package} {VERSIONS[agent.package]}: {facts}, {model.side_requests} side requests"
        sys.stdout.write(f"\n{line}\n")
    assert not model.rejections, model.rejections[:3]
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert DONE in done.stdout
    assert model.calls == CALLS
    assert main.plan_version >= 3
    assert model.recalls == sorted(model.found) == ["recall_1", "recall_2"]
    assert "2 calls" not in "".join(line for line in caplog.messages if "of recall answered" in line)
    assert sum("call of recall answered" in line for line in caplog.messages) == 2
    # The agent does not know of the detour; the log does.
    assert "recall_1" not in done.stdout + done.stderr
    assert {call.id for message in log for call in message.tool_calls} >= {"recall_1", "recall_2", "call_00001"}
    assert any(TASK in message.text for message in log)
    files = [path for path in (tmp_path / "archive", tmp_path) for path in path.glob("**/*") if path.is_file()]
    ours = [path for path in files if path.name.startswith("state.db") or "archive" in path.parts]
    assert ours
    assert not any(KEY.encode() in path.read_bytes() for path in ours)
    assert KEY not in caplog.text
