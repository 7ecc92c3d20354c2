"""A program of tasker_core with a worker in it: start and stop, its client, what it says about itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    DuplicateTask,
    InputInvalid,
    StateMachineError,
    StepNotFound,
    TaskNotFound,
    TemplateNotFound,
)
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker_core import (
    BootstrapConfig,
    EventBridge,
    EventNames,
    TaskerClient,
    Worker,
    get_health_check,
    get_metrics,
    get_worker_config,
    get_worker_status,
    is_worker_running,
    stop_worker,
    transition_to_graceful_shutdown,
)
from tasker_core._runtime.bootstrap import bootstrap_worker, running_system
from tasker_core._runtime.client import disconnect
from tasker_core.client import TaskListResponse, TaskResponse
from tasker_core.exceptions import WorkerAlreadyRunningError, WorkerNotInitializedError

TEMPLATE = """
name: orders
namespace: shop
version: 1.0.0
input_schema: {type: object, required: [amount], properties: {amount: {type: integer}}}
steps:
  - {name: check, handler: shop.check}
  - {name: charge, dependencies: [check], handler: shop.charge, retry: {max_attempts: 2, backoff: none}}
"""
HANDLERS = """
from tasker.errors import PermanentError
from tasker.step_handler import inputs, step_handler

@step_handler("shop.check")
@inputs("amount")
def check(amount):
    if amount < 0:
        raise PermanentError("less than nothing")
    return {"amount": amount}

@step_handler("shop.charge")
async def charge(context):
    return {"charged": context.get_dependency_field("check", "amount")}
