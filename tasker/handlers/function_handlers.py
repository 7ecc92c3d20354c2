"""Handler classes behind decorated functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from tasker.handlers.binding import Reader, bind
from tasker.handlers.context import StepContext
from tasker.handlers.handler_roles import HandlerRole
from tasker.handlers.normalize import result_from_exception, to_result
from tasker.handlers.results import StepHandlerCallResult, StepHandlerResult, described, invalid_result, printable
from tasker.handlers.step_handler import StepHandler
from tasker.template.effects import TRANSACTIONAL


class FunctionHandler(StepHandler):
    """Calls a function with keyword arguments and converts its return value into a result."""

    function: ClassVar[Callable[..., Any]]
    handler_role: ClassVar[HandlerRole | None] = HandlerRole.STEP
    """Role of the handler; None for one that fits every step."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments = bind(self.function, self.readers())

    def readers(self) -> Mapping[str, Reader]:
        """Return the readers of the parameters that this kind of handler fills."""
        return {"transaction": lambda context: context.transaction} if self.effect == TRANSACTIONAL else {}

    def convert(self, value: Any) -> StepHandlerResult:
        """Convert a return value to a result.

        A result is returned as it is, a dict becomes the result's data, a model is dumped, None is empty, and any other
        value becomes `{"result": value}`.
        """
        if isinstance(value, (StepHandlerResult, StepHandlerCallResult)):
            return to_result(value)
        plain = _dumped(value) if isinstance(value, BaseModel) else value
        if plain is None:
            return StepHandlerResult.success({})
        return StepHandlerResult.success(plain if isinstance(plain, dict) else {"result": plain})

    def shortcut(self, context: StepContext) -> StepHandlerResult | None:
        """Return a result that makes calling the function unnecessary, or None."""
        return None

    def call(self, context: StepContext) -> Any:
        """Run the function; an exception becomes a failure."""
        try:
            return self.shortcut(context) or self.convert(self.function(**self.arguments(context)))
        except Exception as error:
            return result_from_exception(error)


def _dumped(model: BaseModel) -> Any:
    """Return the model in JSON form: a dict, or the value of a `RootModel`."""
    try:
        return model.model_dump(mode="json")
    except ValueError as error:
        why = f"which cannot be dumped: {printable(error)}"
        remedy = "give its fields types that JSON has, or return a dict"
        raise invalid_result(f"the function returned {described(model)}, {why}; {remedy}") from error


class AsyncCall(FunctionHandler):
    """Handler of an `async def` function."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Run the function on the event loop; an exception becomes a failure."""
        try:
            return self.shortcut(context) or self.convert(await self.function(**self.arguments(context)))
        except Exception as error:
            return result_from_exception(error)


def handler_class(
    base: type[FunctionHandler], function: Callable[..., Any], name: str, version: str, **attributes: Any
) -> type[FunctionHandler]:
    """Return a handler class for the function, with the function's name and module."""
    bases = (AsyncCall, base) if inspect.iscoroutinefunction(function) else (base,)
    return class_for(function, bases, handler_name=name, handler_version=version, **attributes)


def class_for(function: Callable[..., Any], bases: tuple[type, ...], **attributes: Any) -> type[Any]:
    """Return a class with these bases and attributes that has the function's name, module and docstring."""
    body = {
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "function": staticmethod(function),
    }
    return type(function.__name__, bases, body | attributes)
