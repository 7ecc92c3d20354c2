"""Async handlers: run inside the asyncio task of the attempt, since a task of their own would cost more."""

from __future__ import annotations

import asyncio

from tasker.execution.attempt.attempt import Attempt, AttemptCancelFlag, Ending, UnreportedEnd
from tasker.execution.attempt.call import call_async
from tasker.execution.attempt.settle import mode_mismatch, timed_out
from tasker.handlers.claims import Failure
from tasker.handlers.registry.invocation import ResolvedHandler

REPEAT_WARNING_SECONDS = 1.0
"""Seconds after which a handler that swallows its cancellation is cancelled again."""


async def run_async(attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
    """Run an async handler for at most `limit` seconds; the cancel flag cancels it."""
    watch = _Watch(attempt.cancel, limit)
    attempt.cancel.wake = watch.stop
    attempt.cancel.began = True
    try:
        ending = await call_async(attempt, handler)
    except asyncio.CancelledError:
        if watch.cancelled_from_outside():
            raise
        ending = _cancelled_itself(handler.name)
    finally:
        attempt.cancel.wake = None
        watch.close()
    await watch.take_back()
    return timed_out(limit, handler.name) if watch.expired else ending


async def refuse_plain_function(attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
    """Return the failure of a plain function that was to run on the event loop."""
    return mode_mismatch(handler.name)


class _Watch:
    """Canceller of the current task on timeout or on request, which withdraws its own cancel requests at the end.

    A library that cancels its task and never withdraws the request leaves the task's count of cancel requests higher
    for good: only requests that arrive after ours come from outside.
    """

    __slots__ = ("_before", "_cancels", "_flag", "_loop", "_start", "_task", "_timer", "expired")

    def __init__(self, flag: AttemptCancelFlag, limit: float) -> None:
        self._flag = flag
        self._loop = asyncio.get_running_loop()
        self._task = _current_task()
        self._start = self._before = self._task.cancelling()
        self._cancels = 0
        self._timer = self._loop.call_later(limit, self._expire)
        self.expired = False

    def stop(self, _: type[UnreportedEnd]) -> None:
        self._timer.cancel()
        self._cancel()

    def close(self) -> None:
        """Stop the timer and withdraw our cancel requests after the handler has returned."""
        self._timer.cancel()
        for _ in range(self._cancels):
            self._task.uncancel()
        self._cancels = 0

    def cancelled_from_outside(self) -> bool:
        """Return True when other code cancelled the task as well."""
        return self._task.cancelling() - self._cancels > self._before

    async def take_back(self) -> None:
        """Withdraw cancel requests left by the handler: they must not affect the next call in this task or its save."""
        left = self._task.cancelling() - self._start
        if left <= 0:
            return
        try:
            await asyncio.sleep(0)  # a request made in the handler's last step is raised only here
        except asyncio.CancelledError:
            if self._task.cancelling() - self._start > left:
                raise
        for _ in range(left):
            self._task.uncancel()

    def _expire(self) -> None:
        self.expired = True
        self._flag.time_is_up()
        self._cancel()

    def _cancel(self) -> None:
        if not self._cancels:
            self._before = self._task.cancelling()
        self._cancels += 1
        self._task.cancel()
        self._timer = self._loop.call_later(REPEAT_WARNING_SECONDS, self._cancel)


def _current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None, "an attempt runs inside a task"
    return task


def _cancelled_itself(handler: str) -> Failure:
    message = f"{handler} ended with CancelledError, but Tasker did not cancel it: something it awaited was cancelled"
    metadata = {"exception_type": "CancelledError"}
    return Failure(message, "handler_error", True, metadata=metadata, handler=handler)
