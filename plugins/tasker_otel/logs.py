"""Log lines of the process as OpenTelemetry has them, beside those of its console."""

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

from tasker.log_format import JsonFormatter, StepFilter, as_json, covered
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
"""Those that protobuf takes; any other would cost the whole batch."""


def attached(settings: OtelTable) -> LogHandler | None:
    """What sends the log of this process to the receiver of these settings, until it is detached.

    None in a program that has set up no logging: with a handler of ours Python would not show its warnings any more.
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
    """Sends lines in batches, from a thread of the SDK; what does not fit into its queue is lost, and counted."""

    _queue: BatchLogRecordProcessor

    def __init__(self, exporter: LogRecordExporter, where: str, capacity: int) -> None:
        queue_of = partial(BatchLogRecordProcessor, max_queue_size=capacity)
        super().__init__("log", exporter, where, OTLPLogExporter.__module__, queue_of, capacity)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Send it with the next batch. Never waits."""
        if self.has_room():
            self._queue.on_emit(log_record)

    def shutdown(self) -> None:
        """As the queue does."""
        self._queue.shutdown()  # type: ignore[no-untyped-call]  # of the SDK

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the queue does."""
        return self._queue.force_flush(timeout_millis)


class LogHandler(logging.Handler):
    """Hands each record of logging to the SDK. Never waits."""

    def __init__(self, sender: LogSender, resource: Resource) -> None:
        super().__init__()
        self.sender, self._json = sender, JsonFormatter()
        provider = LoggerProvider(resource, shutdown_on_exit=False)
        provider.add_log_record_processor(sender)
        self._logger = lru_cache(1000)(provider.get_logger)
        self.addFilter(StepFilter())

    def attach(self) -> None:
        """Have what the console has, up to the last line, for which the end of the process waits."""
        logging.getLogger().addHandler(self)
        atexit.register(self.sender.flush, EXIT_SECONDS)

    def detach(self) -> None:
        """Have nothing more."""
        logging.getLogger().removeHandler(self)
        atexit.unregister(self.sender.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """As the console shows it. What the sending itself says is left out."""
        if sending.get():
            return
        token = sending.set(True)
        try:
            self._logger(record.name).emit(log_record_of(record, covered(self._json.told(record))))
        except Exception:
            self.handleError(record)
        finally:
            sending.reset(token)


def log_record_of(record: logging.LogRecord, told: dict[str, Any]) -> LogRecord:
    """What a record tells, in the words of OpenTelemetry; `told` as `JsonFormatter.told` has it."""
    context = _place(told.pop("trace_id", None), told.pop("span_id", None))
    return LogRecord(
        timestamp=round(record.created * 1_000_000) * 1000,
        context=context,
        severity_text=record.levelname,
        severity_number=severity_of(record.levelno),
        body=clean(told.pop("message")),
        attributes={clean(name): _sent(value) for name, value in _fields(record, told).items()},
    )


def severity_of(level: int) -> SeverityNumber:
    """The severity of a level of logging; what is below DEBUG is TRACE."""
    return next((number for least, number in SEVERITIES if level >= least), SeverityNumber.TRACE)


def _place(trace_id: str | None, span_id: str | None) -> Context | None:
    """Where the line is in a trace; None: where the program says, if it uses OpenTelemetry itself."""
    if trace_id is None or span_id is None:
        return None
    span = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False)
    return set_span_in_context(NonRecordingSpan(span), Context())


def _fields(record: logging.LogRecord, told: dict[str, Any]) -> dict[str, Any]:
    """What a handler gave beside ours, of which it hides none; an exception by its conventional names."""
    given, trace = told.pop("fields", {}), told.pop("exception", None)
    found = {**(given if isinstance(given, Mapping) else {"fields": given}), **told}
    if trace is not None:
        found["exception.stacktrace"] = trace
    if record.exc_info and record.exc_info[0]:
        found["exception.type"] = record.exc_info[0].__name__
    return found


def _sent(value: Any) -> str | int | float | bool:
    """A text, a switch, or a number that protobuf takes; anything else as JSON."""
    if isinstance(value, bool | float) or (isinstance(value, int) and value in NUMBERS):
        return value
    return clean(value if isinstance(value, str) else as_json(value))
