"""Base classes of step handlers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, ClassVar, NoReturn, TypeAlias

from tasker.errors import ValidationError
from tasker.handlers.again import again_in, again_when
from tasker.handlers.context import StepContext
from tasker.handlers.results import StepHandlerCallResult, StepHandlerResult

HandlerOutcome: TypeAlias = StepHandlerResult | StepHandlerCallResult


class StepHandler(ABC):
    """A unit of work. Subclass it, set `handler_name` and write `call` (plain or `async def`).

    One instance serves many executions, several at once: store nothing about an execution on `self`. A class that must
    do so sets `reuse_instance = False` and gets a new instance for each execution.
    """

    handler_name: str = ""
    handler_version: str = "1.0.0"
    reuse_instance: ClassVar[bool] = True
    uses: ClassVar[tuple[str, ...]] = ()
    """Names of the resources that the handler reads by `context.resource`."""
    effect: ClassVar[str | None] = None
    """What a second execution does: `pure`, `idempotent`, `once` or `transactional`; None: what the template says."""
    transaction: ClassVar[str | None] = None
    """Resource that opens the transactions of a `transactional` handler; None: connections to Tasker's database."""

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

    again_in = staticmethod(again_in)
    again_when = staticmethod(again_when)


BaseStepHandler = StepHandler


class CheckpointYield(BaseException):
    """Exception that a handler raises to have the worker store a checkpoint and run the step again.

    It is not an `Exception`, so a handler's `except Exception` does not catch it. `finally` blocks run as usual.
    """

    def __init__(self, cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> None:
        super().__init__(cursor, items_processed, accumulated_results)
        self.cursor = cursor
        self.items_processed = items_processed
        self.accumulated_results = accumulated_results

    def __str__(self) -> str:
        return f"checkpoint at cursor {self.cursor!r} after {self.items_processed} items"


def checkpoint_yield(cursor: Any, items_processed: int, accumulated_results: dict[str, Any] | None = None) -> NoReturn:
    """Stop here, store a checkpoint, and run the step's handler again from the top.

    `cursor` is any JSON value from which the handler can continue; `items_processed` is the total over all runs so
    far; `accumulated_results` should stay small. A checkpoint does not use up an attempt. Raises `ValidationError` for
    a negative or non-integer `items_processed`.
    """
    if type(items_processed) is not int or items_processed < 0:
        raise ValidationError(f"items_processed must be an integer of 0 or more, found {items_processed!r}")
    raise CheckpointYield(cursor, items_processed, accumulated_results)
