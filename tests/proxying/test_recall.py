"""The recall tool of the proxy: offered after a compaction, answered here, and never seen by the agent."""

from __future__ import annotations

import gzip
import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from compact import CompactConfig
from compact.proxy.recall.rounds import MOST_ROUNDS
from proxying.agents import WORDS
from proxying.conftest import Running, running
from proxying.provider import Part, Provider, Received, as_json, chunk, head
from proxying.tool_loops import LOOPS, ToolLoop
from proxying.turns import TURN_WIRES, Call, Said, TurnModel

WINDOW = 9_000
SMALL = CompactConfig(
    model="gpt-4o",
    max_context_tokens=WINDOW,
    policy={"hard_cap_buffer": 500},
    state={"url": "memory:"},
    storage={"adapter": "none"},
    telemetry={"exporter": "none"},
)
SECRET = "the code word of pier seven is marzipan"
# One line among many like it: no summary keeps it.
NOTE = "\n".join(
    f"berth {n} of quay 1: {n * 7 % 97} crates of cargo {31 + n}{f'; {SECRET}' if n == 30 else ''}" for n in range(60)
)
every_wire = pytest.mark.parametrize("wire", LOOPS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class Script:
    """A model that reads one file after another; what is in `next` it says first."""

    def __init__(self) -> None:
        self.next: list[Said] = []
        self._numbers = itertools.count(1)

    def __call__(self, body: dict[str, Any]) -> Said:
        if self.next:
            return self.next.pop(0)
        number = next(self._numbers)
        return Said(
            calls=(Call(f"call_{number:05d}", "read_file", {"path": f"part_{number}"}),), thinking=f"Step {number}."
        )


@dataclass
class Scene:
    """An agent whose prompt was compacted, with the first file out of it."""

    loop: ToolLoop
    script: Script
    model: TurnModel
    provider: Provider
    proxy: Running

    def sent(self, back: int = 1) -> dict[str, Any]:
        """One of the newest requests to the provider."""
        return self.provider.received[-back].json

    def next_request(self) -> tuple[str, dict[str, Any], dict[str, str]]:
        """What the agent would send next, streaming, for a client that looks at the bytes."""
        loop = self.loop
        loop.history += [loop.result(call, "short") for call in loop.calls]
        wire = next(wire for wire, kind in LOOPS.items() if isinstance(loop, kind))
        path = {"chat": "/chat/completions", "anthropic": "/messages", "responses": "/responses"}[wire]
        body = {**self.sent(), "stream": True}
        body["tools"] = body["tools"][:1]
        body["input" if wire == "responses" else "messages"] = loop.items()
        known = ("x-api-key", "authorization", "anthropic-version")
        headers = {name: value for name, value in self.provider.received[-1].headers if name.lower() in known}
        return self.proxy.v1 + path, body, headers

    def text_sent(self, back: int = 1) -> str:
        body = self.sent(back)
        return json.dumps(body.get("messages") or body["input"], sort_keys=True)


@contextmanager
def compacted(
    wire: str, stream: bool, answer: Callable[[Received], Any] | None = None, **settings: Any
) -> Iterator[Scene]:
    script = Script()
    model = TurnModel(script, window_tokens=WINDOW)
    replies = {"answer": model}
    with (
        Provider(lambda asked: replies["answer"](asked)) as provider,
        running(provider.url, SMALL, **settings) as proxy,
    ):
        loop = LOOPS[wire](proxy.url, stream)
        loop.step()
        loop.step(NOTE)
        for _ in range(20):
            loop.step(WORDS)
            if SECRET not in json.dumps(provider.received[-1].json):
                break
        assert SECRET not in json.dumps(provider.received[-1].json)
        replies["answer"] = answer or model
        yield Scene(loop, script, model, provider, proxy)
        assert not model.rejections, model.rejections


def recall(number: int = 1, query: str = "code word of pier seven") -> Call:
    return Call(f"recall_{number}", "recall", {"query": query})


def read(number: int) -> Call:
    return Call(f"own_{number}", "read_file", {"path": f"own_{number}"})


def names(body: dict[str, Any]) -> list[str]:
    return [(tool.get("function") or tool)["name"] for tool in body["tools"]]


@every_wire
@both_ways
def test_a_recall_is_answered_and_not_seen(wire: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "compact.proxy")
    with compacted(wire, stream) as scene:
        loop, before = scene.loop, len(scene.provider.received)
        scene.script.next = [
            Said("Let me look.", (recall(),), thinking="Which word?"),
            Said("It is marzipan.", thinking="There it is."),
        ]
        loop.step("short")
        assert loop.text.replace("\n", "") == "Let me look.It is marzipan."
        assert loop.calls == []
        assert len(scene.provider.received) == before + 2
        assert SECRET in scene.text_sent()
        assert "recall" in names(scene.sent())
        assert scene.text_sent()[: len(scene.text_sent(2)) - 1] == scene.text_sent(2)[:-1]
        usage = loop.usage.model_dump()
        output = usage.get("output_tokens") or usage["completion_tokens"]
        assert output == 14
        told = usage.get("prompt_tokens") or usage["input_tokens"] + (usage.get("cache_read_input_tokens") or 0)
        assert told == scene.model._judge(turn_wire(wire), scene.provider.received[-1])
        assert stream or "recalls=1" in loop.said
        loop.history.append({"role": "user", "content": "And now?"})
        loop.step()
        assert loop.calls[0].name == "read_file"
    lines = [record.getMessage() for record in caplog.records if "recall" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("1 call of recall answered for session ")
    assert "marzipan" not in caplog.text


def turn_wire(wire: str) -> Any:
    ends = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}
    return TURN_WIRES[ends[wire]]


@every_wire
@both_ways
def test_what_was_recalled_before_a_call_stays_in_the_prompt(wire: str, stream: bool) -> None:
    """The next requests extend what the provider has seen, though the agent does not know of it."""
    with compacted(wire, stream) as scene:
        loop = scene.loop
        scene.script.next = [
            Said("Let me look.", (recall(1),), thinking="Which word?"),
            Said("", (recall(2, "m1"), recall(3, "no such thing anywhere")), thinking="And which task?"),
            Said("Now I read.", (read(1), read(2)), thinking="I know."),
        ]
        loop.step("short")
        assert [call.id for call in loop.calls] == ["own_1", "own_2"]
        second = scene.text_sent()
        loop.step("short")
        third = scene.text_sent()
        assert third.startswith(second[:-1])
        assert SECRET in third
        assert "recall_3" in third
        loop.step("short")
        assert scene.text_sent().startswith(third[:-1])
        # The log has the calls, so that they are compacted like all others.
        (session,) = {loop.said.split("session=")[1]}
        log = scene.proxy.app.managers.all["gpt-4o"].history(session)
        assert [call.id for message in log for call in message.tool_calls if call.name == "recall"] == [
            "recall_1",
            "recall_2",
            "recall_3",
        ]


@every_wire
@both_ways
def test_a_recall_beside_other_calls_is_put_back(wire: str, stream: bool) -> None:
    with compacted(wire, stream) as scene:
        loop = scene.loop
        asked = (read(1), recall(1), read(2))
        scene.script.next = [Said("Both.", asked, thinking="Two things."), Said("", (read(3),), thinking="More.")]
        before = len(scene.provider.received)
        loop.step("short")
        assert [call.id for call in loop.calls] == ["own_1", "own_2"]
        assert len(scene.provider.received) == before + 1
        loop.step("short")
        sent = scene.text_sent()
        assert sent.count('"recall_1"') == 2
        assert SECRET in sent
        for _ in range(3):
            loop.step("short")
            assert scene.text_sent().startswith(sent[:-1])
            sent = scene.text_sent()


@every_wire
@both_ways
def test_a_recall_after_a_recall_beside_other_calls(wire: str, stream: bool) -> None:
    """Both kinds in one answer."""
    with compacted(wire, stream) as scene:
        scene.script.next = [
            Said("First.", (recall(1),), thinking="One."),
            Said("Then.", (recall(2, "m1"), read(1)), thinking="Two."),
        ]
        scene.loop.step("short")
        assert [call.id for call in scene.loop.calls] == ["own_1"]
        scene.loop.step("short")
        sent = scene.text_sent()
        assert sent.count('"recall_1"') == sent.count('"recall_2"') == 2
        scene.loop.step("short")
        assert scene.text_sent().startswith(sent[:-1])


@every_wire
@both_ways
def test_a_model_that_only_recalls_is_stopped(wire: str, stream: bool) -> None:
    with compacted(wire, stream) as scene:
        calls = [Said("", (recall(number),), thinking="Again.") for number in range(1, MOST_ROUNDS + 2)]
        scene.script.next = [*calls, Said("I give up.")]
        before = len(scene.provider.received)
        scene.loop.step("short")
        assert scene.loop.text == "I give up."
        rounds = scene.provider.received[before:]
        assert ["recall" in names(each.json) for each in rounds] == [True] * (MOST_ROUNDS + 1) + [False]
        assert "was called 4 times in a row" in scene.text_sent()
        # The last of them may find the window full.
        assert 2 <= scene.text_sent(2).count(SECRET) <= MOST_ROUNDS


@every_wire
@both_ways
def test_a_call_of_a_tool_that_is_not_offered_any_more_is_the_agents_to_answer(wire: str, stream: bool) -> None:
    """It goes round in circles no longer, whatever the model does."""
    with compacted(wire, stream) as scene:
        scene.script.next = [Said("", (recall(n),), thinking="Again.") for n in range(1, MOST_ROUNDS + 3)]
        scene.loop.step("short")
        assert [call.name for call in scene.loop.calls] == ["recall"]
        scene.loop.step("no such tool")
        assert scene.loop.calls[0].name == "read_file"


@every_wire
@both_ways
@pytest.mark.parametrize("query", [{"query": "art-0123456789abcdef"}, {"wrong": 1}], ids=["unknown", "wrong"])
def test_a_recall_that_finds_nothing_is_answered(wire: str, stream: bool, query: dict[str, Any]) -> None:
    with compacted(wire, stream) as scene:
        scene.script.next = [Said("", (Call("recall_1", "recall", query),), thinking="Hm."), Said("Nothing there.")]
        scene.loop.step("short")
        assert scene.loop.text == "Nothing there."
        assert "nothing in this session" in scene.text_sent() or "call recall with" in scene.text_sent()


@every_wire
def test_what_is_recalled_fits_the_window(wire: str) -> None:
    """The model rejects what is larger; the longest entry is asked for again and again."""
    with compacted(wire, True) as scene:
        for number in range(6):
            calls = [Said("", (recall(10 * number + n, "m3"),), thinking="Again.") for n in range(MOST_ROUNDS)]
            scene.script.next = [*calls, Said("", (read(number),), thinking="On.")]
            scene.loop.step("short")
        assert scene.model.largest <= WINDOW


@every_wire
def test_the_tool_is_offered_from_the_first_compaction_on(wire: str) -> None:
    with compacted(wire, True) as scene:
        scene.loop.step(WORDS)
        received = scene.provider.received
        offered = ["recall" in names(request.json) for request in received]
        assert offered == sorted(offered)
        # All others have the history as the agent has it.
        count = sum(
            "COMPACT-SUMMARY" in request.body.decode() or "recall" in request.body.decode() for request in received
        )
        assert 2 <= offered.count(True) == count < len(received)
        (first,) = {json.dumps(request.json["tools"]) for request in received[-count:]}
        assert names({"tools": json.loads(first)}) == ["read_file", "recall"]


@every_wire
@both_ways
def test_it_can_be_switched_off(wire: str, stream: bool) -> None:
    with compacted(wire, stream, recall=False) as scene:
        scene.loop.step("short")
        assert not any("recall" in names(request.json) for request in scene.provider.received)


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "function", "function": {"name": "recall", "parameters": {}}}]},
        {"tools": openai.omit},
        {"n": 2},
    ],
    ids=["a tool of that name", "no tools", "two answers"],
)
def test_requests_that_do_not_get_it(extra: dict[str, Any]) -> None:
    with compacted("chat", False) as scene:
        scene.loop.extra = extra
        scene.loop.step("short")
        sent = scene.sent()
        assert names(sent).count("recall") == ("n" not in extra) if "tools" in sent and "n" not in extra else True
        if "n" in extra:
            assert names(sent) == ["read_file"]
        if extra.get("tools") is openai.omit:
            assert "tools" not in sent


