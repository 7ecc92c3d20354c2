"""The client of the published names, on the database: create, read, cancel (B-87).

Inside a process with a worker the client shares its database; elsewhere it connects to `DATABASE_URL`, to the
configured database, or to the embedded one, once for all clients of the process.
"""

from __future__ import annotations

import threading
from typing import Any

from tasker.app.embedded.sync_app import SyncApp
from tasker.bootstrap import is_worker_running, running_system
from tasker.client.responses import (
    HealthResponse,
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
)
from tasker.errors import UsageError
from tasker.services.submitting.submission import Request

REQUEST_OPTIONS = ("priority", "idempotency_key", "correlation_id", "parent_correlation_id", "tags")

_lock = threading.Lock()
_shared: SyncApp | None = None


class TaskerClient:
    """Creates, reads and cancels tasks. All methods wait; all raise `DatabaseUnavailable` without a database.

    `initiator` and `source_system` are kept with every task that this client creates.
    """

    def __init__(self, initiator: str = "tasker-core-python", source_system: str = "tasker-core") -> None:
        self.initiator, self.source_system = initiator, source_system

    def create_task(
        self,
        name: str,
        *,
        namespace: str = "default",
        context: dict[str, Any] | None = None,
        version: str = "1.0.0",
        reason: str = "Task requested",
        **kwargs: Any,
    ) -> TaskResponse:
        """Create a task of a registered template. More arguments: priority, tags, idempotency_key ...

        Raises `UsageError` for a template that is not registered, `InputInvalid`, `DuplicateTask`.
        """
        if unknown := sorted(kwargs.keys() - set(REQUEST_OPTIONS)):
            raise UsageError(
                f"create_task does not know {', '.join(unknown)}", hint=f"expected: {', '.join(REQUEST_OPTIONS)}"
            )
        app = _app()
        plan = app.plans.find(namespace, name, version).plan
        request = Request(
            context or {}, initiator=self.initiator, source_system=self.source_system, reason=reason, **kwargs
        )
        return self.get_task(app.submit_request(plan, request).task_uuid)

    def get_task(self, task_uuid: str) -> TaskResponse:
        """The task with its steps. Raises `TaskNotFound`."""
        return TaskResponse.from_dict(_app().views.task(task_uuid))

    def list_tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> TaskListResponse:
        """A page of tasks, the newest first. `status` is a task state, e.g. `complete`."""
        found = _app().views.tasks(limit=limit, offset=offset, namespace=namespace, status=status)
        return TaskListResponse.from_dict(found)

    def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task. Raises `TaskNotFound`, and `StateMachineError` when it is final already."""
        before = _app().tasks.cancel(task_uuid, actor=self.initiator)
        return {"task_uuid": task_uuid, "status": "cancelled", "previous_status": before}

    def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """The task's steps in topological order. Raises `TaskNotFound`."""
        return [StepResponse.from_dict(step) for step in _app().views.steps(task_uuid)]

    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """One step. Raises `TaskNotFound`, `StepNotFound`."""
        return StepResponse.from_dict(_app().views.step(task_uuid, step_uuid))

    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Who stored which result of a step, the newest first (B-87). Raises `TaskNotFound`, `StepNotFound`."""
        return [StepAuditResponse.from_dict(row) for row in _app().views.audit(task_uuid, step_uuid)]

    def health_check(self) -> HealthResponse:
        """Whether database and messaging answer."""
        return HealthResponse.from_dict(_app().views.health())


def disconnect() -> None:
    """Close the connection that the clients of this process share; the next call opens it again."""
    global _shared
    with _lock:
        app, _shared = _shared, None
    if app is not None:
        app.stop()


def _app() -> SyncApp:
    """The app of this process's worker; without one, the one that clients share."""
    global _shared
    if is_worker_running():
        return running_system().app
    with _lock:
        if _shared is None:
            app = SyncApp(work=False)
            app.start()
            _shared = app
        return _shared
