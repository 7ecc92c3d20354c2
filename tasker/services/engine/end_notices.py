"""Telling programs that wait that their tasks have ended: behind the commit, in a statement of its own (rule 7).

Lost notices are made up for: whoever waits looks by itself, with growing pauses.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from itertools import islice

from tasker.contracts.backoff import BackoffPolicy
from tasker.db.connection import Statements
from tasker.errors import DatabaseError

MOST = 10_000
"""Ends that wait to be told; beyond that the oldest are left to whoever waits for them."""
FAILED = BackoffPolicy(0.2, 5.0)
"""Pauses in seconds after statements that failed."""
CHANNEL = "tasker_done_"
"""With the identifier of a waiting program: where it is told."""
_log = logging.getLogger("tasker.engine")


class WaiterNotifications:
    """Ended tasks by the programs to be told. `own` is the program in this process, which knows them already."""

    def __init__(self, connection: Statements, own: str | None = None) -> None:
        self._connection, self._own = connection, own
        self._waiting: dict[str, str] = {}
        self._noted = asyncio.Event()

    def note(self, waiters: Mapping[str, str]) -> None:
        """These tasks have ended, each with who waits for it; the change is committed."""
        self._waiting.update((task, waiter) for task, waiter in waiters.items() if waiter != self._own)
        if (beyond := len(self._waiting) - MOST) > 0:
            _log.warning(
                "waiter_notifications_dropped count=%s reason=the database takes none; whoever waits looks", beyond
            )
            for task in list(islice(self._waiting, beyond)):
                del self._waiting[task]
        if self._waiting:
            self._noted.set()

    async def run(self) -> None:
        """Tell what is noted, until cancelled; what comes while a statement is under way goes with the next one."""
        failures = 0
        while True:
            await self._noted.wait()
            try:
                await self._tell()
                failures = 0
            except DatabaseError:
                await asyncio.sleep(FAILED.pause(failures))
                failures += 1

    async def tell(self) -> None:
        """Tell what is noted, once: for a process that ends, or does nothing else. A failure is not the caller's."""
        try:
            if self._waiting:
                await self._tell()
        except DatabaseError as error:
            _log.info("waiters_not_notified count=%s reason=%s", len(self._waiting), error)

    async def _tell(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._noted.clear()
        try:
            await self._connection.execute("select tasker.tell_waiters_v1(%s::jsonb)", (json.dumps(waiting),))
        except BaseException:
            newer, self._waiting = self._waiting, waiting
            self.note(newer)
            raise
