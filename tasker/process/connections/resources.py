"""The basic resources of a process, and their opening and closing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tasker.contracts.dataclasses import dataclass
from tasker.messaging.service import MessagingService
from tasker.process.supervision.server_guard import restart_embedded_server

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer


@dataclass(slots=True)
class Resources:
    """The database's URL, the messaging service, and the embedded server if this process started it."""

    url: str
    messaging: MessagingService
    server: EmbeddedServer | None = None
    _guard: asyncio.Task[None] | None = None

    def guard(self) -> None:
        """Restart the embedded server from now on when it dies."""
        if self.server is not None:
            self._guard = asyncio.create_task(restart_embedded_server(self.server), name="keep_running")

    async def open(self) -> None:
        """Connect the messaging backend, and guard the embedded server.

        A backend whose queues live in the database connects on first use.
        """
        self.guard()
        if not self.messaging.capabilities.transactional:
            await self.messaging.open()

    def close(self) -> None:
        """Release the embedded server; it stops when no process uses it."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
        if self.server is not None:
            self.server.stop()
            self.server = None
