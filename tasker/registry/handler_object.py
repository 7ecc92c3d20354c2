"""Conversion of a registered class, decorated function, plain function or object into an object with `call`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tasker.errors import HandlerLoadError, TaskerError
from tasker.step_handler.binding import Reader
from tasker.step_handler.function_handler import FunctionHandler, handler_class


class ContextFunction(FunctionHandler):
    """Handler of a plain function whose only parameter is the step's context."""

    handler_role = None

    def readers(self) -> Mapping[str, Reader]:
        """Return the reader of the parameter, whatever its name."""
        return {next(iter(inspect.signature(self.function).parameters), "context"): lambda context: context}


def is_made_here(found: Any) -> bool:
    """Return True for a class, a function, or an object without state: another process can make the same handler."""
    found = getattr(found, "_handler_class", found)
    return inspect.isclass(found) or inspect.isfunction(found) or not getattr(found, "__dict__", True)


def to_handler(found: Any, name: str) -> Any:
    """Return a handler object with an entry method. Raises `HandlerLoadError` for a value that cannot handle a step.

    A class is instantiated without arguments; for a decorated function its handler class is instantiated.
    """
    found = getattr(found, "_handler_class", found)
    if inspect.isclass(found):
        return _instance(found, name)
    if inspect.isfunction(found):
        return _instance(handler_class(ContextFunction, found, name, "1.0.0"), name)
    if found is None or inspect.ismodule(found) or isinstance(found, (str, int, float, list, dict)):
        raise HandlerLoadError(
            f"{name!r} is a {type(found).__name__}, not a handler",
            hint="a handler is a StepHandler class or a function under @step_handler(...)",
        )
    return found


def makes(found: Any, cls: type) -> bool:
    """Return True if `to_handler(found)` makes a handler of this class, or one that calls the same function."""
    found = getattr(found, "_handler_class", found)
    return found is cls or (issubclass(cls, ContextFunction) and found is cls.function)


def _instance(cls: type, name: str) -> Any:
    try:
        return cls()
    except TaskerError:
        raise
    except Exception as error:
        raise HandlerLoadError(
            f"{name!r}: {cls.__module__}.{cls.__qualname__}() failed: {type(error).__name__}: {error}",
            hint="a handler is made without arguments; read settings from context.step_config",
        ) from error
