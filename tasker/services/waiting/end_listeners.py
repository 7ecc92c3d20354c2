"""Listeners for the ends of awaited tasks in other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from random import random
from typing import Any, Protocol

from tasker.contracts.backoff import BackoffPolicy
from tasker.db.listening import ListenSilent, listen
from tasker.errors import DatabaseError
from tasker.lifecycle.deployment import DeploymentMode, EventSettings
from tasker.services.engine.end_notices import CHANNEL

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
            proof_seconds=events.connection_timeout_seconds,
            check_seconds=events.event_timeout_seconds,
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
