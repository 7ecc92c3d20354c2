"""Tasks and attempts as spans of OpenTelemetry, sent by OTLP over HTTP. Named `otel`; needs the extra `otel`."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tasker.plugins.hook_arguments import (
    AttemptEnded,
    RequestAnswered,
    StateTransition,
    TaskClosed,
    TaskFinished,
    TasksSubmitted,
)
from tasker.plugins.hooks import hookimpl

if TYPE_CHECKING:
    from tasker.plugins.hooks import AttemptTrace
    from tasker.settings.table import Table
    from tasker_otel.logs import LogHandler
    from tasker_otel.sending import Sender
    from tasker_otel.spans import Spans
    from tasker_otel.surroundings import Surroundings

__all__ = ["OpenTelemetry"]
FLUSH_SECONDS = 3.0
DISABLED = "OTEL_SDK_DISABLED"
"""The standard's variable; with `true` nothing is sent."""
AROUND = ("tasker_tasks_submitted", "tasker_transitions", "tasker_request_answered")
STARTED = (
    "Console logging with OpenTelemetry initialized opentelemetry_enabled=true logs_enabled=%s"
    " otlp_endpoint=%s service_name=%s sample_rate=%g"
)
"""Log message in the documented wording."""
_log = logging.getLogger("tasker.plugins.otel")


class OpenTelemetry:
    """Plugin that sends spans. `tasker_otel.spans` defines their content."""

    def __init__(self) -> None:
        self._share, self._service = 1.0, ""
        self._logs: LogHandler | None = None
        self._spans: Spans | None = None
        self._around: Surroundings | None = None
        self._sender: Sender | None = None
        self._is_told_of_the_end = self._has_closed = False

    @hookimpl
    def tasker_settings(self) -> type[Table]:
        """Return the settings model of `[plugins.otel]`."""
        from tasker_otel.table import OtelTable

        return OtelTable

    @hookimpl
    def tasker_configured(self, settings: Any) -> Collection[str]:
        """Create the spans' factory and their sender; ignore the hooks of spans that are turned off.

        Raises `RuntimeError` without the SDK.
        """
        if os.environ.get(DISABLED, "").strip().lower() == "true":
            _log.info("OpenTelemetry not initialized opentelemetry_enabled=false reason=%s", DISABLED)
            return [name for name in dir(self) if name.startswith("tasker_")]
        try:
            from tasker_otel.sending import sender_of
            from tasker_otel.spans import Spans
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"it needs {error.name!r}: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
            ) from None
        self._share, self._service = settings.share, settings.service_name
        self._spans = Spans(settings.share, messages=settings.messages)
        self._sender = sender_of(settings)
        self._begin_logs(settings)
        self._around = None
        return self._look_around(self._spans) if settings.detail == "all" else AROUND

    @hookimpl
    def tasker_attempt_trace(self) -> AttemptTrace:
        """Return the function that gives handlers the trace context of their attempt's span."""
        from tasker_otel.identity import attempt_traceparent

        return partial(attempt_traceparent, self._share)

    @hookimpl
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """Send the span of an attempt."""
        if self._spans is not None:
            self._send(self._spans.attempt(ended))
        if self._around is not None:
            self._send(self._around.ended(ended))

    @hookimpl
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """Send the span of a task, the last one of its trace."""
        if self._spans is not None:
            self._send(self._spans.task(task, datetime.now(UTC)))

    @hookimpl
    def tasker_tasks_closed(self, tasks: Sequence[TaskClosed]) -> None:
        """Send the spans of tasks that ended without an attempt of this process."""
        if self._spans is not None:
            for task in tasks:
                self._send(self._spans.closed(task))
            self._has_closed = True

    @hookimpl
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        """Send a span for the creation of each task."""
        self._send_all(self._around.created(submitted) if self._around else ())

    @hookimpl
    def tasker_transitions(self, transitions: Sequence[StateTransition]) -> None:
        """Send the spans of accepted results."""
        self._send_all(self._around.moved(transitions) if self._around else ())

    @hookimpl
    def tasker_request_answered(self, request: RequestAnswered) -> None:
        """Send the span of a request."""
        if self._around is not None:
            self._send(self._around.answered(request))

    @hookimpl
    def tasker_process_started(self) -> None:
        """Log that tracing is on, in a worker or an orchestrator; these processes also call a hook when they stop."""
        self._is_told_of_the_end = True
        if self._sender is not None:
            logs = "false" if self._logs is None else "true"
            _log.info(STARTED, logs, self._sender.where, self._service, self._share)

    @hookimpl
    def tasker_batch_delivered(self) -> None:
        """Flush the spans of closed tasks at once in a client, which calls no hook when it ends."""
        if self._has_closed and not self._is_told_of_the_end and self._sender is not None:
            self._sender.flush(FLUSH_SECONDS)
        self._has_closed = False

    @hookimpl
    def tasker_process_stopped(self) -> None:
        """Flush the spans."""
        if self._sender is not None:
            self._sender.flush(FLUSH_SECONDS)

    def _send(self, span: bytes | None) -> None:
        if span is not None and self._sender is not None:
            self._sender.put(span)

    def _send_all(self, spans: Iterable[bytes]) -> None:
        for span in spans:
            self._send(span)

    def _look_around(self, spans: Spans) -> Collection[str]:
        """Create spans for operations around attempts, too; flush at exit, because servers and commands call no hook
        then."""
        from tasker_otel.surroundings import Surroundings

        self._around = Surroundings(spans)
        atexit.unregister(self._end)
        atexit.register(self._end)
        return ()

    def _end(self) -> None:
        if self._sender is not None and not self._is_told_of_the_end:
            self._sender.flush(FLUSH_SECONDS)

    def _begin_logs(self, settings: Any) -> None:
        """Send the log of the process, too. The console gets it in any case, even if this cannot start."""
        if self._logs is not None:
            self._logs.detach()
        self._logs = None
        if settings.logs == "otlp":
            try:
                from tasker_otel.logs import attached

                self._logs = attached(settings)
            except Exception as error:
                _log.warning("logs_not_sent reason=%r; they are on the console alone", error)
