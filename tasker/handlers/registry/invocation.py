"""The handler of a step as something to call."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal

from tasker.dataclasses import dataclass
from tasker.errors import HandlerLoadError, MethodNotFound, TaskerError
from tasker.handlers.binding import Reader, declared_resources
from tasker.handlers.context import StepContext
from tasker.handlers.function_handlers import FunctionHandler, handler_class
from tasker.handlers.handler_roles import HandlerRole
from tasker.handlers.registry.discovery import STATE, file_of, import_module, load_file
from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.template.effects import EFFECTS, TRANSACTIONAL
from tasker.template.plan import StepPlan, TemplateId

if TYPE_CHECKING:
    from tasker.handlers.registry.registry import HandlerRegistry


class ContextFunction(FunctionHandler):
    """Handler of a plain function whose only parameter is the step's context."""

    handler_role = None

    def readers(self) -> Mapping[str, Reader]:
        """Return the reader of the parameter, which may have any name."""
        return {next(iter(inspect.signature(self.function).parameters), "context"): lambda context: context}


def is_made_here(resolved: Any) -> bool:
    """Return True for a class, a function, or an object without state: another process can make the same handler."""
    resolved = getattr(resolved, "_handler_class", resolved)
    return inspect.isclass(resolved) or inspect.isfunction(resolved) or not getattr(resolved, "__dict__", True)


def resources_used_by(target: Any) -> frozenset[str]:
    """Return the resources that a class, function or object declares that it uses."""
    target = getattr(target, "_handler_class", target)
    function = getattr(target, "function", target)
    declared = declared_resources(function) if inspect.isfunction(function) else {}
    transaction = getattr(target, "transaction", None)
    opened = (transaction,) if isinstance(transaction, str) else ()
    return frozenset((*getattr(target, "uses", ()), *declared.values(), *opened))


def to_handler(resolved: Any, name: str) -> Any:
    """Return a handler object with an entry method. Raises `HandlerLoadError` for a value that cannot handle a step.

    A class is instantiated without arguments; for a decorated function its handler class is instantiated.
    """
    resolved = getattr(resolved, "_handler_class", resolved)
    if inspect.isclass(resolved):
        return _instance(resolved, name)
    if inspect.isfunction(resolved):
        return _instance(handler_class(ContextFunction, resolved, name, "1.0.0"), name)
    if resolved is None or inspect.ismodule(resolved) or isinstance(resolved, (str, int, float, list, dict)):
        raise HandlerLoadError(
            f"{name!r} is a {type(resolved).__name__}, not a handler",
            hint="a handler is a StepHandler class or a function under @step_handler(...)",
        )
    return resolved


def makes(resolved: Any, cls: type) -> bool:
    """Return True if `to_handler(found)` makes a handler of this class, or one that calls the same function."""
    resolved = getattr(resolved, "_handler_class", resolved)
    return resolved is cls or (issubclass(cls, ContextFunction) and resolved is cls.function)


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
    attribute = None if method.startswith("_") else getattr(handler, method, None)
    if not callable(attribute):
        name = getattr(handler, "handler_name", "") or type(handler).__name__
        raise MethodNotFound(f"Handler {name!r} does not respond to {method!r}", hint=_public_methods(handler))
    entry: Callable[[Any], Any] = attribute
    return entry


def _public_methods(handler: Any) -> str:
    method_names = [
        name for cls in type(handler).__mro__ if not _ours(cls) for name in vars(cls) if not name.startswith("_")
    ]
    return f"its own public methods: {', '.join(dict.fromkeys(method_names)) or 'none'}"


def _ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] in {"tasker", "builtins", "abc"}


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
        target: Any = load_file(Path(self.file)) if self.file else import_module(self.module)
        for part in self.qualname.split("."):
            target = getattr(target, part, None)
        if target is None:
            raise HandlerLoadError(f"{self.file or self.module} has no {self.qualname!r}")
        return entry_point(to_handler(target, self.qualname), self.method)


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
    uses: frozenset[str] = frozenset()
    """Resources that the handler declares."""
    effect: str | None = None
    """Effect that the handler declares; None: any."""
    transaction: str | None = None
    """Resource that opens the transactions of the handler; None: connections to Tasker's database."""

    def problem(self, step: StepPlan) -> tuple[str, str] | None:
        """Return the problem of this handler with a step of this type and effect, and its fix; None if it fits."""
        problem = None if self.role is None else self.role.problem(step.name, step.type)
        return problem or effect_problem(self.effect, step)


def effect_problem(declared: str | None, step: StepPlan) -> tuple[str, str] | None:
    """Return the problem of a handler that declares an effect with a step, and its fix; None if both agree.

    The template decides. Whoever finds a lost worker has only the template, so `once` must be in it.
    """
    if TRANSACTIONAL in (declared, step.effect) and (reason := _not_transactional(step)):
        return f"is transactional, and {reason}", "put the transaction into another step"
    if declared is None or declared == step.effect:
        return None
    if declared not in EFFECTS:
        return f"has the effect {declared!r}", f"declare one of: {', '.join(EFFECTS)}"
    if step.effect is None and EFFECTS[declared].may_repeat:
        return None
    says = f"says `effect: {step.effect}`" if step.effect else "does not say so"
    problem = f"has the effect `{declared}`, and the template of `{step.name}` {says}"
    return problem, f"write `effect: {declared}` for `{step.name}` in the template"


def _not_transactional(step: StepPlan) -> str | None:
    """Return why a step cannot be completed by a transaction of its handler; the compiler knows only the template."""
    if step.execution == "process":
        return f"`{step.name}` runs in a child process, which has no connection of the worker"
    if step.for_each is not None:
        return f"an instance of `{step.name}` runs several items"
    return f"`{step.name}` creates steps" if step.type.expands else None


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
    return ResolvedHandler(
        _kind(entry),
        call,
        name,
        source,
        made_here,
        role,
        resources_used_by(target),
        getattr(target, "effect", None),
        getattr(target, "transaction", None),
    )


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
    target = names.get(first)
    for part in rest:
        target = getattr(target, part, None)
    if makes(target, cls):
        return cls.__qualname__
    code = ((name, value) for name, value in list(names.items()) if isinstance(value, (type, FunctionType)))
    return next((name for name, value in code if makes(value, cls)), None)
