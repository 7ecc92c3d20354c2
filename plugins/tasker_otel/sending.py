"""Hands spans to the queue of the SDK, and tells in the log of Tasker when a receiver is away, once each time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Thread, get_ident

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tasker_otel.exporter import EncodedExporter, EncodedSpan
from tasker_otel.table import OtelTable

_log = logging.getLogger("tasker.plugins.otel")
_log_of_sdk = logging.getLogger(OTLPSpanExporter.__module__)


def sender_of(settings: OtelTable) -> Sender:
    """A sender to the receiver of these settings."""
    exporter = EncodedExporter(settings)
    return Sender(exporter, exporter.where, settings.queue)


class Sender:
    """Sends spans in batches, from a thread of the SDK; what does not fit into its queue is lost, and counted.

    One thread at a time may `put`. `where` names the receiver, `capacity` is how many spans wait at most.
    """

    def __init__(self, exporter: SpanExporter, where: str, capacity: int) -> None:
        self._told, self.where, self._capacity = _Told(exporter, where), where, capacity
        self._queue = BatchSpanProcessor(self._told, max_queue_size=capacity)
        self._accepted = self._dropped = 0

    @property
    def lost(self) -> int:
        """Spans that were lost since the start."""
        return self._dropped + self._told.failed

    def put(self, span: bytes) -> None:
        """Send an encoded span with the next batch. Never waits.

        The SDK's queue would push out the oldest span and count nothing, so that it is kept from running over.
        """
        if self._accepted - self._told.taken >= self._capacity:
            self._dropped += 1
            return
        self._accepted += 1
        self._queue.on_end(EncodedSpan(span))

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, at most so long; what is left is told in the log."""
        flushing = Thread(target=self._queue.force_flush, name="tasker spans", daemon=True)
        flushing.start()
        flushing.join(seconds)  # the SDK's own limit does nothing yet
        left = self._accepted - self._told.done
        if left or self.lost:
            _log.warning("spans_lost receiver=%s not_sent=%s dropped=%s", self.where, left, self.lost)


class _Told(SpanExporter):
    """Counts what an exporter does, and tells once that it fails, instead of what it says of each of its requests.

    The SDK uses it from one thread at a time. `taken` are spans that left the queue, `done` those whose end is known.
    """

    def __init__(self, exporter: SpanExporter, where: str) -> None:
        self._exporter, self._where = exporter, where
        self._is_down = False
        self.taken = self.done = self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As the exporter does."""
        self.taken += len(spans)
        heard = _Heard()
        _log_of_sdk.addFilter(heard)
        try:
            found = self._exporter.export(spans)
        except Exception as error:  # a defect of one batch must not be told with each of them
            found, heard.last = SpanExportResult.FAILURE, repr(error)
        finally:
            _log_of_sdk.removeFilter(heard)
        self._tell(found is SpanExportResult.SUCCESS, len(spans), heard.last)
        self.done += len(spans)
        return found

    def _tell(self, is_up: bool, count: int, reason: str) -> None:
        self.failed += 0 if is_up else count
        if is_up and self._is_down:
            _log.warning("span_receiver_up receiver=%s lost=%s", self._where, self.failed)
        elif not is_up and not self._is_down:
            _log.warning("span_receiver_down receiver=%s lost=%s reason=%s", self._where, count, reason)
        self._is_down = not is_up

    def shutdown(self) -> None:
        """As the exporter does."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the exporter does."""
        return self._exporter.force_flush(timeout_millis)


class _Heard(logging.Filter):
    """Takes what the SDK says in this thread out of the log, and keeps the first: it names the reason."""

    def __init__(self) -> None:
        super().__init__()
        self._thread, self.last = get_ident(), ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether others are to hear it."""
        if record.thread != self._thread:
            return True
        self.last = self.last or record.getMessage()
        return False
