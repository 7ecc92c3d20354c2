"""From a step of the plan to something that the worker can call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import StepPlan, TemplateId
from tasker.errors import HandlerLoadError
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.handler_object import to_handler
from tasker.registry.method_dispatch_wrapper import MethodDispatchWrapper, entry_point
from tasker.registry.module_loading import file_of, import_module, load_file
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

    @property
    def loadable(self) -> bool:
        """False for code that only this process has: made inside a function, or typed into a shell."""
        return "<locals>" not in self.qualname and self.module != "__main__"

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
    return ResolvedHandler(_kind(entry), call, name, source, made_here)


def _kind(entry: Callable[..., Any]) -> HandlerKind:
    return "async" if inspect.iscoroutinefunction(entry) else "sync"


def _call_fresh(fresh: Callable[[], Any]) -> Callable[[StepContext], Any]:
    return lambda context: fresh().call(context)


def _source(target: Any, method: str) -> HandlerSource:
    cls = type(target)
    return HandlerSource(cls.__module__, cls.__qualname__, method, file_of(cls.__module__))
