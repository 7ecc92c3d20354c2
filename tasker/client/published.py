"""`TaskerClient`: create, read and cancel tasks on a server if one is configured, else on a database."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from tasker.client.responses import (
    HealthResponse,
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
)
from tasker.client.servers import server_at, server_of_environment
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.client.servers import ServerAddress

REQUEST_OPTIONS = (
    "priority",
    "idempotency_key",
    "correlation_id",
    "parent_correlation_id",
    "tags",
    "run_at",
    "delay",
    "expires_in",
    "deadline",
)
DATABASE, SERVERS = "tasker.client.local", "tasker.client.published_http"


class Calls(Protocol):
    """Operations of `TaskerClient`, implemented for a server and for a database."""

    def create_task(self, *args: Any, **kwargs: Any) -> TaskResponse: ...
    def get_task(self, task_uuid: str) -> TaskResponse: ...
    def list_tasks(self, *args: Any, **kwargs: Any) -> TaskListResponse: ...
    def cancel_task(self, task_uuid: str) -> dict[str, Any]: ...
    def list_task_steps(self, task_uuid: str) -> list[StepResponse]: ...
    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse: ...
    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]: ...
    def health_check(self) -> HealthResponse: ...


class TaskerClient:
    """Blocking client that creates, reads and cancels tasks.

    It calls the server at `base_url`. Without one it uses, in this order: the database of a worker in this process; the
    server of `TASKER_URL` or `TASKER_PROFILE`, with the credentials of the environment or the profile; a database.
    `initiator` and `source_system` are stored with every task that this client creates.

    All methods raise `DatabaseUnavailable` without a database; with a server they raise the errors of `HttpClient`.
    """

    def __init__(
        self,
        initiator: str = "tasker-core-python",
        source_system: str = "tasker-core",
        *,
        base_url: str | None = None,
    ) -> None:
        self.initiator, self.source_system, self.base_url = initiator, source_system, base_url

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
        """Create a task from a registered template. More arguments: priority, tags, idempotency_key ...

        Raises `UsageError` for a template that is not registered, `InputInvalid`, `DuplicateTask`.
        """
        if unknown := sorted(kwargs.keys() - set(REQUEST_OPTIONS)):
            raise UsageError(
                f"create_task does not know {', '.join(unknown)}", hint=f"expected: {', '.join(REQUEST_OPTIONS)}"
            )
        request = {
            "namespace": namespace,
            "context": {} if context is None else context,
            "version": version,
            "reason": reason,
        }
        return self._calls().create_task(name, **request, **kwargs)

    def get_task(self, task_uuid: str) -> TaskResponse:
        """Return the task with its steps. Raises `TaskNotFound`."""
        return self._calls().get_task(task_uuid)

    def list_tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> TaskListResponse:
        """Return a page of tasks, newest first.

        A server returns at most 500. `status` is a task state, e.g. `complete`.
        """
        return self._calls().list_tasks(limit=limit, offset=offset, namespace=namespace, status=status)

    def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task. Raises `TaskNotFound`, and `StateMachineError` if it has already ended."""
        return self._calls().cancel_task(task_uuid)

    def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order. Raises `TaskNotFound`."""
        return self._calls().list_task_steps(task_uuid)

    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step. Raises `TaskNotFound`, `StepNotFound`."""
        return self._calls().get_step(task_uuid, step_uuid)

    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit records of the stored results of a step, newest first.

        Raises `TaskNotFound`, `StepNotFound`.
        """
        return self._calls().get_step_audit_history(task_uuid, step_uuid)

    def health_check(self) -> HealthResponse:
        """Return whether database and messaging respond."""
        return self._calls().health_check()

    def _calls(self) -> Calls:
        if server := self._server():
            from tasker.client.published_http import ServerCalls

            return ServerCalls(server, self.initiator, self.source_system)
        from tasker.client.local import DatabaseCalls

        return DatabaseCalls(self.initiator, self.source_system)

    def _server(self) -> ServerAddress | None:
        if self.base_url:
            return server_at(self.base_url)
        return None if _works_here() else server_of_environment()


def _works_here() -> bool:
    """Return whether a worker of this process runs; none does if `tasker.bootstrap` was never imported."""
    bootstrap = sys.modules.get("tasker.bootstrap")
    return bootstrap is not None and bootstrap.is_worker_running()


def disconnect() -> None:
    """Close the connections that the clients of this process share; the next call opens one again."""
    for name in (DATABASE, SERVERS):
        if module := sys.modules.get(name):
            module.disconnect()