@every_wire
@both_ways
def test_an_error_of_the_second_call(wire: str, stream: bool) -> None:
    """In a stream it is an error of that stream; else it is the provider's own response."""
    error = {"type": "overloaded_error", "message": "too many at once", "code": "overloaded"}
    replies: list[Any] = []

    def answer(asked: Received) -> Any:
        return replies.pop(0)(asked)

    with compacted(wire, stream, answer) as scene:
        replies += [scene.model, lambda _: as_json({"type": "error", "error": error}, "529 Overloaded")]
        scene.script.next = [Said("Let me look.", (recall(),), thinking="Hm.")]
        with pytest.raises((openai.APIError, anthropic.APIError, RuntimeError)) as raised:
            scene.loop.step("short")
        if not stream:
            assert isinstance(raised.value, openai.APIStatusError | anthropic.APIStatusError)
            assert raised.value.status_code == 529
        if not (stream and wire == "responses"):
            assert "too many at once" in str(raised.value)
        # The agent tries again, as it would without a proxy.
        scene.loop.calls = []
        replies += [scene.model]
        scene.loop.step()
        assert scene.loop.calls


def test_a_failed_stream_of_responses_says_why() -> None:
    error = {"type": "server_error", "message": "too many at once", "code": "overloaded"}
    replies: list[Any] = []
    with compacted("responses", True, lambda asked: replies.pop(0)(asked)) as scene:
        replies += [scene.model, lambda _: as_json({"error": error}, "503 Service Unavailable")]
        scene.script.next = [Said("Let me look.", (recall(),), thinking="Hm.")]
        url, body, headers = scene.next_request()
        raw = httpx2.post(url, json=body, headers=headers, timeout=30)
        told = json.loads(raw.content.split(b"data: ")[-1])
        assert told["type"] == "response.failed"
        assert told["response"]["error"] == {"code": "overloaded", "message": "too many at once"}
        assert [item["type"] for item in told["response"]["output"]] == ["reasoning", "message"]


