"""Base class of handlers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tasker_core.answering import Answering
from tasker_core.step_handler.entries import adapt
from tasker_core.types import StepContext, StepHandlerResult

if TYPE_CHECKING:
    from abc import ABC as EngineHandler  # the engine's `call` is declared with the engine's context
else:
    from tasker.handlers.step_handler import StepHandler as EngineHandler

__all__ = ["StepHandler", "StepHandlerCallResult"]

StepHandlerCallResult: TypeAlias = StepHandlerResult | Awaitable[StepHandlerResult]


class StepHandler(Answering, EngineHandler):
    """Base class of handlers: subclass it, set `handler_name`, define `call` (a plain method or `async def`).

    Every execution gets an instance of its own. An `__init__` with a required `config` gets the step's
    `initialization`.
    """

    reuse_instance: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Adapt the class's methods, so that the engine can call them."""
        super().__init_subclass__(**options)
        adapt(cls, EngineHandler)

    @abstractmethod
    def call(self, context: StepContext) -> StepHandlerCallResult:
        """Do the work of one step; return `self.success(...)` or `self.failure(...)`."""

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of the handler."""
        return ["process"]

    def config_schema(self) -> dict[str, Any] | None:
        """Return a JSON Schema for the template's `initialization`; None accepts anything."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, version={self.version!r})"
