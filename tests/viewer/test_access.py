"""Who may come in, from where, and what an answer may do in a browser."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from compact import ConfigError
from compact.viewer import connections, json_http
from compact.viewer.settings import ViewerSettings
from viewer.serving import Listening, Running, running, span, until

TOKEN = "a token of many characters"
EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def open_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer on loopback, without a token."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('open') / 'state.db'}") as viewer:
        yield viewer


@pytest.fixture(scope="module")
def closed_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A viewer with a token."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('closed') / 'state.db'}", token=TOKEN) as viewer:
        yield viewer


def raw(viewer: Running, request: str) -> str:
    """What is answered to these very bytes: clients tidy up paths before they send them."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=30) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        connection.shutdown(socket.SHUT_WR)
        chunks = iter(lambda: connection.recv(65_536), b"")
        return b"".join(chunks).decode("utf-8", "replace")


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "127.0.0.1:80", "localhost:5175"])
def test_names_that_are_ours(open_one: Running, host: str) -> None:
    assert open_one.client.get("/api/meta", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:5175", "127.0.0.1.evil.example", "192.168.0.9", "localhost@evil", "", "[::1", "a b"],
)
@pytest.mark.parametrize("path", ["/", "/api/meta", "/ingest", "/healthz", "/static/app.js"])
def test_a_name_of_somebody_else_is_refused(open_one: Running, host: str, path: str) -> None:
    """DNS can make any name lead to this machine; the page that came with it must not become one of ours."""
    answer = open_one.client.get(path, headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "csrf" not in answer.text


def test_names_of_a_viewer_for_everybody() -> None:
    wide = ViewerSettings(host="0.0.0.0", token=TOKEN)
    assert wide.knows_host("192.168.0.9")
    assert wide.knows_host(socket.gethostname())
    assert not wide.knows_host("evil.example")
    one = ViewerSettings(host="192.168.0.9", token=TOKEN)
    assert one.knows_host("192.168.0.9")
    assert not one.knows_host("192.168.0.10")


def test_the_names_of_this_machine_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer may take seconds, and everybody would wait for it."""
    wide = ViewerSettings(host="0.0.0.0", token=TOKEN)
    wide.look_up_names()
    monkeypatch.setattr(socket, "getfqdn", lambda: pytest.fail("asked again"))
    assert not wide.knows_host("evil.example")


# -- tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.9", "example.org"])
def test_other_binds_need_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="not loopback") as refusal:
        ViewerSettings(host=host)
    assert "--token" in refusal.value.hint
    assert ViewerSettings(host=host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_loopback_needs_none(host: str) -> None:
    assert ViewerSettings(host=host).url.startswith("http://")


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="can be guessed"):
        ViewerSettings(token="short")


def test_secrets_are_not_in_the_repr() -> None:
    settings = ViewerSettings(token=TOKEN)
    assert TOKEN not in repr(settings)
    assert settings.csrf not in repr(settings)


DATA = ["/api/meta", "/api/sessions", "/api/sessions/x", "/api/live", "/api/traces", "/events", "/metrics"]


@pytest.mark.parametrize("path", DATA)
def test_data_needs_the_token(closed_one: Running, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": "a=b"}):
        answer = closed_one.client.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["hint"]


def test_ingest_needs_the_token(closed_one: Running) -> None:
    assert closed_one.client.post("/ingest", json=span()).status_code == 401
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    assert closed_one.client.post("/ingest", json=span(), headers=allowed).status_code == 200


def test_the_page_and_health_have_no_data_and_need_none(closed_one: Running) -> None:
    assert closed_one.client.get("/").status_code == 200
    assert closed_one.client.get("/healthz").status_code == 200


def test_a_token_in_the_address_becomes_a_cookie(closed_one: Running) -> None:
    with httpx.Client(base_url=closed_one.url) as browser:
        assert browser.get("/?token=wrong").status_code == 401
        assert browser.get("/api/meta").status_code == 401
        answer = browser.get("/", params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        assert browser.get("/api/meta").status_code == 200


def test_a_token_in_the_fragment_is_exchanged_by_the_page(closed_one: Running) -> None:
    with httpx.Client(base_url=closed_one.url) as browser:
        for body in ({"token": "wrong"}, {"token": 5}, {}, [TOKEN]):
            assert browser.post("/api/login", json=body).status_code == 401
        assert browser.post("/api/login", json={"token": TOKEN}, headers={"Origin": EVIL}).status_code == 403
        assert browser.post("/api/login", json={"token": TOKEN}).json() == {"ok": True}
        assert browser.get("/api/meta").status_code == 200


def test_a_token_that_is_not_asked_for_opens_nothing(open_one: Running) -> None:
    assert open_one.client.get("/?token=").status_code == 401
    assert open_one.client.post("/api/login", json={"token": ""}).status_code == 401


def test_streams_need_the_token_too(closed_one: Running) -> None:
    listener = Listening(closed_one, "/api/live", {"Authorization": f"Bearer {TOKEN}"})
    assert listener.frames[0]["type"] == "hello"
    listener.stop()


# -- other pages --------------------------------------------------------------------------------------------------

FOREIGN = [
    {"Origin": EVIL},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://["},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_other_pages_cannot_write(open_one: Running, headers: dict[str, str]) -> None:
    assert open_one.client.post("/ingest", json=span(), headers=headers).status_code == 403
    assert open_one.post("/api/sessions/x/undo", {}, **headers).status_code == 403
    assert open_one.post("/api/sessions/x/restore", {"version": 0}, **headers).status_code == 403


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_other_pages_cannot_read(open_one: Running, headers: dict[str, str]) -> None:
    for path in ("/api/meta", "/api/sessions", "/events", "/api/live", "/metrics"):
        assert open_one.client.get(path, headers=headers).status_code == 403
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert open_one.client.get("/api/meta", headers=visit).status_code == 403


def test_a_link_from_elsewhere_leads_here(open_one: Running) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert open_one.client.get("/", headers=visit).status_code == 200


def test_our_own_page_may(open_one: Running) -> None:
    own = {"Origin": open_one.url, "Sec-Fetch-Site": "same-origin"}
    assert open_one.client.post("/ingest", json=span(), headers=own).status_code == 200
    assert open_one.post("/api/sessions/nobody/undo", {"version": 0}, **own).status_code == 404


def test_writes_need_the_page_s_own_token(open_one: Running) -> None:
    path = "/api/sessions/nobody/undo"
    assert open_one.client.post(path, json={}).status_code == 403
    assert open_one.client.post(path, json={}, headers={"X-Compact-CSRF": "guessed"}).status_code == 403
    assert open_one.post(path, {"version": 0}).status_code == 404


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_forms_are_not_taken(open_one: Running, kind: str) -> None:
    """What a form of another page can send without asking is no JSON."""
    csrf = open_one.get("/api/meta")["csrf"]
    headers = {"X-Compact-CSRF": csrf, "Content-Type": kind}
    assert open_one.client.post("/api/sessions/x/undo", content="{}", headers=headers).status_code == 415


# -- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/", "/static/app.js", "/api/meta", "/api/sessions/nobody", "/nothing", "/healthz", "/metrics", "/events?since=x"],
)
def test_every_answer_has_its_headers(open_one: Running, path: str) -> None:
    check_headers(open_one.client.get(path).headers)


def test_a_refusal_has_them_too(open_one: Running) -> None:
    check_headers(open_one.client.get("/api/meta", headers={"Origin": "http://["}).headers)


def check_headers(headers: httpx.Headers) -> None:
    policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "form-action": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "server" not in headers


def test_a_failure_of_ours_is_told_without_details(open_one: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(open_one.app.state.source, "sessions", fail)
    answer = open_one.client.get("/api/sessions")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_store_that_is_away_is_told(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 1000)
    with running(f"sqlite:///{tmp_path / 'state.db'}") as viewer:
        answer = viewer.client.get("/api/sessions")
        assert answer.status_code == 503
        assert answer.json()["hint"]


# -- files --------------------------------------------------------------------------------------------------------


def test_files_have_their_types(open_one: Running) -> None:
    types = {"/": "text/html; charset=utf-8", "/static/app.js": "text/javascript; charset=utf-8"}
    types |= {"/static/css/base.css": "text/css; charset=utf-8", "/static/icon.svg": "image/svg+xml"}
    for path, kind in types.items():
        assert open_one.client.get(path).headers["content-type"] == kind
    tag = open_one.client.get("/static/app.js").headers["etag"]
    assert open_one.client.get("/static/app.js", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static/css/../../guard.py",
        "/static//etc/passwd",
        "/static/..\\server.py",
        "/static/%00",
        "/static/",
        "/static/css",
        "/../../etc/passwd",
    ],
)
def test_no_other_file_can_be_asked_for(open_one: Running, path: str) -> None:
    answer = raw(open_one, f"GET {path} HTTP/1.1\nHost: localhost\nConnection: close\n\n")
    assert answer.startswith("HTTP/1.1 404")
    assert "import " not in answer
    assert "root:" not in answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(open_one: Running, method: str) -> None:
    assert open_one.client.request(method, "/ingest").status_code == 405
    assert open_one.client.request(method, "/api/sessions/x").status_code in (403, 405, 415)


def test_bodies_of_the_page_are_small(open_one: Running) -> None:
    assert open_one.post("/api/sessions/x/restore", {"version": 1, "x": "y" * 20_000}).status_code == 413


@pytest.mark.parametrize(
    "request_text",
    [
        "GET / HTTP/1.1\n\n",
        "GET / HTTP/1.1\nHost: localhost\nHost: evil.example\n\n",
        "POST /ingest HTTP/1.1\nHost: localhost\nContent-Length: -5\n\n",
        "POST /ingest HTTP/1.1\nHost: localhost\nContent-Length: x\n\n",
        "GARBAGE\n\n",
        "GET /" + "a" * 2_000_000 + " HTTP/1.1\nHost: localhost\n\n",
    ],
    ids=["no host", "two hosts", "negative", "no number", "garbage", "long"],
)
def test_broken_requests_are_refused(open_one: Running, request_text: str) -> None:
    try:
        answer = raw(open_one, request_text.replace("\n\n", "\nConnection: close\n\n"))
    except OSError:  # it was cut off while we were still talking
        answer = "HTTP/1.1 400"
    assert answer.split(" ")[1] in ("400", "403", "413", "414", "431")
    assert open_one.client.get("/healthz").status_code == 200


# -- connections --------------------------------------------------------------------------------------------------


def test_an_idle_connection_is_kept_longer_than_a_client_keeps_it(open_one: Running) -> None:
    """Otherwise a client now and then sends into a connection that is just being closed, and its request is lost."""
    expiry = httpx.Limits().keepalive_expiry
    assert expiry is not None
    assert open_one.server.config.timeout_keep_alive > 2 * expiry


def half_open(viewer: Running, count: int, sent: bytes = b"") -> list[socket.socket]:
    """Connections that are opened, and then say nothing, or not enough."""
    opened: list[socket.socket] = []
    for _ in range(count):
        opened.append(socket.create_connection(("127.0.0.1", viewer.port), timeout=5))
        if sent:
            opened[-1].sendall(sent)
    return opened


def is_closed(connection: socket.socket) -> bool:
    """True if the other side has ended it."""
    connection.settimeout(0.2)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localh"], ids=["nothing", "half a head"])
def test_connections_that_ask_for_nothing_keep_nobody_out(open_one: Running, sent: bytes) -> None:
    waiting = half_open(open_one, 262, sent)
    try:
        for _ in range(3):
            with httpx.Client(base_url=open_one.url) as newcomer:
                assert newcomer.get("/api/sessions").status_code == 200
    finally:
        for connection in waiting:
            connection.close()


def test_a_request_that_does_not_arrive_is_not_waited_for(open_one: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then is no request either."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    silent, slow = half_open(open_one, 2)
    with silent, slow:
        until(lambda: is_closed(silent))
        started = time.monotonic()
        with suppress(OSError):
            while not is_closed(slow):
                slow.sendall(b"G")
        assert time.monotonic() - started < 5


def test_a_body_that_does_not_arrive_is_answered(open_one: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_http, "_BODY_SECONDS", 0.2)
    head = b"POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
    (connection,) = half_open(open_one, 1, head)
    with connection:
        assert connection.recv(100).split(b" ")[1] == b"408"


def test_what_is_being_answered_is_never_closed_for_newcomers(open_one: Running) -> None:
    listener = Listening(open_one, "/events")
    waiting = half_open(open_one, 300)
    try:
        assert open_one.client.get("/healthz").status_code == 200
        open_one.send(span())
        until(lambda: listener.of("span"))
    finally:
        listener.stop()
        for connection in waiting:
            connection.close()
