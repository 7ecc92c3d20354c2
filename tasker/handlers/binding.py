"""Arguments of a decorated function, bound by name from results of dependencies, the task's context, or the runtime."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError as PydanticError

from tasker.dataclasses import dataclass
from tasker.errors import DeclarationMismatch, ValidationError
from tasker.handlers.context import StepContext

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Reader = Callable[[StepContext], Any]

ABSENT: Any = object()
"""Return value of a reader if the parameter's own default applies."""

CONTEXT_NAMES = ("context", "_context")


def bind(function: Callable[..., Any], given: Mapping[str, Reader]) -> Callable[[StepContext], dict[str, Any]]:
    """Return a function that maps a context to the keyword arguments of `function`.

    `given` holds the readers of the kind of handler (`batch_context`, `api`). Raises `DeclarationMismatch` for a
    parameter without a source, for a positional-only or `*args` parameter, and for a dependency or input without a
    parameter.
    """
    parameters = inspect.signature(function).parameters
    sources = {**declared_readers(function), **given, **dict.fromkeys(CONTEXT_NAMES, _the_context)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    _check_parameters(function, parameters, sources)
    if not takes_any:
        _check_declared(function, parameters, sources)
    arguments = [Argument.of(p, sources[name]) for name, p in parameters.items() if name in sources]
    if takes_any:
        arguments += [
            Argument(name, read) for name, read in declared_readers(function).items() if name not in parameters
        ]
    return lambda context: _arguments(arguments, context)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter and the reader of its value."""

    name: str
    read: Reader
    has_default: bool = False

    @classmethod
    def of(cls, parameter: inspect.Parameter, read: Reader) -> Argument:
        return cls(parameter.name, read, parameter.default is not parameter.empty)


def _arguments(wanted: list[Argument], context: StepContext) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for argument in wanted:
        value = argument.read(context)
        if value is not ABSENT:
            values[argument.name] = value
        elif not argument.has_default:
            values[argument.name] = None
    return values


def declared_readers(function: Callable[..., Any]) -> dict[str, Reader]:
    """Return the readers that `@depends_on`, `@inputs` and `@uses` declared on the function."""
    dependencies = {
        name: dependency_reader(name, step, model) for name, (step, model) in declared_dependencies(function).items()
    }
    keys, model = declared_inputs(function)
    fields = {key: input_reader(key) for key in keys}
    used = {name: resource_reader(resource) for name, resource in declared_resources(function).items()}
    return dependencies | fields | used | ({"inputs": model_reader(model)} if model else {})


def dependency_reader(parameter: str, step: str, model: type | None) -> Reader:
    """Return a reader of a step's result, validated to `model` if given.

    The reader returns `ABSENT` if the step has no result.
    """
    adapter = None if model is None else adapter_of(model)

    def read(context: StepContext) -> Any:
        value = context.get_dependency_result(step)
        if value is None:
            return ABSENT
        return value if adapter is None else validated(adapter, value, f"result of step {step!r} (for {parameter!r})")

    return read


def input_reader(key: str) -> Reader:
    """Return a reader of a field of the handler's input; it returns `ABSENT` if the field is missing."""
    return lambda context: context.read_singly("input_data").get(key, ABSENT)


def resource_reader(resource: str) -> Reader:
    """Return a reader of a resource of the worker."""
    return lambda context: context.resource(resource)


def model_reader(model: type) -> Reader:
    """Return a reader of the handler's whole input, validated to `model`."""
    adapter = adapter_of(model)

    def read(context: StepContext) -> Any:
        what = "task's context (for 'inputs')" if context.reads_task else "step's inputs (for 'inputs')"
        return validated(adapter, context.input_data, what)

    return read


def declare(function: Callable[..., Any], key: str, value: Any) -> None:
    """Store a declaration on the function; the decorators may be applied in any order."""
    function.__dict__.setdefault("_tasker_arguments", {})[key] = value


def reads_arguments(value: Any) -> bool:
    """Return True for a function with `@depends_on` or `@inputs`."""
    return "_tasker_arguments" in getattr(value, "__dict__", ())


def _declared(function: Callable[..., Any], key: str, default: Any) -> Any:
    return function.__dict__.get("_tasker_arguments", {}).get(key, default)


def declared_dependencies(function: Callable[..., Any]) -> dict[str, tuple[str, type | None]]:
    """Return the declarations of `@depends_on`.

    Each parameter maps to the step whose result fills it, and the model of the result.
    """
    declarations: dict[str, tuple[str, type | None]] = _declared(function, "depends_on", {})
    return declarations


def declared_inputs(function: Callable[..., Any]) -> tuple[tuple[str, ...], type | None]:
    """Return the declarations of `@inputs`: the names of inputs, or a model."""
    return _declared(function, "input_keys", ()), _declared(function, "input_model", None)


def declared_resources(function: Callable[..., Any]) -> dict[str, str]:
    """Return the declarations of `@uses`: the resource that fills each parameter."""
    declarations: dict[str, str] = _declared(function, "uses", {})
    return declarations


def _the_context(context: StepContext) -> StepContext:
    return context


def adapter_of(model: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # needed for models only

    return TypeAdapter(model)


def validated(adapter: TypeAdapter[Any], value: Any, what: str) -> Any:
    """Return the value converted by the adapter.

    Raises `ValidationError` (permanent) with `what` and the invalid fields.
    """
    try:
        return adapter.validate_python(value)
    except PydanticError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'value'}: {p['msg']}" for p in error.errors())
        raise ValidationError(f"the {what} does not fit {error.title}: {problems}") from None


def _check_parameters(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], sources: Mapping[str, Reader]
) -> None:
    for parameter in parameters.values():
        if parameter.name in sources:
            _check_by_name(function, parameter)
        optional = parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        )
        if parameter.name not in sources and not optional:
            raise DeclarationMismatch(
                f"{where(function)}: nothing fills the parameter {parameter.name!r}",
                hint=_misspelt(function, [parameter.name], parameters)
                or f'add @inputs("{parameter.name}") or @depends_on({parameter.name}="<step>"), '
                "or name it `context` for the step's context",
            )


