"""Which handlers a program has, and which its templates lack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasker.contracts.plan import Plan, StepPlan
from tasker.errors import HandlerLoadError, HandlerNotFound, MissingCallable
from tasker.handler import HandlerRegistry
from tasker.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path
from tasker.registry.invocation import resolve_for


def load_handlers(sources: Sequence[str | Path], *, beside: Path | None = None) -> HandlerRegistry:
    """A new registry with the handlers of `PYTHON_HANDLER_PATH`, of a workflow's folder, and of `sources`.

    A source is a file, a folder or a module's name. `beside` is a workflow file or its folder, whose `handlers.py` is
    loaded if there is one. For one name `sources` win over `beside`, and that over the environment. Raises
    `HandlerLoadError` that names file, line and exception.
    """
    registry = HandlerRegistry()
    registry.bootstrap_handlers()
    if beside:
        add_handlers_beside(registry, beside)
    registry.add([handler for source in sources for handler in _handlers_of(source)])
    return registry


def add_handlers_beside(registry: HandlerRegistry, template: Path) -> int:
    """Add the handlers of the `handlers.py` beside a workflow file or in its folder; how many there were."""
    neighbour = _handlers_file(template)
    return registry.add(handlers_in_path(neighbour)) if neighbour else 0


def missing_callables(registry: HandlerRegistry, plan: Plan) -> list[MissingCallable]:
    """The steps whose callable nobody resolves, as (step, callable, suggestions), in the order of the plan.

    Raises `MethodNotFound` and `HandlerLoadError` for a handler that is there and cannot be used.
    """
    return [missing for step in plan.steps for missing in _missing(registry, step)]


def require_handlers(registry: HandlerRegistry, plan: Plan) -> None:
    """Raise `HandlerNotFound` with every missing callable of the plan, if there are any."""
    missing = missing_callables(registry, plan)
    if missing:
        lines = [_line(item) for item in missing]
        raise HandlerNotFound(
            f"{len(missing)} of {len(plan.steps)} steps have no handler:\n" + "\n".join(lines),
            missing=missing,
            hint=f"registered are: {', '.join(registry.list_handlers()) or 'no handlers at all'}",
        )


def _line(item: MissingCallable) -> str:
    near = f" (did you mean {' or '.join(map(repr, item.suggestions))}?)" if item.suggestions else ""
    return f"  step {item.step!r}: no handler {item.callable!r}{near}"


def _missing(registry: HandlerRegistry, step: StepPlan) -> Sequence[MissingCallable]:
    try:
        resolve_for(step, registry)
    except HandlerNotFound as error:
        return error.missing
    return ()


def _handlers_file(beside: Path) -> Path | None:
    file = (beside if beside.is_dir() else beside.parent) / "handlers.py"
    return file if file.is_file() else None


def _handlers_of(source: str | Path) -> list[FoundHandler]:
    path = Path(source)
    if path.exists():
        return handlers_in_path(path)
    if isinstance(source, Path) or "/" in source or source.endswith(".py"):
        raise HandlerLoadError(f"{source} does not exist", hint="give a Python file, a folder, or a module's name")
    return handlers_in_package(source)
