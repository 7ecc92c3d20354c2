"""Log records of the process in the format of OpenTelemetry, sent in addition to the console's."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from tasker.logging.format import JsonFormatter, StepFilter, as_json, redact_line
from tasker_otel.batches import Batches, sending
from tasker_otel.exporter import resource_of
from tasker_otel.spans import clean
from tasker_otel.table import OtelTable, pairs

PATH = "/v1/logs"
EXIT_SECONDS = 3.0
SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
    (logging.DEBUG, SeverityNumber.DEBUG),
)
NUMBERS = range(-(2**63), 2**63)
"""The integers that protobuf accepts; any other would lose the whole batch."""


def attached(settings: OtelTable) -> LogHandler | None:
    """Send the log of this process to the receiver of these settings; return the handler, to be detached later.

    Returns None in an application without logging handlers: with this handler Python would not print its warnings any
    more.
    """
    if not logging.getLogger().handlers:
        return None
    where = settings.endpoint.rstrip("/") + PATH
    headers = dict(pairs(settings.headers))
    exporter = OTLPLogExporter(where, headers=headers, timeout=settings.timeout_seconds)
    handler = LogHandler(LogSender(exporter, where, settings.queue), resource_of(settings))
    handler.attach()
    return handler


class LogSender(Batches, LogRecordProcessor):
    """Sender of log lines in batches, from a thread of the SDK; lines beyond its capacity are dropped and counted."""

    _queue: BatchLogRecordProcessor

    def __init__(self, exporter: LogRecordExporter, where: str, capacity: int) -> None:
        queue_of = partial(BatchLogRecordProcessor, max_queue_size=capacity)
        super().__init__("log", exporter, where, OTLPLogExporter.__module__, queue_of, capacity)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Send a record with the next batch. Never waits."""
        if self.has_room():
            self._queue.on_emit(log_record)

    def shutdown(self) -> None:
        self._queue.shutdown()  # type: ignore[no-untyped-call]  # of the SDK

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._queue.force_flush(timeout_millis)


class LogHandler(logging.Handler):
    """Logging handler that passes each record to the SDK. Never waits."""

    def __init__(self, sender: LogSender, resource: Resource) -> None:
        super().__init__()
        self.sender, self._json = sender, JsonFormatter()
        provider = LoggerProvider(resource, shutdown_on_exit=False)
        provider.add_log_record_processor(sender)
        self._logger = lru_cache(1000)(provider.get_logger)
        self.addFilter(StepFilter())

    def attach(self) -> None:
        """Start to handle the records of the root logger, up to the last line, for which the process waits at exit."""
        logging.getLogger().addHandler(self)
        atexit.register(self.sender.flush, EXIT_SECONDS)

    def detach(self) -> None:
        """Stop to handle records."""
        logging.getLogger().removeHandler(self)
        atexit.unregister(self.sender.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record as the console shows it, except records of the sending itself."""
        if sending.get():
            return
        token = sending.set(True)
        try:
            self._logger(record.name).emit(log_record_of(record, redact_line(self._json.fields_of(record))))
        except Exception:
            self.handleError(record)
        finally:
            sending.reset(token)


def log_record_of(record: logging.LogRecord, fields: dict[str, Any]) -> LogRecord:
    """Return a record as an OpenTelemetry record; `fields` as returned by `JsonFormatter.fields_of`."""
    context = _parent_context(fields.pop("trace_id", None), fields.pop("span_id", None))
    return LogRecord(
        timestamp=round(record.created * 1_000_000) * 1000,
        context=context,
        severity_text=record.levelname,
        severity_number=severity_of(record.levelno),
        body=clean(fields.pop("message")),
        attributes={clean(name): _sent(value) for name, value in _fields(record, fields).items()},
    )


def severity_of(level: int) -> SeverityNumber:
    """Return the severity of a logging level; below DEBUG it is TRACE."""
    return next((number for least, number in SEVERITIES if level >= least), SeverityNumber.TRACE)


def _parent_context(trace_id: str | None, span_id: str | None) -> Context | None:
    """Return the trace context of a line; None: that of the application, if it uses OpenTelemetry itself."""
    if trace_id is None or span_id is None:
        return None
    span = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False)
    return set_span_in_context(NonRecordingSpan(span), Context())


def _fields(record: logging.LogRecord, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, which do not replace Tasker's own; exceptions have their conventional names."""
    extra, trace = values.pop("fields", {}), values.pop("exception", None)
    fields = {**(extra if isinstance(extra, Mapping) else {"fields": extra}), **values}
    if trace is not None:
        fields["exception.stacktrace"] = trace
    if record.exc_info and record.exc_info[0]:
        fields["exception.type"] = record.exc_info[0].__name__
    return fields


def _sent(value: Any) -> str | int | float | bool:
    """Return a text, a boolean, or a number that protobuf accepts; other values as JSON."""
    if isinstance(value, bool | float) or (isinstance(value, int) and value in NUMBERS):
        return value
    return clean(value if isinstance(value, str) else as_json(value))
