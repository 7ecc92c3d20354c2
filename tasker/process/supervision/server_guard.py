"""Restart of the embedded server when it dies under a process that uses it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tasker.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 5.0
"""Pause between attempts to start the server, in seconds."""

_log = logging.getLogger("tasker.embedded")


async def restart_embedded_server(server: EmbeddedServer) -> None:
    """Restart the server whenever it dies, until cancelled; its users wait for it as in any outage of a database."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if not server.is_running():
            await _start_again(server)


async def _start_again(server: EmbeddedServer) -> None:
    _log.warning("the embedded PostgreSQL of %s has died; starting it again", server.data_dir)
    while True:
        try:
            await asyncio.to_thread(server.start_again)
            return
        except DatabaseUnavailable as error:
            _log.error("%s; trying again in %g s", error.message, PAUSE_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)
