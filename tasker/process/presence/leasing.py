"""The lease of a worker in its process: renewed by threads, with callbacks on the event loop (rule 12)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from tasker.contracts.clock import Clock
from tasker.db.connection import SyncConnection
from tasker.errors import DatabaseUnavailable
from tasker.execution.lease import InHand, LeaseKeeper
from tasker.execution.worker import Worker


def run_lease_keeper(
    connection: SyncConnection,
    clock: Clock,
    worker: Worker,
    on_fenced: Callable[[], None],
    on_renewal: Callable[[DatabaseUnavailable | None], None],
) -> LeaseKeeper:
    """Renew the lease that registering the worker took.

    `on_fenced` is called on the event loop when the lease is lost, `on_renewal` as by `LeaseKeeper`.
    """
    loop = asyncio.get_running_loop()

    def in_hand() -> InHand:
        if loop.is_closed():  # the worker was never stopped: its lease expires, and the threads end
            raise DatabaseUnavailable(f"the event loop of worker {worker.identity} has ended")
        return worker.claim_tokens()

    keeper = LeaseKeeper(
        connection,
        clock,
        worker=worker.identity,
        lease_ms=worker.settings.lease_ms,
        in_hand=in_hand,
        on_lost=lambda pairs: _on_loop(loop, worker.claims.stop_lost, pairs),
        on_fenced=lambda: _on_loop(loop, on_fenced),
        on_renewal=lambda error: _on_loop(loop, on_renewal, error),
    )
    keeper.start()
    return keeper


def _on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(call, *args)
