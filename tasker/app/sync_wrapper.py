"""Base of sync wrappers: blocking facades over asynchronous objects."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Generator
from concurrent import futures
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from tasker.app.started import already_started
from tasker.errors import UsageError

T = TypeVar("T")

END_SECONDS = 60.0
"""Maximum wait for a cancelled coroutine of `complete` to end; its own waits are shorter."""
JOIN_SECONDS = 10.0


class LoopThread:
    """Event loop that runs coroutines for other threads between `start` and `stop`. Its thread is a daemon thread.

    A process forked in between does not have the thread: there, everything but `stop` raises an error.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._changing = threading.RLock()  # reentrant, because a signal handler may stop the loop in the middle
        """Held while a coroutine is scheduled, so that none is scheduled after the loop's end and awaited forever."""

    @property
    def running(self) -> bool:
        """True between `start` and `stop`, in the process that started the loop."""
        return self._loop is not None and self._process == os.getpid()

    def start(self) -> None:
        """Start the loop. May be called again after `stop`; raises `UsageError` before."""
        self._require_own_process()
        with self._changing:
            if self._loop is not None:
                raise already_started(self._name)
            self._process, self._loop = os.getpid(), asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine and return its result. If the wait is interrupted (Ctrl-C), the coroutine is cancelled.

        Raises `UsageError` if the loop does not run or is stopped meanwhile, and in the loop's own thread, which would
        wait for itself.
        """
        loop, future = self._loop, self._begin(coroutine)
        try:
            return future.result()
        except futures.CancelledError:
            if self._loop is loop:
                raise
            raise _stopped(self._name) from None
        except BaseException:
            future.cancel()
            raise

    def complete(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that must reach its end, and return its result.

        If the wait is interrupted, the coroutine is cancelled once and its end is awaited, unless that wait is
        interrupted, too.
        """
        running: list[asyncio.Task[T] | None] = []
        ended = threading.Event()

        async def work() -> T:
            running.append(asyncio.current_task())
            try:
                return await make()
            finally:
                ended.set()

        async def cancel() -> None:
            if not running:  # interrupted before it was given to the loop
                ended.set()
            for task in running:
                assert task
                task.cancel()

        try:  # an interrupt may come as soon as the coroutine runs, before its future is known here
            return self._begin(work()).result()
        except BaseException:
            with suppress(UsageError):  # another thread ends the loop and everything on it
                if not ended.is_set():
                    self._begin(cancel())  # cancel the task, not the future, which would end at once
                    ended.wait(END_SECONDS)
            raise

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> futures.Future[T]:
        try:
            return self._given(coroutine)
        except UsageError:
            coroutine.close()
            raise

    def _given(self, coroutine: Coroutine[Any, Any, T]) -> futures.Future[T]:
        self._require_own_process()
        if threading.current_thread() is self._thread:
            raise _own_thread()
        with self._changing:
            if self._loop is None:
                raise _not_running(self._name)
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _require_own_process(self) -> None:
        """Raise `UsageError` in a forked process. Called first: a lock held during the fork is never released there."""
        if self._loop is not None and self._process != os.getpid():
            raise _forked(self._name, self._process)

    def stop(self) -> None:
        """Stop the loop and cancel what still runs on it. May be called twice."""
        if not self.running:
            return
        with self._changing:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None:
            thread.join(JOIN_SECONDS)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _own_thread() -> UsageError:
    return UsageError(
        "this call waits for the event loop, and it comes from that loop",
        hint="in an async handler use tasker.App; in a plain function, which runs in a thread, this works",
    )


def _not_running(name: str) -> UsageError:
    return UsageError(
        f"the {name} is not started", hint="use it as `with tasker.SyncApp() as app:`, or call its start() before"
    )


def _stopped(name: str) -> UsageError:
    return UsageError(
        f"the {name} was stopped while this call was under way: what it was to do may be done, or not",
        hint="end what calls before it is stopped; see what has come of this call before you make it again",
    )


def _forked(name: str, process: int) -> UsageError:
    return UsageError(
        f"the {name} was started in process {process}, and this process is a fork of it, in which no thread runs",
        hint="start one in each process after the fork: in gunicorn from post_worker_init",
    )


A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
S = TypeVar("S")


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


def sync_iterator(
    method: Callable[Concatenate[A, P], AsyncIterable[T]],
) -> Callable[Concatenate[SyncWrapper[A], P], Generator[T]]:
    """Return the blocking form of a method that returns an asynchronous iterator, as `sync_method` does."""

    @wraps(method)
    def call(twin: SyncWrapper[A], /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        return iterate(twin._loop, method(twin._original, *args, **kwargs))

    return call


def iterate(loop: LoopThread, items: AsyncIterable[T]) -> Generator[T]:
    """Iterate over asynchronous items; a generator of them is closed with this one, or with the loop."""
    iterator = aiter(items)
    try:
        while (item := loop.wait(_next(iterator))) is not None:
            yield item[0]
    finally:
        if isinstance(iterator, AsyncGenerator) and loop.running:
            loop.wait(iterator.aclose())


async def _next(iterator: AsyncIterator[T]) -> tuple[T] | None:
    """Return the next item in a tuple, or None at the end."""
    try:
        return (await anext(iterator),)
    except StopAsyncIteration:
        return None


def with_parameters_of(
    made: Callable[P, object],
) -> Callable[[Callable[Concatenate[S, ...], None]], Callable[Concatenate[S, P], None]]:
    """Decorate an `__init__` that passes all arguments to `made`, so that it has the parameters of `made`."""

    def decorate(init: Callable[Concatenate[S, ...], None]) -> Callable[Concatenate[S, P], None]:
        init.__wrapped__ = made.__init__  # type: ignore[attr-defined]
        return init

    return decorate
