"""The parts by themselves: whose conversation it is, which headers travel, what an answer says was counted."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from typing import Any

import pytest

from compact import CompactManager
from compact.adapters.support.endpoints import (
    ANTHROPIC_AT_BEDROCK,
    ANTHROPIC_AT_VERTEX,
    ANTHROPIC_MESSAGES,
    CHAT_COMPLETIONS,
    CONVERSE,
    GEMINI,
    OLLAMA_CHAT,
    RESPONSES,
    Endpoint,
    find_endpoint,
)
from compact.core.engine.events import CompactionErrorEvent
from compact.core.errors import ConfigError
from compact.proxy.caller_keys import caller_key
from compact.proxy.compaction import IncomingBody, RequestCompactor
from compact.proxy.headers import for_client, for_upstream
from compact.proxy.outcome import RequestOutcome
from compact.proxy.sessions import SessionNames, answer_fingerprint, first_answer
from compact.proxy.upstream import Upstream
from compact.proxy.usage import UsageReader
from compact.testing import RecordingSink
from compact.testing.apis.converse_stream import frame_event
from compact.tokens.usage import reported_usage

KEY = {b"authorization": b"Bearer sk-1"}
CALLED = 'f {"a": 2, "b": 1}'
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]


def name(
    names: SessionNames, *more: Any, endpoint: Endpoint = CHAT_COMPLETIONS, headers: Any = KEY, **body: Any
) -> str:
    return named(names, endpoint, {endpoint.items_key: [*OPENING, *more], **body}, headers)


def named(
    names: SessionNames, endpoint: Endpoint, body: Any, headers: Any = KEY, stored: frozenset[str] = frozenset()
) -> str:
    async def find_answers(_: str) -> frozenset[str]:
        return stored

    given = headers.get(b"x-compact-session", b"")
    key = caller_key(headers)
    return asyncio.run(names.name(endpoint, body, key=key, given=given, find_answers=find_answers))


def answered(call_id: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{**CALL, "id": call_id}]}


def test_a_conversation_keeps_its_session() -> None:
    names = SessionNames()
    assert name(names) == name(names, answered("a")) == name(names, answered("a"), answered("b"))


def test_a_clock_in_the_instructions_is_not_another_opening() -> None:
    names = SessionNames()
    sessions = {
        named(names, ANTHROPIC_MESSAGES, {"system": f"It is 2026-03-01 09:{n:02}. Be brief.", "messages": OPENING[-1:]})
        for n in range(60)
    }
    assert len(sessions) == 1
    other = {"system": "It is 2026-03-01 09:00. Be long.", "messages": OPENING[-1:]}
    assert named(names, ANTHROPIC_MESSAGES, other) not in sessions


def test_conversations_that_begin_alike_part_at_the_first_answer() -> None:
    """The first has the name of the opening; whoever begins again later does not come into its session."""
    names = SessionNames()
    first = name(names, answered("a"))
    second = name(names, answered("b"))
    assert first != second
    assert second.startswith(first)
    assert name(names) not in (first, second)
    assert name(names, answered("a"), answered("c")) == first
    assert name(names, answered("b"), answered("c")) == second


def test_what_another_process_knows_counts() -> None:
    """A session in the store belongs to the conversation whose first answer is in it."""
    opening = name(SessionNames())
    body = {"messages": [*OPENING, answered("a")]}
    own, others = (
        named(SessionNames(), CHAT_COMPLETIONS, body, stored=frozenset({answer_fingerprint(first)})) for first in "az"
    )
    assert own == opening != others


@pytest.mark.parametrize(
    "other",
    [
        {"headers": {b"x-api-key": b"sk-2"}},
        {"prompt_cache_key": "thread-7"},
        {"metadata": {"user_id": "session-9"}},
        {"endpoint": ANTHROPIC_MESSAGES, "system": "Be long."},
    ],
)
def test_key_instructions_and_the_clients_own_marks_tell_conversations_apart(other: dict[str, Any]) -> None:
    names = SessionNames()
    assert name(names) != name(names, **other)


def test_cache_marks_and_wrapping_are_not_another_opening() -> None:
    wrapped = [{"type": "text", "text": "Go.", "cache_control": {"type": "ephemeral"}}]
    names = SessionNames()
    plain, marked = ({"messages": [{"role": "user", "content": said}]} for said in ("Go.", wrapped))
    assert named(names, ANTHROPIC_MESSAGES, plain) == named(names, ANTHROPIC_MESSAGES, marked)


def test_a_given_name_is_used_but_never_with_another_key() -> None:
    names = SessionNames()
    mine = {**KEY, b"x-compact-session": b"run-1"}
    assert name(names, headers=mine).startswith("run-1-")
    assert name(names, headers=mine) != name(names, headers={**mine, b"authorization": b"Bearer sk-2"})
    assert name(names, headers={b"x-compact-session": b"run-1"}) == "run-1"
    odd = name(names, headers={b"x-compact-session": "../ü\t/etc".encode()})
    assert odd.startswith("named-")
    assert odd.isascii()


def test_who_has_no_key_cannot_name_the_session_of_one_who_has() -> None:
    """Session ids are in logs and in the viewer: whoever has seen one may send it as a name."""
    names = SessionNames()
    named = name(names, headers={**KEY, b"x-compact-session": b"run-1"})
    opened = name(names, headers=KEY)
    for known in (named, opened, f"{opened}-0123abcd"):
        assert name(names, headers={b"x-compact-session": known.encode()}) != known
        assert name(names, headers={b"authorization": b"Bearer sk-2", b"x-compact-session": known.encode()}) != known
    for plain in ("run-1", "build-20260101", "a-deadbeef"):
        assert name(names, headers={b"x-compact-session": plain.encode()}) == plain


def test_a_key_that_gives_the_same_name_cannot_be_searched_for() -> None:
    """A proxy does not know which keys are good: who wants the session of another can try as many as he likes."""
    suffix = name(SessionNames(), headers={**KEY, b"x-compact-session": b"run"}).removeprefix("run-")
    assert len(bytes.fromhex(suffix)) * 8 >= 64


@pytest.mark.parametrize(
    ("items", "answer"),
    [
        ([*OPENING, {"role": "assistant", "content": " Yes. "}], "Yes."),
        ([*OPENING, {"type": "reasoning", "id": "rs"}, {"type": "function_call", "call_id": "c"}], "c"),
        (
            [{"role": "assistant", "content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "A"}]}],
            "A",
        ),
        ([{"role": "assistant", "content": [{"type": "text", "text": "A"}, {"type": "tool_use", "id": "t"}]}], "t"),
        ([{"role": "model", "parts": [{"text": "?", "thought": True}, {"functionCall": {"id": "g"}}]}], "g"),
        ([{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}}]}], CALLED),
        ([{"role": "model", "parts": [{"text": "?", "thought": True}, {"text": " A "}]}], "A"),
        ([{"role": "assistant", "content": [{"text": "A"}, {"toolUse": {"toolUseId": "u", "name": "f"}}]}], "u"),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": 2}}}]}], CALLED),
        (OPENING, ""),
    ],
)
def test_the_first_answer_is_known_on_every_wire(items: list[Any], answer: str) -> None:
    assert first_answer(items) == answer


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/v1/chat/completions", CHAT_COMPLETIONS),
        ("/openai/deployments/x/chat/completions", CHAT_COMPLETIONS),
        ("/v1/responses", RESPONSES),
        ("/v1/messages", ANTHROPIC_MESSAGES),
        ("/v1/messages/count_tokens", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/threads/t_1/messages", None),
        ("/v1/completions", None),
        ("/v1beta/models/gemini-2.5-pro:generateContent", GEMINI),
        ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", GEMINI),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent", GEMINI),
        ("/v1beta/models/gemini-2.5-pro:countTokens", None),
        ("/v1internal:generateContent", None),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict", ANTHROPIC_AT_VERTEX),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", None),
        ("/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", None),
        ("/model/a.b-v1%3A0/converse", CONVERSE),
        ("/model/a.b-v1%3A0/converse-stream", CONVERSE),
        ("/model/a.b-v1%3A0/invoke", ANTHROPIC_AT_BEDROCK),
        ("/model/a.b-v1%3A0/invoke-with-response-stream", ANTHROPIC_AT_BEDROCK),
        ("/model/a.b-v1%3A0/count-tokens", None),
        ("/api/chat", OLLAMA_CHAT),
        ("/api/generate", None),
    ],
)
def test_the_end_of_a_path_tells_who_holds_a_conversation(path: str, endpoint: Endpoint | None) -> None:
    assert find_endpoint("POST", path) is endpoint
    assert find_endpoint("GET", path) is None


@pytest.mark.parametrize(
    ("endpoint", "path", "model"),
    [
        (CHAT_COMPLETIONS, "/openai/deployments/my%20gpt/chat/completions", "my gpt"),
        (GEMINI, "/v1beta/models/gemini-2.5-pro%3AgenerateContent", "gemini-2.5-pro"),
        (CONVERSE, "/model/arn%3Aaws%3Abedrock%3Ax%2Fclaude/converse", "arn:aws:bedrock:x/claude"),
        (ANTHROPIC_AT_VERTEX, "/publishers/anthropic/models/claude-x@1:rawPredict", "claude-x@1"),
    ],
)
def test_a_path_may_name_the_model(endpoint: Endpoint, path: str, model: str) -> None:
    assert endpoint.model({}, path) == model


def test_parts_of_a_request_are_where_each_api_has_them() -> None:
    gemini = {
        "systemInstruction": {"parts": [{"text": "Be"}, {"text": "brief."}]},
        "tools": [{"functionDeclarations": []}],
        "generationConfig": {"maxOutputTokens": 9},
    }
    assert (GEMINI.instructions(gemini), GEMINI.output_tokens(gemini)) == ("Be\nbrief.", 9)
    assert GEMINI.tools(gemini) == gemini["tools"]
    converse = {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {"tools": [{"toolSpec": {}}]},
        "inferenceConfig": {"maxTokens": 9},
    }
    assert (CONVERSE.instructions(converse), CONVERSE.output_tokens(converse)) == ("Be brief.", 9)
    assert CONVERSE.tools(converse) == [{"toolSpec": {}}]
    ollama = {"model": "llama3", "options": {"num_ctx": 2_000, "num_predict": 9}}
    assert (OLLAMA_CHAT.window_tokens(ollama), OLLAMA_CHAT.output_tokens(ollama)) == (2_000, 9)
    assert OLLAMA_CHAT.model(ollama, "/api/chat") == "ollama/llama3"
    assert ANTHROPIC_AT_BEDROCK.items({"messages": []}) is None
    assert ANTHROPIC_AT_BEDROCK.items({"messages": [], "anthropic_version": "x"}) == []


def test_headers_of_one_hop_stay_and_all_others_keep_their_place() -> None:
    came = [
        (b"Host", b"localhost:5176"),
        (b"X-A", b"1"),
        (b"Connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"gone"),
        (b"TE", b"trailers"),
        (b"Content-Length", b"10"),
        (b"x-a", b"2"),
        (b"X-Compact-Session", b"s"),
        (b"Expect", b"100-continue"),
    ]
    sent = [(b"Host", b"api"), (b"X-A", b"1"), (b"Content-Length", b"10"), (b"x-a", b"2")]
    assert for_upstream(came, b"api") == sent
    assert for_upstream(came, b"api", new_length=7) == [(n, b"7" if n == b"Content-Length" else v) for n, v in sent]
    chunked = [(b"Host", b"x"), (b"Transfer-Encoding", b"chunked")]
    assert for_upstream(chunked, b"api") == [(b"Host", b"api"), (b"Transfer-Encoding", b"chunked")]
    assert for_upstream(chunked, b"api", new_length=7) == [(b"Host", b"api"), (b"Content-Length", b"7")]
    assert for_client([(b"transfer-encoding", b"chunked"), (b"ETag", b"e")]) == [(b"ETag", b"e")]


STREAM = (
    b'event: message_start\r\ndata: {"message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 95}}}\r\n\r\n'
    b'data: {"type": "content_block_delta", "delta": {"text": "the word \\"usage\\" alone"}}\n\n'
    b'data: {"usage": {"output_tokens": 9, "input_tokens": 999}}\n\n'
)
COUNTED = {"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 9}


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("packed", [False, True])
def test_usage_is_read_off_a_stream_however_it_is_cut(size: int, packed: bool) -> None:
    """What the prompt took is told first; what tools of the provider read later does not count."""
    headers = {
        b"content-type": b"text/event-stream; charset=utf-8",
        **({b"content-encoding": b"gzip"} if packed else {}),
    }
    data, reader = gzip.compress(STREAM) if packed else STREAM, UsageReader(headers)
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    assert reader.end() == COUNTED


CHUNK = base64.b64encode(b'{"message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 95}}}').decode()
REPORTS = {
    b"application/vnd.amazon.eventstream": frame_event("messageStart", {"role": "assistant"})
    + frame_event("metadata", {"usage": {"inputTokens": 5, "totalTokens": 107, "outputTokens": 7}}),
    b"application/vnd.amazon.eventstream; of=claude": frame_event("chunk", {"bytes": CHUNK, "p": "abc"}),
    b"application/x-ndjson": b'{"done": false}\n{"done": true, "prompt_eval_count": 100, "eval_count": 7}\n',
    b"application/json; charset=UTF-8": b'[{"usageMetadata": {"promptTokenCount": 100}},\r\n'
    b'{"usageMetadata": {"promptTokenCount": 100, "toolUsePromptTokenCount": 7}}]',
    b"text/event-stream": b'data: {"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 40}}\r\n\r\n',
}


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("kind", REPORTS)
def test_every_provider_tells_its_usage_in_its_own_way(kind: bytes, size: int) -> None:
    reader = UsageReader({b"content-type": kind})
    for start in range(0, len(REPORTS[kind]), size):
        reader.feed(REPORTS[kind][start : start + size])
    assert reported_usage(reader.end()).input_tokens == 100


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({b"content-type": b"application/vnd.amazon.eventstream"}, b"\0\0\0\x10\0\0\1\0" + b"x" * 20),
        ({b"content-type": b"application/json", b"content-encoding": b"br"}, b'{"usage": {"input_tokens": 1}}'),
        ({b"content-type": b"application/json", b"content-encoding": b"gzip"}, b"this is not gzip"),
        ({b"content-type": b"application/json"}, b'{"usage": {"input_tokens": 1}'),
        ({b"content-type": b"application/json"}, b'["usage"]'),
        ({b"content-type": b"text/plain"}, b'{"usage": {"input_tokens": 1}}'),
        ({}, b""),
    ],
)
def test_what_cannot_be_read_is_no_report(headers: dict[bytes, bytes], body: bytes) -> None:
    reader = UsageReader(headers)
    reader.feed(body)
    assert reader.end() is None


def test_a_report_in_an_endless_answer_is_not_waited_for() -> None:
    reader = UsageReader({b"content-type": b"application/json"})
    for _ in range(10):
        reader.feed(b" " * 1_000_000)
    reader.feed(json.dumps({"usage": {"input_tokens": 1}}).encode())
    assert reader.end() is None


def test_an_outcome_is_one_line_of_plain_text() -> None:
    told = RequestOutcome("compacted", plan=3, tokens=40, tokens_before=90, session_id="s-ü").header
    assert told == (b"X-Compact", b"compacted; plan=3 before=90 after=40 session=s-?")


@pytest.mark.parametrize("url", ["api.openai.com", "ftp://x", "https://", "https://me:secret@x", "https://x/?key=1"])
def test_an_upstream_is_a_server_and_nothing_else(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        Upstream(url)
    assert error.value.hint


def test_a_failed_compaction_is_an_event_without_the_text_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may quote the conversation. A manager that cannot be made does not stop a request either."""

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("cannot read: a secret of state")

    sink = RecordingSink()
    manager = CompactManager(on_event=sink)
    monkeypatch.setattr(manager, "abegin_preflight", broken)
    raw = json.dumps({"model": "m", "messages": OPENING}).encode()
    incoming = IncomingBody(endpoint=CHAT_COMPLETIONS, raw=raw, path="/v1/chat/completions")
    outcomes = [
        asyncio.run(RequestCompactor(manager_for).compact(incoming)) for manager_for in (lambda *_: manager, broken)
    ]
    assert outcomes == [RequestOutcome("failed", reason="RuntimeError")] * 2
    (event,) = sink.of(CompactionErrorEvent)
    assert (event.error_type, event.fallback) == ("RuntimeError", "the request goes out as it is")
    assert event.session_id.startswith("proxy-")
    assert "secret" not in event.message
