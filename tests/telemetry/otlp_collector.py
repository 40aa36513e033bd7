"""A collector that reads OTLP protobuf over HTTP, as a real one does."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """What arrived."""

    endpoint: str = ""
    status: int = 200
    requests: int = 0
    raw: list[bytes] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    metric_resources: list[dict[str, Any]] = field(default_factory=list)
    # By name, the newest state: attributes and value, or (count, sum) of a histogram.
    metrics: dict[str, list[tuple[dict[str, Any], Any]]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    # (name, version) of each instrumentation scope.
    scopes: set[tuple[str, str]] = field(default_factory=set)

    def take(self, path: str, body: bytes) -> None:
        """Read one request."""
        self.raw.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(attributes(resource.resource))
                for scope in resource.scope_spans:
                    self.scopes.add((scope.scope.name, scope.scope.version))
                    self.spans.extend(scope.spans)
            return
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            self.metric_resources.append(attributes(resource.resource))
            for scope in resource.scope_metrics:
                self.scopes.add((scope.scope.name, scope.scope.version))
                for metric in scope.metrics:
                    self.units[metric.name] = metric.unit
                    self.metrics[metric.name] = list(_points(metric))

    def named(self, name: str) -> list[Any]:
        """The spans of a name."""
        return [span for span in self.spans if span.name == name]


def attributes(carrier: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: _value(pair.value) for pair in carrier.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def _points(metric: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if metric.HasField("gauge"):
        for point in metric.gauge.data_points:
            yield attributes(point), point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
    elif metric.HasField("histogram"):
        for point in metric.histogram.data_points:
            yield attributes(point), (point.count, point.sum)
    else:
        for point in metric.sum.data_points:
            yield attributes(point), point.as_int


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    """The collector on a free port."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests += 1
            if collector.status == 200:
                assert self.headers["Content-Type"] == "application/x-protobuf"
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                collector.take(self.path, gzip.decompress(body) if is_packed else body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    collector.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
