"""Starts the embedded server again when it dies under a process that uses it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tasker.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 5.0
"""Between two attempts at a server that does not start."""

_log = logging.getLogger("tasker.embedded")


async def restart_embedded_server(server: EmbeddedServer) -> None:
    """Look after the server until cancelled; what uses it waits for it as for every database that is away."""
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
