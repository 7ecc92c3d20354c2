"""Client for tasks: create, read, cancel."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from tasker.client import HealthResponse as EngineHealth
from tasker_core import _tasker_core as native
from tasker_core._runtime import responses
from tasker_core._runtime.responses import StepAuditResponse, StepResponse, TaskResponse

__all__ = [
    "HealthResponse",
    "PaginationInfo",
    "StepAuditResponse",
    "StepResponse",
    "TaskListResponse",
    "TaskResponse",
    "TaskerClient",
]


@dataclass(frozen=True)
class PaginationInfo:
    """Position of a page in a list; pages count from 0."""

    page: int = 0
    per_page: int = 50
    total_count: int = 0
    total_pages: int = 0
    has_next: bool = False
    has_previous: bool = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create from plain data; unknown entries are ignored."""
        names = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in names and value is not None})


@dataclass(frozen=True)
class TaskListResponse:
    """Page of tasks."""

    tasks: list[TaskResponse] = field(default_factory=list)
    pagination: PaginationInfo = field(default_factory=PaginationInfo)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create from plain data; `TaskResponse` entries are used unchanged."""
        page = responses.TaskListResponse.from_dict(data)
        return cls(page.tasks, PaginationInfo.from_dict(asdict(page.pagination)))


class HealthResponse(EngineHealth):
    """Health of database and messaging."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create from plain data; `healthy` is False if it is missing, whatever the status."""
        return super().from_dict({"healthy": False, **data})


class TaskerClient:
    """Client that creates, reads and cancels tasks, in a process with a worker or without one.

    All methods raise `RuntimeError` for errors of the engine, and `ValueError` for an invalid id.
    """

    def __init__(self, initiator: str = "tasker-core-python", source_system: str = "tasker-core") -> None:
        self.initiator = initiator
        self.source_system = source_system

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
        """Create a task of a registered template. Further arguments: priority, tags, idempotency_key ..."""
        request = {
            "name": name,
            "namespace": namespace,
            "version": version,
            "context": context or {},
            "initiator": self.initiator,
            "source_system": self.source_system,
            "reason": reason,
        }
        return TaskResponse.from_dict(native.client_create_task({**request, **kwargs}))

    def get_task(self, task_uuid: str) -> TaskResponse:
        """Return the task with its steps."""
        return TaskResponse.from_dict(native.client_get_task(task_uuid))

    def list_tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> TaskListResponse:
        """Return a page of tasks, the newest first."""
        return TaskListResponse.from_dict(native.client_list_tasks(limit, offset, namespace, status))

    def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task."""
        return native.client_cancel_task(task_uuid)

    def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order."""
        return [StepResponse.from_dict(step) for step in native.client_list_task_steps(task_uuid)]

    def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step."""
        return StepResponse.from_dict(native.client_get_step(task_uuid, step_uuid))

    def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit of a step's stored results, the newest first."""
        return [StepAuditResponse.from_dict(row) for row in native.client_get_step_audit_history(task_uuid, step_uuid)]

    def health_check(self) -> HealthResponse:
        """Return the health of database and messaging."""
        return HealthResponse.from_dict(native.client_health_check())
