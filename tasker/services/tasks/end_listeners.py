"""Listening for the ends of tasks in other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from random import random
from typing import Any, Protocol, TypeVar

from tasker.clock import BackoffPolicy
from tasker.db.listening import ListenSilent, listen
from tasker.engine.guarded_connection import is_outage
from tasker.engine.waiters import CHANNEL
from tasker.errors import DatabaseError, TooManyConnections, UsageError
from tasker.messaging.listening_modes import DeploymentMode, EventSettings

Ask = Callable[[str, Mapping[str, Any]], Awaitable[list[tuple[Any, ...]]]]
Heard = Callable[[Sequence[str]], None]
LINGER_SECONDS = 30.0
"""Seconds for which the listening connection is kept open when nothing waits any more."""
LOST = BackoffPolicy(0.2, 30.0, spread=0.25)
"""Pauses in seconds before a lost listening connection is opened again."""
_log = logging.getLogger("tasker.events")


class EndListener(Protocol):
    """Source of notifications that a program uses while it waits for tasks."""

    @property
    def is_listening(self) -> bool:
        """True if notifications are proven to arrive."""
        ...

    @property
    def useful(self) -> bool:
        """False if it is known that none arrives: then none need to be sent."""
        ...

    def open(self) -> None:
        """Start listening, because a wait begins."""
        ...

    def rest(self) -> None:
        """Allow listening to stop, because no wait is left."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class OwnListener:
    """Listening connection that is open while the program waits, for a program without a worker.

    `ask` runs the statements that prove that notifications arrive. `heard(tasks)` is called with tasks that are
    reported to have ended, and with no tasks when listening begins or stops, because some ends may have been missed.
    """

    def __init__(
        self,
        url: str,
        waiter: str,
        events: EventSettings,
        ask: Ask,
        *,
        heard: Heard,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        self._url, self._channel, self._events = events.listen_url or url, f"{CHANNEL}{waiter}", events
        self._ask, self._heard, self._linger = ask, heard, linger_seconds
        self._listening: asyncio.Task[None] | None = None
        self._closing: asyncio.TimerHandle | None = None
        self.is_listening = False
        self.useful = events.deployment_mode is not DeploymentMode.POLLING_ONLY

    def open(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        if self._listening is None and self._events.deployment_mode is not DeploymentMode.POLLING_ONLY:
            self._listening = asyncio.create_task(self._listen(), name="ends of tasks")

    def rest(self) -> None:
        """Close the connection after a delay, because a program that waited once often waits again."""
        if self._listening is not None and self._closing is None:
            self._closing = asyncio.get_running_loop().call_later(self._linger, self._end)

    def _end(self) -> asyncio.Task[None] | None:
        listening, self._listening, self._closing = self._listening, None, None
        if listening is not None:
            listening.cancel()
        return listening

    async def close(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        if (listening := self._end()) is not None:
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        """Listen, and reopen the connection with growing pauses whenever it is lost."""
        failures = 0
        while True:
            try:
                await self._follow()
            except Exception as error:  # driver errors too, as for a bad listen_url; polling still finds the ends
                failures = 0 if self.is_listening else failures + 1
                self.useful = isinstance(error, DatabaseError) and not isinstance(error, ListenSilent)
                _log.debug("ends of tasks: no notifications, they are polled for: %s", error)
            finally:
                self._listens(False)
            await asyncio.sleep(LOST.pause(failures, random()))

    async def _follow(self) -> None:
        events = self._events
        news = listen(
            self._url,
            [self._channel],
            self._prove,
            proof_seconds=events.listener.connection_timeout_seconds,
            check_seconds=events.listener.event_timeout_seconds,
            name="tasker wait",
        )
        async with aclosing(news):
            async for item in news:
                self._listens(True)
                if item is not None:
                    self._heard(item[1].split(","))

    async def _prove(self, channel: str) -> None:
        await self._ask("select pg_notify(%(channel)s, '')", {"channel": channel})

    def _listens(self, listens: bool) -> None:
        if self.is_listening is not listens:
            self.is_listening, self.useful = listens, self.useful or listens
            self._heard(())


class WorkerListener:
    """Notifications through the worker in the same process, which listens anyway."""

    def __init__(self, listens: Callable[[], bool]) -> None:
        self._listens = listens

    @property
    def is_listening(self) -> bool:
        return self._listens()

    @property
    def useful(self) -> bool:
        return self.is_listening

    def open(self) -> None:
        """Do nothing: the worker listens anyway."""

    def rest(self) -> None:
        """Do nothing: the worker keeps listening."""

    async def close(self) -> None:
        """Do nothing: the worker closes its own connection."""


T = TypeVar("T")
POLLS = BackoffPolicy(0.02, 0.5)
"""Seconds between two attempts."""


async def retry_through_outage(ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `ask`, repeated with growing pauses while the database is unavailable or has no free
    connection.

    A caller that waits for a task waits through an outage, so the read afterwards must not fail in the outage's last
    moments: on dead pooled connections, or on the breaker, which lets one call pass at a time.
    """
    failures = 0
    while True:
        try:
            return await ask()
        except DatabaseError as error:
            if not (error.retryable and (is_outage(error) or isinstance(error, TooManyConnections))):
                raise
        await asyncio.sleep(POLLS.pause(failures))
        failures += 1


@asynccontextmanager
async def submission_deadline(timeout: float | None, key: str | None) -> AsyncGenerator[asyncio.Timeout]:
    """Cancel the enclosed submission of the task with that key after `timeout` seconds; None: the task of a handler.

    Raises `TimeoutError` then; the database may still have carried out what was sent before.
    """
    try:
        async with asyncio.timeout(timeout) as limit:
            yield limit
    except TimeoutError:
        if not limit.expired():
            raise
        again = (
            "The next attempt of the handler finds it"
            if key is None
            else f"To run it in either case: run(..., idempotency_key={key!r}, on_duplicate='return')"
        )
        raise TimeoutError(
            f"the submission was not answered within {timeout:g} s: the task may have been created, or not. {again}"
        ) from None


def remaining_seconds(limit: asyncio.Timeout) -> float | None:
    """Return the seconds left until the deadline, to the millisecond and at least 0; None without a deadline."""
    end = limit.when()
    return None if end is None else max(0.0, round(end - asyncio.get_running_loop().time(), 3))


def not_ended(task_uuid: str, timeout: float | None, state: str) -> TimeoutError:
    """Return the error for a wait of `timeout` seconds; `state` describes the task's state in words."""
    return TimeoutError(
        f"task {task_uuid} has not ended after {timeout:g} s and goes on: {state}. To keep waiting: "
        f"wait({task_uuid!r}), or in a shell: tasker task watch {task_uuid}"
    )


def stopped(task_uuid: str) -> UsageError:
    """Return the error for a wait that ends because the app was stopped: nothing would report the task's end."""
    return UsageError(
        f"the app was stopped while it waited for task {task_uuid}, which continues on other workers",
        hint="stop waiters before the app, or wait for the task again after a restart",
    )
