"""No code for a callable: what was looked for, where, and what is near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tasker.errors.base import TaskerError
from tasker.errors.handler import ConfigurationError


class MissingCallable(NamedTuple):
    """A step whose `callable` nobody resolves, and registered names that look like it."""

    step: str
    callable: str
    suggestions: tuple[str, ...] = ()


class ResolutionError(TaskerError):
    """No resolver of the chain knows the callable. Resolvers of others may raise it without a message."""

    retryable: bool = False
    error_type = "handler_not_found"

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)


class ResolverNotFoundError(ResolutionError):
    """The chain holds no resolver of that name."""


class MethodNotFound(ResolutionError):
    """The handler has no public method of the name that the template gives."""


class HandlerNotFound(ResolutionError):
    """One or more steps name callables that nothing resolves; `missing` lists them with suggestions."""

    def __init__(self, message: str, *, missing: Sequence[MissingCallable] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.missing = tuple(missing)

    def details(self) -> Mapping[str, Any]:
        """The missing callables as plain data."""
        return {"missing": [item._asdict() for item in self.missing] or None}


class HandlerMismatch(ResolutionError):
    """Handlers are of another kind than their steps, or read results or inputs that these cannot have."""

    error_type = "handler_mismatch"


class DeclarationMismatch(ConfigurationError):
    """The parameters of a handler's function are not those that its `@inputs` and `@depends_on` name."""


class HandlerLoadError(ResolutionError):
    """A module of handlers could not be imported, or two of its handlers claim one name.

    `line` is the line of its file that failed, None where none is known.
    """

    error_type = "handler_load_error"

    def __init__(self, message: str = "", *, line: int | None = None, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.line = line
