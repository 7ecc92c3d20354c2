"""Callable form of a step's handler, for the worker."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.handler_roles import HandlerRole
from tasker.contracts.plan import StepPlan, TemplateId
from tasker.errors import HandlerLoadError
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.handler_object import makes, to_handler
from tasker.registry.method_dispatch_wrapper import MethodDispatchWrapper, entry_point
from tasker.registry.module_loading import STATE, file_of, import_module, load_file
from tasker.types import StepContext

if TYPE_CHECKING:
    from tasker.handler import HandlerRegistry

HandlerKind = Literal["async", "sync"]


@dataclass(frozen=True, slots=True)
class HandlerSource:
    """Location of a handler's code from which a child process can load it. Can be pickled."""

    module: str
    qualname: str
    method: str
    file: str | None = None
    named: bool = True
    """False if `qualname` leads to another object in the module, or to none: a child process would run other code."""
    state: str = ""
    """Identifies the content of `file` that this process loaded, so that a child process loads a changed file again."""

    @property
    def loadable(self) -> bool:
        """False for code that only this process has (typed into a shell), or that no name in its module leads to."""
        return self.named and self.module != "__main__"

    @property
    def local(self) -> bool:
        """True for code that was defined inside a function or typed into a shell."""
        return "<locals>" in self.qualname or self.module == "__main__"

    def load(self) -> Callable[[StepContext], Any]:
        """Load the handler in this process and return its entry method. Raises `HandlerLoadError`."""
        found: Any = load_file(Path(self.file)) if self.file else import_module(self.module)
        for part in self.qualname.split("."):
            found = getattr(found, part, None)
        if found is None:
            raise HandlerLoadError(f"{self.file or self.module} has no {self.qualname!r}")
        return entry_point(to_handler(found, self.qualname), self.method)


@dataclass(frozen=True, slots=True)
class ResolvedHandler:
    """Handler ready to be called. `kind` is "async" if `call` returns an awaitable, "sync" if it blocks."""

    kind: HandlerKind
    call: Callable[[StepContext], Any]
    name: str
    """`module.Class.method`, for messages and failures."""
    source: HandlerSource
    made_here: bool = True
    """False for a registered or resolved object with state, which no other process can reproduce."""
    role: HandlerRole | None = None
    """Declared role of the handler; None for a class, which may have any role."""

    def problem(self, step: StepPlan) -> tuple[str, str] | None:
        """Return the problem of this handler with a step of this type and its fix; None if it fits."""
        return None if self.role is None else self.role.problem(step.name, step.type)


def resolve_for(plan_step: StepPlan, registry: HandlerRegistry, template: TemplateId | None = None) -> ResolvedHandler:
    """Return the handler of a step; the same object for equal callable, method, resolver and initialization.

    Handlers beside the workflow of `template` take precedence. Raises `HandlerNotFound` with suggestions,
    `MethodNotFound`, and `HandlerLoadError` for code that fails to load.
    """
    return registry.of_step(plan_step, template)


def resolved(
    handler: Any, definition: HandlerDefinition, fresh: Callable[[], Any], *, made_here: bool = True
) -> ResolvedHandler:
    """Return a handler object as the worker calls it; `fresh` makes another one if its class needs one per execution.

    `made_here` is False for an object that no other process can make.
    """
    target = handler.unwrap() if isinstance(handler, MethodDispatchWrapper) else handler
    method = definition.effective_method()
    entry = entry_point(target, method)
    source = _source(target, method)
    call = entry if getattr(target, "reuse_instance", True) else _call_fresh(fresh)
    name = f"{source.file or source.module}:{source.qualname}.{method}"
    role = getattr(target, "handler_role", None) if method == "call" else None
    return ResolvedHandler(_kind(entry), call, name, source, made_here, role)


def _kind(entry: Callable[..., Any]) -> HandlerKind:
    return "async" if inspect.iscoroutinefunction(entry) else "sync"


def _call_fresh(fresh: Callable[[], Any]) -> Callable[[StepContext], Any]:
    return lambda context: fresh().call(context)


def _source(target: Any, method: str) -> HandlerSource:
    cls = type(target)
    module, file = cls.__module__, file_of(cls.__module__)
    for names in _namespaces(cls):
        if path := _path(names, cls):
            return HandlerSource(module, path, method, file, state=names.get(STATE, ""))
    return HandlerSource(module, cls.__qualname__, method, file, named=False)


def _namespaces(cls: type) -> Iterator[Mapping[str, Any]]:
    """Yield the namespaces in which the handler may be found.

    These are its module's, and the one in which its code ran if the file was loaded again since.
    """
    if (module := sys.modules.get(cls.__module__)) is not None:
        yield vars(module)
    for value in vars(cls).values():
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(function, FunctionType):
            names = getattr(inspect.unwrap(function), "__globals__", {})
            if names.get("__name__") == cls.__module__:
                yield names


def _path(names: Mapping[str, Any], cls: type) -> str | None:
    """Return the name that leads to the handler.

    It may differ from the qualified name, which a decorator may have copied to another object.
    """
    first, *rest = cls.__qualname__.split(".")
    found = names.get(first)
    for part in rest:
        found = getattr(found, part, None)
    if makes(found, cls):
        return cls.__qualname__
    code = ((name, value) for name, value in list(names.items()) if isinstance(value, (type, FunctionType)))
    return next((name for name, value in code if makes(value, cls)), None)
