"""Objects without asynchronous methods, for others that have them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from tasker.app.embedded.loop_thread import LoopThread

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class SyncWrapper(Generic[A_co]):
    """An object whose methods wait for the asynchronous ones of `original`, which run in the loop's thread."""

    def __init__(self, loop: LoopThread, original: A_co) -> None:
        self._loop, self._original = loop, original


def sync_method(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncWrapper[A], P], T]:
    """The method of a twin for an asynchronous method: same name, parameters and documentation."""

    @wraps(method)
    def wait(twin: SyncWrapper[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return twin._loop.wait(method(twin._original, *args, **kwargs))

    return wait


def with_parameters_of(
    made: Callable[P, object],
) -> Callable[[Callable[Concatenate[S, ...], None]], Callable[Concatenate[S, P], None]]:
    """Of an `__init__` that hands all it gets to `made`: its parameters are shown and checked as those of `made`."""

    def decorate(init: Callable[Concatenate[S, ...], None]) -> Callable[Concatenate[S, P], None]:
        init.__wrapped__ = made.__init__  # type: ignore[attr-defined]
        return init

    return decorate
