"""Operations sent to a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from re import sub
from typing import Any, TypeVar

from tasker.client.calls.paths import segment
from tasker.client.connection import HttpConnection
from tasker.errors import NotTasker
from tasker.operations.operation import AsyncCaller, Operation, Parameter
from tasker.views.model import decode

R = TypeVar("R")
T = TypeVar("T")


class OperationCalls(AsyncCaller):
    """Sends the operations of a client and decodes the answers; `initiator` is the actor where none is given."""

    connection: HttpConnection
    initiator: str

    async def perform(self, operation: Operation[..., R], arguments: Mapping[str, Any]) -> R:
        """Send the request of the operation. Raises the errors of `HttpConnection.send`."""
        endpoint = operation.endpoint
        values = {
            parameter.published: plain_value(arguments[parameter.published], parameter)
            for parameter in operation.parameters
        }
        path = sub(r"{(\w+)}", lambda name: segment(values.pop(name[1])), endpoint.path)
        if endpoint.operates and "actor" in values:
            values["actor"] = values["actor"] or self.initiator
        place = "params" if endpoint.body is None else "body"
        sent: dict[str, Any] = {place: values}
        waits = max((arguments[name] or 0.0 for name in operation.durations), default=0.0)
        answer = await self.connection.send(
            endpoint.method, path, **sent, waits=waits, repeatable=endpoint.repeatable or endpoint.method == "GET"
        )
        kind: type[R] = operation.answer
        if endpoint.wrapped is not None:
            answer = answer.get(endpoint.wrapped.key) if isinstance(answer, dict) else None
        return decoded(kind, answer)


def plain_value(value: Any, parameter: Parameter) -> Any:
    if parameter.param.form == "seconds" and value is not None:
        return f"{value:.3f}s"
    return value.isoformat() if isinstance(value, datetime) else value


def decoded(kind: type[T], data: Any) -> T:
    """Return the value for its published form. Raises `NotTasker` if the response lacks a field or has an invalid
    value."""
    try:
        value: T = decode(kind, data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotTasker(
            f"unexpected response from the server: {type(error).__name__} {error}",
            hint="check that the CLI and the server have the same release: tasker --version, tasker profile check",
        ) from None
    return value


def decoded_list(kind: type[T], data: Sequence[Any]) -> list[T]:
    return [decoded(kind, item) for item in data]
