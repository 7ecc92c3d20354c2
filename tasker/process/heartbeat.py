"""Heartbeat of a process, and the end of leases of dead processes on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.process_registry import ProcessRegistry, Registration
from tasker.errors import DatabaseError

TELL_SECONDS = 1.0
"""Time limit for deregistering: the time of a stop is for results."""


class ProcessHeartbeat:
    """Registration of a process without steps: sends a heartbeat every third of its lease.

    A process that runs steps has a `LeaseKeeper` instead, with a thread of its own.
    """

    def __init__(self, registry: ProcessRegistry, entry: Registration) -> None:
        self._registry, self._entry = registry, entry

    async def run(self) -> None:
        """Register, and send heartbeats until cancelled. Database errors are retried: the registry is advisory."""
        known = False
        while True:
            with contextlib.suppress(DatabaseError):
                known = await self._beat() if known else await self._start()
            await asyncio.sleep(self._entry.lease_ms / 3000 if known else 1.0)

    async def _start(self) -> bool:
        await self._registry.start(self._entry)
        return True

    async def _beat(self) -> bool:
        return await self._registry.beat(self._entry.worker, self._entry.lease_ms)

    async def leave(self) -> None:
        await briefly(self._registry.stop(self._entry.worker))


async def briefly(notification: Awaitable[None]) -> None:
    """Await a farewell for a limited time and ignore database errors: others notice the end by themselves."""
    with contextlib.suppress(DatabaseError, TimeoutError):
        async with asyncio.timeout(TELL_SECONDS):
            await notification


async def end_dead_leases(engine: Engine) -> None:
    """End the leases of dead processes. Only for the embedded server, whose workers all run on this machine."""
    from tasker.db.embedded.watch import is_running  # loaded with the embedded server

    rows = await engine.connection.execute(query("tasks", "dead_local_workers"), {"host": socket.gethostname()})
    for worker, pid in rows:
        if not is_running(pid):
            await ProcessRegistry(engine.connection).stop(worker)
