"""An event loop in a thread of its own, for programs that are not asynchronous and for notebooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tasker.errors import UsageError

T = TypeVar("T")

JOIN_SECONDS = 10.0


class LoopThread:
    """Runs coroutines for other threads between `start` and `stop`. The thread does not keep the program alive."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True between `start` and `stop`."""
        return self._loop is not None

    def start(self) -> None:
        """Begin. May be called again after `stop`."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns or raises. When waiting is interrupted (Ctrl-C), the coroutine is cancelled.

        Raises `UsageError` when the loop does not run, and in its own thread, which cannot wait for itself.
        """
        if self._loop is None or threading.current_thread() is self._thread:
            coroutine.close()
            raise _own_thread() if self._loop else _not_running(self._name)
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled. May be called twice."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
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
