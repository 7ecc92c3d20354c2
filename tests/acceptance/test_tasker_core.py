"""A workflow whose handlers were written for tasker_core runs as they are, by its worker and by the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tasker_core
from tasker_core import EventBridge, EventNames, HandlerRegistry, TaskerClient, Worker
from tasker_core._runtime import bootstrap as engine
from tasker_core._runtime.client import disconnect
from tasker_core.client import TaskResponse
from tasker_core.domain_events import InProcessDomainEventPoller, SubscriberRegistry
from tests.support.command_line import run_json, write_workflow

SHOP = Path(__file__).parent / "tasker_core_shop"

NOBODY = "01900000-0000-7000-8000-000000000000"

Run = Callable[..., TaskResponse]


@pytest.fixture
def worker(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker of tasker_core in this process; nothing of it is left at the end."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", str(SHOP))
    for name in ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV", "TASKER_NAMESPACE", "PYTHON_HANDLER_PATH"):
        monkeypatch.delenv(name, raising=False)
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()
    with Worker.start():
        yield
    disconnect()
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()
    SubscriberRegistry.reset()


@pytest.fixture
def order(worker: None) -> Run:
    """Runs one order to its end."""

    def run(**context: Any) -> TaskResponse:
        client = TaskerClient(initiator="a test")
        created = client.create_task("order", namespace="published_shop", context=context)
        engine.running_system().app.finished(created.task_uuid)
        return client.get_task(created.task_uuid)

    return run


def results(task: TaskResponse) -> dict[str, Any]:
    return {step.name: step.results for step in TaskerClient().list_task_steps(task.task_uuid)}


def test_every_kind_of_handler_runs_unchanged(order: Run) -> None:
    task = order(amount=200, items=10)
    found = results(task)

    assert task.status == "complete"
    assert found["validate"] == {"amount": 200, "result": "looks good"}
    assert found["price"] == {"total": 220.0, "items": 10}
    assert found["quote"] == {"carrier": "post", "items": 10}
    assert found["stamp"] == {"mark": "paid", "amount": 200}
    assert found["rebate"] == {"does": "rebate", "total": 220.0}
    assert found["approve"] == {"approved": 220.0}
    assert found["book"] == {"published": True}
    assert found["sum_up"] == {"shipped": list(range(10)), "worker_count": 3, "scenario": "with_batches"}


def test_a_decision_that_names_no_step_and_an_analysis_without_batches_keep_their_reasons(order: Run) -> None:
    found = results(order(amount=20, items=0))

    assert {"approve", "book"}.isdisjoint(found)
    assert found["route"]["reason"] == "nobody has to look at it"
    assert found["analyze"]["reason"] == "nothing_to_ship"
    assert found["sum_up"] == {"shipped": [], "why": "nothing_to_ship", "worker_count": 0, "scenario": "no_batches"}


@pytest.mark.parametrize("amount", [0, 9999], ids=["failure returned", "error raised"])
def test_a_permanent_failure_ends_the_step_at_its_first_attempt(order: Run, amount: int) -> None:
    task = order(amount=amount, items=1)
    (validate,) = [step for step in TaskerClient().list_task_steps(task.task_uuid) if step.name == "validate"]

    assert task.status == "error"
    assert (validate.current_state, validate.attempts) == ("error", 1)


def test_what_a_handler_publishes_reaches_a_subscriber(order: Run) -> None:
    file = str(SHOP / "handlers.py")
    *_, handlers = (module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file)
    subscribers, poller = SubscriberRegistry.instance(), InProcessDomainEventPoller()
    poller.poll()  # what earlier orders have published
    subscribers.register(handlers.OrderSubscriber)
    subscribers.start_all(poller)
    order(amount=200, items=0)
    poller.poll()

    (event,) = handlers.HEARD
    assert (event["event_name"], event["payload"]) == ("order.booked", {"booked": 200})
    assert (event["metadata"]["step_name"], event["metadata"]["fired_by"]) == ("shop.book", "orders")


def test_the_event_bridge_is_told_of_steps_and_of_checkpoints_as_mappings(order: Run) -> None:
    finished: list[Any] = []
    yields: list[dict[str, Any]] = []
    bridge = EventBridge.instance()
    bridge.subscribe(EventNames.STEP_COMPLETION_SENT, finished.append)
    bridge.subscribe(EventNames.STEP_CHECKPOINT_YIELD, yields.append)
    order(amount=20, items=3)
    tasker_core.stop_worker()  # delivers what waits

    assert len(finished) == 9
    (saved,) = yields
    assert (saved["cursor"], saved["items_processed"]) == (2, 2)
    assert saved["accumulated_results"] == {"shipped": [0, 1]}


def test_a_running_worker_tells_how_it_fares_and_takes_no_second_start(order: Run) -> None:
    order(amount=20, items=0)
    running, again = Worker.instance(), tasker_core.bootstrap_worker()
    assert running is not None

    assert Worker.start() is running
    assert (again.success, again.status, again.worker_id) == (False, "already_running", running.worker_id)
    assert (running.bootstrap_result.success, running.bootstrap_result.status) == (True, "started")
    assert tasker_core.get_worker_status().running
    assert tasker_core.get_health_check().is_running
    assert tasker_core.get_metrics().steps_failed == 0
    assert tasker_core.get_worker_config().supported_namespaces == ["default", "published_shop"]


def test_no_step_ever_waits_to_be_polled(worker: None) -> None:
    poller = tasker_core.EventPoller(polling_interval_ms=1)
    poller.on_step_event(lambda event: pytest.fail("the worker runs its steps itself"))

    assert poller.poll() is False
    assert poller.get_metrics() == tasker_core.FfiDispatchMetrics(pending_count=0)
    assert tasker_core.poll_step_events() is None
    assert tasker_core.complete_step_event(NOBODY, {}) is False
    assert (tasker_core.check_starvation_warnings(), tasker_core.cleanup_timeouts()) == (True, 0)
    assert isinstance(tasker_core.transition_to_graceful_shutdown(), str)


def test_a_client_creates_reads_and_cancels_tasks_and_raises_what_it_raised(order: Run) -> None:
    client = TaskerClient(source_system="shop")
    task = order(amount=20, items=0)
    (first, *_) = steps = client.list_task_steps(task.task_uuid)

    assert client.get_step(task.task_uuid, first.step_uuid) == first
    assert [entry.success for entry in client.get_step_audit_history(task.task_uuid, first.step_uuid)] == [True]
    assert [found.task_uuid for found in client.list_tasks(namespace="published_shop").tasks] == [task.task_uuid]
    assert (task.initiator, task.total_steps, client.health_check().healthy) == ("a test", len(steps), True)
    for refused in (client.cancel_task, client.get_task):
        with pytest.raises(ValueError, match="badly formed"):
            refused("no id")
        with pytest.raises(RuntimeError):
            refused(NOBODY)
    with pytest.raises(ValueError, match="colour"):
        client.create_task("order", namespace="published_shop", colour="red")


def test_the_command_line_runs_them_too(database_url: str, tmp_path: Path) -> None:
    """But for resolvers, which are a program's own."""
    template = (SHOP / "workflow.yaml").read_text("utf-8")
    step, _, _ = template.partition("  - name: rebate\n")[2].partition("  - name: route\n")
    write_workflow(
        tmp_path / "shop",
        template.replace(f"  - name: rebate\n{step}", ""),
        (SHOP / "handlers.py").read_text("utf-8"),
    )
    found = run_json(tmp_path / "shop", "--input", '{"amount": 200, "items": 3}', database=database_url)

    assert found["status"] == "complete"
    assert found["steps"][-1]["result"]["shipped"] == [0, 1, 2]


