"""Routes of operations: parameters, body, access and answer come from the declaration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from inspect import Parameter as Argument
from inspect import Signature
from typing import Annotated, Any, Generic, Literal, ParamSpec, TypeVar, Union, get_args, get_origin
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from starlette.responses import Response

from tasker.operations.operation import REQUIRED, Body, Operation, Parameter
from tasker.server.auth.gate import needs
from tasker.server.rendering import Json
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.texts import AwareMoment, Moment, storable_text
from tasker.server.streams import seconds_of
from tasker.views.model import Keys, camel_case, encode, is_camel_case, published_fields, published_form, without_none

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
Responses = Mapping[int | str, dict[str, Any]]
NO_RESPONSES: Responses = {}


class WithHeaders(Generic[R]):
    """Answer of an operation with headers of its response."""

    def __init__(self, answer: R, headers: Mapping[str, str]) -> None:
        self.answer, self.headers = answer, headers


RouteFunction = Callable[..., Awaitable[R | WithHeaders[R] | Response]]


def serves(
    routes: APIRouter, operation: Operation[P, R], responses: Responses = NO_RESPONSES, **headers: Any
) -> Callable[[F], F]:
    """Add the route of an operation, which calls the decorated function with the request and the arguments.

    What the function returns is sent as the declared answer, with the published names and words. `responses` describes
    further ones: the function returns them as `Response`. `headers` are annotations of headers that it takes, too.
    """
    endpoint = operation.endpoint
    access = needs(
        endpoint.permission,
        confines=endpoint.confines,
        tenants=endpoint.tenants,
        operates=endpoint.operates,
        unless=endpoint.unless,
    )

    def decorate(function: F) -> F:
        routes.add_api_route(
            endpoint.path,
            _with_parameters(operation, function, headers),
            methods=[endpoint.method],
            response_model=answer_type(operation),
            status_code=None if endpoint.status == 200 else endpoint.status,
            description=operation.description,
            responses={**responses, **refusals(*endpoint.errors)},
            **access,
        )
        return function

    return decorate


def _with_parameters(
    operation: Operation[..., R], function: RouteFunction[R], headers: Mapping[str, Any]
) -> Callable[..., Awaitable[Response]]:
    """Return the function as FastAPI calls it: with the published parameters, and a model for the body."""
    endpoint = operation.endpoint
    in_body = [parameter for parameter in operation.parameters if _is_in_body(parameter, operation)]
    arguments = [Argument("request", Argument.KEYWORD_ONLY, annotation=Request)]
    arguments += [_argument(parameter, endpoint.path) for parameter in operation.parameters if parameter not in in_body]
    arguments += [
        Argument(name, Argument.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in headers.items()
    ]
    if endpoint.body is not None:
        model = _body_model(endpoint.body, tuple(in_body))
        arguments.append(Argument("body", Argument.KEYWORD_ONLY, annotation=model))

    async def answer(request: Request, body: BaseModel | None = None, **given: Any) -> Response:
        given |= {parameter.published: getattr(body, parameter.published) for parameter in in_body}
        given |= {name: seconds_of(given[name]) for name in operation.durations}
        sent = {name: given.pop(name) for name in headers}
        answered: Any = await function(request, **operation.arguments(given), **sent)
        if isinstance(answered, Response):
            return answered
        more = None
        if isinstance(answered, WithHeaders):
            answered, more = answered.answer, answered.headers
        encoded = encode(operation.answer, answered)
        return Json({endpoint.wrapped.key: encoded} if endpoint.wrapped else encoded, endpoint.status, more)

    answer.__name__ = function.__name__
    answer.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return answer


def _is_in_body(parameter: Parameter, operation: Operation[..., Any]) -> bool:
    return operation.endpoint.body is not None and f"{{{parameter.published}}}" not in operation.endpoint.path


def _argument(parameter: Parameter, path: str) -> Argument:
    in_path = f"{{{parameter.published}}}" in path
    place: Any = (Path if in_path else Query)(description=parameter.param.description)
    checked: Any = Annotated[_checked(parameter), place]
    default = [] if parameter.default == () else parameter.default
    return Argument(parameter.published, Argument.KEYWORD_ONLY, default=default, annotation=checked)


@cache
def _body_model(body: Body, parameters: tuple[Parameter, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in parameters:
        default = ... if parameter.default is REQUIRED else parameter.default
        fields[parameter.published] = (_checked(parameter), Field(default, description=parameter.param.description))
    forbids = ConfigDict(extra="forbid")
    return create_model(body.name, __config__=forbids, __doc__=body.description, **fields)


def _checked(parameter: Parameter) -> Any:
    """Return the type of a parameter with its bounds."""
    param = parameter.param
    kind, optional = without_none(parameter.kind)
    if param.form == "seconds":
        kind = Annotated[str, Field(max_length=20, examples=["10s"])]
    elif param.form == "uuid":
        kind = Annotated[UUID, AfterValidator(str)]
    elif kind is str:
        form = Field(min_length=param.min_length, max_length=param.max_length, pattern=param.pattern)
        kind = Annotated[str, form, AfterValidator(storable_text)]
    elif kind in (int, float):
        kind = Annotated[kind, Field(ge=param.at_least, gt=param.above, le=param.at_most)]
    elif kind is datetime:
        kind = AwareMoment if param.form == "zoned" else Moment
    elif get_origin(kind) is Mapping:
        kind = Annotated[dict[get_args(kind)], Field(max_length=param.max_length)]  # type: ignore[misc]
    elif get_origin(kind) is Sequence:
        kind = Annotated[list[get_args(kind)[0]], Field(max_length=param.max_length)]  # type: ignore[misc]
    return kind | None if optional else kind


def answer_type(operation: Operation[..., Any]) -> Any:
    """Return the type that describes the answer of an operation."""
    described, wrapped = published_type(operation.answer), operation.endpoint.wrapped
    if wrapped is None:
        return described
    fields: dict[str, Any] = {wrapped.key: (described, ...)}
    return create_model(wrapped.name, __doc__=wrapped.description, **fields)


@cache
def published_type(kind: Any) -> Any:
    """Return the type that describes published values of this type: a model for each view."""
    kind, optional = without_none(kind)
    described = _described(kind)
    return Union[described, None] if optional else described  # noqa: UP007  # may be a type that has no `|`


def _described(kind: Any) -> Any:
    if is_camel_case(kind):
        return Literal[tuple(map(camel_case, get_args(kind.__origin__)))]
    if get_origin(kind) is Annotated:
        return _marked(kind)
    if is_dataclass(kind):
        form = published_form(kind)
        fields: dict[str, Any] = {
            name: (published_type(inner), None if name in form.omitted else ...)
            for _, name, inner in published_fields(kind)
        }
        return create_model(form.name, __doc__=kind.__doc__, **fields)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Sequence, list, tuple):
        return list[published_type(arguments[0])]  # type: ignore[misc]
    if origin in (Mapping, dict):
        return dict[arguments[0], published_type(arguments[1])]  # type: ignore[misc, valid-type]
    return kind


def _marked(kind: Any) -> Any:
    keys = next((mark for mark in kind.__metadata__ if isinstance(mark, Keys)), None)
    if keys is None:
        return _described(kind.__origin__)
    member = published_type(get_args(kind.__origin__)[1])
    return create_model(keys.name, **dict.fromkeys(keys.keys, (member, ...)))  # type: ignore[call-overload]
