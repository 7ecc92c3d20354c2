"""Calls behind the published client: on a server if the environment names one, else on a database.

In a process with a worker the clients share its database. Elsewhere all clients of the process share one connection to
`DATABASE_URL`, the configured database, or the embedded one. A forked process opens its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from tasker.app.sync_app import SyncApp
from tasker.client.responses import HealthResponse
from tasker.client.servers import server_of_environment
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission
from tasker_core._runtime.bootstrap import is_worker_running, running_system
from tasker_core._runtime.responses import (
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
    response,
)

T = TypeVar("T")
SERVERS = "tasker_core._runtime.server_calls"


class Calls(Protocol):
    """Operations of the client, implemented for a server and for a database."""

    def create_task(self, *args: Any, **kwargs: Any) -> TaskResponse: ...
    def get_task(self, task_uuid: str) -> TaskResponse: ...
    def list_tasks(self, *args: Any, **kwargs: Any) -> TaskListResponse: ...
    def cancel_task(self, task_uuid: str) -> dict[str, Any]: ...
    def list_task_steps(self, task_uuid: str) -> list[StepResponse]: ...
    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse: ...
    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]: ...
    def health_check(self) -> HealthResponse: ...


def calls(initiator: str = "", source_system: str = "") -> Calls:
    """Return the calls on the database of this process's worker, on a named server, or on another database.

    The server is that of `TASKER_URL` or `TASKER_PROFILE`, with the credentials of the environment or the profile. Both
    names are stored with every task that is created.
    """
    server = None if is_worker_running() else server_of_environment()
    if server is None:
        return DatabaseCalls(initiator, source_system)
    from tasker_core._runtime.server_calls import ServerCalls

    return ServerCalls(server, initiator, source_system)


def disconnect() -> None:
    """Close the connections that the clients of this process share; the next call opens one again."""
    with _shared_app.lock:
        app, _shared_app.value = _shared_app.value, None
    if app is not None:
        app.stop()
    if servers := sys.modules.get(SERVERS):
        servers.disconnect()


class PerProcess(Generic[T]):
    """`value` made by `make`, to be used under its `lock`. A forked process starts with a new one.

    The fork has none of the threads that serve the parent's value, and may inherit a locked lock. The parent's value is
    kept referenced but unused: closing its sockets could disturb the parent.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._of_others = make, list[T]()
        self.lock, self.value = threading.Lock(), make()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._of_others.append(self.value)
        self.lock, self.value = threading.Lock(), self._make()


_shared_app = PerProcess[SyncApp | None](lambda: None)


class DatabaseCalls:
    """Published calls on a database. All raise `DatabaseUnavailable` without one."""

    def __init__(self, initiator: str, source_system: str) -> None:
        self._app, self._initiator, self._source_system = _app(), initiator, source_system

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
        return response(TaskResponse, self._app.views.task(task_uuid))

    def list_tasks(self, **which: Any) -> TaskListResponse:
        """Return a page of tasks."""
        return response(TaskListResponse, self._app.views.tasks(**which))

    def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task."""
        before = self._app.tasks.cancel(task_uuid, actor=self._initiator)
        return {"task_uuid": task_uuid, "status": "cancelled", "previous_status": before}

    def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order."""
        return [response(StepResponse, step) for step in self._app.views.steps(task_uuid)]

    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step."""
        return response(StepResponse, self._app.views.step(task_uuid, step_uuid))

    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit records of the stored results of a step."""
        return [response(StepAuditResponse, row) for row in self._app.views.audit(task_uuid, step_uuid)]

    def health_check(self) -> HealthResponse:
        """Return whether database and messaging respond."""
        return HealthResponse.from_dict(self._app.views.health())


def _app() -> SyncApp:
    """Return the app of this process's worker, or the one that clients share."""
    if is_worker_running():
        return running_system().app
    with _shared_app.lock:
        if _shared_app.value is None:
            app = SyncApp(work=False)
            app.start()
            _shared_app.value = app
        return _shared_app.value
