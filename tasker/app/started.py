"""Attributes that an app has only between start and stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar

from tasker.errors import UsageError
from tasker.process.stopping import to_its_end

T = TypeVar("T")


class requires_start(Generic[T]):
    """Attribute that an app sets in `start`. Reading it without a value raises a `UsageError` with the reason.

    The app's `opened_by` is the line of code that starts an app.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, app: Any, owner: type) -> T:
        try:
            value: T = app.__dict__[self._name]
        except KeyError:
            raise not_started(owner.__name__, app.opened_by) from None
        return value

    def __set__(self, app: Any, value: T) -> None:
        app.__dict__[self._name] = value


class lazy_value(requires_start[T]):
    """Attribute that a started app creates with `make` at its first use."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make

    def __get__(self, app: Any, owner: type) -> T:
        if self._name not in vars(app) and is_started(app):
            vars(app)[self._name] = self._make(app)
        return super().__get__(app, owner)


class service(requires_start[T]):
    """Attribute for a service of an app, read under the same name from `_services` while the app is started."""

    def __get__(self, app: Any, owner: type) -> T:
        service: T = getattr(app._services, self._name)
        return service


def _names(app: object) -> list[str]:
    return [
        name for kind in type(app).__mro__ for name, value in vars(kind).items() if isinstance(value, requires_start)
    ]


def is_started(app: object) -> bool:
    """Return whether the app is started: a `requires_start` attribute has a value."""
    return any(name in vars(app) for name in _names(app))


def forget(app: object) -> None:
    """Remove the values of the attributes."""
    for name in _names(app):
        vars(app).pop(name, None)


async def opened_whole(
    open_parts: Callable[[AsyncExitStack], Awaitable[None]], at_last: Callable[[], None]
) -> AsyncExitStack:
    """Open all parts and return the stack that closes them and then calls `at_last`.

    If opening fails or is cancelled, all parts are closed at once.
    """
    opened = AsyncExitStack()
    opened.callback(at_last)
    try:
        await open_parts(opened)
    except BaseException:
        await to_its_end(opened.aclose())
        raise
    return opened


def not_started(name: str, opened_by: str) -> UsageError:
    """Return the error for an operation that requires a started app."""
    return UsageError(f"this {name} is not started", hint=f"use it as `{opened_by}`, or call its start() before")


def already_started(name: str) -> UsageError:
    """Return the error for a second start, which would lose the resources of the first one."""
    return UsageError(f"this {name} is started already", hint="start it once in a process, before its first use")
