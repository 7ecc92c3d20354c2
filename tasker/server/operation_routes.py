"""Routes of operations: parameters, body, access and answer come from the declaration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from inspect import Parameter as Argument
from inspect import Signature
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from tasker.operations.operation import REQUIRED, Body, Operation, Parameter
from tasker.server.auth.gate import needs
from tasker.server.rendering import Json
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.texts import Moment, storable_text
from tasker.views.model import Keys, camel_case, encode, is_camel_case, published_fields, published_form, without_none

P = ParamSpec("P")
R = TypeVar("R")
RouteFunction = Callable[..., Awaitable[R]]


def serves(routes: APIRouter, operation: Operation[P, R]) -> Callable[[RouteFunction[R]], RouteFunction[R]]:
    """Add the route of an operation, which calls the decorated function with the request and the arguments.

    What the function returns is sent as the declared answer, with the published names and words.
    """
    endpoint = operation.endpoint
    access = needs(endpoint.permission, confines=endpoint.confines, operates=endpoint.operates, unless=endpoint.unless)

    def decorate(function: RouteFunction[R]) -> RouteFunction[R]:
        routes.add_api_route(
            endpoint.path,
            _with_parameters(operation, function),
            methods=[endpoint.method],
            response_model=answer_type(operation),
            status_code=None if endpoint.status == 200 else endpoint.status,
            description=operation.description,
            responses=refusals(*endpoint.errors),
            **access,
        )
        return function

    return decorate


def _with_parameters(operation: Operation[..., R], function: RouteFunction[R]) -> Callable[..., Awaitable[Json]]:
    """Return the function as FastAPI calls it: with the published parameters, and a model for the body."""
    endpoint = operation.endpoint
    in_body = [parameter for parameter in operation.parameters if _is_in_body(parameter, operation)]
    arguments = [Argument("request", Argument.KEYWORD_ONLY, annotation=Request)]
    arguments += [_argument(parameter, endpoint.path) for parameter in operation.parameters if parameter not in in_body]
    if endpoint.body is not None:
        model = _body_model(endpoint.body, tuple(in_body))
        arguments.append(Argument("body", Argument.KEYWORD_ONLY, annotation=model))

    async def answer(request: Request, body: BaseModel | None = None, **given: Any) -> Json:
        given |= {parameter.published: getattr(body, parameter.published) for parameter in in_body}
        answered = await function(request, **operation.arguments(given))
        encoded = encode(operation.answer, answered)
        return Json({endpoint.wrapped.key: encoded} if endpoint.wrapped else encoded, endpoint.status)

    answer.__name__ = function.__name__
    answer.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return answer


def _is_in_body(parameter: Parameter, operation: Operation[..., Any]) -> bool:
    return operation.endpoint.body is not None and f"{{{parameter.published}}}" not in operation.endpoint.path


def _argument(parameter: Parameter, path: str) -> Argument:
    in_path = f"{{{parameter.published}}}" in path
    place: Any = (Path if in_path else Query)(description=parameter.param.description)
    checked: Any = Annotated[_checked(parameter), place]
    return Argument(parameter.published, Argument.KEYWORD_ONLY, default=parameter.default, annotation=checked)


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
    if kind is str:
        lengths = Field(min_length=param.min_length, max_length=param.max_length)
        kind = Annotated[str, lengths, AfterValidator(storable_text)]
    elif kind in (int, float):
        kind = Annotated[kind, Field(ge=param.at_least, gt=param.above, le=param.at_most)]
    elif kind is datetime:
        kind = Moment
    elif get_origin(kind) is Mapping:
        kind = dict[get_args(kind)]  # type: ignore[misc]
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
        fields: dict[str, Any] = {name: (published_type(inner), ...) for _, name, inner in published_fields(kind)}
        return create_model(published_form(kind).name, __doc__=kind.__doc__, **fields)
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
