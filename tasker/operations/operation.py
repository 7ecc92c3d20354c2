"""Operations of Tasker, each declared once.

A declaration is an asynchronous method without a body: its signature has the parameters with their types, bounds and
defaults, and the answer. From it come the route of the API, the methods of `HttpClient` and `SyncHttpClient`, the
remote services of commands, and the bounds and defaults of their options.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property, wraps
from inspect import Parameter as Argument
from inspect import Signature, getdoc, signature
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    get_origin,
    get_type_hints,
    overload,
)

from tasker.dataclasses import dataclass
from tasker.operations.permissions import Permission

P = ParamSpec("P")
R = TypeVar("R")

REQUIRED = Argument.empty
"""Default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Param:
    """Bounds and published name of a parameter, as in `Annotated[int, Param(at_least=1)]`; lengths are those of
    texts, or the number of values of a sequence. `form` is the form of a published text; `zoned` times have a zone."""

    published: str | None = None
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    description: str | None = None
    pattern: str | None = None
    form: Literal["uuid", "seconds", "zoned"] | None = None


PLAIN = Param()


@dataclass(frozen=True, slots=True)
class Parts:
    """Mark of a text that stands for several published parameters: `names`, which it has separated by `/`.

    `split` returns their values. Raises `UsageError` for other texts. `param` has the bounds of each.
    """

    names: tuple[str, ...]
    split: Callable[[str], Sequence[str]]
    param: Param


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of an operation. `group` is the argument of which it is a field or a part, if it is one."""

    name: str
    published: str
    kind: Any
    default: Any
    param: Param
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """Published name and description of an operation's body."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Object that has the answer under `key`, with its published name and description."""

    key: str
    name: str
    description: str


class AsyncCaller:
    """Object with operations as coroutine methods."""

    async def perform(self, operation: Operation[..., R], arguments: Mapping[str, Any]) -> R:
        """Perform the operation; `arguments` have their published names."""
        raise NotImplementedError


class SyncCaller:
    """Object with operations as blocking methods."""

    def perform(self, operation: Operation[..., R], arguments: Mapping[str, Any]) -> R:
        """Perform the operation; `arguments` have their published names."""
        raise NotImplementedError


class RemoteService(AsyncCaller):
    """Operations of a client under the names of a service of `App`."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    async def perform(self, operation: Operation[..., R], arguments: Mapping[str, Any]) -> R:
        """Let the client perform the operation."""
        return await self._client.perform(operation, arguments)


Declared = Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Declaration of an operation beside its signature; decorates the method without a body.

    `service` names the method of `App` that does it. A path with `{}` names parameters; all others are in the query, or
    in the `body`. `errors` are the statuses that it can answer beside those of every request. A `repeatable` request is
    sent again if its answer was lost, as every GET is. The marks of access are explained at
    `tasker.server.auth.gate.needs`.
    """

    method: str
    path: str
    permission: Permission
    service: str
    confines: bool = False
    tenants: bool = False
    operates: bool = False
    unless: str | None = None
    body: Body | None = None
    wrapped: Wrapped | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    repeatable: bool = False

    def __call__(self, declared: Declared[P, R]) -> Operation[P, R]:
        """Declare the operation."""
        return Operation(self, declared)


@dataclass(frozen=True)
class Operation(Generic[P, R]):
    """Declared operation; as an attribute of a caller it is a method with the declared signature."""

    endpoint: Endpoint
    declared: Declared[P, R]

    @overload
    def __get__(self, caller: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, caller: AsyncCaller, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, caller: SyncCaller, owner: type[Any]) -> Callable[P, R]: ...
    def __get__(self, caller: AsyncCaller | SyncCaller | None, owner: type[Any]) -> Any:
        if caller is None:
            return self

        @wraps(self.declared)
        def call(*args: Any, **named: Any) -> Any:
            return caller.perform(self, self.published(self.signature.bind(*args, **named).arguments))

        @wraps(self.declared)
        async def call_async(*args: Any, **named: Any) -> Any:
            return await call(*args, **named)

        method: Any = call_async if isinstance(caller, AsyncCaller) else call
        method.__signature__ = self.signature
        return method

    @property
    def name(self) -> str:
        """Name of the method of clients."""
        return self.declared.__name__

    @property
    def description(self) -> str:
        """Description for the API: the docstring without the exceptions, which are statuses there."""
        return (getdoc(self.declared) or "").partition("\n\nRaises ")[0]

    @cached_property
    def signature(self) -> Signature:
        """Signature of the method, without the object."""
        _, *arguments = signature(self.declared).parameters.values()
        return Signature(arguments)

    @cached_property
    def answer(self) -> Any:
        """Type of the answer."""
        return self._hints["return"]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters as published: an argument that is a dataclass stands for its fields, a text for its parts."""
        parameters: list[Parameter] = []
        for name, argument in self.signature.parameters.items():
            kind, param = _unmarked(self._hints[name])
            if is_dataclass(kind):
                parameters += _fields(kind, name)
            elif name in self._parts:
                param = self._parts[name].param
                parameters += [Parameter(part, part, str, REQUIRED, param, name) for part in self._parts[name].names]
            else:
                parameters.append(Parameter(name, param.published or name, kind, argument.default, param))
        return tuple(parameters)

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.declared, include_extras=True)

    @cached_property
    def _parts(self) -> Mapping[str, Parts]:
        """Arguments that are texts of several parameters."""
        marks = ((name, mark) for name, kind in self._hints.items() for mark in getattr(kind, "__metadata__", ()))
        return {name: mark for name, mark in marks if isinstance(mark, Parts)}

    @cached_property
    def durations(self) -> tuple[str, ...]:
        """Published names of the parameters that are durations."""
        return tuple(parameter.published for parameter in self.parameters if parameter.param.form == "seconds")

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of this name."""
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def published(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments of the method under their published names, with defaults."""
        defaults = {name: argument.default for name, argument in self.signature.parameters.items()}
        values = {**defaults, **arguments}
        split = {
            name: dict(zip(parts.names, parts.split(values[name]), strict=True)) for name, parts in self._parts.items()
        }
        return {
            parameter.published: values[parameter.name]
            if parameter.group is None
            else split[parameter.group][parameter.name]
            if parameter.group in split
            else getattr(values[parameter.group], parameter.name)
            for parameter in self.parameters
        }

    def arguments(self, published: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the method for these published ones."""
        arguments: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for parameter in self.parameters:
            holder = arguments if parameter.group is None else groups.setdefault(parameter.group, {})
            holder[parameter.name] = published[parameter.published]
        return arguments | {
            name: "/".join(values.values()) if name in self._parts else self._hints[name](**values)
            for name, values in groups.items()
        }


def _fields(kind: Any, group: str) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    parameters = []
    for field in fields(kind):
        inner, param = _unmarked(hints[field.name])
        parameters.append(Parameter(field.name, param.published or field.name, inner, field.default, param, group))
    return parameters


def _unmarked(kind: Any) -> tuple[Any, Param]:
    if get_origin(kind) is not Annotated:
        return kind, PLAIN
    param = next((mark for mark in kind.__metadata__ if isinstance(mark, Param)), PLAIN)
    return (kind.__origin__ if param is not PLAIN else kind), param
