"""Responses of the published client as frozen dataclasses. Times are ISO 8601 in UTC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from tasker.dataclasses import dataclass
from tasker.views.model import encode


def _known(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of `data` that are fields of the dataclass; null entries are dropped for the default."""
    names = {item.name for item in fields(cls)}
    return {key: value for key, value in data.items() if key in names and value is not None}


@dataclass(frozen=True)
class PaginationInfo:
    """Position of a page in a list; pages count from 0. A page that was read by a cursor has no number and counts.

    `next_cursor` reads the next page. `total_is_minimum`: there may be more than `total_count`.
    """

    page: int = 0
    per_page: int = 50
    total_count: int = 0
    total_pages: int = 0
    has_next: bool = False
    has_previous: bool = False
    next_cursor: str | None = None
    total_is_minimum: bool = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; unknown entries are ignored."""
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class TaskResponse:
    """Task with its progress; `get_task` and `create_task` fill `steps`. Times are ISO 8601 in UTC."""

    task_uuid: str = ""
    name: str = ""
    namespace: str = ""
    version: str = ""
    status: str = ""
    created_at: str = ""
    updated_at: str = ""
    completed_at: str | None = None
    context: dict[str, Any] = field(default_factory=dict)
    initiator: str = ""
    source_system: str = ""
    reason: str = ""
    priority: int | None = None
    tags: list[str] | None = None
    correlation_id: str = ""
    parent_correlation_id: str | None = None
    run_at: str | None = None
    expires_at: str | None = None
    deadline_at: str | None = None
    waits_until: str | None = None
    tenant: str | None = None
    total_steps: int = 0
    pending_steps: int = 0
    in_progress_steps: int = 0
    completed_steps: int = 0
    failed_steps: int = 0
    ready_steps: int = 0
    execution_status: str = ""
    recommended_action: str = ""
    completion_percentage: float = 0.0
    health_status: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    current_state: str = ""
    duration_ms: int | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; unknown entries are ignored."""
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class TaskListResponse:
    """Page of tasks."""

    tasks: list[TaskResponse] = field(default_factory=list)
    pagination: PaginationInfo = field(default_factory=PaginationInfo)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; `TaskResponse` entries are used unchanged."""
        entries = data.get("tasks") or ()
        tasks = [task if isinstance(task, TaskResponse) else TaskResponse.from_dict(task) for task in entries]
        return cls(tasks, PaginationInfo.from_dict(data.get("pagination") or {}))


@dataclass(frozen=True)
class StepResponse:
    """Step with its result."""

    step_uuid: str = ""
    task_uuid: str = ""
    name: str = ""
    created_at: str = ""
    updated_at: str = ""
    completed_at: str | None = None
    results: dict[str, Any] | None = None
    current_state: str = ""
    dependencies_satisfied: bool = False
    retry_eligible: bool = False
    ready_for_execution: bool = False
    total_parents: int = 0
    completed_parents: int = 0
    attempts: int = 0
    max_attempts: int = 0
    last_failure_at: str | None = None
    next_retry_at: str | None = None
    last_attempted_at: str | None = None
    workflow_step_uuid: str = ""
    last_error: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; unknown entries are ignored."""
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class StepAuditResponse:
    """Audit record of one stored result or failure of a step."""

    audit_uuid: str = ""
    workflow_step_uuid: str = ""
    transition_uuid: str = ""
    task_uuid: str = ""
    recorded_at: str = ""
    worker_uuid: str | None = None
    correlation_id: str | None = None
    success: bool = False
    execution_time_ms: int | None = None
    result: dict[str, Any] | None = None
    step_name: str = ""
    from_state: str | None = None
    to_state: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; unknown entries are ignored."""
        return cls(**_known(cls, data))


R = TypeVar("R", TaskResponse, StepResponse, StepAuditResponse, TaskListResponse)


def response(kind: type[R], view: Any) -> R:
    """Return the published object of a view."""
    published = json.loads(json.dumps(encode(type(view), view), default=_text))
    return kind.from_dict(published)


def _text(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
