"""Watchdogs of an interpreter that hangs and of an embedded server that died.

The event loop, the lease, timeouts and signal handlers all stand still then. A C thread notices without the lock.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from tasker.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from tasker.db.embedded import EmbeddedServer

SHORTEST_SECONDS = 5.0
"""Shortest time limit: on a machine short of processors a process may wait that long for its turn."""
CHECKS_PER_LIMIT = 5


@contextmanager
def watch_interpreter(limit_seconds: float) -> Iterator[None]:
    """End the process with status 1 when inside the context no Python thread had a turn for the time limit.

    The limit is `limit_seconds`, but at least `SHORTEST_SECONDS`; time suspended by Ctrl-Z does not count. The stacks
    of all threads are written to standard error.
    """
    limit = max(SHORTEST_SECONDS, limit_seconds)
    stop = threading.Event()
    with open(os.devnull, "w") as nowhere:
        arguments = (stop, limit, sys.stderr if _has_descriptor(sys.stderr) else nowhere)
        thread = threading.Thread(target=_put_off, args=arguments, name="tasker-interpreter", daemon=True)
        thread.start()
        before = signal.signal(signal.SIGTSTP, _suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, before)
            stop.set()
            thread.join(timeout=1.0)
            faulthandler.cancel_dump_traceback_later()


def _put_off(stop: threading.Event, limit: float, output: TextIO) -> None:
    while not stop.is_set():
        faulthandler.dump_traceback_later(limit, exit=True, file=output)
        stop.wait(limit / CHECKS_PER_LIMIT)


def _suspend(_signal: int, _frame: FrameType | None) -> None:
    """Suspend the process as the shell requests, unwatched; the thread resumes the watch when the process continues."""
    faulthandler.cancel_dump_traceback_later()
    os.kill(os.getpid(), signal.SIGSTOP)


def _has_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False


CHECK_SECONDS = 0.5
PAUSE_SECONDS = 5.0
"""Pause between attempts to start the server, in seconds."""

_log = logging.getLogger("tasker.embedded")


async def restart_embedded_server(server: EmbeddedServer) -> None:
    """Restart the server whenever it dies, until cancelled; its users wait for it as in any outage of a database."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
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
