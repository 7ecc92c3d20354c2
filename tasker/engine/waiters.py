"""Notifications of waiting programs that their tasks have ended: after the commit, in their own statement (rule 7).

A lost notification only delays: a waiting program also polls, at growing intervals.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from itertools import islice

from tasker.clock import BackoffPolicy
from tasker.db.connection import Statements
from tasker.errors import DatabaseError

MOST = 10_000
"""Maximum number of notifications waiting to be sent; beyond it the oldest are dropped, and their waiters poll."""
FAILED = BackoffPolicy(0.2, 5.0)
"""Pauses in seconds after failed statements."""
CHANNEL = "tasker_done_"
"""Prefix of the channel; the id of the waiting program follows."""
_log = logging.getLogger("tasker.engine")


class WaiterNotifications:
    """Buffer of ended tasks, each with the program to notify. `own` is the program in this process, which knows
    already."""

    def __init__(self, connection: Statements, own: str | None = None) -> None:
        self._connection, self._own = connection, own
        self._waiting: dict[str, str] = {}
        self._noted = asyncio.Event()

    def note(self, waiters: Mapping[str, str]) -> None:
        """Buffer these ended tasks, each with the program that waits for it. The change must be committed."""
        self._waiting.update((task, waiter) for task, waiter in waiters.items() if waiter != self._own)
        if (beyond := len(self._waiting) - MOST) > 0:
            _log.warning(
                "waiter_notifications_dropped count=%s reason=the database accepts no notifications; waiters poll",
                beyond,
            )
            for task in list(islice(self._waiting, beyond)):
                del self._waiting[task]
        if self._waiting:
            self._noted.set()

    async def run(self) -> None:
        """Send the buffered notifications until cancelled. Those that arrive during a statement go with the next
        one."""
        failures = 0
        while True:
            await self._noted.wait()
            try:
                await self._send()
                failures = 0
            except DatabaseError:
                await asyncio.sleep(FAILED.pause(failures))
                failures += 1

    async def flush(self) -> None:
        """Send the buffered notifications once, for a process that ends or does nothing else. Errors are only
        logged."""
        try:
            if self._waiting:
                await self._send()
        except DatabaseError as error:
            _log.info("waiters_not_notified count=%s reason=%s", len(self._waiting), error)

    async def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._noted.clear()
        try:
            await self._connection.execute("select tasker.notify_waiters_v1(%s::jsonb)", (json.dumps(waiting),))
        except BaseException:
            newer, self._waiting = self._waiting, waiting
            self.note(newer)
            raise
