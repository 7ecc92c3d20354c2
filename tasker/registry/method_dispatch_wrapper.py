"""Handler wrapper with an entry method other than `call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasker.errors import MethodNotFound


class MethodDispatchWrapper:
    """Calls `target_method` of the handler. Raises `MethodNotFound` if there is no such public method."""

    def __init__(self, handler: Any, target_method: str) -> None:
        entry_point(handler, target_method)
        self._handler = handler
        self._target_method = target_method

    @property
    def handler(self) -> Any:
        """The wrapped handler."""
        return self._handler

    @property
    def target_method(self) -> str:
        """Name of the method that `call` calls."""
        return self._target_method

    def call(self, context: Any) -> Any:
        """Call the target method."""
        return entry_point(self._handler, self._target_method)(context)

    def unwrap(self) -> Any:
        """Return the wrapped handler."""
        return self._handler


def entry_point(handler: Any, method: str) -> Callable[[Any], Any]:
    """Return the bound method that runs a step. Raises `MethodNotFound` for a missing or private method."""
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
