"""Ariadne's wire rules, as its own server keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionEvent
from viewer.serving import Running, span

TRACE = {"type": "trace", "trace_id": "t1", "name": "a run"}


def refused(viewer: Running, body: object) -> list[dict[str, Any]]:
    answer = viewer.client.post("/ingest", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == "Validation failed"
    return answer.json()["details"]


def kept_span(viewer: Running, trace_id: str = "t1", span_id: str = "s1") -> dict[str, Any]:
    spans = viewer.get(f"/api/traces/{trace_id}")["spans"]
    return next(entry for entry in spans if entry["span_id"] == span_id)


def test_one_event_or_a_batch_is_taken(empty: Running) -> None:
    one = empty.client.post("/ingest", json=TRACE)
    several = empty.client.post("/ingest", json={"batch": [span(1), span(2)]})
    none = empty.client.post("/ingest", json={"batch": []})
    assert (one.status_code, one.json()) == (200, {"success": True, "count": 1})
    assert several.json() == {"success": True, "count": 2}
    assert none.json() == {"success": True, "count": 0}
    assert empty.get("/healthz")["events"] == {"count": 3, "capacity": 100_000}


@pytest.mark.parametrize(
    "body",
    [[TRACE], {"events": [TRACE]}, {"batch": TRACE}, {"batch": None}, "text", 5, {"type": "log"}, {}],
    ids=repr,
)
def test_other_shapes_are_refused(empty: Running, body: object) -> None:
    assert refused(empty, body)
    assert empty.get("/healthz")["events"]["count"] == 0


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({**TRACE, "trace_id": ""}, "trace_id"),
        ({**TRACE, "trace_id": 5}, "trace_id"),
        ({"type": "trace"}, "trace_id"),
        ({"type": "span", "trace_id": "t1"}, "span_id"),
        (span(span_id=""), "span_id"),
        (span(parent_id=""), "parent_id"),
        (span(parent_id=None), "parent_id"),
        (span(kind=None), "kind"),
        (span(name=7), "name"),
        (span(status="failed"), "status"),
        (span(status=None), "status"),
        (span(data=None), "data"),
        (span(data="text"), "data"),
        (span(started_at="2026-01-01T10:00:00+00:00"), "started_at"),
        (span(started_at="2026-01-01 10:00:00Z"), "started_at"),
        (span(started_at=1_767_261_600), "started_at"),
        (span(started_at="2026-13-01T10:00:00Z"), "started_at"),
        (span(ended_at=None), "ended_at"),
        (span(ended_at="2026-01-01T09:59:59Z"), "ended_at"),
        ({**TRACE, "metadata": {"turn": 5}}, "metadata"),
        ({**TRACE, "metadata": None}, "metadata"),
        ({**TRACE, "group_id": None}, "group_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_field_is_named(empty: Running, event: dict[str, Any], field: str) -> None:
    assert [detail["path"] for detail in refused(empty, event)] == [[field]]
    assert [detail["path"] for detail in refused(empty, {"batch": [TRACE, event]})] == [["batch", 1, field]]


def test_one_bad_event_rejects_its_whole_batch(empty: Running) -> None:
    refused(empty, {"batch": [TRACE, span(1), span(2, status="bad"), span(3)]})
    assert empty.get("/healthz")["events"]["count"] == 0
    assert empty.get("/api/traces") == {"traces": [], "more": False}


def test_unknown_keys_vanish_without_a_word(empty: Running) -> None:
    unknown = {"timestamp": 5, "duration_ms": 7, "properties": {"a": 1}, "payload": "x"}
    empty.send({**span(1, data={"output": "text"}), **unknown})
    kept = kept_span(empty)
    assert not unknown.keys() & kept.keys()
    assert kept["data"] == {"output": "text"}


def test_long_texts_are_cut(empty: Running) -> None:
    empty.send(span(1, name="n" * 2_000, data={"output": "x" * 110_000, "deep": [{"er": "y" * 102_401}], "n": 5}))
    kept = kept_span(empty)
    assert kept["name"] == "n" * 1_024
    assert (len(kept["data"]["output"]), len(kept["data"]["deep"][0]["er"]), kept["data"]["n"]) == (102_400, 102_400, 5)


def test_a_span_is_updated_by_sending_it_again(empty: Running) -> None:
    opened = {name: value for name, value in span(1, data={"a": 1}).items() if name != "ended_at"}
    empty.send(opened)
    assert "ended_at" not in kept_span(empty)
    empty.send(
        {"type": "span", "trace_id": "t1", "span_id": "s1", "ended_at": "2026-01-01T10:00:09Z", "status": "error"}
    )
    kept = kept_span(empty)
    assert (kept["name"], kept["ended_at"], kept["status"], kept["data"]) == (
        "span 1",
        "2026-01-01T10:00:09Z",
        "error",
        {"a": 1},
    )
    assert empty.get("/healthz")["events"]["count"] == 1
    assert empty.get("/api/traces")["traces"][0]["errors"] == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read(empty: Running, chunked: bool) -> None:
    body = json.dumps(span(1, data={"x": "y" * 262_144})).encode()
    content = (body[n : n + 65_536] for n in range(0, len(body), 65_536)) if chunked else body
    answer = empty.client.post("/ingest", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert empty.get("/healthz")["events"]["count"] == 0


def test_a_body_of_just_the_limit_is_taken(empty: Running) -> None:
    body = json.dumps(span(1, data={"x": ""}))
    body = body[:-3] + "y" * (262_144 - len(body)) + body[-3:]
    assert len(body) == 262_144
    assert empty.client.post("/ingest", content=body).status_code == 200
    assert empty.client.post("/ingest", content=body + " ").status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b'{"type": NaN}', b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000]
)
def test_what_is_not_json_is_refused(empty: Running, body: bytes) -> None:
    assert empty.client.post("/ingest", content=body).status_code == 400


@pytest.mark.parametrize("number", ["1e400", "-1e400", "Infinity", "-Infinity", "NaN"])
def test_a_number_that_is_not_finite_rejects_its_whole_batch(empty: Running, number: str) -> None:
    """It could be taken, but never sent on."""
    empty.send(span(1, data={"a": 1}))
    body = json.dumps({"batch": [span(2), span(1, data={"a": "HERE"})]}).replace('"HERE"', number)
    answer = empty.client.post("/ingest", content=body)
    assert (answer.status_code, "finite" in answer.json()["hint"]) == (400, True)
    assert empty.get("/healthz")["events"]["count"] == 1
    assert kept_span(empty)["data"] == {"a": 1}


def test_what_is_nested_too_deeply_is_refused(empty: Running) -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = {"d": deep}
    assert [detail["path"] for detail in refused(empty, span(1, data=deep))] == [["data"]]
    fine: Any = "end"
    for _ in range(20):
        fine = [fine]
    empty.send(span(1, data={"d": fine}))


def test_odd_texts_survive(empty: Running) -> None:
    odd = "lone \ud800 null \0 漢 <script>"
    empty.client.post("/ingest", content=json.dumps(span(1, name=odd, data={odd: odd})))
    kept = kept_span(empty)
    assert (kept["name"], kept["data"]) == (odd, {odd: odd})


def test_our_exporter_learns_that_updates_are_taken(empty: Running) -> None:
    """A call is seen here while it runs; a server that does not answer so gets what has ended alone."""
    seen: list[dict[str, Any]] = []
    settings = {"exporter": "ariadne", "ariadne_url": f"{empty.url}/ingest"}
    config = CompactConfig(
        telemetry=settings, state={"url": "memory:"}, storage={"adapter": "none"}, tokenizer="simple"
    )

    def look(event: CompactionEvent) -> None:
        if event.name == "compact.token_estimate":
            assert manager.flush(30)
            seen.extend(empty.get("/api/traces/s")["spans"])

    with CompactManager(config, on_event=look) as manager:
        manager.preflight("s", [{"role": "user", "content": "one"}])
        seen.clear()
        manager.preflight("s", [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    running = [span["name"] for span in seen if "ended_at" not in span]
    assert running == ["compact.preflight"]
    spans = empty.get("/api/traces/s")["spans"]
    assert all("ended_at" in span for span in spans)
