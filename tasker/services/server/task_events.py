"""What happens to one task, event by event, until it has ended: for streams that can be cut and taken up again."""

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
"""A transaction may be committed so long after the time in its rows; what is later is seen at the end of the task."""
PLACE = re.compile(r"([0-9]{1,16})-([0-9]{1,9})")
RESENT = timedelta(seconds=60)
"""What is sent again when it is not certain what the reader has."""


class TaskEvents:
    """Reads the history of tasks as it grows. `finished(task)` returns when a task has ended."""

    def __init__(self, connection: Statements, finished: Callable[[str], Awaitable[None]]) -> None:
        self._looks, self._finished = HistoryPoller(connection), finished

    async def follow(
        self, task_uuid: str, place: str | None = None, *, quiet_seconds: float = 15.0
    ) -> AsyncGenerator[TaskEvent | None] | None:
        """Everything from the beginning, or from a `place` on, until the task has ended; None where nothing happened
        for so long. An event is not left out; it may come twice when a commit was late just where the reader was cut.

        Without anything left to tell, and to expect, None in place of the iterator. Raises `TaskNotFound`, and
        `UsageError` for what is no place.
        """
        position = _Position.parse(place)
        history = await self._looks.read(checked(task_uuid))
        if not history:
            raise not_found(task_uuid)
        reader = _Reader(history, position)
        first = reader.begin()
        return self._follow(checked(task_uuid), reader, first, quiet_seconds) if first or not reader.ended else None

    async def close(self) -> None:
        """Read no more; what is followed still is cancelled."""
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
                if ended.done() and not reader.ended:  # an operator has taken it up again
                    ended = asyncio.ensure_future(self._finished(task))
        finally:
            _let_go(news)
            ended.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await ended

    def _news(self, task: str, reader: _Reader) -> asyncio.Future[list[TaskEvent]]:
        return self._looks.news(task, reader.latest - LATE, reader.lacks)


def _let_go(news: asyncio.Future[list[TaskEvent]]) -> None:
    """It is not read; also a failure is not."""
    if not news.cancel() and not news.cancelled():
        news.exception()


@dataclass(frozen=True, slots=True)
class _Position:
    """How many transitions a reader has, and the time of the latest of them in microseconds."""

    micros: int
    count: int

    @classmethod
    def parse(cls, place: str | None) -> _Position:
        if not place:
            return cls(0, 0)
        if found := PLACE.fullmatch(place):
            return cls(int(found[1]), int(found[2]))
        raise UsageError(f"{place!r:.60} is no place in a stream of events", hint="send the last id as it came")


class _Reader:
    """What one reader has been sent."""

    def __init__(self, history: Sequence[TaskEvent], position: _Position) -> None:
        self._history = history
        self._sent: set[tuple[str, str | None, int]] = set()
        self._micros = self._count = 0
        self._begin = position
        self.latest = datetime.fromtimestamp(0, UTC)
        self.ended = False

    def begin(self) -> list[TaskEvent]:
        """What the reader lacks of the history."""
        transitions = [event for event in self._history if event.kind != "progress"]
        had = transitions[: self._begin.count]
        if self._begin.count and (not had or max(map(_micros, had)) != self._begin.micros):
            resent = self._begin.micros - RESENT // timedelta(microseconds=1)
            had = [event for event in had if _micros(event) < resent]
        for event in had:
            self._note(event)
        return self.news(self._history)

    def news(self, found: Sequence[TaskEvent]) -> list[TaskEvent]:
        """Those that were not sent yet, with their places."""
        return [self._note(event) for event in found if self.lacks(event)]

    def lacks(self, event: TaskEvent) -> bool:
        """True when it was not sent yet."""
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
