"""What is no conversation goes through byte for byte, both ways, and so does a conversation that fits."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard

from compact import CompactConfig
from compact.extras import install_line
from compact.proxy.bodies.encodings import UnreadableBody, unpack_body
from proxying.conftest import Running, running
from proxying.models import Model, Turn
from proxying.provider import END, Part, Provider, Received, chunk, head, request, talk, whole

HELLO = b'{ "model": "gpt-4o",\n  "messages": [{"role":"user","content":"caf\\u00e9 \xc3\xa9"}], "temperature": 1.0 }'


def parted(answer: bytes) -> tuple[bytes, list[bytes], bytes]:
    """The status line, the headers but for those of one hop, and the body."""
    top, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = top.split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"x-compact:"))]
    return status, kept, body


STRANGE = ("X-Two: first", "x-two: second", "X-ODD-Case: Kept", "Accept-Encoding: br;q=0.5, zstd", "Cookie: a=b; c=d")
REQUESTS = {
    "get": request("GET", "/v1/models", *STRANGE),
    "odd path and query": request("GET", "/v1/files/%2e%2e/a%2Fb//c;d=1?x=%20&x=a+b&y=%c3%a9&empty=&?", *STRANGE),
    "head": request("HEAD", "/v1/models"),
    "delete": request("DELETE", "/v1/files/file-1", "Authorization: Bearer sk-1"),
    "options": request("OPTIONS", "/v1/chat/completions"),
    "post": request("POST", "/v1/embeddings", "Content-Length: 11", *STRANGE, body=b'{"input":1}'),
    "chunks": request("PUT", "/upload", "Transfer-Encoding: chunked", body=chunk(b"one ") + chunk(b"\0two") + END),
    "count tokens": request("POST", "/v1/messages/count_tokens", "Content-Length: 15", body=b'{"messages":[]}'),
    "assistants": request("POST", "/v1/threads/t/messages", "Content-Length: 14", body=b'{"role":"user"}'[:14]),
    "a body that is no json": request("POST", "/v1/chat/completions", "Content-Length: 7", body=b"\xff\xfe not "),
    "an empty conversation": request("POST", "/v1/messages", "Content-Length: 15", body=b'{"messages":[]}'),
    "a conversation": request("POST", "/v1/chat/completions", f"Content-Length: {len(HELLO)}", *STRANGE, body=HELLO),
    "one in chunks": request(
        "POST", "/v1/responses", "Transfer-Encoding: chunked", body=chunk(b'{"input":"hi"}') + END
    ),
}


def odd_answer(asked: Received) -> list[Part]:
    """Headers twice, in odd cases, and a body of all bytes."""
    headers = (("Set-Cookie", "a=1"), ("SET-COOKIE", "b=2"), ("X-Request-ID", "r-1"), ("date", "yesterday"))
    if asked.method == "HEAD":
        return [head("200 OK", *headers, ("Content-Length", "42"))]
    return whole("207 Multi-Status", bytes(range(256)), *headers, ("content-encoding", "br"), ("Server", "odd/1.0"))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_arrives_as_it_was_sent_and_its_answer_comes_back(name: str) -> None:
    """The provider and the agent see the same bytes as without a proxy, header names and order included."""
    with Provider(odd_answer) as provider, running(provider.url) as proxy:
        direct, through = talk(provider.url, REQUESTS[name]), talk(proxy.url, REQUESTS[name])
        first, second = provider.received
    assert parted(through) == parted(direct)
    assert parted(second.head + b"\r\n\r\n") == parted(first.head + b"\r\n\r\n")
    assert second.body == first.body


def test_only_conversations_are_spoken_of() -> None:
    """The header that says what was done is on nothing else."""
    with Provider(odd_answer) as provider, running(provider.url) as proxy:
        answers = {name: b"\r\nX-Compact: " in talk(proxy.url, raw) for name, raw in REQUESTS.items()}
    about = {"a body that is no json", "an empty conversation", "a conversation", "one in chunks"}
    assert {name for name, spoken in answers.items() if spoken} == about


def outcome(proxy: Running, path: str, body: bytes, *lines: str) -> str:
    answer = talk(proxy.url, request("POST", path, f"Content-Length: {len(body)}", *lines, body=body))
    return next(line[11:].decode() for line in answer.split(b"\r\n") if line.startswith(b"X-Compact: "))


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/responses", {"input": "hi", "previous_response_id": "resp_1"}, "stood-down; reason=previous_response_id"),
        ("/v1/responses", {"input": "hi", "conversation": {"id": "c"}}, "stood-down; reason=conversation"),
        ("/v1/chat/completions", {"messages": "hi"}, "skipped; reason=no-conversation"),
        ("/v1/chat/completions", {"messages": [{"role": "nobody"}]}, "failed; reason=invalid_history"),
        ("/v1/messages", {"messages": [42]}, "failed; reason=invalid_history"),
    ],
)
def test_what_cannot_be_compacted_goes_on_as_it_is(path: str, body: dict[str, object], said: str) -> None:
    raw = json.dumps(body, indent=3).encode()
    with Provider(odd_answer) as provider, running(provider.url) as proxy:
        assert outcome(proxy, path, raw) == said
    assert provider.received[0].body == raw


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "DEFLATE": lambda data: zlib.compress(data)[2:-4],  # without its header, as some send it
    "zstd": zstandard.compress,
    "deflate, gzip": lambda data: gzip.compress(zlib.compress(data)),
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_packed_request_that_fits_arrives_as_it_was_packed(encoding: str) -> None:
    packed = PACKERS[encoding](HELLO)
    with Provider(odd_answer) as provider, running(provider.url) as proxy:
        said = outcome(proxy, "/v1/chat/completions", packed, f"Content-Encoding: {encoding}")
    assert said.startswith("unchanged; tokens=")
    assert provider.received[0].body == packed
    assert provider.received[0].header("content-encoding") == encoding


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_packed_request_that_is_compacted_is_sent_plain(encoding: str) -> None:
    """Every provider takes a plain body; no other part of the request changes."""
    notes = [{"role": "user", "content": f"note {n}: " + "word " * 300} for n in range(40)]
    packed = PACKERS[encoding](json.dumps({"model": "m", "messages": notes}).encode())
    config = CompactConfig(max_context_tokens=4_000, policy={"hard_cap_buffer": 100})
    with (
        Provider(Model(lambda _: Turn("yes"), window_tokens=4_000)) as provider,
        running(provider.url, config) as proxy,
    ):
        said = outcome(proxy, "/v1/chat/completions", packed, f"Content-Encoding: {encoding}", "X-Mine: kept")
    assert said.startswith("compacted; ")
    (received,) = provider.received
    assert (received.header("content-encoding"), received.header("x-mine")) == ("", "kept")
    assert int(received.header("content-length")) == len(received.body)
    assert received.json["messages"][-1] == notes[-1]


@pytest.mark.parametrize(
    ("encoding", "body", "reason"),
    [
        ("gzip", gzip.compress(b" " * 5_000_000), "body-too-large"),
        ("deflate", zlib.compress(b" " * 5_000_000), "body-too-large"),
        ("zstd", zstandard.compress(b" " * 5_000_000), "body-too-large"),
        ("gzip, gzip", gzip.compress(gzip.compress(b" " * 5_000_000)), "body-too-large"),
        ("gzip", gzip.compress(HELLO)[:-10], "broken-encoding"),
        ("gzip", HELLO, "broken-encoding"),
        ("zstd", HELLO, "broken-encoding"),
        ("br", HELLO, "br-needs-brotli"),
        ("lzma", HELLO, "unknown-encoding"),
    ],
)
def test_what_cannot_be_unpacked_is_passed_on_as_it_is(encoding: str, body: bytes, reason: str) -> None:
    """A body that would fill the memory is one of these: it is never unpacked beyond the limit."""
    with Provider(odd_answer) as provider, running(provider.url, max_body_bytes=1_000_000) as proxy:
        tracemalloc.start()
        said = outcome(proxy, "/v1/chat/completions", body, f"Content-Encoding: {encoding}")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert said == f"skipped; reason={reason}"
    assert provider.received[0].body == body
    assert most < 4_000_000


def test_a_missing_package_is_named_for_its_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UnreadableBody) as error:
        unpack_body(zstandard.compress(HELLO), b"zstd", 1_000)
    assert error.value.reason == "zstd-needs-zstandard"
    assert error.value.hint == install_line("proxy")


def test_a_request_above_the_limit_is_passed_on_without_a_look() -> None:
    """Nothing of it is lost, and no more than the limit is held."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 300_000}]}).encode()
    with Provider(odd_answer) as provider, running(provider.url, max_body_bytes=100_000) as proxy:
        assert outcome(proxy, "/v1/chat/completions", body) == "skipped; reason=body-too-large"
    assert provider.received[0].body == body


