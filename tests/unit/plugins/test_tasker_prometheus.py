"""The plugin `prometheus`: what it counts of what it hears, under names and labels that are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tasker.plugins.hook_arguments import QueuePolled, StoredAttempt, TasksSubmitted, WriteCommitted
from tasker.services.fleet.metric_catalogue import families
from tasker_prometheus import Prometheus
from tasker_prometheus.other_names import SAME
from tasker_prometheus.table import BY_NAME, ROWS

SAMES = {row.name for row in SAME}


def told(plugin: Prometheus) -> dict[str, float]:
    """What it counts, without what it tells under another name too."""
    found = all_told(plugin)
    return {name: value for name, value in found.items() if not name.startswith(tuple(SAMES))}


def all_told(plugin: Prometheus) -> dict[str, float]:
    """Its samples as Prometheus reads them, without buckets."""
    found = text_string_to_metric_families(families(plugin.tasker_metrics()))
    samples = [sample for family in found for sample in family.samples if not sample.name.endswith("_bucket")]
    return {f"{each.name}{'/'.join(['', *each.labels.values()])}": each.value for each in samples if each.value}


def test_attempts_are_counted_by_what_became_of_them() -> None:
    plugin = Prometheus()
    fine = StoredAttempt("shop", None, 20, accepted=True)
    plugin.tasker_attempts_stored(
        [fine, fine, replace(fine, accepted=False), StoredAttempt("shop", "timeout", 5, True)]
    )
    assert told(plugin) == {
        "tasker_steps_executions_total/shop": 4,
        "tasker_steps_successes_total/shop": 2,
        "tasker_steps_failures_total/shop/result_refused": 1,
        "tasker_steps_failures_total/shop/timeout": 1,
        "tasker_step_execution_duration_milliseconds_count/shop/success": 3,
        "tasker_step_execution_duration_milliseconds_sum/shop/success": 60,
        "tasker_step_execution_duration_milliseconds_count/shop/error": 1,
        "tasker_step_execution_duration_milliseconds_sum/shop/error": 5,
    }


def test_tasks_are_counted_where_they_are_created_and_where_they_end() -> None:
    plugin = Prometheus()
    plugin.tasker_tasks_submitted(TasksSubmitted("shop", "order", 3, 7.5))
    ended, lasted = (("complete", 2), ("error", 1), ("cancelled", 1)), (("complete", 30.0), ("complete", 12.0))
    plugin.tasker_write_committed(WriteCommitted("advance", 4, ended=ended, lasted=lasted))
    found = told(plugin)
    assert found["tasker_tasks_requests_total/shop/order"] == 3
    assert found["tasker_task_initialization_duration_milliseconds_sum/order"] == 7.5
    assert found["tasker_tasks_completions_total"] == 2
    assert found["tasker_tasks_failures_total"] == found["tasker_tasks_cancellations_total"] == 1
    assert found["tasker_task_finalization_duration_milliseconds_count/complete"] == 2
    assert found["tasker_task_duration_milliseconds_count/complete"] == 2
    assert found["tasker_task_duration_milliseconds_sum/complete"] == 42


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        (WriteCommitted("claim", 2, claimed=3), {"tasker_steps_claimed_total/queue": 3}),
        (WriteCommitted("advance", 2, claimed=3), {"tasker_steps_claimed_total/handed_over": 3}),
        (WriteCommitted("advance", 2, queued=(("shop", 2),)), {"tasker_steps_enqueued_total/shop": 2}),
        (WriteCommitted("wakeups_sent", 2, queued=(("shop", 2),)), {"tasker_queue_retry_attempts_total/shop": 2}),
        (
            WriteCommitted("park", 2, results=(("success", 2),), own=2),
            {"tasker_steps_results_submitted_total/completion": 2},
        ),
        (WriteCommitted("advance", 2, results=(("error", 2),)), {"tasker_step_results_processed_total/error": 2}),
    ],
)
def test_a_write_is_counted_by_what_it_did(written: WriteCommitted, counted: dict[str, int]) -> None:
    plugin = Prometheus()
    plugin.tasker_write_committed(written)
    found = told(plugin)
    assert {name: value for name, value in found.items() if "_total" in name} == counted
    assert found[f"tasker_sql_query_duration_milliseconds_count/{written.function}"] == 1


@pytest.mark.parametrize(
    ("looked", "timed"),
    [
        (QueuePolled(0, announced=False, failed=False, duration_ms=20), "tasker_polling_duration_seconds"),
        (QueuePolled(0, announced=False, failed=True, duration_ms=20), "tasker_polling_duration_seconds"),
        (QueuePolled(2, announced=True, failed=False, duration_ms=20), "tasker_event_processing_duration_seconds"),
        (QueuePolled(0, announced=True, failed=False, duration_ms=20), None),
        (QueuePolled(0, announced=True, failed=True, duration_ms=20), None),
    ],
)
def test_a_look_at_a_queue_is_timed_by_what_led_to_it(looked: QueuePolled, timed: str | None) -> None:
    plugin = Prometheus()
    plugin.tasker_queue_polled(looked)
    failed = {"tasker_queue_errors_total": 1} if looked.failed else {}
    assert told(plugin) == failed | ({f"{timed}_count": 1, f"{timed}_sum": 0.02} if timed else {})


@pytest.mark.parametrize("function", ["due", "backlog"])
def test_writes_that_look_for_ready_steps_are_timed_as_discovery(function: str) -> None:
    plugin = Prometheus()
    plugin.tasker_write_committed(WriteCommitted(function, 5))
    assert told(plugin)["tasker_step_discovery_duration_seconds_sum"] == 0.005


def test_what_is_told_under_another_name_too_is_the_sum_of_what_it_is_made_of() -> None:
    plugin = Prometheus()
    for function, duration_ms, claimed in (("claim", 3, 2), ("advance", 20, 4), ("advance", 700, 0)):
        plugin.tasker_write_committed(WriteCommitted(function, duration_ms, claimed=claimed, own=claimed))
    found = all_told(plugin)
    assert (found["tasker_db_transactions_total"], found["tasker_sql_queries_total/advance"]) == (3, 2)
    assert found["tasker_db_transaction_duration_milliseconds_sum"] == 723
    assert found["tasker_queue_messages_received_total"] == found["tasker_queue_messages_deleted_total"] == 2
    assert found["tasker_queue_message_receive_duration_milliseconds_sum"] == 3
    assert found["ffi_completion_send_duration_seconds_sum"] == 0.023
    text = families(plugin.tasker_metrics())
    assert 'ffi_completion_send_duration_seconds_bucket{le="0.0025"} 0\n' in text
    assert 'ffi_completion_send_duration_seconds_bucket{le="0.025"} 2\n' in text
    assert 'tasker_db_transaction_duration_milliseconds_bucket{le="+Inf"} 3\n' in text


def test_what_is_the_same_says_so_and_has_labels_of_its_source() -> None:
    for row in SAME:
        source = BY_NAME[row.source]
        assert {*row.labels} | {name for name, _ in row.chosen} <= {*source.labels}, row.name
        assert row.kind == source.kind or row.kind == "counter", row.name


def test_names_and_labels_are_those_of_prometheus_and_no_label_is_of_one_task() -> None:
    units = ("_milliseconds", "_ms", "_duration_seconds")
    for row in (*ROWS, *SAME):
        assert row.name.endswith("_total" if row.kind == "counter" else units), row.name
        assert not {"task_uuid", "correlation_id", "step_uuid"} & {*row.labels}
        assert all(values for _, values in row.label_values)
        assert row.meaning.endswith(".")
    assert [metric.name for metric in Prometheus().tasker_metrics()] == [row.name for row in (*ROWS, *SAME)]
