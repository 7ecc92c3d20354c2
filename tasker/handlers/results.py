"""`StepHandlerResult`, and the form in which results are stored and read.

Nothing here raises: an exception would replace the failure, and be retried even if the failure is permanent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, StrEnum
from typing import Any, Self, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from tasker.errors import PermanentError
from tasker.handlers.readable import Constructor, P, yes_or_no


class Model(BaseModel):
    """Pydantic model that builds its validator at first use: a process uses few of them and starts faster."""

    model_config = ConfigDict(defer_build=True, ignored_types=(Constructor, yes_or_no))


def printable(value: Any) -> str:
    """Return `str(value)`; if that fails, the value's class and the class of the exception."""
    return _asked(str, value)


def shown(value: Any) -> str:
    """Return the first 80 characters of `repr(value)`."""
    return _asked(repr, value)[:80]


def described(value: Any) -> str:
    """Return the value's class and the beginning of its `repr`, for error messages."""
    return "None" if value is None else f"{type(value).__name__} ({shown(value)})"


def _asked(form: Callable[[Any], str], value: Any) -> str:
    try:
        return form(value)
    except Exception as defect:
        return f"{type(value).__name__}, which cannot be shown: asking it raised {type(defect).__name__}"


NO = frozenset({"0", "f", "false", "n", "no", "off"})
"""Texts that mean False."""


def text_of(value: Any) -> str | None:
    """Return a message, type or code as text; an enum member is replaced by its value. None stays None."""
    plain = value.value if isinstance(value, Enum) else value
    return None if plain is None else printable(plain)


def flag_of(value: Any) -> bool:
    """Return whether the attempt may be retried. True if the value is unreadable, like the default of any failure."""
    if isinstance(value, str):
        return value.lower() not in NO
    try:
        return value is None or bool(value)
    except Exception:
        return True


def mapping_of(value: Any) -> dict[Any, Any]:
    """Return metadata as a dict; a value that is not a mapping is stored as text under `metadata`."""
    with suppress(Exception):
        if isinstance(value, Mapping) or not value:
            return dict(value or {})
    return {"metadata": printable(value)}


INVALID_RESULT = "invalid_handler_result"


def invalid_result(message: str) -> PermanentError:
    """Return the error for an invalid result, to be raised."""
    error = PermanentError(message)
    error.error_type = INVALID_RESULT
    return error


def require_object(what: str, value: Any) -> None:
    """Raise `PermanentError` if a result or metadata (`what`) of a success is neither a mapping nor None."""
    if value is not None and not isinstance(value, Mapping):
        message = f"the {what} of the success is {described(value)}, expected a dict: write {_advice(value)}"
        raise invalid_result(message)


def _advice(value: Any) -> str:
    if isinstance(value, BaseModel):
        return 'success(value.model_dump(mode="json"))'
    if hasattr(type(value), "__dataclass_fields__"):
        return "success(dataclasses.asdict(value))"
    return 'success({"result": value})'


class ResultStatus(StrEnum):
    """Status of an execution."""

    SUCCESS = "completed"
    FAILURE = "error"
    RETRYABLE_ERROR = "retryable_error"
    PERMANENT_ERROR = "permanent_error"


class ErrorType(StrEnum):
    """Standard error types. Any other text is allowed: only `retryable` decides about another attempt."""

    PERMANENT_ERROR = "permanent_error"
    RETRYABLE_ERROR = "retryable_error"
    VALIDATION_ERROR = "validation_error"
    TIMEOUT = "timeout"
    HANDLER_ERROR = "handler_error"

    @classmethod
    def is_standard(cls, error_type: str) -> bool:
        """Return True if the text is a standard type."""
        return error_type in {member.value for member in cls}

    @classmethod
    def is_typically_retryable(cls, error_type: str) -> bool:
        """Return True for the standard types after which another attempt makes sense."""
        return error_type in {cls.RETRYABLE_ERROR.value, cls.TIMEOUT.value, cls.HANDLER_ERROR.value}


Keyed: TypeAlias = dict[Any, Any]
"""Mapping with text keys. Content that cannot be stored, such as other keys, is detected on storage (`not_storable`).
"""


class _Success(Constructor[P]):
    def read(self, instance: Any) -> bool:
        return bool(instance.is_success)


class _Failure(Constructor[P]):
    def read(self, instance: Any) -> bool:
        return not instance.is_success


class StepHandlerResult(Model):
    """Outcome of one call of a handler, made by `success(...)` or `failure(...)`."""

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
        """Return a success; `result` is stored and passed to dependent steps. On an instance: `is_success`.

        Raises `PermanentError` (`invalid_handler_result`) if the result or the metadata is not a mapping.
        """
        if cls is StepHandlerResult and type(result) is dict and not metadata:
            return cls._valid(result)
        require_object("result", result)
        require_object("metadata", metadata or {})
        return cls(is_success=True, result=result, metadata=metadata or {})

    @classmethod
    def _valid(cls, result: dict[str, Any]) -> Self:
        """Return the same instance as validation would for a success, without building the validator.

        Most processes need no other result.
        """
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
        """Return a failure; `retryable=False` ends the step without another attempt.

        On an instance, `failure` is the negation of `is_success`. `error_type` is a text or an enum member. A number
        under `metadata["retry_after"]` requests a delay of that many seconds. Values of other types are converted to
        text, so that a failure can always be created.
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
        """Return a success; see `success`."""
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
        """Return a failure; see `failure`."""
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
    """Older, smaller form of a handler's outcome; accepted everywhere instead of a `StepHandlerResult`."""

    success: bool
    result: Keyed = Field(default_factory=dict)
    error_message: str | None = None
    metadata: Keyed = Field(default_factory=dict)

    @field_validator("result", mode="before")
    @classmethod
    def _an_object(cls, value: Any) -> Any:
        require_object("result", value)
        return value
