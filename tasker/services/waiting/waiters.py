"""Waiting for tasks to end: told by the worker of this process or by notification, else by one query for all of them.

A notification is a hint: what it names is looked at before whoever waits goes on, by who reads it then anyway if
that shows whether it has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tasker.contracts.backoff import BackoffPolicy
from tasker.db.queries import query
from tasker.errors import DatabaseError, DuplicateTask, TaskerError
from tasker.services.submitting.submission import SubmissionResult
from tasker.services.tasks import not_found
from tasker.services.waiting.answered import retry_through_outage
from tasker.services.waiting.end_listeners import Ask, EndListener, Heard
from tasker.services.waiting.refusals import not_ended, stopped

T = TypeVar("T")
REGISTER = "select tasker.register_waiter_v1(%(args)s::jsonb)"
REMEMBERED = 10_000
LOOKS = BackoffPolicy(0.02, 0.5)
"""Seconds between two looks at what somebody waits for."""
NOTIFIED = BackoffPolicy(0.5, 5.0)
"""The same while all ends are told by notification: one is lost when a process dies between an end and its telling."""
MOST_REGISTERED = 500
"""How many tasks are registered for in one statement."""
STATE_SECONDS = 2.0


class WaiterRegistration(NamedTuple):
    """A submission that is about to begin: who is told of its tasks' ends, and how much was missed until then."""

    waiter: str | None
    missed: int = 0


