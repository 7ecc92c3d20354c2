"""Steps in requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from tasker.api.shapes.texts import Text


class StepReadinessStatus(BaseModel):
    """A step inside its task: where it stands, and whether it can run."""

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
    """A step with its result."""

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
    """The result of a step that is completed by hand; `metadata` is kept with it."""

    result: dict[str, Any]
    metadata: dict[str, Any] | None = None


class ResetForRetry(BaseModel):
    """Run a step in `error` again, its attempts counted from zero."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["reset_for_retry"]
    reason: Text
    reset_by: Text


class ResolveManually(BaseModel):
    """Take a step as done, without a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["resolve_manually"]
    reason: Text
    resolved_by: Text


class CompleteManually(BaseModel):
    """Take a step as done, with a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["complete_manually"]
    reason: Text
    completed_by: Text
    completion_data: ManualCompletionData


class StepManualAction(RootModel[ResetForRetry | ResolveManually | CompleteManually]):
    """What an operator does to a step; `action_type` says which."""

    root: ResetForRetry | ResolveManually | CompleteManually = Field(discriminator="action_type")


class StepAuditResponse(BaseModel):
    """One stored result of a step, with who stored it."""

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