EXAMPLE = """
name: example
namespace: published_examples
version: 1.0.0
steps:
  - name: analyze_items
    type: batchable
    handler: tasker_core.examples.checkpoint_yield.CheckpointYieldAnalyzerHandler
  - name: checkpoint_yield_batch
    type: batch_worker
    dependencies: [analyze_items]
    handler: tasker_core.examples.checkpoint_yield.CheckpointYieldWorkerHandler
    retry: {max_attempts: 2, backoff: none}
  - name: add_up
    type: deferred_convergence
    dependencies: [checkpoint_yield_batch]
    handler: tasker_core.examples.checkpoint_yield.CheckpointYieldAggregatorHandler
"""


@pytest.mark.parametrize(
    ("given", "status", "holds"),
    [
        ('{"total_items": 60}', "complete", {"total_processed": 60, "running_total": 1830, "item_count": 60}),
        ('{"total_items": 60, "fail_after_items": 30}', "complete", {"total_processed": 60, "running_total": 1830}),
        ('{"total_items": 0}', "complete", {"total_processed": 0, "worker_count": 0, "scenario": "no_batches"}),
        ('{"total_items": 60, "fail_after_items": 30, "permanent_failure": true}', "error", None),
    ],
    ids=["in three runs", "after a failure", "nothing to do", "failed for good"],
)
def test_the_examples_run(
    given: str, status: str, holds: dict[str, Any] | None, database_url: str, tmp_path: Path
) -> None:
    found = run_json(write_workflow(tmp_path, EXAMPLE, ""), "--input", given, database=database_url)

    assert found["status"] == status
    if holds is not None:
        assert holds.items() <= found["steps"][-1]["result"].items()
