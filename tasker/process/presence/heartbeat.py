"""How a process that holds no steps stays in the registry of processes, and how any process leaves it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from tasker.errors import DatabaseError
from tasker.services.engine.process_registry import ProcessRegistry, Registration

TELL_SECONDS = 1.0
"""Spent at most on telling the registry of an end: the time of a stop is for results."""


class ProcessHeartbeat:
    """Keeps a process that holds no steps in the registry: it beats every third of its lease.

    A process that holds steps has a `LeaseKeeper` instead, with a thread of its own.
    """

    def __init__(self, registry: ProcessRegistry, entry: Registration) -> None:
        self._registry, self._entry = registry, entry

    async def run(self) -> None:
        """Enter, and beat until cancelled. The registry is advisory: without the database it tries again."""
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
        """Say that the process has ended."""
        await briefly(self._registry.stop(self._entry.worker))


async def briefly(telling: Awaitable[None]) -> None:
    """Tell others how a process ends; not for long, since they find out by themselves."""
    with contextlib.suppress(DatabaseError, TimeoutError):
        async with asyncio.timeout(TELL_SECONDS):
            await telling
