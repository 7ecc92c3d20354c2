"""Calls of a handler for its locks, from the thread, event loop or child process in which it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tasker.errors import PermanentError, RetryableError, TaskerError

if TYPE_CHECKING:
    from tasker.execution.attempt.attempt import Attempt

AskForLock = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class WorkerLocks:
    """Locks of an attempt that runs in the worker's process; `loop` is the worker's event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, attempt: Attempt) -> None:
        self._attempt, self._loop = attempt, loop

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call from the handler's thread. Raises `PermanentError` on the event loop, which it would block."""
        if _running_loop() is self._loop:
            raise PermanentError(
                "a lock must not block the event loop",
                hint="write `async with context.lock(...)`, and `await lock.arenew()`",
            )
        return self._started(action, fields).result()

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call from the worker's event loop, or from one of the handler's own."""
        if asyncio.get_running_loop() is self._loop:
            return await self._attempt.writes.lock(self._attempt, action, fields)
        return await asyncio.wrap_future(self._started(action, fields))

    def _started(self, action: str, fields: Mapping[str, Any]) -> Future[Mapping[str, Any]]:
        call = self._attempt.writes.lock(self._attempt, action, fields)
        return asyncio.run_coroutine_threadsafe(call, self._loop)


class ChildLocks:
    """Locks of an attempt that runs in a child process: `send` asks its parent, `answered` gets the answers."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._send, self._numbers = send, count()
        self._waiting: dict[int, SimpleQueue[Mapping[str, Any]]] = {}
        self.current: Any = None
        """Identifier of the call that runs."""

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the parent and wait. Raises `RetryableError` if it cannot reach the database."""
        number = next(self._numbers)
        queue = self._waiting[number] = SimpleQueue[Mapping[str, Any]]()
        asked = {"number": number, "action": action, "fields": fields}
        self._send({"call": self.current, "type": "lock", "fields": asked})
        answer = queue.get()
        if "problem" in answer:
            raise RetryableError(f"the lock {fields['name']!r}: {answer['problem']}")
        return answer

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask in a thread: the event loop is the handler's own."""
        return await asyncio.to_thread(self.call, action, fields)

    def answered(self, number: int, answer: Mapping[str, Any]) -> None:
        """Pass an answer of the parent on to the thread that waits for it."""
        self._waiting.pop(number).put(answer)


async def answer_child(ask: AskForLock, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a child's request for a lock as a message."""
    try:
        answer: Mapping[str, Any] = await ask(asked["action"], asked["fields"])
    except TaskerError as error:
        answer = {"problem": str(error)}
    return {"lock": asked["number"], "answer": answer}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
