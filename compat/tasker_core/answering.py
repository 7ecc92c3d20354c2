"""How a handler answers: what a handler's class and its mixins have in common."""

from __future__ import annotations

from typing import Any

from tasker_core.types import StepHandlerResult


class Answering:
    """A name, a version, and results. A handler that overrides `success` or `failure` does so for its mixins, too."""

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
        """The step is done; `result` is stored and given to the steps below."""
        return StepHandlerResult.success(result or {}, metadata)

    def failure(
        self,
        message: str,
        error_type: str = "handler_error",
        retryable: bool = True,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
    ) -> StepHandlerResult:
        """The attempt failed; `retryable=False` ends the step at once."""
        return StepHandlerResult.failure(message, error_type, retryable, metadata, error_code)
