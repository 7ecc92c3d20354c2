"""A handler whose entry is another method than `call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasker.errors import MethodNotFound


class MethodDispatchWrapper:
    """Calls `target_method` of the handler. Raises `MethodNotFound` when there is no such public method."""

    def __init__(self, handler: Any, target_method: str) -> None:
        entry_point(handler, target_method)
        self._handler = handler
        self._target_method = target_method

    @property
    def handler(self) -> Any:
        """The handler itself."""
        return self._handler

    @property
    def target_method(self) -> str:
        """The method that `call` leads to."""
        return self._target_method

    def call(self, context: Any) -> Any:
        """Call the method."""
        return entry_point(self._handler, self._target_method)(context)

    def unwrap(self) -> Any:
        """The handler itself."""
        return self._handler


def entry_point(handler: Any, method: str) -> Callable[[Any], Any]:
    """The bound method that runs a step. Names with a leading underscore are never an entry."""
    found = None if method.startswith("_") else getattr(handler, method, None)
    if not callable(found):
        name = getattr(handler, "handler_name", "") or type(handler).__name__
        raise MethodNotFound(f"Handler {name!r} does not respond to {method!r}", hint=_public_methods(handler))
    entry: Callable[[Any], Any] = found
    return entry


def _public_methods(handler: Any) -> str:
    own = [name for cls in type(handler).__mro__ if not _ours(cls) for name in vars(cls) if not name.startswith("_")]
    return f"its own public methods: {', '.join(dict.fromkeys(own)) or 'none'}"


def _ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] in {"tasker", "builtins", "abc"}
