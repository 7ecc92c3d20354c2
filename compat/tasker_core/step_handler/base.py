"""The class that every handler is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tasker_core.step_handler.entries import adapt
from tasker_core.types import StepContext, StepHandlerResult

if TYPE_CHECKING:
    from abc import ABC as EngineHandler  # the engine's `call` is declared with the engine's context
else:
    from tasker.step_handler import StepHandler as EngineHandler

__all__ = ["StepHandler", "StepHandlerCallResult"]

StepHandlerCallResult: TypeAlias = StepHandlerResult | Awaitable[StepHandlerResult]


class StepHandler(EngineHandler):
    """One piece of work: subclass it, set `handler_name`, write `call` (plain or `async def`).

    Every execution gets an instance of its own. An `__init__` that wants `config` gets the step's `initialization`.
    """

    handler_name: str = ""
    handler_version: str = "1.0.0"
    reuse_instance: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the engine call the class's methods."""
        super().__init_subclass__(**options)
        adapt(cls, EngineHandler)

    @abstractmethod
    def call(self, context: StepContext) -> StepHandlerCallResult:
        """Do the work of one step; return `self.success(...)` or `self.failure(...)`."""

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, version={self.version!r})"