"""
NOBODY = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def folder(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A deployment: templates beside their handlers, the database in the environment; nothing runs at the end."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "workflow.yaml").write_text(TEMPLATE)
    (tmp_path / "shop" / "handlers.py").write_text(HANDLERS)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", str(tmp_path))
    for name in ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV", "TASKER_NAMESPACE", "PYTHON_HANDLER_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    Worker.reset_instance()
    stop_worker()
    disconnect()
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()


@pytest.fixture
def client(folder: Path) -> TaskerClient:
    """A client in the process of a worker."""
    bootstrap_worker()
    return TaskerClient(initiator="a test", source_system="tests")


def finished(client: TaskerClient, **request: Any) -> TaskResponse:
    """A task of the shop that has ended."""
    created = client.create_task("orders", namespace="shop", **request)
    running_system().app.finished(created.task_uuid)
    return client.get_task(created.task_uuid)


# --- worker and bootstrap -----------------------------------------------------------------------------------------


def test_a_worker_starts_works_and_stops(folder: Path) -> None:
    heard: list[str] = []
    worker = Worker.start()
    EventBridge.instance().subscribe(EventNames.STEP_COMPLETION_SENT, lambda result: heard.append(result.status))
    task = finished(TaskerClient(), context={"amount": 12})
    assert (Worker.instance(), worker.is_running) == (worker, True)
    assert worker.worker_id == worker.bootstrap_result.worker_id
    worker.stop()
    worker.stop()

    assert task.status == "complete"
    assert heard == ["completed", "completed"], "delivered before the bridge is stopped"
    assert (Worker.instance(), worker.is_running, EventBridge.instance().is_active) == (None, False, False)


def test_a_worker_loads_the_handlers_of_packages(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shop" / "handlers.py").rename(tmp_path / "shop_handlers.py")
    monkeypatch.syspath_prepend(tmp_path)
    Worker.start(["no_such_package", "shop_handlers"])

    assert finished(TaskerClient(), context={"amount": 1}).status == "complete"


def test_a_second_worker_is_refused(folder: Path) -> None:
    bootstrap_worker()
    with pytest.raises(WorkerAlreadyRunningError):
        bootstrap_worker()


def test_what_may_be_asked_without_a_worker(folder: Path) -> None:
    assert stop_worker() == "no worker is running"
    assert (get_worker_status().running, is_worker_running(), Worker().worker_id) == (False, False, "")
    for call in (get_health_check, get_metrics, get_worker_config):
        with pytest.raises(WorkerNotInitializedError):
            call()
    for ask in (transition_to_graceful_shutdown, lambda: Worker().bootstrap_result):
        with pytest.raises(RuntimeError):
            ask()


def test_the_worker_serves_its_namespace_and_those_of_the_templates(folder: Path) -> None:
    result = bootstrap_worker(BootstrapConfig(namespace="my_app", worker_id="here-1", log_level="warn"))
    status = get_worker_status()

    assert (result.success, result.worker_id, result.status) == (True, "here-1", "running")
    assert (status.running, status.worker_core_status, status.environment) == (True, "running", "development")
    assert status.supported_namespaces == ["my_app", "shop"]


def test_after_the_shutdown_has_begun_nothing_is_claimed_but_everything_can_be_read(client: TaskerClient) -> None:
    assert "claims nothing more" in transition_to_graceful_shutdown()
    created = client.create_task("orders", namespace="shop", context={"amount": 1})

    assert get_worker_status().worker_core_status == "shutting_down"
    assert client.get_step(created.task_uuid, created.steps[0]["workflow_step_uuid"]).current_state == "enqueued"
    assert "is stopped" in stop_worker()


@pytest.mark.parametrize(
    ("variables", "config", "error", "message"),
    [
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, {}, DatabaseUnavailable, "cannot connect"),
        ({}, {"config_path": "missing.toml"}, ConfigurationError, "missing.toml"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing_running(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    config: dict[str, str],
    error: type[Exception],
    message: str,
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(RuntimeError, match=message) as raised:
        Worker.start(config=BootstrapConfig(**config))

    assert type(raised.value.__cause__) is error
    assert (Worker.instance(), is_worker_running()) == (None, False)


# --- client -------------------------------------------------------------------------------------------------------


def test_a_client_creates_a_task_and_reads_what_became_of_it(client: TaskerClient) -> None:
    created = client.create_task(
        "orders", namespace="shop", context={"amount": 7}, reason="because", priority=3, tags=["a"]
    )
    assert (created.total_steps, created.initiator, created.source_system) == (2, "a test", "tests")
    assert (created.reason, created.priority, created.tags) == ("because", 3, ["a"])
    running_system().app.finished(created.task_uuid)
    task = client.get_task(created.task_uuid)

    assert (task.status, task.execution_status, task.health_status) == ("complete", "all_complete", "healthy")
    assert (task.completed_steps, task.pending_steps, task.completion_percentage) == (2, 0, 100.0)
    assert task.completed_at is not None
    assert task.completed_at.endswith("+00:00")
    assert [(step["name"], step["current_state"]) for step in task.steps] == [
        ("check", "complete"),
        ("charge", "complete"),
    ]


def test_steps_and_their_audit(client: TaskerClient) -> None:
    task = finished(client, context={"amount": 7})
    check, charge = client.list_task_steps(task.task_uuid)

    assert (charge.name, charge.results) == ("charge", {"charged": 7})
    assert (charge.total_parents, charge.completed_parents, charge.dependencies_satisfied) == (1, 1, True)
    assert (charge.attempts, charge.ready_for_execution) == (1, False)
    assert client.get_step(task.task_uuid, check.step_uuid) == check
    (audit,) = client.get_step_audit_history(task.task_uuid, charge.step_uuid)
    assert (audit.step_name, audit.success, audit.result) == ("charge", True, {"charged": 7})
    assert (audit.from_state, audit.to_state) == ("in_progress", "enqueued_for_orchestration")
    assert audit.correlation_id == task.correlation_id
    assert audit.worker_uuid == identity()


def identity() -> str:
    return running_system().result.worker_id


def test_a_failed_task_reads_as_blocked(client: TaskerClient) -> None:
    task = finished(client, context={"amount": -1})
    check, charge = client.list_task_steps(task.task_uuid)

    assert (task.status, task.execution_status) == ("error", "blocked_by_failures")
    assert (task.recommended_action, task.failed_steps, task.pending_steps) == ("handle_failures", 1, 1)
    assert (check.current_state, check.last_failure_at is not None) == ("error", True)
    assert (charge.dependencies_satisfied, charge.completed_parents) == (False, 0)
    (audit,) = client.get_step_audit_history(task.task_uuid, check.step_uuid)
    assert (audit.success, audit.result, audit.to_state) == (False, None, "enqueued_as_error_for_orchestration")


def test_lists_come_in_pages(client: TaskerClient) -> None:
    app = running_system().app
    plan = app.plans.find("shop", "orders").plan
    app.submit_many(plan, [Submission({"amount": number}) for number in range(5)])
    first = client.list_tasks(limit=2, namespace="shop")
    last = client.list_tasks(limit=2, offset=4, namespace="shop")
    page = first.pagination

    assert (len(first.tasks), len(last.tasks)) == (2, 1)
    assert (page.page, page.per_page, page.total_count, page.total_pages) == (0, 2, 5, 3)
    assert (page.has_next, page.has_previous) == (True, False)
    assert (last.pagination.page, last.pagination.has_next, last.pagination.has_previous) == (2, False, True)
    assert client.list_tasks(namespace="elsewhere") == TaskListResponse.from_dict(
        {"tasks": [], "pagination": {"per_page": 50}}
    )
    with pytest.raises(ValueError, match="limit"):
        client.list_tasks(limit=0)


def test_a_task_is_cancelled_once(client: TaskerClient) -> None:
    transition_to_graceful_shutdown()
    task = client.create_task("orders", namespace="shop", context={"amount": 1})

    answer = client.cancel_task(task.task_uuid)
    assert (answer["status"], answer["previous_status"]) == ("cancelled", "steps_in_process")
    assert client.list_tasks(status="cancelled").pagination.total_count == 1
    with pytest.raises(RuntimeError, match="cancelled") as refused:
        client.cancel_task(task.task_uuid)
    assert isinstance(refused.value.__cause__, StateMachineError)


def test_mistakes_are_named(client: TaskerClient) -> None:
    shop: dict[str, Any] = {"namespace": "shop", "context": {"amount": 1}}
    task = client.create_task("orders", **shop, idempotency_key="k")
    mistakes: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (TemplateNotFound, "shop/nothing", lambda: client.create_task("nothing", namespace="shop")),
        (InputInvalid, "amount", lambda: client.create_task("orders", namespace="shop", context={"amount": "much"})),
        (DuplicateTask, "k", lambda: client.create_task("orders", **shop, idempotency_key="k")),
        (TaskNotFound, NOBODY, lambda: client.get_task(NOBODY)),
        (TaskNotFound, NOBODY, lambda: client.list_task_steps(NOBODY)),
        (StepNotFound, NOBODY, lambda: client.get_step(task.task_uuid, NOBODY)),
    ]
    for cause, message, call in mistakes:
        with pytest.raises((RuntimeError, ValueError), match=message) as raised:
            call()
        assert isinstance(raised.value.__cause__, cause)
    with pytest.raises(ValueError, match="colour"):
        client.create_task("orders", **shop, colour="red")
    with pytest.raises(ValueError, match="badly formed"):
        client.get_task("42")


def test_a_client_works_without_a_worker_and_for_templates_that_others_run(folder: Path, database_url: str) -> None:
    with tasker.SyncApp(database_url) as app:
        app.plans.register(app.plan(folder / "shop"))
    client = TaskerClient()
    task = client.create_task("orders", namespace="shop", context={"amount": 1})

    assert client.get_task(task.task_uuid).status == "steps_in_process"
    assert (client.health_check().healthy, client.health_check().status) == (True, "healthy")


def test_a_client_beside_a_worker_uses_its_database_whatever_server_is_named(
    client: TaskerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKER_URL", "http://127.0.0.1:9")

    assert finished(client, context={"amount": 1}).status == "complete"


# --- observability ------------------------------------------------------------------------------------------------


def test_a_worker_s_health_metrics_and_settings(client: TaskerClient) -> None:
    finished(client, context={"amount": 1})
    finished(client, context={"amount": -1})
    health, metrics, config = get_health_check(), get_metrics(), get_worker_config()

    assert (health.status, health.is_running) == ("healthy", True)
    assert {name: part.status for name, part in health.components.items()} == {
        "database": "healthy",
        "messaging": "healthy",
    }
    assert (metrics.steps_processed, metrics.steps_succeeded, metrics.steps_failed) == (3, 2, 1)
    assert metrics.steps_in_progress == 0
    # how many were made depends on what the worker asked at the same moments
    assert 0 <= metrics.database_pool_idle <= metrics.database_pool_size <= config.database_pool_size
    assert metrics.database_pool_size > 0
    assert (config.database_pool_size, config.starvation_threshold_ms) == (25, 10_000)
    assert (config.supported_namespaces, config.max_concurrent_handlers) == (["default", "shop"], 200)


def test_a_worker_loads_no_sqlalchemy(folder: Path) -> None:
    code = (
        "import sys; from tasker_core import bootstrap_worker, stop_worker; bootstrap_worker(); stop_worker(); "
        "print(sorted({'sqlalchemy', 'alembic', 'httpx', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
