"""Handlers that a program has and lacks, and whether they fit their steps.

Only functions declare what they read. A class reads from its context at run time, which cannot be checked before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tasker.errors import HandlerLoadError, HandlerMismatch, HandlerNotFound, MissingCallable
from tasker.handlers.binding import CONTEXT_NAMES, adapter_of, declared_dependencies, declared_inputs, where
from tasker.handlers.function_handlers import FunctionHandler
from tasker.handlers.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path
from tasker.handlers.registry.invocation import ResolvedHandler, resolve_for
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.registry.resolvers import EVERYTHING
from tasker.handlers.registry.suggestions import explain_missing_callable
from tasker.handlers.registry.workflow_handlers import HANDLERS_FILE
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.plan import Plan, StepPlan, TemplateId
from tasker.template.schema_check import listed_properties
from tasker.template.step_types import Creates

if TYPE_CHECKING:
    from tasker.template.compile import Origins


class SignatureProblem(NamedTuple):
    """Requirement of a handler that its step cannot meet; `message` names the handler's file and line."""

    step: str
    message: str
    hint: str


def function_of(resolved: ResolvedHandler) -> Callable[..., Any] | None:
    """Return the function behind a handler, or None for a class."""
    handler = getattr(resolved.call, "__self__", None)
    return type(handler).function if isinstance(handler, FunctionHandler) else None


def misfits(plan: Plan, step: StepPlan, resolved: ResolvedHandler) -> Iterator[SignatureProblem]:
    """Yield every declaration of the step's handler that this plan cannot meet."""
    handler = getattr(resolved.call, "__self__", None)
    function = type(handler).function if isinstance(handler, FunctionHandler) else None
    if problem := resolved.problem(step):
        yield SignatureProblem(
            step.name, f"{resolved.name if function is None else where(function)} {problem[0]}", problem[1]
        )
        return
    if not isinstance(handler, FunctionHandler) or function is None:
        return
    problems = (
        *_of_dependencies(plan, step, function),
        *(_of_inputs(plan, function) if step.inputs is None else _of_step_inputs(plan, step, function)),
        *_of_batches(plan, step, handler),
    )
    for message, hint in problems:
        yield SignatureProblem(step.name, f"{where(function)} {message}", hint)


Problem = tuple[str, str]
"""Message and hint."""


def _of_dependencies(plan: Plan, step: StepPlan, function: Callable[..., Any]) -> Iterator[Problem]:
    names = [name for name, _ in declared_dependencies(function).values()]
    above = plan.above.of(step.name) if names else ()
    for name in names:
        other = plan.by_name.get(name)
        if other is None and not _is_instance(name, plan, above):
            message = f"reads the result of `{name}`, which is not a step of {plan.namespace}/{plan.name}"
            yield message, _near(name, above, f"the steps above `{step.name}`")
        elif other is not None and name not in above:
            yield f"reads the result of `{name}`, which is not above `{step.name}`", _add(name, step, above)
        elif other is not None and other.type.is_pattern:
            message = f"reads the result of `{name}`, a {other.type}, which has one result per batch"
            yield message, "read them with @batch_aggregator, or context.get_all_dependency_results"


def _is_instance(name: str, plan: Plan, above: Sequence[str]) -> bool:
    """Return True for `process_001`, an instance of the batch_worker `process` above the step."""
    pattern = plan.by_name.get(re.sub(r"_\d{3,}$", "", name))
    return pattern is not None and pattern.type.is_pattern and pattern.name in above


def _of_inputs(plan: Plan, function: Callable[..., Any]) -> Iterator[Problem]:
    names = _needed_inputs(function)
    known = _listed_inputs(plan) if names else None
    for name in names:
        if known is not None and name not in known:
            message = f"reads the input `{name}`, which the input_schema of {plan.namespace}/{plan.name} does not list"
            advice = "add it to `properties`, or write `additionalProperties: true` if there may be others"
            yield message, did_you_mean(name, known) or advice


def _of_step_inputs(plan: Plan, step: StepPlan, function: Callable[..., Any]) -> Iterator[Problem]:
    """Check the names and types of the step's `inputs` against the parameters or the model of its handler."""
    given = step.inputs or {}
    names, model = declared_inputs(function)
    for name in _needed_inputs(function):
        if name not in given and not (model is None and _has_default(function, name)):
            yield (
                f"reads the input `{name}`, which the `inputs` of `{step.name}` lack",
                did_you_mean(name, given) or f"add it to the `inputs` of `{step.name}`",
            )
    reads_context = any(name in signature(function).parameters for name in CONTEXT_NAMES)
    known = names if model is None else _taken_by(model)
    item = None if step.for_each is None else step.for_each.name
    for name in given if [*given] != [item] else ():  # every handler gets the item
        if known is not None and name not in known and not reads_context:
            hint = did_you_mean(name, known) or f"remove it, or read it: {listed(known) or 'it reads no inputs'}"
            yield f"does not read the input `{name}` of `{step.name}`", hint
    if model is not None:
        yield from _of_types(plan, step, model)


def _has_default(function: Callable[..., Any], name: str) -> bool:
    parameter = signature(function).parameters.get(name)
    return parameter is not None and parameter.default is not parameter.empty


