"""Tasks and steps as the REST API returns them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tasker.handlers.results import Model


class ClientStepReadiness(Model):
    """Readiness of a task's step; times are ISO 8601 in UTC."""

    workflow_step_uuid: str
    task_uuid: str
    named_step_uuid: str
    name: str
    current_state: str
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    last_failure_at: str | None = None
    next_retry_at: str | None = None
    total_parents: int
    completed_parents: int
    attempts: int
    max_attempts: int
    backoff_request_seconds: int | None = None
    last_attempted_at: str | None = None


class ClientTaskResponse(Model):
    """Task with its progress and its steps."""

    task_uuid: str
    name: str
    namespace: str
    version: str
    status: str
    created_at: str
    updated_at: str
    completed_at: str | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    initiator: str
    source_system: str
    reason: str
    priority: int | None = None
    tags: list[str] | None = None
    correlation_id: str
    parent_correlation_id: str | None = None
    run_at: str | None = None
    expires_at: str | None = None
    deadline_at: str | None = None
    waits_until: str | None = None
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    execution_status: str
    recommended_action: str
    completion_percentage: float
    health_status: str
    steps: list[ClientStepReadiness] = Field(default_factory=list)


class ClientPaginationInfo(Model):
    """Position of a page in a list; pages count from 0."""

    page: int
    per_page: int
    total_count: int
    total_pages: int
    has_next: bool
    has_previous: bool


class ClientTaskListResponse(Model):
    """One page of tasks."""

    tasks: list[ClientTaskResponse]
    pagination: ClientPaginationInfo


class ClientStepResponse(Model):
    """Step with its result."""

    step_uuid: str
    task_uuid: str
    name: str
    created_at: str
    updated_at: str
    completed_at: str | None = None
    results: dict[str, Any] | None = None
    current_state: str
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    total_parents: int
    completed_parents: int
    attempts: int
    max_attempts: int
    last_failure_at: str | None = None
    next_retry_at: str | None = None
    last_attempted_at: str | None = None


class ClientStepAuditResponse(Model):
    """One execution of a step, from the audit log."""

    audit_uuid: str
    workflow_step_uuid: str
    transition_uuid: str
    task_uuid: str
    recorded_at: str
    worker_uuid: str | None = None
    correlation_id: str | None = None
    success: bool
    execution_time_ms: int | None = None
    result: dict[str, Any] | None = None
    step_name: str
    from_state: str | None = None
    to_state: str


class ClientHealthResponse(Model):
    """Health of the server."""

    status: str
    timestamp: str
