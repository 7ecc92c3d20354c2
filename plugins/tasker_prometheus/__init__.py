"""Counters and histograms of a process for Prometheus, served by its `/metrics`. Named `prometheus`."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.metrics import Metric
from tasker.plugins.hook_arguments import (
    EventPublished,
    QueuePolled,
    RequestAnswered,
    StoredAttempt,
    TasksSubmitted,
    WriteCommitted,
)
from tasker.plugins.hooks import hookimpl
from tasker_prometheus.numbers import Numbers

__all__ = ["Prometheus"]


class Prometheus:
    """Plugin that counts. `tasker_prometheus.table` defines its metrics."""

    def __init__(self) -> None:
        self._numbers = Numbers()

    @hookimpl
    def tasker_metrics(self) -> Sequence[Metric]:
        """Return all metrics of the table."""
        return self._numbers.metrics()

    @hookimpl
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        self._numbers.submitted(submitted)

    @hookimpl
    def tasker_attempts_stored(self, attempts: Sequence[StoredAttempt]) -> None:
        self._numbers.stored(attempts)

    @hookimpl
    def tasker_write_committed(self, written: WriteCommitted) -> None:
        self._numbers.written(written)

    @hookimpl
    def tasker_queue_polled(self, poll: QueuePolled) -> None:
        self._numbers.record_poll(poll)

    @hookimpl
    def tasker_event_published(self, event: EventPublished) -> None:
        self._numbers.published(event)

    @hookimpl
    def tasker_request_answered(self, request: RequestAnswered) -> None:
        self._numbers.answered(request)
