"""Polling of task histories: one query serves all readers and wakes those with new events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.lifecycle.machines.task import TERMINAL
from tasker.services.listings import HistoryItem

INTERVAL_SECONDS = 0.1
"""Minimum time between two queries of a process, however many streams are open."""
LOOKS = BackoffPolicy(INTERVAL_SECONDS, 1.0)
"""Pause between two queries for one task without new events, in seconds."""
MOST_TASKS = 500
"""Tasks per query."""


@dataclass(frozen=True, slots=True)
class TaskEvent(HistoryItem):
    """Transition of the task or a step, or progress of a step.

    Progress is `items_processed` from checkpoints, or as `reported` by the handler. `place` is the position after which
    a reader of this event resumes; None for progress, which is not sent again.
    """

    step_uuid: str | None
    items_processed: int | None
    reported: Mapping[str, Any] | None
    place: str | None = None

    @property
    def key(self) -> tuple[str, str | None, int]:
        """Key that identifies the event among those of its task."""
        return self.kind, self.step_uuid, self.sort_key

    @property
    def ends(self) -> bool:
        """True for the transition with which the task ends."""
        return self.kind == "task" and self.to_state in TERMINAL


@dataclass(slots=True)
class _Asked:
    """Reader that waits for `new` events. `due` is a time of the loop's clock."""

    since: datetime | None
    new: Callable[[TaskEvent], bool] | None
    answer: asyncio.Future[list[TaskEvent]]
    due: float
    looks: int = 0

    def tell(self, found: list[TaskEvent], now: float) -> None:
        """Answer the reader if there are new events, or if it wants an answer in any case."""
        if self.answer.done():
            return
        if self.new is None or any(map(self.new, found)):
            self.answer.set_result(found)
        else:
            self.looks += 1
            self.due = now + LOOKS.pause(self.looks)


class HistoryPoller:
    """Poller of task histories for many readers. It runs only while there are readers.

    A query runs in its own asyncio task: a reader that leaves during it is not answered and does not cancel the
    statement.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection
        self._asked: dict[str, list[_Asked]] = {}
        self._due = 0.0
        """Earliest time of the next query, by the loop's clock."""
        self._called = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def read(self, task: str) -> list[TaskEvent]:
        """Return the events of a task, in order. Raises the database's errors."""
        return await self._ask(task, None, None, 0.0)

    def news(self, task: str, since: datetime, new: Callable[[TaskEvent], bool]) -> asyncio.Future[list[TaskEvent]]:
        """Return a future of the task's events since then, in order, which completes when one of them is `new`.

        It may include some earlier events. Cancel the future to stop waiting. It fails with the database's errors.
        """
        return self._ask(task, since, new, asyncio.get_running_loop().time() + LOOKS.first)

    async def close(self) -> None:
        """Stop polling; waiting readers are cancelled."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        _cancel(self._asked)
        self._asked = {}

    def _ask(
        self, task: str, since: datetime | None, new: Callable[[TaskEvent], bool] | None, due: float
    ) -> asyncio.Future[list[TaskEvent]]:
        asked = _Asked(since, new, asyncio.get_running_loop().create_future(), due)
        self._asked.setdefault(task, []).append(asked)
        self._called.set()
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_while_asked(), name="histories of tasks")
        return asked.answer

    async def _look_while_asked(self) -> None:
        now = asyncio.get_running_loop().time
        try:
            while self._asked:
                await asyncio.sleep(self._due - now())
                self._due = now() + INTERVAL_SECONDS
                await self._poll_once(now())
                await self._rest(now())
        finally:
            self._looking = None

    async def _rest(self, now: float) -> None:
        """Wait until a query is due or a reader asks."""
        self._called.clear()
        due = min((each.due for asked in self._asked.values() for each in asked), default=now)
        with suppress(TimeoutError):
            async with asyncio.timeout(due - now):
                await self._called.wait()

    async def _poll_once(self, now: float) -> None:
        """Query the tasks that are due; all readers of these tasks are answered."""
        due = [task for task, asked in self._asked.items() if any(each.due <= now for each in asked)]
        looked = {task: self._asked.pop(task) for task in due}
        waiting = {task: alive for task, asked in looked.items() if (alive := _alive(asked))}
        tasks = list(waiting)
        try:
            for first in range(0, len(tasks), MOST_TASKS):
                await self._answer({task: waiting[task] for task in tasks[first : first + MOST_TASKS]})
        except BaseException:
            _cancel(waiting)
            raise
        for task, asked in waiting.items():
            if alive := _alive(asked):
                self._asked.setdefault(task, []).extend(alive)

    async def _answer(self, waiting: Mapping[str, Sequence[_Asked]]) -> None:
        since = [_earliest(asked) for asked in waiting.values()]
        try:
            rows = await self._connection.execute(query("tasks", "events"), {"tasks": list(waiting), "since": since})
        except Exception as error:
            for each in _unanswered(waiting):
                each.answer.set_exception(error)
            return
        found: dict[str, list[TaskEvent]] = {task: [] for task in waiting}
        for task, *event in rows:
            found[task].append(TaskEvent(*event))
        now = asyncio.get_running_loop().time()
        for task, asked in waiting.items():
            for each in asked:
                each.tell(found[task], now)


def _earliest(asked: Sequence[_Asked]) -> datetime | None:
    times = [each.since for each in asked]
    return None if None in times else min(time for time in times if time is not None)


def _alive(asked: Iterable[_Asked]) -> list[_Asked]:
    return [each for each in asked if not each.answer.done()]


def _unanswered(waiting: Mapping[str, Sequence[_Asked]]) -> list[_Asked]:
    return [each for asked in waiting.values() for each in _alive(asked)]


def _cancel(waiting: Mapping[str, Sequence[_Asked]]) -> None:
    for each in _unanswered(waiting):
        each.answer.cancel()
