"""Event stream of one task until it has ended, which a reader can interrupt and resume."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.errors import UsageError
from tasker.services.server.task_history import HistoryPoller, TaskEvent
from tasker.services.tasks import checked, not_found

LATE = timedelta(seconds=5)
"""Maximum delay between the time in a transaction's rows and its commit; later rows are read at the task's end."""
PLACE = re.compile(r"([0-9]{1,16})-([0-9]{1,9})")
RESENT = timedelta(seconds=60)
"""Period for which events are sent again if it is uncertain what the reader has."""


class TaskEvents:
    """Event streams of tasks. `finished(task)` returns when a task has ended."""

    def __init__(self, connection: Statements, finished: Callable[[str], Awaitable[None]]) -> None:
        self._looks, self._finished = HistoryPoller(connection), finished

    async def follow(
        self, task_uuid: str, place: str | None = None, *, quiet_seconds: float = 15.0
    ) -> AsyncGenerator[TaskEvent | None] | None:
        """Stream all events of a task from the beginning, or after a `place`, until it has ended.

        Yields None when nothing happened for `quiet_seconds`. No event is left out; one may come twice if a commit was
        late just when the reader was interrupted. Returns None instead of an iterator if there are no events left and
        none to expect. Raises `TaskNotFound`, and `UsageError` for an invalid place.
        """
        position = _Position.parse(place)
        history = await self._looks.read(checked(task_uuid))
        if not history:
            raise not_found(task_uuid)
        reader = _Reader(history, position)
        first = reader.begin()
        return self._follow(checked(task_uuid), reader, first, quiet_seconds) if first or not reader.ended else None

    async def close(self) -> None:
        """Stop reading; open streams are cancelled."""
        await self._looks.close()

    async def _follow(
        self, task: str, reader: _Reader, first: Sequence[TaskEvent], quiet_seconds: float
    ) -> AsyncGenerator[TaskEvent | None]:
        ended, news = asyncio.ensure_future(self._finished(task)), self._news(task, reader)
        try:
            for event in first:
                yield event
            while not reader.ended:
                either: list[asyncio.Future[Any]] = [ended, news]
                await asyncio.wait(either, timeout=quiet_seconds, return_when=asyncio.FIRST_COMPLETED)
                if not (ended.done() or news.done()):
                    yield None
                    continue
                for event in reader.news(await (self._looks.read(task) if ended.done() else news)):
                    yield event
                _let_go(news)
                news = self._news(task, reader)
                if ended.done() and not reader.ended:  # an operator has reopened the task
                    ended = asyncio.ensure_future(self._finished(task))
        finally:
            _let_go(news)
            ended.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await ended

    def _news(self, task: str, reader: _Reader) -> asyncio.Future[list[TaskEvent]]:
        return self._looks.news(task, reader.latest - LATE, reader.lacks)


def _let_go(news: asyncio.Future[list[TaskEvent]]) -> None:
    """Drop the future, retrieving an exception so that asyncio does not log it."""
    if not news.cancel() and not news.cancelled():
        news.exception()


@dataclass(frozen=True, slots=True)
class _Position:
    """Number of transitions that a reader has, and the time of the latest one in microseconds."""

    micros: int
    count: int

    @classmethod
    def parse(cls, place: str | None) -> _Position:
        if not place:
            return cls(0, 0)
        if found := PLACE.fullmatch(place):
            return cls(int(found[1]), int(found[2]))
        raise UsageError(f"{place!r:.60} is not a valid event id", hint="send the last received id unchanged")


class _Reader:
    """Record of the events sent to one reader."""

    def __init__(self, history: Sequence[TaskEvent], position: _Position) -> None:
        self._history = history
        self._sent: set[tuple[str, str | None, int]] = set()
        self._micros = self._count = 0
        self._begin = position
        self.latest = datetime.fromtimestamp(0, UTC)
        self.ended = False

    def begin(self) -> list[TaskEvent]:
        """Return the events of the history that the reader lacks."""
        transitions = [event for event in self._history if event.kind != "progress"]
        had = transitions[: self._begin.count]
        if self._begin.count and (not had or max(map(_micros, had)) != self._begin.micros):
            resent = self._begin.micros - RESENT // timedelta(microseconds=1)
            had = [event for event in had if _micros(event) < resent]
        for event in had:
            self._note(event)
        return self.news(self._history)

    def news(self, found: Sequence[TaskEvent]) -> list[TaskEvent]:
        """Return the events not sent yet, with their places."""
        return [self._note(event) for event in found if self.lacks(event)]

    def lacks(self, event: TaskEvent) -> bool:
        """Return True if the event was not sent yet."""
        return event.key not in self._sent

    def _note(self, event: TaskEvent) -> TaskEvent:
        self._sent.add(event.key)
        self.latest = max(self.latest, event.at)
        if event.kind == "progress":
            return event
        self._count, self._micros = self._count + 1, max(self._micros, _micros(event))
        if event.kind == "task":
            self.ended = event.ends
        return replace(event, place=f"{self._micros}-{self._count}")


def _micros(event: TaskEvent) -> int:
    return (event.at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
