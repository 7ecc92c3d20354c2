"""Metrics of the plugin, updated by its hooks. One thread at a time may use them."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Mapping, Sequence

from tasker.metrics import Counter, Histogram, Metric
from tasker.plugins.hook_arguments import (
    EventPublished,
    QueuePolled,
    RequestAnswered,
    StoredAttempt,
    TasksSubmitted,
    WriteCommitted,
)
from tasker_prometheus.other_names import SAME
from tasker_prometheus.same import SameAs
from tasker_prometheus.table import BY_NAME, ROWS

REFUSED = "result_refused"
ENDS = {
    "complete": "tasker_tasks_completions_total",
    "error": "tasker_tasks_failures_total",
    "cancelled": "tasker_tasks_cancellations_total",
}
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
REJECTIONS: Mapping[str | None, str] = {
    "RATE_LIMITED": "rate_limit",
    "CIRCUIT_BREAKER_OPEN": "circuit_breaker",
    "BACKPRESSURE": "backpressure",
    "BAD_REQUEST": "validation",
}
"""By the code of the problem with which a request is refused."""
DISCOVERS = frozenset(("due", "backlog"))
"""The writes that look for steps that have become ready: due retries, and backlogged steps."""
RESENDS = "wakeups_sent"
"""The write that sends lost messages again: their steps were counted when they were enqueued."""


class Numbers:
    """All metrics of the table."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for row in ROWS:
            if row.kind == "counter":
                self._counters[row.name] = row.counter()
            else:
                self._histograms[row.name] = row.histogram()

    def metrics(self) -> list[Metric]:
        """Return all metrics, in the order of the table, then those under other names."""
        by_name: dict[str, Metric] = {name: self._counters.get(name) or self._histograms[name] for name in BY_NAME}
        return [*by_name.values(), *(SameAs(row, by_name[row.source]) for row in SAME)]

    def submitted(self, submitted: TasksSubmitted) -> None:
        """Count created tasks."""
        labels = {"namespace": submitted.namespace, "task_type": submitted.template}
        self._add("tasker_tasks_requests_total", submitted.created, **labels)
        self._observe(
            "tasker_task_initialization_duration_milliseconds", submitted.duration_ms, task_type=submitted.template
        )

    def stored(self, attempts: Sequence[StoredAttempt]) -> None:
        """Count attempts of this worker that ended and were completed."""
        for (namespace, error_type), number in Counts(map(_end, attempts)).items():
            self._add("tasker_steps_executions_total", number, namespace=namespace)
            if error_type is None:
                self._add("tasker_steps_successes_total", number, namespace=namespace)
            else:
                self._add("tasker_steps_failures_total", number, namespace=namespace, error_type=error_type)
        name = "tasker_step_execution_duration_milliseconds"
        for (namespace, result, duration_ms), number in Counts(map(_duration, attempts)).items():
            self._observe(name, duration_ms, number, namespace=namespace, result=result)

    def written(self, written: WriteCommitted) -> None:
        """Count the effects of a write of the engine."""
        duration_ms = written.duration_ms
        self._observe("tasker_sql_query_duration_milliseconds", duration_ms, function=written.function)
        if written.function in DISCOVERS:
            self._observe("tasker_step_discovery_duration_seconds", duration_ms / 1000)
        if written.queued:
            self._queued(written)
        if written.unsent:
            self._add("pgmq_enqueue_failures_total", written.unsent)
        if written.claimed:
            self._claimed(written)
        if written.own:
            self._add("tasker_steps_results_submitted_total", written.own, result_type="completion")
            self._observe("tasker_step_result_submission_duration_milliseconds", duration_ms, result_type="completion")
        if written.function == "advance":
            self._processed(written)
        self._ended(written)

    def record_poll(self, poll: QueuePolled) -> None:
        """Record a poll of a queue."""
        if poll.failed:
            self._add("tasker_queue_errors_total", 1)
        if not poll.announced:
            self._observe("tasker_polling_duration_seconds", poll.duration_ms / 1000)
        elif poll.found and not poll.failed:
            self._observe("tasker_event_processing_duration_seconds", poll.duration_ms / 1000)

    def published(self, event: EventPublished) -> None:
        """Count a domain event that was published or failed."""
        name = "tasker_domain_events_failed_total" if event.failed else "tasker_domain_events_published_total"
        self._add(name, 1, namespace=event.namespace, event_name=event.name)
        duration_metric = "tasker_domain_events_publish_duration_milliseconds"
        self._observe(duration_metric, event.duration_ms, delivery_mode=event.delivery_mode)

    def answered(self, request: RequestAnswered) -> None:
        """Count an answered request."""
        endpoint, status = request.endpoint, str(request.status)
        method = request.method if request.method in METHODS else "other"
        self._add("api_requests_total", 1, endpoint=endpoint, method=method, status_code=status)
        self._observe("api_request_latency_ms", request.duration_ms, endpoint=endpoint)
        if request.problem in REJECTIONS:
            self._add("api_requests_rejected_total", 1, endpoint=endpoint, reason=REJECTIONS[request.problem])

    def _queued(self, written: WriteCommitted) -> None:
        name = "tasker_queue_retry_attempts_total" if written.function == RESENDS else "tasker_steps_enqueued_total"
        for namespace, number in written.queued:
            self._add(name, number, namespace=namespace)
        self._observe("tasker_queue_message_send_duration_milliseconds", written.duration_ms)

    def _claimed(self, written: WriteCommitted) -> None:
        method = "queue" if written.function == "claim" else "handed_over"
        self._add("tasker_steps_claimed_total", written.claimed, claim_method=method)
        if method == "queue":
            self._observe("tasker_step_claim_duration_milliseconds", written.duration_ms, claim_method=method)

    def _processed(self, written: WriteCommitted) -> None:
        for result_type, number in written.results:
            self._add("tasker_step_results_processed_total", number, result_type=result_type)
            duration_metric = "tasker_step_result_processing_duration_milliseconds"
            self._observe(duration_metric, written.duration_ms, number, result_type=result_type)

    def _ended(self, written: WriteCommitted) -> None:
        for state, number in written.ended:
            self._add(ENDS[state], number)
            duration_metric = "tasker_task_finalization_duration_milliseconds"
            self._observe(duration_metric, written.duration_ms, number, final_state=state)
        for state, duration_ms in written.lasted:
            self._observe("tasker_task_duration_milliseconds", duration_ms, final_state=state)

    def _add(self, name: str, number: int, /, **labels: str) -> None:
        self._counters[name].add(number, **labels)

    def _observe(self, name: str, value: float, times: int = 1, /, **labels: str) -> None:
        self._histograms[name].observe(value, times, **labels)


def _end(attempt: StoredAttempt) -> tuple[str, str | None]:
    return attempt.namespace, attempt.error_type if attempt.accepted else REFUSED


def _duration(attempt: StoredAttempt) -> tuple[str, str, int]:
    return attempt.namespace, "error" if attempt.error_type else "success", attempt.duration_ms
