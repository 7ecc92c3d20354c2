"""From a step of the plan to something that the worker can call."""

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
    """Where a handler's code lies, so that a child process can load it. It can be pickled."""

    module: str
    qualname: str
    method: str
    file: str | None = None
    named: bool = True
    """False where `qualname` leads to something else in the module, or to nothing: a child would run other code."""
    state: str = ""
    """What tells the content of `file` that this process has run from another one: a child runs it anew."""

    @property
    def loadable(self) -> bool:
        """False for code that only this process has (typed into a shell), or that no name in its module leads to."""
        return self.named and self.module != "__main__"

    @property
    def local(self) -> bool:
        """True for code that was made inside a function, or typed into a shell."""
        return "<locals>" in self.qualname or self.module == "__main__"

    def load(self) -> Callable[[StepContext], Any]:
        """The handler's entry, made anew in this process. Raises `HandlerLoadError`."""
        found: Any = load_file(Path(self.file)) if self.file else import_module(self.module)
        for part in self.qualname.split("."):
            found = getattr(found, part, None)
        if found is None:
            raise HandlerLoadError(f"{self.file or self.module} has no {self.qualname!r}")
        return entry_point(to_handler(found, self.qualname), self.method)


@dataclass(frozen=True, slots=True)
class ResolvedHandler:
    """A handler ready to be called. `kind` says whether `call` answers an awaitable or blocks."""

    kind: HandlerKind
    call: Callable[[StepContext], Any]
    name: str
    """`module.Class.method`, for messages and failures."""
    source: HandlerSource
    made_here: bool = True
    """False for an object with something in it that was registered or resolved: no other process can know what."""
    role: HandlerRole | None = None
    """What its declaration says that it does; None for a class, which may do anything."""

    def problem(self, step: StepPlan) -> tuple[str, str] | None:
        """What is wrong with the handler on a step of this type, and the fix; None where it fits."""
        return None if self.role is None else self.role.problem(step.name, step.type)


def resolve_for(plan_step: StepPlan, registry: HandlerRegistry, template: TemplateId | None = None) -> ResolvedHandler:
    """The handler of a step; the same object for equal callable, method, resolver and initialization.

    The handlers beside the workflow of `template` come first. Raises `HandlerNotFound` with suggestions,
    `MethodNotFound`, and `HandlerLoadError` for code that is broken.
    """
    return registry.of_step(plan_step, template)


def resolved(
    handler: Any, definition: HandlerDefinition, fresh: Callable[[], Any], *, made_here: bool = True
) -> ResolvedHandler:
    """A handler object as the worker calls it; `fresh` makes another one for a class that wants one per execution.

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
    """What is in the handler's module; also as it was when its code was run, where a file has been run anew since."""
    if (module := sys.modules.get(cls.__module__)) is not None:
        yield vars(module)
    for value in vars(cls).values():
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(function, FunctionType):
            names = getattr(inspect.unwrap(function), "__globals__", {})
            if names.get("__name__") == cls.__module__:
                yield names


def _path(names: Mapping[str, Any], cls: type) -> str | None:
    """What leads to the handler. Not always its qualified name: a decorator may have handed that on to another one."""
    first, *rest = cls.__qualname__.split(".")
    found = names.get(first)
    for part in rest:
        found = getattr(found, part, None)
    if makes(found, cls):
        return cls.__qualname__
    code = ((name, value) for name, value in list(names.items()) if isinstance(value, (type, FunctionType)))
    return next((name for name, value in code if makes(value, cls)), None)
