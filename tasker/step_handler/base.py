"""Base class of all handlers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, ClassVar, TypeAlias

from tasker.types import StepContext, StepHandlerCallResult, StepHandlerResult

HandlerOutcome: TypeAlias = StepHandlerResult | StepHandlerCallResult


class StepHandler(ABC):
    """A unit of work. Subclass it, set `handler_name` and write `call` (plain or `async def`).

    One instance serves many executions, several at once: store nothing about an execution on `self`. A class that must
    do so sets `reuse_instance = False` and gets a new instance for each execution.
    """

    handler_name: str = ""
    handler_version: str = "1.0.0"
    reuse_instance: ClassVar[bool] = True

    @abstractmethod
    def call(self, context: StepContext) -> HandlerOutcome | Awaitable[HandlerOutcome]:
        """Run one step and return its result.

        Return `self.success(...)` or `self.failure(...)`; an exception becomes a failure.
        """

    @property
    def name(self) -> str:
        """`handler_name`, or the name of the class."""
        return self.handler_name or type(self).__name__

    @property
    def version(self) -> str:
        """Version of the handler: `handler_version`."""
        return self.handler_version

    @property
    def capabilities(self) -> list[str]:
        """Names of the handler's abilities, such as `process`."""
        return ["process"]

    def config_schema(self) -> dict[str, Any] | None:
        """Return a JSON Schema for the template's `initialization`; None accepts anything."""
        return None

    def success(
        self, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return a success; `result` is stored and passed to dependent steps. None stands for an empty result.

        Raises `PermanentError` (`invalid_handler_result`) if the result is not a mapping.
        """
        return StepHandlerResult.success({} if result is None else result, metadata)

    def success_result(
        self, results: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """Return a success; see `success`."""
        return self.success(results, metadata)

    def failure(
        self,
        message: str,
        error_type: str = "handler_error",
        retryable: bool = True,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
    ) -> StepHandlerResult:
        """Return a failure; `retryable=False` ends the step without another attempt."""
        return StepHandlerResult.failure(message, error_type, retryable, metadata, error_code)


BaseStepHandler = StepHandler
