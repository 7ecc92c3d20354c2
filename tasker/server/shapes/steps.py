"""Schemas of steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from tasker.server.shapes.texts import Text


class StepReadinessStatus(BaseModel):
    """Step of a task with its state and its readiness to run."""

    workflow_step_uuid: str
    task_uuid: str
    named_step_uuid: str
    name: str
    current_state: str
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    attempts: int
    max_attempts: int
    total_parents: int
    completed_parents: int
    last_attempted_at: datetime | None = None
    last_failure_at: datetime | None = None
    next_retry_at: datetime | None = None
    backoff_request_seconds: int | None = None


class StepResponse(BaseModel):
    """Step with its result."""

    step_uuid: str
    workflow_step_uuid: str
    task_uuid: str
    name: str
    current_state: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    results: Any = None
    last_error: str | None = None
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    attempts: int
    max_attempts: int
    total_parents: int
    completed_parents: int
    last_attempted_at: datetime | None = None
    last_failure_at: datetime | None = None
    next_retry_at: datetime | None = None


class ManualCompletionData(BaseModel):
    """Result of a step that an operator completes; `metadata` is stored with it."""

    result: dict[str, Any]
    metadata: dict[str, Any] | None = None


class ResetForRetry(BaseModel):
    """Action that runs a step in `error` again with its attempts counted from zero."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["reset_for_retry"]
    reason: Text
    reset_by: Text


class ResolveManually(BaseModel):
    """Action that marks a step as done without a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["resolve_manually"]
    reason: Text
    resolved_by: Text


class CompleteManually(BaseModel):
    """Action that marks a step as done with a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["complete_manually"]
    reason: Text
    completed_by: Text
    completion_data: ManualCompletionData


class StepManualAction(RootModel[ResetForRetry | ResolveManually | CompleteManually]):
    """Operator action on a step, selected by `action_type`."""

    root: ResetForRetry | ResolveManually | CompleteManually = Field(discriminator="action_type")


class StepInputsResponse(BaseModel):
    """Input of a step's handler. `evaluated` is false if it is the input of the task."""

    task_uuid: str
    step_uuid: str
    name: str
    attempt: int
    evaluated: bool
    inputs: dict[str, Any]
    problems: dict[str, str]
    """Why an input has no value, by its name."""


class StepAuditResponse(BaseModel):
    """Stored result of a step and the worker that stored it."""

    audit_uuid: str
    workflow_step_uuid: str
    transition_uuid: str
    task_uuid: str
    recorded_at: datetime
    worker_uuid: str | None = None
    correlation_id: str | None = None
    success: bool
    execution_time_ms: int | None = None
    result: Any = None
    step_name: str
    from_state: str | None = None
    to_state: str
