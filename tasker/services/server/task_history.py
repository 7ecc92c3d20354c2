"""What has happened to tasks, read again and again: one look serves all who ask at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.lifecycle.machines.task import TERMINAL
from tasker.services.listings import Happening

INTERVAL_SECONDS = 0.1
"""Between two looks of a process, however many streams are open."""
MOST_TASKS = 500
"""Tasks of one query."""


@dataclass(frozen=True, slots=True)
class TaskEvent(Happening):
    """One transition of the task or of a step, or the progress of a step: `items_processed` by its checkpoints, or what
    its handler `reported`.

    `place` is where a reader that has this event goes on; None of progress, which is not sent again.
    """

    step_uuid: str | None
    items_processed: int | None
    reported: Mapping[str, Any] | None
    place: str | None = None

    @property
    def key(self) -> tuple[str, str | None, int]:
        """What tells it from every other event of its task."""
        return self.kind, self.step_uuid, self.sort_key

    @property
    def ends(self) -> bool:
        """True for the transition with which the task ends."""
        return self.kind == "task" and self.to_state in TERMINAL


@dataclass(frozen=True, slots=True)
class _Asked:
    """One reader that waits for the next look."""

    since: datetime | None
    answer: asyncio.Future[list[TaskEvent]]


class HistoryLooks:
    """Looks at the histories of tasks for many readers. Nothing runs while nobody asks.

    A look is a task of its own: a reader that goes away in its middle is not answered, and disturbs no statement.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection
        self._asked: dict[str, list[_Asked]] = {}
        self._due = 0.0
        """By the loop's clock: when the next look may begin."""
        self._looking: asyncio.Task[None] | None = None

    async def read(self, task: str, since: datetime | None) -> list[TaskEvent]:
        """What happened to a task since then (None: from the beginning), in order; perhaps some of what was before.

        Raises what the database says.
        """
        asked = _Asked(since, asyncio.get_running_loop().create_future())
        self._asked.setdefault(task, []).append(asked)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_while_asked(), name="histories of tasks")
        return await asked.answer

    async def close(self) -> None:
        """Look no more; who waits is cancelled."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        _cancel(self._asked)
        self._asked = {}

    async def _look_while_asked(self) -> None:
        now = asyncio.get_running_loop().time
        try:
            while self._asked:
                await asyncio.sleep(max(0.0, self._due - now()))
                self._due = now() + INTERVAL_SECONDS
                await self._look()
        finally:
            self._looking = None

    async def _look(self) -> None:
        asked, self._asked = self._asked, {}
        waiting = {task: alive for task, each in asked.items() if (alive := [a for a in each if not a.answer.done()])}
        tasks = list(waiting)
        try:
            for first in range(0, len(tasks), MOST_TASKS):
                await self._answer({task: waiting[task] for task in tasks[first : first + MOST_TASKS]})
        finally:
            _cancel(waiting)

    async def _answer(self, waiting: Mapping[str, Sequence[_Asked]]) -> None:
        since = [_earliest(asked) for asked in waiting.values()]
        try:
            rows = await self._connection.execute(query("tasks", "events"), {"tasks": list(waiting), "since": since})
        except Exception as error:
            for each in _unanswered(waiting):
                each.set_exception(error)
            return
        found: dict[str, list[TaskEvent]] = {task: [] for task in waiting}
        for task, *event in rows:
            found[task].append(TaskEvent(*event))
        for task, asked in waiting.items():
            for each in _unanswered({task: asked}):
                each.set_result(found[task])


def _earliest(asked: Sequence[_Asked]) -> datetime | None:
    times = [each.since for each in asked]
    return None if None in times else min(time for time in times if time is not None)


def _unanswered(waiting: Mapping[str, Sequence[_Asked]]) -> list[asyncio.Future[list[TaskEvent]]]:
    return [each.answer for asked in waiting.values() for each in asked if not each.answer.done()]


def _cancel(waiting: Mapping[str, Sequence[_Asked]]) -> None:
    for each in _unanswered(waiting):
        each.cancel()
