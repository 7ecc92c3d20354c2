"""Results of handlers: the common part of the handler class and its mixins."""

from __future__ import annotations

from typing import Any

from tasker_core.types import StepHandlerResult


class Answering:
    """Name, version, and results of a handler. An override of `success` or `failure` also applies to its mixins."""

    handler_name: str = ""
    handler_version: str = "1.0.0"

    @property
    def name(self) -> str:
        """`handler_name`, or the class's name."""
        return self.handler_name or type(self).__name__

    @property
    def version(self) -> str:
        """`handler_version`."""
        return self.handler_version

    def success(
        self, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return a successful result; `result` is stored and passed to the steps below."""
        return StepHandlerResult.success(result or {}, metadata)

    def failure(
        self,
        message: str,
        error_type: str = "handler_error",
        retryable: bool = True,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
    ) -> StepHandlerResult:
        """Return a failure of the attempt; `retryable=False` ends the step at once."""
        return StepHandlerResult.failure(message, error_type, retryable, metadata, error_code)
