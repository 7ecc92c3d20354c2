"""Waiting for tasks to end: told by the worker of this process, else by one query for all that are waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from tasker.contracts.backoff import Backoff
from tasker.db.queries import query
from tasker.errors import DatabaseError
from tasker.services.engine.guarded_connection import is_outage
from tasker.services.tasks import not_found

T = TypeVar("T")
REMEMBERED = 10_000
LOOKS = Backoff(0.02, 0.5)
"""Seconds between two looks at what somebody waits for."""
STATE_SECONDS = 2.0
Ask = Callable[[str, Mapping[str, Any]], Awaitable[list[tuple[Any, ...]]]]


class Waiters:
    """Who waits for which task. `ask` runs a statement; with `watches` a worker of this process reports endings, so the
    first look may wait."""

    def __init__(self, ask: Ask, *, watches: bool) -> None:
        self._ask, self._watches = ask, watches
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._changed = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    def ended(self, task_uuid: str) -> None:
        """The task has ended."""
        self._ended[task_uuid] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        for future in self._waiting.pop(task_uuid, ()):
            if not future.done():
                future.set_result(None)

    def look_again(self) -> None:
        """Something may have ended elsewhere."""
        self._changed.set()

    async def wait(self, task_uuid: str, timeout: float | None = None) -> None:
        """Return once the task has ended. Raises `TaskNotFound`, and after `timeout` seconds `TimeoutError`."""
        async with self._at_most(timeout, task_uuid):
            await answered(lambda: self._wait(task_uuid))

    async def read(self, task_uuid: str, ask: Callable[[], Awaitable[T]], timeout: float | None = None) -> T:
        """What `ask` says of the task once it has ended, asked again while the database is away. Raises as `wait`."""
        async with self._at_most(timeout, task_uuid):
            await answered(lambda: self._wait(task_uuid))
            return await answered(ask)

    @contextlib.asynccontextmanager
    async def _at_most(self, timeout: float | None, task_uuid: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(timeout) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            state = await self._state(task_uuid)
            raise TimeoutError(
                f"task {task_uuid} has not ended after {timeout:g} s and goes on: {state}. "
                f"To wait on: wait({task_uuid!r}), or in a shell: tasker task watch {task_uuid}"
            ) from None

    async def _wait(self, task_uuid: str) -> None:
        if task_uuid in self._ended and await self._is_final(task_uuid):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(task_uuid, set()).add(future)
        if not self._watches:
            self._changed.set()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll(), name="waiters")
        try:
            await future
        finally:
            waiting = self._waiting.get(task_uuid)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiting[task_uuid]

    async def close(self) -> None:
        """Stop looking."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    async def _poll(self) -> None:
        """Look with growing pauses while somebody waits."""
        pause = LOOKS.first
        while self._waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            pause = LOOKS.first if self._changed.is_set() else LOOKS.after(pause)
            self._changed.clear()
            with contextlib.suppress(DatabaseError):
                await self._look()

    async def _is_final(self, task_uuid: str) -> bool:
        """An operator may have opened a failed task again."""
        if (task_uuid, True) in await self._ask(query("tasks", "ended"), {"tasks": [task_uuid]}):
            return True
        self._ended.pop(task_uuid, None)
        return False

    async def _look(self) -> None:
        if self._waiting:
            rows = await self._ask(query("tasks", "ended"), {"tasks": list(self._waiting)})
            for task_uuid, exists in rows:
                settle = self.ended if exists else self._unknown
                settle(task_uuid)

    def _unknown(self, task_uuid: str) -> None:
        for future in self._waiting.pop(task_uuid, ()):
            if not future.done():
                future.set_exception(not_found(task_uuid))

    async def _state(self, task_uuid: str) -> str:
        """How the task stands, in words; whoever gave up waiting is not kept for long by a database that is away."""
        with contextlib.suppress(DatabaseError, TimeoutError):
            async with asyncio.timeout(STATE_SECONDS):
                for state, _ in await self._ask(query("tasks", "state"), {"task": task_uuid}):
                    return f"it is {state}"
        return "its state cannot be read now"


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """What `ask` returns, asked again with growing pauses while the database is away.

    Whoever waits for a task waits through an outage; the reading behind it must not fail for its last moments: pooled
    connections that died in it, or the breaker, which lets one call at a time pass.
    """
    failures = 0
    while True:
        try:
            return await ask()
        except DatabaseError as error:
            if not (error.retryable and is_outage(error)):
                raise
        await asyncio.sleep(LOOKS.pause(failures))
        failures += 1
