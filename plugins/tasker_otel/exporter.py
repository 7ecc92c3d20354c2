"""Posts spans with the SDK's exporter, which tries again and knows headers, certificates, compression and proxies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from requests import Response, Session

from tasker_otel.encoding import SharingSpan, request_of
from tasker_otel.table import OtelTable, pairs

PATH = "/v1/traces"
COMPRESSED: Mapping[str | None, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


class SharingExporter(SpanExporter):
    """Posts spans that `tasker_otel.encoding` has encoded.

    The SDK's exporter encodes what it posts itself. It is given the first span of a batch, and a session that posts the
    whole batch in its place.
    """

    def __init__(self, settings: OtelTable) -> None:
        self.where = settings.endpoint.rstrip("/") + PATH
        headers = dict(pairs(settings.headers))
        self._session = _Session()
        self._exporter = OTLPSpanExporter(
            self.where, headers=headers, timeout=settings.timeout_seconds, session=self._session
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As the SDK's exporter does."""
        self._session.batch = request_of([span for span in spans if isinstance(span, SharingSpan)])
        return self._exporter.export(spans[:1])

    def shutdown(self) -> None:
        """As the SDK's exporter does."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # of the SDK

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the SDK's exporter does."""
        return self._exporter.force_flush(timeout_millis)


class _Session(Session):
    """Posts `batch`, whatever it is given."""

    batch = b""

    def request(self, *given: Any, **more: Any) -> Response:
        headers = {**self.headers, **(more.get("headers") or {})}
        kind = next((value for name, value in headers.items() if name.lower() == "content-encoding"), None)
        body = COMPRESSED.get(kind, bytes)(self.batch)
        return super().request(*given, **{**more, "data": body})
