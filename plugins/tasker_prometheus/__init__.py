"""Counters and histograms of what a process does, for Prometheus, told by its `/metrics`. Named `prometheus`."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.contracts.metrics import Metric
from tasker.hookspecs import (
    EventPublished,
    QueuePolled,
    RequestAnswered,
    StoredAttempt,
    TasksSubmitted,
    WriteCommitted,
    hookimpl,
)
from tasker_prometheus.numbers import Numbers

__all__ = ["Prometheus"]


class Prometheus:
    """The plugin. Which metrics there are says `tasker_prometheus.table`."""

    def __init__(self) -> None:
        self._numbers = Numbers()

    @hookimpl
    def tasker_metrics(self) -> Sequence[Metric]:
        """All of the table."""
        return self._numbers.metrics()

    @hookimpl
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        """Count tasks that are new."""
        self._numbers.submitted(submitted)

    @hookimpl
    def tasker_attempts_stored(self, attempts: Sequence[StoredAttempt]) -> None:
        """Count attempts, and how long they took."""
        self._numbers.stored(attempts)

    @hookimpl
    def tasker_write_committed(self, written: WriteCommitted) -> None:
        """Count what a write did, and how long it took."""
        self._numbers.written(written)

    @hookimpl
    def tasker_queue_polled(self, looked: QueuePolled) -> None:
        """Time looks at queues."""
        self._numbers.looked(looked)

    @hookimpl
    def tasker_event_published(self, event: EventPublished) -> None:
        """Count domain events."""
        self._numbers.published(event)

    @hookimpl
    def tasker_request_answered(self, request: RequestAnswered) -> None:
        """Count requests."""
        self._numbers.answered(request)