def _taken_by(model: type) -> list[str] | None:
    """Return the names that a model reads, or None if it may read any."""
    fields = getattr(model, "model_fields", None)
    if fields is None or getattr(model, "model_config", {}).get("extra") == "allow":
        return None
    aliases = [alias for field in fields.values() for alias in (field.alias, field.validation_alias) if alias]
    return [*fields, *(str(alias) for alias in aliases)]


def _of_types(plan: Plan, step: StepPlan, model: type) -> Iterator[Problem]:
    """Check the types of expressions against those of the model's fields."""
    from tasker.expressions.types import fits, type_of_schema
    from tasker.template.rules.inputs import types_of_inputs

    schema = adapter_of(model).json_schema()
    wanted = type_of_schema(schema)
    for name, type_ in types_of_inputs(plan, step).items():
        expected = wanted.fields.get(name)
        if expected is not None and not fits(type_, expected):
            message = f"takes {expected} as the input `{name}`, and the `inputs` of `{step.name}` give {type_}"
            yield message, "convert it with string(...), int(...) or double(...), or change the model"


@lru_cache(maxsize=256)
def _listed_inputs(plan: Plan) -> frozenset[str] | None:
    return listed_properties(plan.input_schema)


def _needed_inputs(function: Callable[..., Any]) -> list[str]:
    names, model = declared_inputs(function)
    fields = getattr(model, "model_fields", {}).items()
    plain = {name: field for name, field in fields if field.validation_alias is None and field.is_required()}
    aliases = [f.validation_alias for _, f in fields if isinstance(f.validation_alias, str) and f.is_required()]
    return [*names, *plain, *aliases]


def _of_batches(plan: Plan, step: StepPlan, handler: FunctionHandler) -> Iterator[Problem]:
    """Check the batch_worker and batchable steps named by an analyzer or an aggregator."""
    if not hasattr(handler, "worker_template"):
        return
    from tasker.handlers.function_kinds import BatchAggregatorFunction, BatchAnalyzerFunction

    if isinstance(handler, BatchAnalyzerFunction):
        below = [s.name for s in plan.steps if s.type.is_pattern and step.name in s.depends_on]
        yield from _named("cuts batches for", handler.worker_template, below, f"batch_worker below `{step.name}`")
    if isinstance(handler, BatchAggregatorFunction):
        above = plan.above.of(step.name)
        workers = [name for name in above if plan.by_name[name].type.is_pattern]
        batchables = [name for name in above if plan.by_name[name].type.creates is Creates.BATCHES]
        yield from _named("puts together", handler.worker_template, workers, f"batch_worker above `{step.name}`")
        yield from _named("reads the analysis of", handler.analyzer, batchables, f"batchable step above `{step.name}`")


def _named(does: str, name: str, fitting: list[str], what: str) -> Iterator[Problem]:
    if name not in fitting:
        yield f"{does} `{name}`, which is not a {what}", _near(name, fitting, what)


def _add(name: str, step: StepPlan, above: Sequence[str]) -> str:
    if name == step.name:
        return "a step cannot read its own result"
    others = listed(above) or "none"
    return f"add `{name}` to the dependencies of `{step.name}`, or read a step above it: {others}"


def _near(name: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    return did_you_mean(name, names) or f"{what}: {listed(names) or 'none'}"


class Workflow(NamedTuple):
    """Plan with the folder whose `handlers.py`, if it exists, is loaded for it."""

    plan: Plan
    folder: Path
    lines: Mapping[str, str] = MappingProxyType({})
    """`file:line` of each step's handler in the template, if the template was read from a file."""
    origins: Origins = MappingProxyType({})
    """Places of each step in the file."""


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
    folder = template.parent
    return root if not (folder / HANDLERS_FILE).is_file() and (root / HANDLERS_FILE).is_file() else folder


def load_neighbouring_handlers(registry: HandlerRegistry, workflows: Iterable[Workflow]) -> None:
    """Load the `handlers.py` of each workflow's folder for its templates only.

    Raises `HandlerLoadError`, also for a template that exists in two folders with handlers.
    """
    templates: dict[Path, list[TemplateId]] = {}
    for workflow in workflows:
        templates.setdefault(workflow.folder, []).append(workflow.plan.id)
    for folder, template_ids in templates.items():
        registry.add_beside(folder, template_ids)


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
    steps = [step for step in plan.steps if step.has_handler]
    mismatches = [misfit for step in steps for misfit in misfits(plan, step, resolve_for(step, registry, plan.id))]
    if mismatches:
        at = {step: f"{place}: " for step, place in places.items()}
        lines = [
            f"  {at.get(misfit.step, '')}step {misfit.step!r}: {misfit.message}\n    {misfit.hint}"
            for misfit in mismatches
        ]
        raise HandlerMismatch("handlers do not fit their steps:\n" + "\n".join(lines))


def _line(item: MissingCallable) -> str:
    near = f" (did you mean {' or '.join(map(repr, item.suggestions))}?)" if item.suggestions else ""
    return f"  step {item.step!r}: no handler {item.callable!r}{near}"


def _missing(registry: HandlerRegistry, step: StepPlan, template: TemplateId) -> Sequence[MissingCallable]:
    if not step.has_handler:
        return ()
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
    location = located(source)
    return handlers_in_path(location) if isinstance(location, Path) else handlers_in_package(location)
