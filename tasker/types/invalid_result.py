"""Errors for invalid results of handlers. They are permanent, since another attempt would return the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tasker.errors import PermanentError
from tasker.types.printable import described

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
