"""Metrics with a second name, as data."""

from __future__ import annotations

from tasker.dataclasses import dataclass
from tasker_prometheus.table import BY_NAME, NAMESPACE, Row


@dataclass(frozen=True, slots=True)
class Same(Row):
    """Metric with the values of another one, under another published name.

    `source` is the name of that one; `chosen` are the labels that its values must have, as (name, value).
    """

    source: str = ""
    chosen: tuple[tuple[str, str], ...] = ()


WRITES, MOVERS = "tasker_sql_query_duration_milliseconds", "who moves tasks"
FROM_QUEUES = (("claim_method", "queue"),)
SAME = (
    Same(
        "tasker_sql_queries_total",
        "counter",
        "Writes of the engine by this process.",
        BY_NAME[WRITES].label_values,
        MOVERS,
        WRITES,
    ),
    Same(
        "tasker_db_transactions_total",
        "counter",
        "Writes of the engine by this process: each is one transaction.",
        (),
        MOVERS,
        WRITES,
    ),
    Same(
        "tasker_db_transaction_duration_milliseconds",
        "histogram",
        f"{WRITES}: a write is one transaction.",
        (),
        MOVERS,
        WRITES,
    ),
    Same(
        "tasker_queue_messages_sent_total",
        "counter",
        "tasker_steps_enqueued_total: a message is a hint of one step.",
        (NAMESPACE,),
        MOVERS,
        "tasker_steps_enqueued_total",
    ),
    Same(
        "tasker_queue_messages_received_total",
        "counter",
        'tasker_steps_claimed_total{claim_method="queue"}: a step is claimed with the taking of its message.',
        (),
        "worker",
        "tasker_steps_claimed_total",
        FROM_QUEUES,
    ),
    Same(
        "tasker_queue_messages_deleted_total",
        "counter",
        "tasker_queue_messages_received_total: what is taken is deleted with it.",
        (),
        "worker",
        "tasker_steps_claimed_total",
        FROM_QUEUES,
    ),
    Same(
        "tasker_queue_message_receive_duration_milliseconds",
        "histogram",
        "tasker_step_claim_duration_milliseconds: the same write.",
        (),
        "worker",
        "tasker_step_claim_duration_milliseconds",
        FROM_QUEUES,
    ),
    Same(
        "ffi_completion_send_duration_seconds",
        "histogram",
        "tasker_step_result_submission_duration_milliseconds in seconds.",
        (),
        "worker",
        "tasker_step_result_submission_duration_milliseconds",
    ),
    Same(
        "worker_handler_execution_ms",
        "histogram",
        "tasker_step_execution_duration_milliseconds.",
        (NAMESPACE,),
        "worker",
        "tasker_step_execution_duration_milliseconds",
    ),
    Same(
        "tasker_step_errors_total",
        "counter",
        "tasker_steps_failures_total.",
        (NAMESPACE,),
        "worker",
        "tasker_steps_failures_total",
    ),
    Same(
        "domain_events_dispatched_total",
        "counter",
        "Domain events of this worker's steps that were made, by how they are delivered.",
        BY_NAME["tasker_domain_events_publish_duration_milliseconds"].label_values,
        "worker",
        "tasker_domain_events_publish_duration_milliseconds",
    ),
)
