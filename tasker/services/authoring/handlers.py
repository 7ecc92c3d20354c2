"""Handlers of a program, and the callables of its templates that have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tasker.contracts.plan import Plan, StepPlan, TemplateId
from tasker.errors import HandlerLoadError, HandlerMismatch, HandlerNotFound, MissingCallable
from tasker.handler import HandlerRegistry
from tasker.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path
from tasker.registry.invocation import resolve_for
from tasker.registry.overlooked import explain_missing_callable
from tasker.registry.resolvers.class_lookup import EVERYTHING
from tasker.registry.workflow_handlers import HANDLERS_FILE
from tasker.services.authoring.handler_fit import misfits


class Workflow(NamedTuple):
    """Plan with the folder whose `handlers.py`, if it exists, is loaded for it."""

    plan: Plan
    folder: Path
    lines: Mapping[str, str] = MappingProxyType({})
    """`file:line` of each step's handler in the template, if the template was read from a file."""


def load_handlers(sources: Sequence[str | Path], importable: Sequence[str] = EVERYTHING) -> HandlerRegistry:
    """Return a new registry with the handlers of `PYTHON_HANDLER_PATH` and `sources`, for every template.

    A source is a file, a folder or a module's name (see `located`). For the same name, `sources` override the
    environment. Templates may also import what `importable` lists (`worker.handlers.allow`). Raises `HandlerLoadError`
    naming file, line and exception.
    """
    registry = HandlerRegistry()
    registry.allow_imports(importable)
    registry.bootstrap_handlers()
    add_handlers(registry, sources)
    return registry


def add_handlers(registry: HandlerRegistry, sources: Sequence[str | Path]) -> None:
    """Add the handlers of these sources for every template. Raises `HandlerLoadError`, also for a duplicate name."""
    registry.add([handler for source in sources for handler in _handlers_of(source)])


def handlers_folder(template: Path, root: Path) -> Path:
    """Return the folder of a template's handlers: its own, or `root` if only that has a `handlers.py`."""
    own = template.parent
    return root if not (own / HANDLERS_FILE).is_file() and (root / HANDLERS_FILE).is_file() else own


def load_neighbouring_handlers(registry: HandlerRegistry, workflows: Iterable[Workflow]) -> None:
    """Load the `handlers.py` of each workflow's folder for its templates only.

    Raises `HandlerLoadError`, also for a template that exists in two folders with handlers.
    """
    templates: dict[Path, list[TemplateId]] = {}
    for workflow in workflows:
        templates.setdefault(workflow.folder, []).append(workflow.plan.id)
    for folder, found in templates.items():
        registry.add_beside(folder, found)


def missing_callables(registry: HandlerRegistry, plan: Plan) -> list[MissingCallable]:
    """Return the steps whose callable cannot be resolved, as (step, callable, suggestions), in the order of the plan.

    Raises `MethodNotFound` and `HandlerLoadError` for a handler that exists but cannot be used.
    """
    return [missing for step in plan.steps for missing in _missing(registry, step, plan.id)]


def require_handlers(registry: HandlerRegistry, plan: Plan, places: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that every callable of the plan has a matching handler.

    Raises `HandlerNotFound` with all missing callables, and `HandlerMismatch` for handlers that do not fit their steps.
    A plan is checked once until the registered handlers change. `places` are the locations of the steps' handlers in
    the template, for the errors.
    """
    checked = registry.checked  # read before the check: a change of handlers meanwhile replaces the set
    if plan.hash in checked:
        return
    missing = missing_callables(registry, plan)
    if missing:
        lines, names = [_line(item) for item in missing], [item.callable for item in missing]
        raise HandlerNotFound(
            f"{plan.id}: {len(missing)} of {len(plan.steps)} steps have no handler:\n" + "\n".join(lines),
            missing=missing,
            hint="; ".join([_why(registry, plan, names), *registry.import_hint(names)]),
        )
    _require_fitting(registry, plan, places)
    checked.add(plan.hash)


def _why(registry: HandlerRegistry, plan: Plan, names: Sequence[str]) -> str:
    return explain_missing_callable(names, registry.bare_folders(plan.id)) or registry.known_hint(plan.id)


def _require_fitting(registry: HandlerRegistry, plan: Plan, places: Mapping[str, str]) -> None:
    found = [misfit for step in plan.steps for misfit in misfits(plan, step, resolve_for(step, registry, plan.id))]
    if found:
        at = {step: f"{place}: " for step, place in places.items()}
        lines = [
            f"  {at.get(misfit.step, '')}step {misfit.step!r}: {misfit.message}\n    {misfit.hint}" for misfit in found
        ]
        raise HandlerMismatch("handlers do not fit their steps:\n" + "\n".join(lines))


def _line(item: MissingCallable) -> str:
    near = f" (did you mean {' or '.join(map(repr, item.suggestions))}?)" if item.suggestions else ""
    return f"  step {item.step!r}: no handler {item.callable!r}{near}"


def _missing(registry: HandlerRegistry, step: StepPlan, template: TemplateId) -> Sequence[MissingCallable]:
    try:
        resolve_for(step, registry, template)
    except HandlerNotFound as error:
        return error.missing
    return ()


def located(source: str | Path) -> str | Path:
    """Return the file or folder of a source, or the name of an installed module.

    A module that is not installed is looked up in the current folder: `shop.handlers` is `shop/handlers.py` there.
    Raises `HandlerLoadError` if nothing matches.
    """
    path = Path(source)
    if path.exists():
        return path
    if isinstance(source, Path) or "/" in source or source.endswith(".py"):
        raise HandlerLoadError(f"{source} does not exist", hint=_SOURCES)
    parts = source.split(".")
    if not all(map(str.isidentifier, parts)):
        raise HandlerLoadError(f"{source!r} is not a file, a folder or a module name", hint=_SOURCES)
    return source if find_spec(parts[0]) else _in_current_folder(source, Path(*parts))


_SOURCES = "expected a Python file, a folder or a module name"


def _in_current_folder(module: str, path: Path) -> Path:
    for candidate in (path.with_suffix(".py"), path):
        if candidate.exists():
            return candidate
    raise HandlerLoadError(
        f"module not found: {module!r}: it is not installed, and neither {path}.py nor a folder {path} is in "
        f"{Path.cwd()}",
        hint=_SOURCES,
    )


def _handlers_of(source: str | Path) -> list[FoundHandler]:
    found = located(source)
    return handlers_in_path(found) if isinstance(found, Path) else handlers_in_package(found)
