"""Contracts between steps: what a handler reads against what the schemas above it describe.

Only functions declare what they read. A contract that the schemas do not decide is counted and never an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, get_type_hints

from tasker.dataclasses import dataclass
from tasker.handlers.binding import adapter_of, declared_dependencies, declared_inputs, where
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_fit import differences
from tasker.template.schema_misfits import Difference, Misfit

CERTAIN = frozenset({Misfit.TYPE, Misfit.VALUES, Misfit.MISSING, Misfit.OPTIONAL, Misfit.REFUSED})
UNCERTAIN = frozenset({Misfit.UNDECIDED, Misfit.UNDESCRIBED, Misfit.BOUNDS})
"""The others are no misfits here: fields that a schema does not list are taken as absent."""
FROM_TEXT = ("integer", "number", "string", "boolean")
"""Types from which a model reads a number or a truth value."""


@dataclass(frozen=True, slots=True)
class ContractProblem:
    """Contract that does not hold; `path` is the place in the template of the schema that says so."""

    code: str
    message: str
    hint: str
    path: tuple[str, ...]


@dataclass(slots=True)
class ContractCount:
    """Number of contracts that were compared, and those that the schemas do not decide, each with the reason."""

    compared: int = 0
    undecided: list[str] = field(default_factory=list)


def contract_problems(
    plan: Plan, step: StepPlan, function: Callable[..., Any], count: ContractCount
) -> Iterator[ContractProblem]:
    """Yield the contracts of a step's handler that do not hold, and count all of them."""
    for parameter, (name, model) in declared_dependencies(function).items():
        other = plan.by_name.get(name)
        if other is not None and not other.type.is_pattern and model is not None:
            title = f"{step.name}: `{parameter}` of {where(function)}"
            for found in _compared(other.result_schema, _schema_of(model), title, count, model):
                message = f"{where(function)} reads the result of `{name}` as {_named(model)}: {_said(found)}"
                hint = f"change the result_schema of `{name}` or {_named(model)}: the handler fails on such a result"
                yield ContractProblem("T230", message, hint, ("steps", name, "result_schema"))
    if step.inputs is None:
        yield from _of_inputs(plan, step, function, count)


def _of_inputs(
    plan: Plan, step: StepPlan, function: Callable[..., Any], count: ContractCount
) -> Iterator[ContractProblem]:
    names, model = declared_inputs(function)
    if model is not None:
        title = f"{step.name}: `inputs` of {where(function)}"
        for found in _compared(plan.input_schema, _schema_of(model), title, count, model):
            message = f"{where(function)} reads the task's input as {_named(model)}: {_said(found)}"
            hint = f"change the input_schema or {_named(model)}: the handler fails on such an input"
            yield ContractProblem("T231", message, hint, ("input_schema",))
    if names and plan.input_schema is not None:
        wanted, title = _schema_of_hints(function, names), f"{step.name}: inputs of {where(function)}"
        for found in _compared(plan.input_schema, wanted, title, count):
            message = f"{where(function)} reads the task's input: {_said(found)}"
            hint = "change the input_schema or the type hint: the value is given to the handler as it is"
            yield ContractProblem("T232", message, hint, ("input_schema",))


def _compared(given: Any, wanted: Any, title: str, count: ContractCount, model: Any = None) -> list[Difference]:
    """Return the certain differences of two schemas, and count the comparison; a `model` converts what it reads."""
    if given is None or wanted is None:
        count.compared += wanted is not None
        count.undecided += [f"{title}: there is no schema above it"] if wanted is not None else []
        return []
    count.compared += 1
    excused = {Misfit.MISSING} if _has_other_names(model) else set()
    certain = [
        difference
        for difference in differences(given, wanted if model is None else _lenient(wanted))
        if difference.misfit in CERTAIN - excused
    ]
    places = {difference.path for difference in certain}
    doubts = [d for d in differences(given, wanted) if d.misfit in CERTAIN | UNCERTAIN and d.path not in places]
    count.undecided += [f"{title}: {_said(difference)}" for difference in doubts]
    return certain


def _schema_of(model: Any) -> Any:
    """Return the JSON Schema of what a model takes, or None if it has none."""
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError

    try:
        return adapter_of(model).json_schema()
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError):
        return None


def _schema_of_hints(function: Callable[..., Any], names: tuple[str, ...]) -> Any:
    """Return the schema of an object with the named parameters that have a type hint, or None."""
    try:
        hints = get_type_hints(function)
    except Exception:  # a hint may name what only a type checker imports
        return None
    parameters = inspect.signature(function).parameters
    properties, required = {}, []
    for name in names:
        schema = _schema_of(hints[name]) if name in hints else None
        if schema is None or name not in parameters or "$defs" in schema:
            continue
        properties[name] = schema
        optional = parameters[name].default is not inspect.Parameter.empty
        if not optional and differences({"type": "null"}, schema):  # an absent input is given as None
            required.append(name)
    return {"type": "object", "properties": properties, "required": required} if properties else None


def _lenient(schema: Any) -> Any:
    """Return the schema with the types from which a model reads a value, as from the text of a number."""
    if isinstance(schema, list):
        return [_lenient(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    if kind in ("integer", "number", "boolean") and "enum" not in schema and "const" not in schema:
        return {"type": list(FROM_TEXT)}
    if kind == "string" and schema.get("format") in ("date", "date-time", "time", "duration"):
        return {"type": ["string", "integer", "number"]}
    return {key: _lenient(value) if key not in ("enum", "const", "default") else value for key, value in schema.items()}


def _has_other_names(model: Any) -> bool:
    """Return whether a model reads fields by their own names as well as by their aliases."""
    config = getattr(model, "model_config", {})
    return bool(config.get("populate_by_name") or config.get("validate_by_name"))


def _named(model: Any) -> str:
    return str(getattr(model, "__name__", model))


def _said(difference: Difference) -> str:
    return f"{difference.path} {difference.message}"