@every_wire
def test_an_agent_that_hangs_up_ends_the_second_call(wire: str) -> None:
    never = threading.Event()
    replies: list[Any] = []
    with compacted(wire, True, lambda asked: replies.pop(0)(asked)) as scene:
        replies += [scene.model, lambda _: [never]]
        scene.script.next = [Said("Let me look.", (recall(),), thinking="Hm.")]
        url, body, headers = scene.next_request()
        with httpx2.Client(timeout=httpx2.Timeout(30, read=3)) as client, pytest.raises(httpx2.ReadTimeout):
            client.post(url, json=body, headers=headers)
        assert scene.provider.hangups.acquire(timeout=30)
        assert replies == []


@every_wire
@both_ways
def test_a_provider_that_packs_its_answers_all_the_same(wire: str, stream: bool) -> None:
    """It is asked not to; if it does, the agent gets them unpacked."""

    def answer(asked: Received) -> list[Part]:
        assert asked.header("accept-encoding") == "identity"
        parts = [part for part in scene.model(asked) if isinstance(part, bytes)]
        kind = "text/event-stream" if stream else "application/json"
        body = parts[1] if not stream else b"".join(part.split(b"\r\n", 1)[1][:-2] for part in parts[1:])
        packed = gzip.compress(body)
        headers = (("Content-Type", kind), ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"))
        return [head("200 OK", *headers), chunk(packed[:20]), chunk(packed[20:]), chunk(b"")]

    with compacted(wire, stream, lambda asked: answer(asked)) as scene:
        scene.script.next = [Said("Look.", (recall(),), thinking="Hm."), Said("It is marzipan.")]
        scene.loop.step("short")
        assert scene.loop.text.replace("\n", "") == "Look.It is marzipan."


@every_wire
def test_a_stream_is_passed_on_as_it_comes(wire: str) -> None:
    """What stands before a hidden call is there before the call ends."""
    gate = threading.Event()

    def answer(asked: Received) -> Iterator[Part]:
        for part in scene.model(asked):
            if b"recall_1" in bytes(part) and not gate.is_set():  # type: ignore[arg-type]
                yield gate
            yield part

    with compacted(wire, True, lambda asked: answer(asked)) as scene:
        scene.script.next = [Said("Let me look.", (recall(),), thinking="Hm."), Said("Found.")]
        url, body, headers = scene.next_request()
        got = b""
        with httpx2.stream("POST", url, json=body, headers=headers, timeout=30) as response:
            for part in response.iter_raw():
                got += part
                if b"look." in got:
                    gate.set()
        assert b"nd." in got
        assert b": compact answered a call of recall\n\n" in got
        assert b"recall_1" not in got


def test_a_proxy_that_starts_anew_offers_it_again(tmp_path: Any) -> None:
    """What was hidden is not known any more; the request is legal all the same."""
    config = SMALL.model_copy(update={"state": CompactConfig(state={"url": f"sqlite:///{tmp_path}/state.db"}).state})
    script = Script()
    model = TurnModel(script, window_tokens=WINDOW)
    with Provider(model) as provider:
        with running(provider.url, config) as proxy:
            loop = LOOPS["anthropic"](proxy.url, True)
            loop.step()
            while not loop.said.startswith("compacted"):
                loop.step(WORDS)
            script.next = [Said("", (recall(),), thinking="Hm."), Said("", (read(1),), thinking="On.")]
            loop.step("short")
        with running(provider.url, config) as proxy:
            loop.url = proxy.url
            loop.step("short")
    assert "recall" in names(provider.received[-1].json)
    assert not model.rejections