class Waiters:
    """Who waits for which task. `ask` runs a statement; with `watches` a worker of this process reports endings, so the
    first look may wait. `identity` is this program's, under which it is told what ended elsewhere; `listener` makes
    what listens, of what is to be called then."""

    def __init__(self, ask: Ask, identity: str, listener: Callable[[Heard], EndListener], *, watches: bool) -> None:
        self._ask, self._watches = ask, watches
        self.identity, self._listener = identity, listener(self.heard)
        self._told: set[str] = set()
        """Tasks whose ends are told to this program."""
        self._named: set[str] = set()
        """Waited for, and said to have ended."""
        self._all, self._fresh, self._new, self._closed = False, False, False, False
        self._missed = 0
        """How often some ends may have been missed."""
        self._due = 0.0
        """By the loop's clock: when to look at all of them again."""
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}
        self._looking: set[asyncio.Future[bool]] = set()
        """Those who look by themselves, for whom False means: it is said to have ended."""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._changed = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    def ended(self, task_uuid: str) -> None:
        """The task has ended."""
        self._told.discard(task_uuid)
        self._ended[task_uuid] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        for future in self._waiting.pop(task_uuid, ()):
            if not future.done():
                future.set_result(True)

    def recheck(self) -> None:
        """Something may have ended elsewhere, and nothing was heard of it."""
        self._told &= self._waiting.keys()
        self._missed += 1
        self._all = True
        self._changed.set()

    def heard(self, tasks: Sequence[str]) -> None:
        """These tasks are said to have ended; none: some may have, and it was not heard. What nobody waits for yet is
        looked at when somebody does."""
        if not tasks:
            self.recheck()
        for task_uuid in tasks:
            if task_uuid in self._waiting:
                self._name(task_uuid)
            else:
                self.ended(task_uuid)

    def _name(self, task_uuid: str) -> None:
        waiting = self._waiting[task_uuid]
        for future in (each for each in waiting & self._looking if not each.done()):
            future.set_result(False)
        if waiting - self._looking:
            self._named.add(task_uuid)
            self._changed.set()

    def register(self, awaited: bool) -> WaiterRegistration:
        """Who is to be told of the ends of tasks that are about to be submitted; nobody, when they are not `awaited`,
        or this program would not hear it."""
        if not (awaited and self._listener.useful):
            return WaiterRegistration(None)
        self._listener.open()
        if not self._waiting:
            self._listener.rest()
        return WaiterRegistration(self.identity, self._missed)

    def submitted(self, telling: WaiterRegistration, answers: Iterable[SubmissionResult | DuplicateTask]) -> None:
        """The ends of those that were created are told, unless some may have been missed since their submission began:
        then whoever waits looks at once."""
        if len(self._told) > REMEMBERED:
            self._told &= self._waiting.keys()
        if telling.waiter is not None and telling.missed == self._missed:
            self._told.update(each.task_uuid for each in answers if isinstance(each, SubmissionResult) and each.created)

    async def wait(self, task_uuid: str, timeout: float | None = None) -> None:
        """Return once the task has ended. Raises `TaskNotFound`, in time `TimeoutError`, when closed `UsageError`."""
        await self.read(task_uuid, _nothing, timeout)

    async def read(
        self,
        task_uuid: str,
        ask: Callable[[], Awaitable[T]],
        timeout: float | None = None,
        *,
        shows_end: Callable[[T], bool] | None = None,
    ) -> T:
        """What `ask` says of the task once it has ended, asked again while the database is away. Raises as `wait`.

        `shows_end` tells by it whether the task has ended: then it is read when that is said, and not looked at before.
        A task that has ended is read however short the `timeout` is.
        """
        try:
            async with asyncio.timeout(timeout) as limit:
                while True:
                    known = await retry_through_outage(lambda: self._wait(task_uuid, looks=shows_end is not None))
                    found = await retry_through_outage(ask)
                    if not known and shows_end is not None and shows_end(found):
                        self.ended(task_uuid)
                        known = True
                    if known:
                        return found
        except TimeoutError:
            if not limit.expired():
                raise
        state, ended = await self._state(task_uuid)
        if ended:
            return await ask()
        raise not_ended(task_uuid, timeout, state)

    async def _wait(self, task_uuid: str, *, looks: bool) -> bool:
        """Return when the task has ended; with `looks` also when that is said, which is False."""
        if self._closed:
            raise stopped(task_uuid)
        if task_uuid in self._ended and await self._is_final(task_uuid):
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(task_uuid, set()).add(future)
        if looks:
            self._looking.add(future)
        if task_uuid not in self._told or not self._listener.is_listening:
            self._look_soon(task_uuid)
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

    def _look_soon(self, task_uuid: str) -> None:
        """Nobody tells of this task's end, but perhaps a worker of this process, which the first look may wait for."""
        latest = asyncio.get_running_loop().time() + LOOKS.longest
        if not self._watches:
            self._new = True
            self._named.add(task_uuid)
            self._changed.set()
        elif self._due > latest:
            self._due = latest
            self._changed.set()

    async def close(self) -> None:
        """Stop looking and listening. Whoever waits still gets a `UsageError`: nobody would ever tell them."""
        self._closed = True
        for task_uuid in list(self._waiting):
            self._refuse(task_uuid, stopped(task_uuid))
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        await self._listener.close()

    async def _poll(self) -> None:
        """Look when something is heard, and with growing pauses, while somebody waits."""
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
        return NOTIFIED if self._listener.is_listening and self._waiting.keys() <= self._told else LOOKS

    async def _turn(self, pause: float, *, due: bool) -> bool:
        """Look at all that is waited for when it is `due` or something was missed, else at what was named or is new;
        True for all. What is named does not put off the look at all: one notice may be lost among many that come."""
        everything, named, new, self._fresh = self._all or due, self._named, self._new, self._all
        self._all, self._new, self._named = False, False, set()
        self._changed.clear()
        if everything or new:
            with contextlib.suppress(DatabaseError):
                await self._register(pause)
        if new and not self._are_told(named):
            everything = self._fresh = True
        try:
            await self._look(list(self._waiting if everything else named))
        except DatabaseError:
            self._due = min(self._due, asyncio.get_running_loop().time() + self._pauses.first)
        return everything

    def _are_told(self, tasks: set[str]) -> bool:
        return self._listener.is_listening and tasks & self._waiting.keys() <= self._told

    def _next(self, pause: float) -> float:
        """The pause after a look at all; short again when something was missed or is new."""
        pauses = self._pauses
        return pauses.first if self._fresh else max(pauses.first, pauses.after(pause))

    async def _register(self, pause: float) -> None:
        """Have the ends of tasks told that were submitted without that: not where they are likely to end soon here."""
        untold = list(self._waiting.keys() - self._told) if self._listener.useful else []
        if self._watches and (pause < LOOKS.longest or len(untold) > MOST_REGISTERED):
            return
        for first in range(0, len(untold), MOST_REGISTERED):
            args = {"waiter": self.identity, "tasks": untold[first : first + MOST_REGISTERED]}
            ((answer,),) = await self._ask(REGISTER, {"args": json.dumps(args)})
            self._told.update(answer["told"])

    async def _is_final(self, task_uuid: str) -> bool:
        """An operator may have opened a failed task again."""
        if (task_uuid, True) in await self._ask(query("tasks", "ended"), {"tasks": _array([task_uuid])}):
            return True
        self._ended.pop(task_uuid, None)
        return False

    async def _look(self, tasks: Sequence[str]) -> None:
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
        """How the task stands, in words, and whether it has ended. Raises `TaskNotFound`.

        Whoever gave up waiting is not kept for long by a database that is away.
        """
        try:
            async with asyncio.timeout(STATE_SECONDS):
                rows = await self._ask(query("tasks", "state"), {"task": task_uuid})
        except (DatabaseError, TimeoutError):
            return "its state cannot be read now", False
        for state, ended in rows:
            return f"it is {state}", ended
        raise not_found(task_uuid)


def _array(tasks: Sequence[str]) -> str:
    """As the database reads it: of a list the driver looks at each item, and thousands may be waited for."""
    return f"{{{','.join(tasks)}}}"


async def _nothing() -> None:
    """What is read of a task of which only the end counts."""
