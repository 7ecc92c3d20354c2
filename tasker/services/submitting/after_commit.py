"""Sending the hints of tasks that a caller's transaction made: once it is committed, and never when it is not.

SQLAlchemy tells that a commit is about to happen, not that it has happened; the database knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import chain, repeat

from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import TaskerError
from tasker.messaging.service import MessagingService
from tasker.resilience.outage import level_of
from tasker.services.submitting.caller_submission import Hints

FIRST_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LATER_SECONDS, LATER_TIMES = 0.5, 60

_log = logging.getLogger("tasker.submission")


class AfterCommit:
    """For backends that cannot send in the transaction. What a crash leaves unsent, a sweep sends (rule 23)."""

    def __init__(self, connection: Statements, messaging: MessagingService, on_sent: Callable[[], None]) -> None:
        self._connection, self._messaging, self._on_sent = connection, messaging, on_sent
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, transaction: str, hints: Hints) -> None:
        """Send the hints when the transaction of that id is committed; after `close` the sweep does. May be called in
        any thread, and raises nothing on account of the event loop: the caller commits."""
        try:
            self._loop.call_soon_threadsafe(self._begin, transaction, hints)
        except RuntimeError:  # it is closed
            _tell_stopped(hints)

    async def close(self) -> None:
        """Give up what still waits for its commit, and send nothing any more."""
        self._closed = True
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _begin(self, transaction: str, hints: Hints) -> None:
        if self._closed:
            _tell_stopped(hints)
            return
        task = self._loop.create_task(self._send(transaction, hints))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, transaction: str, hints: Hints) -> None:
        try:
            created = await self._created(transaction, [hint["task"] for hint in hints])
            if created:
                await self._messaging.send_hints([hint for hint in hints if hint["task"] in created])
                self._on_sent()
        except TaskerError as error:  # the task is there; the sweep finds it
            _log.log(level_of(error), "wakeups_not_sent reason=%s", error)

    async def _created(self, transaction: str, tasks: list[str]) -> set[str]:
        """Those of the tasks that are there once the transaction has ended."""
        for pause in chain(FIRST_SECONDS, repeat(LATER_SECONDS, LATER_TIMES)):
            rows = await self._connection.execute(
                query("submission", "outcome"), {"transaction": transaction, "tasks": tasks}
            )
            open_still, created = rows[0]
            if not open_still:
                return set(created)
            await asyncio.sleep(pause)
        return set()


def _tell_stopped(hints: Hints) -> None:
    _log.info("wakeups_not_sent count=%s reason=the app has stopped, a sweep sends them", len(hints))
