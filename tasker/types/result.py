"""What a handler returns, and the envelope in which its result travels."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Self, TypeAlias
from uuid import UUID

from pydantic import AliasChoices, Field, field_validator

from tasker.contracts.execution import Failure
from tasker.contracts.readable import Constructor, P, yes_or_no
from tasker.types.failure_fields import flag_of, mapping_of, text_of
from tasker.types.invalid_result import require_object
from tasker.types.model import Model


class ResultStatus(StrEnum):
    """How an execution ended."""

    SUCCESS = "completed"
    FAILURE = "error"
    RETRYABLE_ERROR = "retryable_error"
    PERMANENT_ERROR = "permanent_error"


class ErrorType(StrEnum):
    """The usual error types. Any other text is legal: `retryable` alone decides."""

    PERMANENT_ERROR = "permanent_error"
    RETRYABLE_ERROR = "retryable_error"
    VALIDATION_ERROR = "validation_error"
    TIMEOUT = "timeout"
    HANDLER_ERROR = "handler_error"

    @classmethod
    def is_standard(cls, error_type: str) -> bool:
        """True when the text is one of the usual types."""
        return error_type in {member.value for member in cls}

    @classmethod
    def is_typically_retryable(cls, error_type: str) -> bool:
        """True for the usual types after which another attempt makes sense."""
        return error_type in {cls.RETRYABLE_ERROR.value, cls.TIMEOUT.value, cls.HANDLER_ERROR.value}


Keyed: TypeAlias = dict[Any, Any]
"""A mapping from text. What cannot be stored, keys of another type among it, is found when it is (`not_storable`)."""


class _Success(Constructor[P]):
    def read(self, instance: Any) -> bool:
        return bool(instance.is_success)


class _Failure(Constructor[P]):
    def read(self, instance: Any) -> bool:
        return not instance.is_success


class StepHandlerResult(Model):
    """The outcome of one call of a handler: made by `success(...)` or `failure(...)`."""

    is_success: bool = Field(validation_alias=AliasChoices("is_success", "success"))
    result: Keyed | None = None
    error_message: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    retryable: bool = True
    metadata: Keyed = Field(default_factory=dict)

    @_Success
    @classmethod
    def success(cls, result: dict[str, Any], metadata: dict[str, Any] | None = None) -> Self:
        """The step is done; `result` is stored and given to the steps below. On an instance: `is_success`.

        Raises `PermanentError` (`invalid_handler_result`) for a result or metadata that is no mapping.
        """
        if cls is StepHandlerResult and type(result) is dict and not metadata:
            return cls._valid(result)
        require_object("result", result)
        require_object("metadata", metadata or {})
        return cls(is_success=True, result=result, metadata=metadata or {})

    @classmethod
    def _valid(cls, result: dict[str, Any]) -> Self:
        """What validating a success would make, without making the validator: most processes need no other result."""
        self = cls.__new__(cls)
        setting = object.__setattr__
        setting(
            self,
            "__dict__",
            {
                "is_success": True,
                "result": dict(result),
                "error_message": None,
                "error_type": None,
                "error_code": None,
                "retryable": True,
                "metadata": {},
            },
        )
        setting(self, "__pydantic_fields_set__", {"is_success", "result", "metadata"})
        setting(self, "__pydantic_extra__", None)
        setting(self, "__pydantic_private__", None)
        return self

    @_Failure
    @classmethod
    def failure(
        cls,
        message: str,
        error_type: str | Enum = ErrorType.HANDLER_ERROR,
        retryable: bool = True,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
    ) -> Self:
        """The attempt failed. `retryable=False` ends the step at once. `error_type` is a text, or enumerated.
        On an instance: whether it is a failure.

        A number under `metadata["retry_after"]` asks for a delay of that many seconds. Fields of another type than
        these become text: a failure can always be made.
        """
        return cls(
            is_success=False,
            error_message=text_of(message),
            error_type=text_of(error_type),
            error_code=text_of(error_code),
            retryable=flag_of(retryable),
            metadata=mapping_of(metadata),
        )

    @classmethod
    def success_handler_result(cls, result: dict[str, Any], metadata: dict[str, Any] | None = None) -> Self:
        """The same as `success`."""
        return cls.success(result, metadata)

    @classmethod
    def failure_handler_result(
        cls,
        message: str,
        error_type: str | Enum = ErrorType.HANDLER_ERROR,
        retryable: bool = True,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
    ) -> Self:
        """The same as `failure`."""
        return cls.failure(message, error_type, retryable, metadata, error_code)

    @yes_or_no
    def is_success_result(self) -> bool:
        """True for a success."""
        return self.is_success

    @yes_or_no
    def is_failure_result(self) -> bool:
        """True for a failure."""
        return not self.is_success


class StepHandlerCallResult(Model):
    """The older, smaller form of a handler's outcome; accepted wherever a `StepHandlerResult` is."""

    success: bool
    result: Keyed = Field(default_factory=dict)
    error_message: str | None = None
    metadata: Keyed = Field(default_factory=dict)

    @field_validator("result", mode="before")
    @classmethod
    def _an_object(cls, value: Any) -> Any:
        require_object("result", value)
        return value


class StepError(Model):
    """Why an execution failed."""

    error_type: str
    message: str
    stack_trace: str | None = None
    retryable: bool = True
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, failure: Failure) -> Self:
        """A failure in the published form."""
        return cls(
            error_type=failure.error_type,
            message=failure.message,
            stack_trace=failure.metadata.get("traceback"),
            retryable=failure.retryable,
            metadata=dict(failure.metadata),
        )


class StepExecutionResult(Model):
    """One execution of a step as it is reported: outcome, duration in milliseconds, and who ran it."""

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
        """A successful execution, status `completed`."""
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
        """A failed execution, status `retryable_error` or `permanent_error` by `error.retryable`."""
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
