"""Waiting for tasks to end: reported by this process's worker or by notification, else found by one query for all.

A notification is not trusted alone: a task that it names is read before the wait ends. If the caller's own read shows
whether the task has ended, that read is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tasker.clock import BackoffPolicy
from tasker.db.sql_files import query
from tasker.errors import DatabaseError, DuplicateTask, TaskerError
from tasker.services.submission.submit import SubmissionResult
from tasker.services.tasks.end_listeners import Ask, EndListener, Heard, not_ended, retry_through_outage, stopped
from tasker.services.tasks.read import not_found

T = TypeVar("T")
REGISTER = "select tasker.register_waiter_v1(%(args)s::jsonb)"
REMEMBERED = 10_000
POLLS = BackoffPolicy(0.02, 0.5)
"""Seconds between two polls of awaited tasks."""
NOTIFIED = BackoffPolicy(0.5, 5.0)
"""Seconds between two polls while all ends are notified: a process may die between an end and its notification."""
MOST_REGISTERED = 500
"""Maximum number of tasks registered in one statement."""
STATE_SECONDS = 2.0


class WaiterRegistration(NamedTuple):
    """Registration before a submission: the program to notify of its tasks' ends, and the count of missed ends so
    far."""

    waiter: str | None
    missed: int = 0


class Waiters:
    """Waits of this program for tasks.

    `ask` runs a statement. With `watches` a worker of this process reports ends, so the first poll may be delayed.
    `identity` is this program's id for notifications of ends elsewhere; `listener` creates the listener, given the
    callback for its notifications.
    """

    def __init__(self, ask: Ask, identity: str, listener: Callable[[Heard], EndListener], *, watches: bool) -> None:
        self._ask, self._watches = ask, watches
        self.identity, self._listener = identity, listener(self.on_notification)
        self._notified: set[str] = set()
        """Tasks whose ends are notified to this program."""
        self._named: set[str] = set()
        """Awaited tasks that are reported to have ended, but not yet read."""
        self._all, self._fresh, self._new, self._closed = False, False, False, False
        self._missed = 0
        """Number of times that notifications may have been missed."""
        self._due = 0.0
        """Time of the next poll of all awaited tasks, by the loop's clock."""
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}
        self._looking: set[asyncio.Future[bool]] = set()
        """Waits whose caller reads the task itself; the result False means that the end was reported, but not yet
        read."""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._changed = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    def ended(self, task_uuid: str) -> None:
        """Complete the waits for this task, which has ended."""
        self._notified.discard(task_uuid)
        self._ended[task_uuid] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        for future in self._waiting.pop(task_uuid, ()):
            if not future.done():
                future.set_result(True)

    def recheck(self) -> None:
        """Poll all awaited tasks, because some ends elsewhere may have been missed."""
        self._notified &= self._waiting.keys()
        self._missed += 1
        self._all = True
        self._changed.set()

    def on_notification(self, tasks: Sequence[str]) -> None:
        """Handle a notification of ended tasks; without tasks, some ends may have been missed.

        Tasks for which no wait exists yet are remembered, and read when a wait begins.
        """
        if not tasks:
            self.recheck()
        for task_uuid in tasks:
            if task_uuid in self._waiting:
                self._name(task_uuid)
            else:
                self.ended(task_uuid)

    def _name(self, task_uuid: str) -> None:
        waiting = self._waiting[task_uuid]
        for future in (waiter for waiter in waiting & self._looking if not waiter.done()):
            future.set_result(False)
        if waiting - self._looking:
            self._named.add(task_uuid)
            self._changed.set()

    def register(self, awaited: bool) -> WaiterRegistration:
        """Return the program to notify of the ends of tasks about to be submitted.

        It is None if the tasks are not `awaited`, or if this program would not receive notifications.
        """
        if not (awaited and self._listener.useful):
            return WaiterRegistration(None)
        self._listener.open()
        if not self._waiting:
            self._listener.rest()
        return WaiterRegistration(self.identity, self._missed)

    def submitted(self, registration: WaiterRegistration, answers: Iterable[SubmissionResult | DuplicateTask]) -> None:
        """Note that the ends of the created tasks will be notified.

        If some may have been missed since the submission began, they are not noted, so a wait polls them at once.
        """
        if len(self._notified) > REMEMBERED:
            self._notified &= self._waiting.keys()
        if registration.waiter is not None and registration.missed == self._missed:
            self._notified.update(
                answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult) and answer.created
            )

    async def wait(self, task_uuid: str, timeout: float | None = None) -> None:
        """Return once the task has ended. Raises `TaskNotFound`, `TimeoutError`, and `UsageError` if closed
        meanwhile."""
        await self.read(task_uuid, _nothing, timeout)

    async def read(
        self,
        task_uuid: str,
        ask: Callable[[], Awaitable[T]],
        timeout: float | None = None,
        *,
        shows_end: Callable[[T], bool] | None = None,
    ) -> T:
        """Return the result of `ask` once the task has ended, retried while the database is away. Raises as `wait`.

        `shows_end` returns True if the result shows that the task has ended; with it the task is not polled before, but
        read with `ask` once its end is reported. A task that has ended is read however short the `timeout` is.
        """
        try:
            async with asyncio.timeout(timeout) as limit:
                while True:
                    known = await retry_through_outage(lambda: self._wait(task_uuid, looks=shows_end is not None))
                    result = await retry_through_outage(ask)
                    if not known and shows_end is not None and shows_end(result):
                        self.ended(task_uuid)
                        known = True
                    if known:
                        return result
        except TimeoutError:
            if not limit.expired():
                raise
        state, ended = await self._state(task_uuid)
        if ended:
            return await ask()
        raise not_ended(task_uuid, timeout, state)

    async def _wait(self, task_uuid: str, *, looks: bool) -> bool:
        """Return True when the task has ended; with `looks`, return False as soon as its end is reported."""
        if self._closed:
            raise stopped(task_uuid)
        if task_uuid in self._ended and await self._is_final(task_uuid):
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(task_uuid, set()).add(future)
        if looks:
            self._looking.add(future)
        if task_uuid not in self._notified or not self._listener.is_listening:
            self._poll_soon(task_uuid)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll(), name="waiters")
        try:
            return await future
        finally:
            self._looking.discard(future)
            waiting = self._waiting.get(task_uuid)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiting[task_uuid]

    def _poll_soon(self, task_uuid: str) -> None:
        """Schedule a poll of a task whose end is not notified.

        It happens at once, or within `LOOKS.longest` if this process has a worker, which may report the end before.
        """
        latest = asyncio.get_running_loop().time() + POLLS.longest
        if not self._watches:
            self._new = True
            self._named.add(task_uuid)
            self._changed.set()
        elif self._due > latest:
            self._due = latest
            self._changed.set()

    async def close(self) -> None:
        """Stop polling and listening. Remaining waits fail with `UsageError`, because nothing would report the ends."""
        self._closed = True
        for task_uuid in list(self._waiting):
            self._refuse(task_uuid, stopped(task_uuid))
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        await self._listener.close()

    async def _poll(self) -> None:
        """Poll after notifications and with growing pauses, while there are waits."""
        self._listener.open()
        now = asyncio.get_running_loop().time
        pause = self._pauses.first
        self._due = now() + pause
        try:
            while self._waiting:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._due - now())):
                        await self._changed.wait()
                if await self._turn(pause, due=now() >= self._due):
                    pause = self._next(pause)
                    self._due = now() + pause
        finally:
            self._listener.rest()

    @property
    def _pauses(self) -> BackoffPolicy:
        return NOTIFIED if self._listener.is_listening and self._waiting.keys() <= self._notified else POLLS

    async def _turn(self, pause: float, *, due: bool) -> bool:
        """Poll all awaited tasks if `due` or if ends may have been missed, else only those reported or new. Return True
        for all.

        Reported tasks do not postpone the poll of all: one notification may be lost among many that arrive.
        """
        everything, named, new, self._fresh = self._all or due, self._named, self._new, self._all
        self._all, self._new, self._named = False, False, set()
        self._changed.clear()
        if everything or new:
            with contextlib.suppress(DatabaseError):
                await self._register(pause)
        if new and not self._are_notified(named):
            everything = self._fresh = True
        try:
            await self._read_ended(list(self._waiting if everything else named))
        except DatabaseError:
            self._due = min(self._due, asyncio.get_running_loop().time() + self._pauses.first)
        return everything

    def _are_notified(self, tasks: set[str]) -> bool:
        return self._listener.is_listening and tasks & self._waiting.keys() <= self._notified

    def _next(self, pause: float) -> float:
        """Return the pause after a poll of all; it is short again after missed notifications or new waits."""
        pauses = self._pauses
        return pauses.first if self._fresh else max(pauses.first, pauses.after(pause))

    async def _register(self, pause: float) -> None:
        """Register for notifications of tasks submitted without them, unless they are likely to end soon in this
        process."""
        unregistered = list(self._waiting.keys() - self._notified) if self._listener.useful else []
        if self._watches and (pause < POLLS.longest or len(unregistered) > MOST_REGISTERED):
            return
        for first in range(0, len(unregistered), MOST_REGISTERED):
            args = {"waiter": self.identity, "tasks": unregistered[first : first + MOST_REGISTERED]}
            ((answer,),) = await self._ask(REGISTER, {"args": json.dumps(args)})
            self._notified.update(answer["told"])

    async def _is_final(self, task_uuid: str) -> bool:
        """Read whether the task has ended: an operator may have reopened a failed task."""
        if (task_uuid, True) in await self._ask(query("tasks", "ended"), {"tasks": _array([task_uuid])}):
            return True
        self._ended.pop(task_uuid, None)
        return False

    async def _read_ended(self, tasks: Sequence[str]) -> None:
        if tasks:
            rows = await self._ask(query("tasks", "ended"), {"tasks": _array(tasks)})
            for task_uuid, exists in rows:
                if exists:
                    self.ended(task_uuid)
                else:
                    self._refuse(task_uuid, not_found(task_uuid))

    def _refuse(self, task_uuid: str, error: TaskerError) -> None:
        for future in self._waiting.pop(task_uuid, ()):
            if not future.done():
                future.set_exception(error)

    async def _state(self, task_uuid: str) -> tuple[str, bool]:
        """Return the task's state in words, and True if it has ended. Raises `TaskNotFound`.

        The read has a short timeout, so that an unavailable database does not delay a wait that has timed out.
        """
        try:
            async with asyncio.timeout(STATE_SECONDS):
                rows = await self._ask(query("tasks", "state"), {"task": task_uuid})
        except (DatabaseError, TimeoutError):
            return "its state is unknown at the moment", False
        for state, ended in rows:
            return f"it is {state}", ended
        raise not_found(task_uuid)


def _array(tasks: Sequence[str]) -> str:
    """Return the tasks as a PostgreSQL array literal: the driver would inspect each item of a list of thousands."""
    return f"{{{','.join(tasks)}}}"


async def _nothing() -> None:
    """Read nothing, for waits that need only the end."""
