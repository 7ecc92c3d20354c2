"""Handler with another entry method than `call`."""

from __future__ import annotations

from typing import Any

from tasker.errors import MethodNotFound
from tasker.handlers.registry.invocation import MethodDispatchWrapper as EngineWrapper


class MethodDispatchWrapper(EngineWrapper):
    """Wrapper that calls `target_method` of the handler, and passes everything else to it.

    Raises `AttributeError` if there is no such public method.
    """

    def __init__(self, handler: Any, target_method: str) -> None:
        try:
            super().__init__(handler, target_method)
        except MethodNotFound as error:
            raise AttributeError(str(error)) from error

    def __getattr__(self, name: str) -> Any:
        if name == "_handler":  # not created yet: there is no handler to ask
            raise AttributeError(name)
        return getattr(self._handler, name)

    def __repr__(self) -> str:
        return f"MethodDispatchWrapper({type(self._handler).__name__}, target_method={self._target_method!r})"
