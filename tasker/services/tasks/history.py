"""History of a task, event by event, shared by all readers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.states.task import TERMINAL
from tasker.errors import UsageError
from tasker.services.tasks.read import checked, not_found
from tasker.views.task_lists import HistoryItem

INTERVAL_SECONDS = 0.1
"""Minimum time between two queries of a process, however many streams are open."""
POLLS = BackoffPolicy(INTERVAL_SECONDS, 1.0)
"""Pause between two queries for one task without new events, in seconds."""
MOST_TASKS = 500
"""Tasks per query."""


@dataclass(frozen=True, slots=True)
class TaskEvent(HistoryItem):
    """Transition of the task or a step, or progress of a step.

    Progress is `items_processed` from checkpoints, or as `reported` by the handler, redacted when it was stored.
    `place` is the position after which a reader of this event resumes; None for progress, which is not sent again.
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
class HistoryRequest:
    """Reader that waits for `new` events. `due` is a time of the loop's clock."""

    since: datetime | None
    new: Callable[[TaskEvent], bool] | None
    answer: asyncio.Future[list[TaskEvent]]
    due: float
    polls: int = 0

    def deliver(self, events: list[TaskEvent], now: float) -> None:
        """Answer the reader if there are new events, or if it wants an answer in any case."""
        if self.answer.done():
            return
        if self.new is None or any(map(self.new, events)):
            self.answer.set_result(events)
        else:
            self.polls += 1
            self.due = now + POLLS.pause(self.polls)


class HistoryPoller:
    """Poller of task histories for many readers. It runs only while there are readers.

    A query runs in its own asyncio task: a reader that leaves during it is not answered and does not cancel the
    statement.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection
        self._requests: dict[str, list[HistoryRequest]] = {}
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
        return self._ask(task, since, new, asyncio.get_running_loop().time() + POLLS.first)

    async def close(self) -> None:
        """Stop polling; waiting readers are cancelled."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        _cancel(self._requests)
        self._requests = {}

    def _ask(
        self, task: str, since: datetime | None, new: Callable[[TaskEvent], bool] | None, due: float
    ) -> asyncio.Future[list[TaskEvent]]:
        request = HistoryRequest(since, new, asyncio.get_running_loop().create_future(), due)
        self._requests.setdefault(task, []).append(request)
        self._called.set()
        if self._looking is None:
            self._looking = asyncio.create_task(self._poll_while_requested(), name="histories of tasks")
        return request.answer

    async def _poll_while_requested(self) -> None:
        now = asyncio.get_running_loop().time
        try:
            while self._requests:
                await asyncio.sleep(self._due - now())
                self._due = now() + INTERVAL_SECONDS
                await self._poll_once(now())
                await self._rest(now())
        finally:
            self._looking = None

    async def _rest(self, now: float) -> None:
        """Wait until a query is due or a reader asks."""
        self._called.clear()
        due = min((request.due for requests in self._requests.values() for request in requests), default=now)
        with suppress(TimeoutError):
            async with asyncio.timeout(due - now):
                await self._called.wait()

    async def _poll_once(self, now: float) -> None:
        """Query the tasks that are due; all readers of these tasks are answered."""
        due = [task for task, asked in self._requests.items() if any(request.due <= now for request in asked)]
        looked = {task: self._requests.pop(task) for task in due}
        waiting = {task: alive for task, asked in looked.items() if (alive := _alive(asked))}
        tasks = list(waiting)
        try:
            for first in range(0, len(tasks), MOST_TASKS):
                await self._answer({task: waiting[task] for task in tasks[first : first + MOST_TASKS]})
        except BaseException:
            _cancel(waiting)
            raise
        for task, requests in waiting.items():
            if alive := _alive(requests):
                self._requests.setdefault(task, []).extend(alive)

    async def _answer(self, waiting: Mapping[str, Sequence[HistoryRequest]]) -> None:
        since = [_earliest(asked) for asked in waiting.values()]
        try:
            rows = await self._connection.execute(query("tasks", "events"), {"tasks": list(waiting), "since": since})
        except Exception as error:
            for request in _unanswered(waiting):
                request.answer.set_exception(error)
            return
        events: dict[str, list[TaskEvent]] = {task: [] for task in waiting}
        for task, *event in rows:
            events[task].append(TaskEvent(*event))
        now = asyncio.get_running_loop().time()
        for task, requests in waiting.items():
            for request in requests:
                request.deliver(events[task], now)


def _earliest(asked: Sequence[HistoryRequest]) -> datetime | None:
    times = [request.since for request in asked]
    return None if None in times else min(time for time in times if time is not None)


def _alive(asked: Iterable[HistoryRequest]) -> list[HistoryRequest]:
    return [request for request in asked if not request.answer.done()]


def _unanswered(waiting: Mapping[str, Sequence[HistoryRequest]]) -> list[HistoryRequest]:
    return [request for requests in waiting.values() for request in _alive(requests)]


def _cancel(waiting: Mapping[str, Sequence[HistoryRequest]]) -> None:
    for request in _unanswered(waiting):
        request.answer.cancel()


LATE = timedelta(seconds=5)
"""Maximum delay between the time in a transaction's rows and its commit; later rows are read at the task's end."""
PLACE = re.compile(r"([0-9]{1,16})-([0-9]{1,9})")
RESENT = timedelta(seconds=60)
"""Period for which events are sent again if it is uncertain what the reader has."""


class TaskEvents:
    """Event streams of tasks. `finished(task)` returns when a task has ended."""

    def __init__(self, connection: Statements, finished: Callable[[str], Awaitable[None]]) -> None:
        self._poller, self._finished = HistoryPoller(connection), finished

    async def follow(
        self, task_uuid: str, place: str | None = None, *, quiet_seconds: float = 15.0
    ) -> AsyncGenerator[TaskEvent | None] | None:
        """Stream all events of a task from the beginning, or after a `place`, until it has ended.

        Yields None when nothing happened for `quiet_seconds`. No event is left out; one may come twice if a commit was
        late just when the reader was interrupted. Returns None instead of an iterator if there are no events left and
        none to expect. Raises `TaskNotFound`, and `UsageError` for an invalid place.
        """
        position = _Position.parse(place)
        history = await self._poller.read(checked(task_uuid))
        if not history:
            raise not_found(task_uuid)
        reader = _Reader(history, position)
        first = reader.begin()
        return self._follow(checked(task_uuid), reader, first, quiet_seconds) if first or not reader.ended else None

    async def close(self) -> None:
        """Stop reading; open streams are cancelled."""
        await self._poller.close()

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
                for event in reader.news(await (self._poller.read(task) if ended.done() else news)):
                    yield event
                _drop(news)
                news = self._news(task, reader)
                if ended.done() and not reader.ended:  # an operator has reopened the task
                    ended = asyncio.ensure_future(self._finished(task))
        finally:
            _drop(news)
            ended.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await ended

    def _news(self, task: str, reader: _Reader) -> asyncio.Future[list[TaskEvent]]:
        return self._poller.news(task, reader.latest - LATE, reader.lacks)


def _drop(news: asyncio.Future[list[TaskEvent]]) -> None:
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
        if match := PLACE.fullmatch(place):
            return cls(int(match[1]), int(match[2]))
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

    def news(self, events: Sequence[TaskEvent]) -> list[TaskEvent]:
        """Return the events not sent yet, with their places."""
        return [self._note(event) for event in events if self.lacks(event)]

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
