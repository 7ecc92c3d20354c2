"""Sender of spans to the queue of the SDK."""

from __future__ import annotations

from functools import partial

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from tasker_otel.batches import Batches
from tasker_otel.exporter import EncodedExporter, EncodedSpan
from tasker_otel.table import OtelTable


def sender_of(settings: OtelTable) -> Sender:
    """Return a sender to the receiver of these settings."""
    exporter = EncodedExporter(settings)
    return Sender(exporter, exporter.where, settings.queue)


class Sender(Batches):
    """Sender of spans in batches, from a thread of the SDK; spans beyond its capacity are dropped and counted.

    One thread at a time may `put`. `where` is the receiver, `capacity` the maximum number of waiting spans.
    """

    _queue: BatchSpanProcessor

    def __init__(self, exporter: SpanExporter, where: str, capacity: int) -> None:
        queue_of = partial(BatchSpanProcessor, max_queue_size=capacity)
        super().__init__("span", exporter, where, OTLPSpanExporter.__module__, queue_of, capacity)

    def put(self, span: bytes) -> None:
        """Send an encoded span with the next batch. Never waits."""
        if self.has_room():
            self._queue.on_end(EncodedSpan(span))
