"""What an app has between its start and its stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar

from tasker.errors import UsageError
from tasker.process.supervision.stopping import to_its_end

T = TypeVar("T")


class requires_start(Generic[T]):
    """An attribute that an app sets in `start`. While it has no value, reading it is a `UsageError` that says why.

    The app's `opened_by` is the line of code that starts one.
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
    """One that a started app makes when it is first asked for, by `make`."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make

    def __get__(self, app: Any, owner: type) -> T:
        if self._name not in vars(app) and is_started(app):
            vars(app)[self._name] = self._make(app)
        return super().__get__(app, owner)


class service(requires_start[T]):
    """One of the services of an app, which has them in `_services` while it is started, under its name there."""

    def __get__(self, app: Any, owner: type) -> T:
        service: T = getattr(app._services, self._name)
        return service


def _names(app: object) -> list[str]:
    return [
        name for kind in type(app).__mro__ for name, value in vars(kind).items() if isinstance(value, requires_start)
    ]


def is_started(app: object) -> bool:
    """True when an attribute of the kind has a value."""
    return any(name in vars(app) for name in _names(app))


def forget(app: object) -> None:
    """From now on the attributes have no value."""
    for name in _names(app):
        vars(app).pop(name, None)


async def opened_whole(
    open_parts: Callable[[AsyncExitStack], Awaitable[None]], at_last: Callable[[], None]
) -> AsyncExitStack:
    """What lets go of all the parts that were opened, and calls `at_last`. When one cannot be opened, or the opening is
    cancelled, all is let go of at once."""
    opened = AsyncExitStack()
    opened.callback(at_last)
    try:
        await open_parts(opened)
    except BaseException:
        await to_its_end(opened.aclose())
        raise
    return opened


def not_started(name: str, opened_by: str) -> UsageError:
    """The error for what can be done only while an app is started."""
    return UsageError(f"this {name} is not started", hint=f"use it as `{opened_by}`, or call its start() before")


def already_started(name: str) -> UsageError:
    """The error for a second start, after which nobody would stop what the first one has made."""
    return UsageError(f"this {name} is started already", hint="start it once in a process, before whatever uses it")
