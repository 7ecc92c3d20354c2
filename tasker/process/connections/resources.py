"""What everything in a process stands on, and how it is opened and let go of."""

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
    """What everything stands on: the database's URL, the messaging service, and the server if it is ours."""

    url: str
    messaging: MessagingService
    server: EmbeddedServer | None = None
    _guard: asyncio.Task[None] | None = None

    def guard(self) -> None:
        """From now on start the embedded server again when it dies."""
        if self.server is not None:
            self._guard = asyncio.create_task(restart_embedded_server(self.server), name="keep_running")

    async def open(self) -> None:
        """Connect the messaging backend, and look after our server.

        A backend whose queues live in the database connects when it is used.
        """
        self.guard()
        if not self.messaging.capabilities.transactional:
            await self.messaging.open()

    def close(self) -> None:
        """Let go of the embedded server; it stops when nobody uses it."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
        if self.server is not None:
            self.server.stop()
            self.server = None
