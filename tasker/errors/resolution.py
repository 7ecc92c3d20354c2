"""Errors of resolving a step's callable: the name, the searched places and similar names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tasker.errors.base import TaskerError
from tasker.errors.handler import ConfigurationError


class MissingCallable(NamedTuple):
    """Step whose `callable` no resolver can resolve, with similar registered names."""

    step: str
    callable: str
    suggestions: tuple[str, ...] = ()


class ResolutionError(TaskerError):
    """Error raised if no resolver resolves the callable. Third-party resolvers may raise it without a message."""

    retryable: bool = False
    error_type = "handler_not_found"

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)


class ResolverNotFoundError(ResolutionError):
    """Error raised if the chain has no resolver of that name."""


class MethodNotFound(ResolutionError):
    """Error raised if the handler has no public method of the name given in the template."""


class HandlerNotFound(ResolutionError):
    """Error raised if one or more callables cannot be resolved; `missing` lists them with suggestions."""

    def __init__(self, message: str, *, missing: Sequence[MissingCallable] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.missing = tuple(missing)

    def details(self) -> Mapping[str, Any]:
        """Return the missing callables as plain values."""
        return {"missing": [item._asdict() for item in self.missing] or None}


class HandlerMismatch(ResolutionError):
    """Error raised if handlers have another kind than their steps, or read results or inputs that these cannot have."""

    error_type = "handler_mismatch"


class ResourceMissing(ResolutionError):
    """Error raised if a handler uses resources that this process does not have; another worker may have them."""

    error_type = "resource_missing"


class DeclarationMismatch(ConfigurationError):
    """Error raised if the parameters of a handler function do not match its `@inputs` and `@depends_on`."""


class HandlerLoadError(ResolutionError):
    """A module of handlers could not be imported, or two of its handlers claim one name.

    `line` is the line of its file that failed, None where none is known.
    """

    error_type = "handler_load_error"

    def __init__(self, message: str = "", *, line: int | None = None, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.line = line
