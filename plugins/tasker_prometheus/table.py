"""Metrics of the plugin, as data: the code, the reference and the dashboards are made from this table."""

from __future__ import annotations

from tasker.dataclasses import dataclass
from tasker.metrics import Counter, Histogram

MILLISECONDS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
"""The upper bounds of the buckets of durations."""
SECONDS = tuple(milliseconds / 1000 for milliseconds in MILLISECONDS)


@dataclass(frozen=True, slots=True)
class Row:
    """Metric. A histogram is in milliseconds, or in seconds if its name says so.

    `label_values` describes the values of each label and their number; `where` is the process that counts it.
    """

    name: str
    kind: str
    meaning: str
    label_values: tuple[tuple[str, str], ...] = ()
    where: str = "worker"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.label_values)

    def counter(self) -> Counter:
        """Return a counter of this row, at 0."""
        return Counter(self.name, self.meaning, self.labels)

    def histogram(self) -> Histogram:
        """Return an empty histogram of this row."""
        bounds = SECONDS if self.name.endswith("_seconds") else MILLISECONDS
        return Histogram(self.name, self.meaning, bounds, self.labels)


NAMESPACE = ("namespace", "the namespaces that the process serves")
EVENT = ("event_name", "the events that templates declare")
RESULT = ("result_type", "success, error, timeout, worker_lost")
ROWS = (
    Row(
        "tasker_tasks_requests_total",
        "counter",
        "Tasks that this process created.",
        (NAMESPACE, ("task_type", "the templates of the namespace")),
        "where tasks are submitted",
    ),
    Row(
        "tasker_tasks_completions_total",
        "counter",
        "Tasks that a write of this process completed.",
        where="who stores results",
    ),
    Row(
        "tasker_tasks_failures_total",
        "counter",
        "Tasks that a write of this process ended in error.",
        where="who stores results",
    ),
    Row(
        "tasker_tasks_cancellations_total",
        "counter",
        "Tasks that a write of this process cancelled.",
        where="who cancels",
    ),
    Row(
        "tasker_steps_enqueued_total",
        "counter",
        "Steps that a write of this process put into a queue; those handed over at once never are in one.",
        (NAMESPACE,),
        "who moves tasks",
    ),
    Row(
        "tasker_steps_claimed_total",
        "counter",
        "Steps that this process claimed.",
        (("claim_method", "queue: taken from it; handed_over: in the answer to a result or a submission"),),
    ),
    Row(
        "tasker_steps_executions_total",
        "counter",
        "Attempts that ran to an end in this worker, as their results were brought.",
        (NAMESPACE,),
    ),
    Row(
        "tasker_steps_successes_total",
        "counter",
        "Attempts of this worker whose success was accepted.",
        (NAMESPACE,),
    ),
    Row(
        "tasker_steps_failures_total",
        "counter",
        "Attempts of this worker that failed, or whose result was refused (result_refused).",
        (NAMESPACE, ("error_type", "the types of errors that handlers raise; result_refused")),
    ),
    Row(
        "tasker_steps_results_submitted_total",
        "counter",
        "Results of this worker's attempts that the database accepted.",
        (("result_type", "completion"),),
    ),
    Row(
        "tasker_step_results_processed_total",
        "counter",
        "Results that a write of this process made part of their tasks.",
        (RESULT,),
        "who stores results",
    ),
    Row(
        "tasker_task_initialization_duration_milliseconds",
        "histogram",
        "From the request to the stored task, of each submission.",
        (("task_type", "the templates of all namespaces"),),
        "where tasks are submitted",
    ),
    Row(
        "tasker_task_finalization_duration_milliseconds",
        "histogram",
        "The write that ended a task, of each task.",
        (("final_state", "complete, error, cancelled"),),
        "who stores results",
    ),
    Row(
        "tasker_task_duration_milliseconds",
        "histogram",
        "From the creation of a task, by the clock of who submitted it, to its end, by that of this process.",
        (("final_state", "complete, error, cancelled"),),
        "who stores results",
    ),
    Row(
        "tasker_step_result_processing_duration_milliseconds",
        "histogram",
        "The write that made a result part of its task, of each result.",
        (RESULT,),
        "who stores results",
    ),
    Row(
        "tasker_step_execution_duration_milliseconds",
        "histogram",
        "The handler of a step, of each attempt.",
        (NAMESPACE, ("result", "success, error")),
    ),
    Row(
        "tasker_step_claim_duration_milliseconds",
        "histogram",
        "A claim that found steps, of each write.",
        (("claim_method", "queue"),),
    ),
    Row(
        "tasker_step_result_submission_duration_milliseconds",
        "histogram",
        "The write that took results of this worker, of each write.",
        (("result_type", "completion"),),
    ),
    Row(
        "tasker_sql_query_duration_milliseconds",
        "histogram",
        "A write of the engine, which is one transaction, until its answer.",
        (("function", "the functions of the engine that write, about twenty"),),
        "who moves tasks",
    ),
    Row(
        "tasker_queue_message_send_duration_milliseconds",
        "histogram",
        "A write that put steps into queues, with the sending of their messages.",
        where="who moves tasks",
    ),
    Row(
        "pgmq_enqueue_failures_total",
        "counter",
        "Steps whose message the provider did not take behind the commit: a sweep sends it. With PGMQ the write fails.",
        where="who moves tasks",
    ),
    Row(
        "tasker_queue_errors_total",
        "counter",
        "Failed polls of queues.",
        where="worker, orchestrator",
    ),
    Row(
        "tasker_queue_retry_attempts_total",
        "counter",
        "Steps whose message a sweep of this process has sent again, because it was lost.",
        (NAMESPACE,),
        "who moves tasks",
    ),
    Row(
        "tasker_event_processing_duration_seconds",
        "histogram",
        "Duration of a poll after a notification that found work, with the claims.",
        where="worker, orchestrator",
    ),
    Row(
        "tasker_polling_duration_seconds",
        "histogram",
        "Duration of a poll without a notification, with the claims.",
        where="worker, orchestrator",
    ),
    Row(
        "tasker_step_discovery_duration_seconds",
        "histogram",
        "Duration of a write that enqueues ready steps: due retries and backlogged steps.",
        where="who moves tasks",
    ),
    Row(
        "tasker_domain_events_published_total",
        "counter",
        "Domain events of this worker's steps that were delivered after their results were accepted.",
        (NAMESPACE, EVENT),
    ),
    Row(
        "tasker_domain_events_failed_total",
        "counter",
        "Domain events that could not be made: a publisher raised or took too long, or the payload does not fit.",
        (NAMESPACE, EVENT),
    ),
    Row(
        "tasker_domain_events_publish_duration_milliseconds",
        "histogram",
        "The making of a domain event.",
        (("delivery_mode", "durable, fast, broadcast"),),
    ),
    Row(
        "api_requests_total",
        "counter",
        "Requests that this server has answered.",
        (
            ("endpoint", "the paths of the interface; empty for others"),
            ("method", "the methods of HTTP"),
            ("status_code", "the codes of HTTP that Tasker answers"),
        ),
        "server",
    ),
    Row(
        "api_requests_rejected_total",
        "counter",
        "Requests that were refused for what they hold, or because there is too much to do.",
        (
            ("endpoint", "the paths of the interface; empty for others"),
            ("reason", "rate_limit, circuit_breaker, backpressure, validation"),
        ),
        "server",
    ),
    Row(
        "api_request_latency_ms",
        "histogram",
        "A request until its answer begins.",
        (("endpoint", "the paths of the interface; empty for others"),),
        "server",
    ),
)
BY_NAME = {row.name: row for row in ROWS}
