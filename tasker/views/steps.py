"""Views of steps, of their attempts and log lines, and of what operators did to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.views.model import published

LEVELS = ("debug", "info", "warning", "error")
"""Levels of log lines, the lowest first."""


@published("StepReadinessStatus", aliases={"step_uuid": "workflow_step_uuid", "state": "current_state"})
@dataclass(frozen=True, slots=True)
class StepReadiness:
    """Step of a task with its state and its readiness to run."""

    step_uuid: str
    task_uuid: str
    named_step_uuid: str
    name: str
    state: str
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    attempts: int
    max_attempts: int
    total_parents: int
    completed_parents: int
    last_attempted_at: datetime | None
    last_failure_at: datetime | None
    next_retry_at: datetime | None
    backoff_request_seconds: int | None
    last_error: str | None
    created_at: datetime | None
    updated_at: datetime | None

    @property
    def current_state(self) -> str:
        """State of the step."""
        return self.state

    @property
    def workflow_step_uuid(self) -> str:
        """Identifier of the step."""
        return self.step_uuid


@published("StepResponse", aliases={"state": "current_state"}, derived={"workflow_step_uuid": "step_uuid"})
@dataclass(frozen=True, slots=True)
class Step(StepReadiness):
    """Step with its result."""

    completed_at: datetime | None
    results: Any


@published("StepAuditResponse", aliases={"step_uuid": "workflow_step_uuid"})
@dataclass(frozen=True, slots=True)
class Attempt:
    """Stored result of a step and the worker that stored it."""

    audit_uuid: str
    step_uuid: str
    transition_uuid: str
    task_uuid: str
    recorded_at: datetime
    worker_uuid: str | None
    correlation_id: str | None
    success: bool
    execution_time_ms: int | None
    result: Any
    step_name: str
    from_state: str | None
    to_state: str


@published("StepInputsResponse")
@dataclass(frozen=True, slots=True)
class StepInputs:
    """Input of a step's handler. `evaluated` is false if it is the input of the task; `problems` says why an input has
    no value, by its name."""

    task_uuid: str
    step_uuid: str
    name: str
    attempt: int
    evaluated: bool
    inputs: Mapping[str, Any]
    problems: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StepLogLine:
    """Log line of a handler. `level` is one of `LEVELS`; `logger` is `stdout` for printed output.

    `place` is its position in the log: pass it as `after` to read the next lines.
    """

    at: datetime
    step: str
    step_uuid: str
    attempt: int
    level: str
    logger: str
    message: str
    fields: Mapping[str, Any] | None
    place: str

    def redacted_by(self, redact: Callable[[Any], Any]) -> StepLogLine:
        """Return the line with what its handler wrote redacted; its place stays a place."""
        return replace(self, **redact({"message": self.message, "fields": self.fields}))


@dataclass(frozen=True, slots=True)
class StartedRerun:
    """Rerun that was started: the new task's id, its number of steps, and how many of them are reused."""

    task_uuid: str
    steps: int
    reused: int


@dataclass(frozen=True, slots=True)
class RetriedSteps:
    """Names of the steps that run again, and of lost steps that were not reset because they may run only once (rule
    11)."""

    reset: tuple[str, ...]
    left: tuple[str, ...]