@pytest.mark.parametrize("given", ["{url}", "{url}/", "{url}/v1", "{url}/v1/"])
def test_the_upstream_may_be_given_with_its_version(given: str) -> None:
    with Provider(odd_answer) as provider, running(given.format(url=provider.url)) as proxy:
        talk(proxy.url, request("GET", "/v1/models?limit=1"))
    assert provider.received[0].target == "/v1/models?limit=1"


def test_an_upstream_may_have_a_path_of_its_own() -> None:
    with Provider(odd_answer) as provider, running(f"{provider.url}/api/openai") as proxy:
        assert outcome(proxy, "/v1/chat/completions", HELLO).startswith("unchanged; tokens=")
    assert provider.received[0].target == "/api/openai/v1/chat/completions"


def test_our_marks_are_taken_off_even_where_nothing_is_compacted() -> None:
    """And where compaction is not possible at all."""
    items = [{"role": "user", "content": "hi", "meta": {"protected": True}}]
    bodies = [{"model": "m", "messages": items}, {"model": "m", "messages": [*items, {"role": "nobody"}]}]
    with Provider(odd_answer) as provider, running(provider.url) as proxy:
        statuses = [outcome(proxy, "/v1/chat/completions", json.dumps(body).encode()).split(";")[0] for body in bodies]
    assert statuses == ["unchanged", "failed"]
    for received in provider.received:
        assert received.json["messages"][0] == {"role": "user", "content": "hi"}
        assert int(received.header("content-length")) == len(received.body)


def test_a_prompt_that_cannot_fit_is_left_to_the_provider() -> None:
    """Its own error is the one that agents know."""
    model = Model(lambda body: Turn("yes"), window_tokens=1_000)
    config = CompactConfig(max_context_tokens=1_000, policy={"hard_cap_buffer": 100})
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "rule " * 3_000}, {"role": "user", "content": "?"}],
    }
    raw = json.dumps(body).encode()
    with Provider(model) as provider, running(provider.url, config) as proxy:
        answer = talk(proxy.url, request("POST", "/v1/chat/completions", f"Content-Length: {len(raw)}", body=raw))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"context_length_exceeded" in answer
    assert b"X-Compact: over-budget; tokens=3" in answer
    assert provider.received[0].body == raw
