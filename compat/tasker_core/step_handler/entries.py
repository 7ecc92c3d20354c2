"""Adapters between the engine and handlers: the engine passes its own context, the handler gets tasker_core's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tasker.handlers.context import StepContext as EngineContext
from tasker.handlers.step_handler import checkpoint_yield
from tasker_core.types import StepContext

SHIPPED = ("tasker", "tasker_core", "builtins", "abc")
"""Packages whose classes are bases of handlers and not handlers themselves."""

ADAPTED = "_takes_the_engine_s_context"
"""Attribute of a method that the engine can call."""

UNCONFIGURED = "_waits_for_config"
"""Attribute of a handler that was created without the `config` that its class requires."""


def adapt(cls: type, base: type) -> None:
    """Adapt the public methods of a class below `base`, including those of its mixins, for calls by the engine."""
    owners = [owner for owner in cls.__mro__ if owner is cls or not _is_shipped(owner, base)]
    for name in {name for owner in owners for name in vars(owner) if not name.startswith("_")}:
        method = inspect.getattr_static(cls, name)
        if inspect.isfunction(method) and not hasattr(method, ADAPTED):
            setattr(cls, name, _entry(method))
    if "__init__" in vars(cls) and wants_config(cls):
        cls.__init__ = _put_off(cls.__init__)  # type: ignore[misc]


def wants_config(cls: type) -> bool:
    """Return True for a class with `config`, the step's `initialization`, as its only required argument."""
    try:
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    except (TypeError, ValueError):
        return False
    required = [p for p in list(signature.parameters.values())[1:] if p.default is p.empty and p.kind < p.VAR_KEYWORD]
    return [p.name for p in required if p.kind is not p.VAR_POSITIONAL] == ["config"]


def _is_shipped(owner: type, base: type) -> bool:
    return issubclass(owner, base) or owner.__module__.partition(".")[0] in SHIPPED


def _entry(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with tasker_core's context for calls by the engine, and the engine's way of checkpoints."""
    entry = _awaited(method) if inspect.iscoroutinefunction(method) else _called(method)
    setattr(entry, ADAPTED, True)
    return entry


def _called(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _from_engine(args):
            return method(self, *args, **kwargs)
        return _finished(method(self, _prepared(self, args[0]), *args[1:], **kwargs))

    return call


def _awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _from_engine(args):
            return await method(self, *args, **kwargs)
        return _finished(await method(self, _prepared(self, args[0]), *args[1:], **kwargs))

    return call


def _from_engine(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], EngineContext) and not isinstance(args[0], StepContext)


def _prepared(handler: Any, context: EngineContext) -> StepContext:
    """Return tasker_core's context; first initialize a handler that waits for its `config`."""
    published = StepContext.from_engine(context)
    if vars(handler).pop(UNCONFIGURED, False):
        handler.__init__(config=published.step_config)
    return published


def _finished(result: Any) -> Any:
    """Convert a result that requests a checkpoint to the engine's checkpoint."""
    metadata = getattr(result, "metadata", None)
    if isinstance(metadata, dict) and metadata.get("checkpoint_yield") is True:
        data = result.result or {}
        checkpoint_yield(data.get("cursor"), data.get("items_processed", 0), data.get("accumulated_results"))
    return result


def _put_off(init: Callable[..., None]) -> Callable[..., None]:
    """Delay `__init__` until a step is there, because the engine creates handlers without arguments."""

    @functools.wraps(init)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            init(self, *args, **kwargs)
        else:
            setattr(self, UNCONFIGURED, True)

    return make
