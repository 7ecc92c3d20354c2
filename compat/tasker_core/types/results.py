"""Results of handlers and of executions, and the names of their status."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field

from tasker.handlers.claims import Failure
from tasker.handlers.results import Model
from tasker.handlers.results import StepHandlerResult as EngineResult


class ResultStatus(str, Enum):  # noqa: UP042 (its text is published as `ResultStatus.SUCCESS`)
    """Status of an execution."""

    SUCCESS = "completed"
    FAILURE = "error"
    RETRYABLE_ERROR = "retryable_error"
    PERMANENT_ERROR = "permanent_error"


class ErrorType(str, Enum):  # noqa: UP042
    """The usual error types; any other text is valid."""

    PERMANENT_ERROR = "permanent_error"
    RETRYABLE_ERROR = "retryable_error"
    VALIDATION_ERROR = "validation_error"
    TIMEOUT = "timeout"
    HANDLER_ERROR = "handler_error"

    @classmethod
    def is_standard(cls, error_type: str) -> bool:
        """Return True if the text is one of these types."""
        return error_type in {member.value for member in cls}

    @classmethod
    def is_typically_retryable(cls, error_type: str) -> bool:
        """Return True for a timeout and for the retryable type."""
        return error_type in {cls.RETRYABLE_ERROR.value, cls.TIMEOUT.value}


class StepHandlerResult(EngineResult):
    """The engine's result with tasker_core's alias: `is_success` is read and written as `success`, too."""

    model_config = ConfigDict(populate_by_name=True)

    is_success: bool = Field(validation_alias="success", serialization_alias="success")


class StepError(Model):
    """Error of a failed execution."""

    error_type: str
    message: str
    stack_trace: str | None = None
    retryable: bool = True
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, failure: Failure) -> Self:
        """Return a failure in the published form."""
        return cls(
            error_type=failure.error_type,
            message=failure.message,
            stack_trace=failure.metadata.get("traceback"),
            retryable=failure.retryable,
            metadata=dict(failure.metadata),
        )


class StepExecutionResult(Model):
    """Report of one execution of a step: outcome, duration in milliseconds, and the worker."""

    step_uuid: UUID
    task_uuid: UUID
    success: bool
    status: str
    execution_time_ms: int
    result: dict[str, Any] | None = None
    error: StepError | None = None
    worker_id: str | None = None
    correlation_id: UUID | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def success_result(
        cls,
        step_uuid: UUID,
        task_uuid: UUID,
        result: dict[str, Any],
        execution_time_ms: int,
        worker_id: str,
        correlation_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepExecutionResult:
        """Return a successful execution with the status `completed`."""
        return cls(
            step_uuid=step_uuid,
            task_uuid=task_uuid,
            success=True,
            status=ResultStatus.SUCCESS.value,
            execution_time_ms=execution_time_ms,
            result=result,
            worker_id=worker_id,
            correlation_id=correlation_id,
            metadata=metadata or {},
        )

    @classmethod
    def failure_result(
        cls,
        step_uuid: UUID,
        task_uuid: UUID,
        error: StepError,
        execution_time_ms: int,
        worker_id: str,
        correlation_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> StepExecutionResult:
        """Return a failed execution.

        The status is `retryable_error` or `permanent_error`, according to `error.retryable`.
        """
        status = ResultStatus.RETRYABLE_ERROR if error.retryable else ResultStatus.PERMANENT_ERROR
        return cls(
            step_uuid=step_uuid,
            task_uuid=task_uuid,
            success=False,
            status=status.value,
            execution_time_ms=execution_time_ms,
            error=error,
            worker_id=worker_id,
            correlation_id=correlation_id,
            metadata=metadata or {},
        )
