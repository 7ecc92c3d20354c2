"""A receiver of OTLP over HTTP on loopback, which reads what it gets with the official classes."""

from __future__ import annotations

import gzip
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

ERROR = 2
PLAIN = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came; identifiers in hexadecimal digits, times in nanoseconds since 1970."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    trace_state: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: dict[str, dict[str, Any]]
    failed: bool
    why: str
    resource: dict[str, Any]


@dataclass(frozen=True)
class ReceivedLine:
    """A log line as it came; times in nanoseconds since 1970. `logger` is its scope."""

    logger: str
    severity: int
    level: str
    body: str
    time: int
    trace_id: str
    span_id: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class SpanReceiver:
    """What came. `answers` are the statuses of the next answers; afterwards each is 200."""

    port: int = 0
    spans: list[ReceivedSpan] = field(default_factory=list)
    lines: list[ReceivedLine] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """What the plugin's setting is to hold."""
        return f"http://127.0.0.1:{self.port}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer."""
        if path not in ("/v1/traces", "/v1/logs") or headers.get("content-type") != "application/x-protobuf":
            return 404
        if self.answers:
            return self.answers.pop(0)
        self.headers.append(headers)
        plain = PLAIN[headers.get("content-encoding")](body)
        if path == "/v1/logs":
            self.lines += lines_of(plain)
        else:
            self.spans += spans_of(plain)
        return 200


@contextmanager
def receiving(port: int = 0) -> Iterator[SpanReceiver]:
    """A receiver, until the end of the block."""
    found = SpanReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(found.take(self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        found.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def lines_of(body: bytes) -> Iterator[ReceivedLine]:
    """What a request with log lines holds."""
    for sent in ExportLogsServiceRequest.FromString(body).resource_logs:
        resource = _values(sent.resource.attributes)
        for scope in sent.scope_logs:
            for line in scope.log_records:
                yield ReceivedLine(
                    scope.scope.name,
                    line.severity_number,
                    line.severity_text,
                    line.body.string_value,
                    line.time_unix_nano,
                    line.trace_id.hex(),
                    line.span_id.hex(),
                    _values(line.attributes),
                    resource,
                )


def spans_of(body: bytes) -> Iterator[ReceivedSpan]:
    """What a request holds."""
    for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = _values(sent.resource.attributes)
        for scope in sent.scope_spans:
            assert scope.scope.name == "tasker"
            yield from (_received(span, resource) for span in scope.spans)


def _received(span: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.trace_state,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _values(span.attributes),
        {each.name: _values(each.attributes) for each in span.events},
        span.status.code == ERROR,
        span.status.message,
        resource,
    )


def _values(attributes: Iterator[KeyValue] | Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


if __name__ == "__main__":  # of benchmarks: in a process of its own, until it is ended
    with receiving() as receiver:
        SpanReceiver.take = lambda *args: 200  # type: ignore[method-assign]
        print(receiver.endpoint, flush=True)
        sys.stdin.read()
