"""Wake-up messages for tasks created in a caller's transaction: sent once it is committed, never if it is rolled back.

SQLAlchemy only reports that a commit is about to happen, not that it has happened, so the database is asked.
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
    """Sender of wake-up messages after the caller's commit, for backends that cannot send in the transaction.

    Messages lost in a crash are sent by a sweep (rule 23).
    """

    def __init__(self, connection: Statements, messaging: MessagingService, on_sent: Callable[[], None]) -> None:
        self._connection, self._messaging, self._on_sent = connection, messaging, on_sent
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, transaction: str, hints: Hints) -> None:
        """Send the messages once the transaction with that id is committed. After `close` this is left to the sweep.

        Thread-safe. A closed event loop raises no error, because the caller still has to commit.
        """
        try:
            self._loop.call_soon_threadsafe(self._begin, transaction, hints)
        except RuntimeError:  # the event loop is closed
            _tell_stopped(hints)

    async def close(self) -> None:
        """Stop waiting for commits and send no further messages."""
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
        except TaskerError as error:  # the task exists; the sweep sends its messages
            _log.log(level_of(error), "wakeups_not_sent reason=%s", error)

    async def _created(self, transaction: str, tasks: list[str]) -> set[str]:
        """Wait for the end of the transaction, and return those of the tasks that exist then."""
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