def _check_by_name(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    """Raise `DeclarationMismatch` for a parameter that has a source but cannot be passed by keyword."""
    if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
        raise DeclarationMismatch(
            f"{where(function)}: the parameter {parameter.name!r} is {parameter.kind.description}",
            hint="arguments are given by name: remove the `/` or the `*` from the parameters",
        )


def _check_declared(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], sources: Mapping[str, Reader]
) -> None:
    for name in declared_readers(function):
        if name not in parameters:
            free = [parameter for parameter in parameters if parameter not in sources]
            raise DeclarationMismatch(
                f"{where(function)}: {name!r} is declared but the function has no such parameter",
                hint=_misspelt(function, free, parameters)
                or f"add the parameter {name!r}, or remove it from @depends_on, @inputs or @uses",
            )


def _misspelt(
    function: Callable[..., Any], free: Iterable[str], parameters: Mapping[str, inspect.Parameter]
) -> str | None:
    """Return a hint if a `free` parameter resembles a declared name that is not a parameter."""
    from difflib import get_close_matches  # needed only for errors

    declared_by = dict.fromkeys(declared_inputs(function)[0], "@inputs")
    declared_by |= dict.fromkeys(declared_dependencies(function), "@depends_on")
    declared_by |= dict.fromkeys(declared_resources(function), "@uses")
    for name in free:
        if near := get_close_matches(name, [declared for declared in declared_by if declared not in parameters], 1):
            return f"did you mean {name!r}? {declared_by[near[0]]} says {near[0]!r}, which is no parameter"
    return None


def where(function: Callable[..., Any]) -> str:
    """Return the function's name and `(file:line)`, for messages."""
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{getattr(function, '__qualname__', repr(function))}{place}"
