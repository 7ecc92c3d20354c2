"""The class that every handler is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, ClassVar, TypeAlias

from tasker.types import StepContext, StepHandlerCallResult, StepHandlerResult

HandlerOutcome: TypeAlias = StepHandlerResult | StepHandlerCallResult


class StepHandler(ABC):
    """One piece of work. Subclass it, set `handler_name`, write `call` (plain or `async def`).

    One instance serves many executions, several at once: keep nothing about one execution on `self`. A class that
    must do so sets `reuse_instance = False` and gets a fresh instance each time.
    """

    handler_name: str = ""
    handler_version: str = "1.0.0"
    reuse_instance: ClassVar[bool] = True

    @abstractmethod
    def call(self, context: StepContext) -> HandlerOutcome | Awaitable[HandlerOutcome]:
        """Do the work of one step and say how it went.

        Return `self.success(...)` or `self.failure(...)`; an exception becomes a failure.
        """

    @property
    def name(self) -> str:
        """`handler_name`, or the class's name."""
        return self.handler_name or type(self).__name__

    @property
    def version(self) -> str:
        """`handler_version`."""
        return self.handler_version

    @property
    def capabilities(self) -> list[str]:
        """What the handler can do beyond being called."""
        return ["process"]

    def config_schema(self) -> dict[str, Any] | None:
        """A JSON Schema for the template's `initialization`; None accepts anything."""
        return None

    def success(
        self, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """The step is done; `result` is stored and given to the steps below. None is an empty one.

        Raises `PermanentError` (`invalid_handler_result`) for a result that is no mapping.
        """
        return StepHandlerResult.success({} if result is None else result, metadata)

    def success_result(
        self, results: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepHandlerResult:
        """The same as `success`."""
        return self.success(results, metadata)

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


BaseStepHandler = StepHandler
