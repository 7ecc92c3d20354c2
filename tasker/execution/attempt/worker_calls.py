"""Calls of a handler to its worker (`HandlerCalls`), in the process of the worker. For others see `modes.asking`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from tasker.errors import PermanentError, UsageError

if TYPE_CHECKING:
    from tasker.execution.attempt.attempt import Attempt


class WorkerCalls:
    """Calls of an attempt that runs in the worker's process; `loop` is the worker's event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, attempt: Attempt) -> None:
        self._attempt, self._loop = attempt, loop

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call from the handler's thread. Raises an error on the event loop, which it would block."""
        if _running_loop() is self._loop:
            if action == "children_page":
                raise UsageError(
                    f"the children of {fields['step']!r} cannot be read with `for` here",
                    hint="write `async for` in an async handler",
                )
            raise PermanentError(
                "a lock must not block the event loop",
                hint="write `async with context.lock(...)`, and `await lock.arenew()`",
            )
        return self._started(action, fields).result()

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call from the worker's event loop, or from one of the handler's own."""
        if asyncio.get_running_loop() is self._loop:
            return await written(self._attempt, action, fields)
        return await asyncio.wrap_future(self._started(action, fields))

    def _started(self, action: str, fields: Mapping[str, Any]) -> Future[Mapping[str, Any]]:
        return asyncio.run_coroutine_threadsafe(written(self._attempt, action, fields), self._loop)


def written(attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Coroutine[Any, Any, Mapping[str, Any]]:
    """Perform a call of the attempt's handler on the event loop of the worker. Raises `UsageError`."""
    if action != "children_page":
        return attempt.writes.lock(attempt, action, fields)
    starting = [step.name for step in attempt.plan.steps if step.type.starts_children]
    if fields["step"] not in starting:
        raise UsageError(
            f"context.children: {attempt.plan.name} has no step {fields['step']!r:.80} that starts child tasks; "
            f"steps with `type: task`: {', '.join(starting) or 'none'}"
        )
    return attempt.writes.children(attempt, fields)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
