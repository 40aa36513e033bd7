"""Requests that try to reach another server, to bring in a second request, or to use what is another caller's."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from proxying.conftest import Running, running
from proxying.provider import Provider, as_json, head

CHAT = b'{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}'


@pytest.fixture
def provider() -> Iterator[Provider]:
    """The one server that a proxy is set up for."""
    with Provider(lambda _: as_json({"ok": True})) as one:
        yield one


@pytest.fixture
def stranger() -> Iterator[Provider]:
    """A server that nobody has set up: a service of the network that only this machine can reach."""
    with Provider(lambda _: as_json({"secret": "of the machine"})) as one:
        yield one


def sent(proxy: Running, *lines: str, body: bytes = b"") -> bytes:
    """The answer to the very lines of a request: all that comes until the server hangs up, or is silent."""
    answer, where = b"", urlsplit(proxy.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=2) as connection:
        host = f"Host: {where.netloc}"
        connection.sendall("\r\n".join([lines[0], host, *lines[1:], "", ""]).encode("latin-1") + body)
        with suppress(TimeoutError):
            while part := connection.recv(65536):
                answer += part
    return answer


# -- another server ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "http://{stranger}/v1/models",
        "//{stranger}/v1/models",
        "/v1/models/@{stranger}/",
        "/\\{stranger}/v1/models",
        "/v1/../../{stranger}/",
        "/http://{stranger}/v1/models",
    ],
)
def test_no_target_of_a_request_reaches_another_server(target: str, provider: Provider, stranger: Provider) -> None:
    place = urlsplit(stranger.url).netloc
    with running(provider.url) as proxy:
        sent(proxy, f"GET {target.format(stranger=place)} HTTP/1.1", "Connection: close")
    assert stranger.received == []
    assert all(one.header("host") == urlsplit(provider.url).netloc for one in provider.received)


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-Host", "X-Original-URL", "X-Rewrite-URL", "Forwarded", "X-Compact-Upstream", "X-Upstream", "Referer"],
)
def test_no_header_of_a_request_chooses_the_server(header: str, provider: Provider, stranger: Provider) -> None:
    with running(provider.url) as proxy:
        httpx2.post(f"{proxy.v1}/chat/completions", content=CHAT, headers={header: stranger.url})
    assert stranger.received == []
    assert [one.path for one in provider.received] == ["/v1/chat/completions"]


def test_nothing_in_a_body_chooses_the_server(provider: Provider, stranger: Provider) -> None:
    names = ("base_url", "upstream", "api_base", "endpoint", "url")
    body = {**json.loads(CHAT), **dict.fromkeys(names, stranger.url)}
    with running(provider.url) as proxy:
        httpx2.post(f"{proxy.v1}/chat/completions", json=body)
    assert stranger.received == []
    assert len(provider.received) == 1


def test_a_redirect_is_passed_on_and_not_followed(stranger: Provider) -> None:
    """The provider, or who speaks for it, sends us elsewhere with the caller's key."""
    moved = head("307 Temporary Redirect", ("Location", f"{stranger.url}/latest/meta-data"), ("Content-Length", "0"))
    with Provider(lambda _: [moved]) as provider, running(provider.url) as proxy:
        answer = httpx2.post(f"{proxy.v1}/chat/completions", content=CHAT, headers={"authorization": "Bearer sk-1"})
    assert answer.status_code == 307
    assert stranger.received == []


# -- a second request -------------------------------------------------------------------------------------------------

HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-other\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("lengths", "body"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n" + HIDDEN),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\n" + HIDDEN),
        (["Content-Length: 2", f"Content-Length: {len(HIDDEN) + 2}"], b"{}" + HIDDEN),
        (["Content-Length: 2, 40"], b"{}" + HIDDEN),
        (["Content-Length: +2"], b"{}" + HIDDEN),
        (["Content-Length: -1"], HIDDEN),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\n" + HIDDEN),
        (["Transfer-Encoding : chunked", "Content-Length: 5"], b"0\r\n\r\n" + HIDDEN),
        (["Connection: content-length", "Content-Length: 2"], b"{}"),
        (["X-Note: a\r\n Content-Length: 0", "Content-Length: 2"], b"{}"),
    ],
    ids=str,
)
def test_no_request_hides_in_the_body_of_another(lengths: list[str], body: bytes, provider: Provider) -> None:
    """Whatever a request says of its length: what the provider gets has one length, and is one request."""
    with running(provider.url) as proxy:
        sent(proxy, "POST /v1/files HTTP/1.1", "Authorization: Bearer sk-1", *lengths, body=body)
    # A second request on the same connection is one that the caller may make; it comes with its own key, or is refused.
    for one in provider.received:
        names = [name.lower() for name, _ in one.headers]
        assert names.count("content-length") + names.count("transfer-encoding") <= 1
        assert b"/v1/hidden" not in one.body
        assert (one.path == "/v1/hidden") == (one.header("authorization") == "Bearer sk-other")


@pytest.mark.parametrize("name", ["X-Compact-Session", "X-Api-Key", "Authorization"])
def test_half_a_line_break_in_a_header_adds_no_header(name: str, provider: Provider) -> None:
    with running(provider.url) as proxy:
        for broken in ("a\rX-Evil: 1", "a\x00X-Evil: 1", "a\r\r\nX-Evil: 1"):
            sent(proxy, "GET /v1/models HTTP/1.1", f"{name}: {broken}", "Connection: close")
    assert not any(one.header("x-evil") for one in provider.received)


# -- another caller ---------------------------------------------------------------------------------------------------


def test_a_key_is_used_for_the_request_that_brought_it_and_for_no_other(provider: Provider) -> None:
    """The same words, the same session name, one connection: each goes out with its own key, or with none."""
    keys = ["sk-one", "sk-two", "", "sk-one", ""]
    with running(provider.url) as proxy, httpx2.Client() as client:
        for key in keys:
            more = {"authorization": f"Bearer {key}"} if key else {}
            client.post(f"{proxy.v1}/chat/completions", content=CHAT, headers={"X-Compact-Session": "shared", **more})
    assert [one.header("authorization").removeprefix("Bearer ") for one in provider.received] == keys
