"""Results of handlers, and the names of their status."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

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
