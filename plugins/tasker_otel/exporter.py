"""Exporter based on the SDK's, which retries and supports headers, certificates, compression and proxies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags

from tasker_otel.encoding import Request
from tasker_otel.table import OtelTable, pairs

PATH = "/v1/traces"
KEPT = SpanContext(1, 1, False, TraceFlags(TraceFlags.SAMPLED))
COMPRESSED: Mapping[str | None, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


class EncodedSpan(ReadableSpan):
    """Encoded span in the queue of the SDK, which only checks whether its trace is sampled."""

    def __init__(self, message: bytes) -> None:
        self.message = message

    @property
    def context(self) -> SpanContext:
        """Context of a sampled trace."""
        return KEPT


class EncodedExporter(SpanExporter):
    """Exporter of spans that `tasker_otel.encoding` has encoded.

    The SDK's exporter encodes its own body. It gets an empty span of the common resource, and a session that posts the
    encoded batch instead.
    """

    def __init__(self, settings: OtelTable) -> None:
        self.where = settings.endpoint.rstrip("/") + PATH
        headers = dict(pairs(settings.headers))
        self._empty, self._session = empty_span(resource_of(settings)), _Session()
        self._request = Request(self._empty)
        self._exporter = OTLPSpanExporter(
            self.where, headers=headers, timeout=settings.timeout_seconds, session=self._session
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch as the SDK's exporter does."""
        self._session.batch = self._request.of(span.message for span in spans if isinstance(span, EncodedSpan))
        return self._exporter.export([self._empty])

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # of the SDK

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def resource_of(settings: OtelTable) -> Resource:
    """Return the resource that identifies the sender of spans."""
    return Resource.create({**dict(pairs(settings.resource_attributes)), SERVICE_NAME: settings.service_name})


def empty_span(resource: Resource) -> ReadableSpan:
    """Return a span that only identifies its sender."""
    scope = InstrumentationScope("tasker", version("tasker-engine"))
    return ReadableSpan("", KEPT, resource=resource, instrumentation_scope=scope)


class _Session(requests.Session):
    """Session that posts `batch` instead of the given body."""

    batch = b""

    def request(self, *given: Any, **more: Any) -> requests.Response:
        headers = {**self.headers, **(more.get("headers") or {})}
        kind = next((value for name, value in headers.items() if name.lower() == "content-encoding"), None)
        body = COMPRESSED.get(kind, bytes)(self.batch)
        return super().request(*given, **{**more, "data": body})
