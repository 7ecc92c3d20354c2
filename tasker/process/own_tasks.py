"""An event loop on which a handler cannot cancel the tasks of its process: `asyncio.all_tasks()` lists them, too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, ClassVar, TypeVar

from tasker.handlers.claims import Claim
from tasker.logging.current_step import running
from tasker.logging.lines import ids_of, log_line

T = TypeVar("T")
_log = logging.getLogger("tasker.process")


def run_guarded(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=_guarded_loop) as runner:
        return runner.run(main)


def _guarded_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(_task)
    return loop


def _task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None, **options: Any
) -> asyncio.Task[Any]:
    """A task of the process, or, made by a handler, one that handlers may cancel."""
    claim = running.get() if context is None else context.get(running)
    kind = _OwnTask if claim is None else asyncio.Task
    return kind(work, loop=loop, context=context, **options)


class _OwnTask(asyncio.Task[T]):
    _logged: ClassVar[Claim | None] = None

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task, unless a handler asks for it."""
        claim = running.get()
        if claim is None:
            return super().cancel(msg)
        if claim is not _OwnTask._logged:  # one line for all the tasks that it lists
            _OwnTask._logged = claim
            error = "a handler tried to cancel asyncio tasks of its process"
            log_line(_log, logging.WARNING, "task_not_cancelled", {**ids_of(claim), "error": error})
        return False
