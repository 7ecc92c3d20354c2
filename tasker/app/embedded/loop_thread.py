"""An event loop in a thread of its own, for programs that are not asynchronous and for notebooks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from contextlib import suppress
from typing import Any, TypeVar

from tasker.app.embedded.started import already_started
from tasker.errors import UsageError

T = TypeVar("T")

END_SECONDS = 60.0
"""How long what is to be completed may take for its end when who waits is interrupted; its own waits are shorter."""
JOIN_SECONDS = 10.0


class LoopThread:
    """Runs coroutines for other threads between `start` and `stop`. The thread does not keep the program alive.

    A process that was forked in between has no such thread: everything but `stop` is refused there.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._changing = threading.RLock()  # a handler of a signal may stop it in the middle
        """Held while something is given to the loop, so that nothing comes behind its end and is waited for in vain."""

    @property
    def running(self) -> bool:
        """True between `start` and `stop`, in the process that started it."""
        return self._loop is not None and self._process == os.getpid()

    def start(self) -> None:
        """Begin. May be called again after `stop`; raises `UsageError` before."""
        self._require_own_process()
        with self._changing:
            if self._loop is not None:
                raise already_started(self._name)
            self._process, self._loop = os.getpid(), asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns or raises. When waiting is interrupted (Ctrl-C), the coroutine is cancelled.

        Raises `UsageError` when the loop does not run or is stopped meanwhile, and in its own thread, which cannot wait
        for itself.
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
        """As `wait`, for what must come to its end: when waiting is interrupted, it is cancelled once, and its end is
        waited for, unless that is interrupted, too."""
        running: list[asyncio.Task[T] | None] = []

        async def work() -> T:
            running.append(asyncio.current_task())
            return await make()

        async def cancel() -> None:
            for task in running:
                assert task
                task.cancel()

        future = self._begin(work())
        try:
            return future.result()
        except BaseException:
            if not future.done():
                with suppress(UsageError):  # somebody else ends the loop, and all on it
                    self._begin(cancel())  # and not the future, which would have ended then
                futures.wait([future], END_SECONDS)
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
        """First, as a lock that was held when the process was forked is never released in the new one."""
        if self._loop is not None and self._process != os.getpid():
            raise _forked(self._name, self._process)

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled. May be called twice."""
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
        f"the {name} was started in process {process}, and this is a copy of it, in which nothing runs",
        hint="start one in each process, behind the fork: in gunicorn from post_worker_init",
    )
