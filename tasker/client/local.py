"""Database calls behind `TaskerClient`.

In a process with a worker the clients share its database. Elsewhere all clients of the process share one connection to
`DATABASE_URL`, the configured database, or the embedded one. A forked process opens its own.
"""

from __future__ import annotations

from typing import Any

from tasker.app.sync_app import SyncApp
from tasker.bootstrap import is_worker_running, running_system
from tasker.client.per_process import PerProcess
from tasker.client.responses import (
    HealthResponse,
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
)
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission

_shared = PerProcess[SyncApp | None](lambda: None)


class DatabaseCalls:
    """Published calls on a database. All raise `DatabaseUnavailable` without one."""

    def __init__(self, initiator: str, source_system: str) -> None:
        self._app, self._initiator, self._source_system = _shared_app(), initiator, source_system

    def create_task(
        self,
        name: str,
        *,
        namespace: str,
        context: dict[str, Any],
        version: str,
        reason: str,
        **options: Any,
    ) -> TaskResponse:
        """Create a task from a registered template."""
        request = Submission(
            context, initiator=self._initiator, source_system=self._source_system, reason=reason, **options
        )
        order = TemplateSubmission(namespace, name, version, request)
        return self.get_task(self._app.submissions.submit(order).task_uuid)

    def get_task(self, task_uuid: str) -> TaskResponse:
        """Return the task with its steps."""
        return TaskResponse.from_dict(self._app.views.task(task_uuid))

    def list_tasks(self, **which: Any) -> TaskListResponse:
        """Return a page of tasks."""
        return TaskListResponse.from_dict(self._app.views.tasks(**which))

    def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task."""
        before = self._app.tasks.cancel(task_uuid, actor=self._initiator)
        return {"task_uuid": task_uuid, "status": "cancelled", "previous_status": before}

    def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order."""
        return [StepResponse.from_dict(step) for step in self._app.views.steps(task_uuid)]

    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step."""
        return StepResponse.from_dict(self._app.views.step(task_uuid, step_uuid))

    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit records of the stored results of a step."""
        return [StepAuditResponse.from_dict(row) for row in self._app.views.audit(task_uuid, step_uuid)]

    def health_check(self) -> HealthResponse:
        """Return whether database and messaging respond."""
        return HealthResponse.from_dict(self._app.views.health())


def disconnect() -> None:
    """Close the connection that the clients of this process share; the next call opens it again."""
    with _shared.lock:
        app, _shared.value = _shared.value, None
    if app is not None:
        app.stop()


def _shared_app() -> SyncApp:
    """Return the app of this process's worker, or the one that clients share."""
    if is_worker_running():
        return running_system().app
    with _shared.lock:
        if _shared.value is None:
            app = SyncApp(work=False)
            app.start()
            _shared.value = app
        return _shared.value
