"""The lease of a worker in its process: how it is kept, and how a worker that lost it gives up all it has (rule 12)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from tasker.contracts.clock import Clock
from tasker.db.connection import SyncConnection
from tasker.errors import DatabaseUnavailable
from tasker.execution.lease import LeaseKeeper
from tasker.execution.worker import Worker
from tasker.process.heartbeat import Registration
from tasker.process.supervisor import Supervisor
from tasker.services.engine.calls import Engine

GIVE_UP_SECONDS = 5.0
"""How long handlers that were told to stop are waited for; one that does not come back is left to itself."""
_log = logging.getLogger("tasker.worker")


def keep_lease(url: str, clock: Clock, worker: Worker, on_fenced: Callable[[], None]) -> LeaseKeeper:
    """Keep the lease that registering the worker took. `on_fenced` is called on the event loop when it is lost."""
    loop = asyncio.get_running_loop()
    keeper = LeaseKeeper(
        SyncConnection(url),
        clock,
        worker=worker.identity,
        lease_ms=worker.settings.lease_ms,
        held=worker.held,
        on_lost=lambda pairs: _on_loop(loop, worker.stop_lost, pairs),
        on_fenced=lambda: _on_loop(loop, on_fenced),
    )
    keeper.start()
    return keeper


async def give_up(worker: Worker, supervisor: Supervisor, lease: LeaseKeeper, engine: Engine) -> None:
    """End this incarnation, whose lease was lost: nothing of it is left, and the registry knows.

    Raises `DatabaseUnavailable`; it may be called again.
    """
    level = logging.WARNING if worker.busy else logging.DEBUG
    _log.log(level, "worker_fenced worker=%s steps=%s: others take them over", worker.identity, worker.busy)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GIVE_UP_SECONDS):
            await worker.drain()
    if not await supervisor.stop():
        raise DatabaseUnavailable(f"worker {worker.identity} cannot begin anew while a part of it hangs")
    await asyncio.to_thread(lease.stop)
    worker.inputs.clear()
    await engine.read("worker", Registration(worker.identity, 0).args("stop"))


def _on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(call, *args)
