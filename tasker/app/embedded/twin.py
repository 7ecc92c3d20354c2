"""Base of sync wrappers: blocking facades over asynchronous objects."""

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
    """Blocking facade over `original`, whose coroutines run in the loop's thread."""

    def __init__(self, loop: LoopThread, original: A_co) -> None:
        self._loop, self._original = loop, original


def sync_method(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncWrapper[A], P], T]:
    """Return the blocking form of an asynchronous method: same name, parameters and documentation."""

    @wraps(method)
    def wait(twin: SyncWrapper[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return twin._loop.wait(method(twin._original, *args, **kwargs))

    return wait


def with_parameters_of(
    made: Callable[P, object],
) -> Callable[[Callable[Concatenate[S, ...], None]], Callable[Concatenate[S, P], None]]:
    """Decorate an `__init__` that passes all arguments to `made`, so that it has the parameters of `made`."""

    def decorate(init: Callable[Concatenate[S, ...], None]) -> Callable[Concatenate[S, P], None]:
        init.__wrapped__ = made.__init__  # type: ignore[attr-defined]
        return init

    return decorate
