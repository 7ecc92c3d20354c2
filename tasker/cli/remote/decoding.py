"""Decoding of service values from a server's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tasker.errors import NotTasker

T = TypeVar("T")


def decoded(kind: type[T], data: Any) -> T:
    """Build the dataclass. Raises `NotTasker` if the response lacks a field or has an invalid value."""
    try:
        instance: T = _decoded(kind, data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotTasker(
            f"unexpected response from the server: {type(error).__name__} {error}",
            hint="check that the CLI and the server have the same release: tasker --version, tasker profile check",
        ) from None
    return instance


def decoded_list(kind: type[T], data: Sequence[Any]) -> list[T]:
    return [decoded(kind, item) for item in data]


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decoded(kind: Any, data: Any) -> Any:
    if data is None:
        return None
    if kind is datetime:
        return datetime.fromisoformat(data)
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        return kind(**{field.name: _decoded(hints[field.name], data[field.name]) for field in fields(kind)})  # type: ignore[operator]
    arguments = [argument for argument in get_args(kind) if argument is not NoneType]
    if NoneType in get_args(kind):
        return _decoded(arguments[0], data)
    if get_origin(kind) is Sequence and arguments[0] is not Any:
        return [_decoded(arguments[0], item) for item in data]
    if get_origin(kind) is Mapping and is_dataclass(arguments[1]):
        return {name: _decoded(arguments[1], value) for name, value in data.items()}
    return data
