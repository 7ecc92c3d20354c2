"""The lease of a worker, renewed in a thread while the event loop is blocked.

The heartbeat names the (step, token) pairs in flight, never "all mine" (rule 4); its answer lists the claims that were
lost. A worker that could not renew within its lease fences itself (rule 12). A second thread does that, since a
heartbeat may wait longer for its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tasker.clock import Clock
from tasker.db.connection import SyncConnection
from tasker.engine.process_registry import renew_lease
from tasker.errors import DatabaseUnavailable
from tasker.execution.worker import Worker

_log = logging.getLogger("tasker.worker")

InHand = Sequence[tuple[str, int]]
RETRY_SECONDS = 1.0
"""Seconds between attempts to renew after a failure; less where the lease is short."""


class LeaseKeeper:
    """Keeper of the worker's lease: renews it every third of its length until stopped or lost.

    Parameters: `in_hand` returns the current (step, token) pairs; `on_lost` gets those whose token is no longer valid;
    `on_fenced` is called once when the lease as a whole was lost; `on_renewal` gets the error when renewal fails, and
    None when it succeeds again. All of them may be called from the threads.
    """

    def __init__(
        self,
        connection: SyncConnection,
        clock: Clock,
        *,
        worker: str,
        lease_ms: int,
        in_hand: Callable[[], InHand],
        on_lost: Callable[[list[tuple[str, int]]], None],
        on_fenced: Callable[[], None],
        on_renewal: Callable[[DatabaseUnavailable | None], None] = lambda error: None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._worker, self._lease_ms, self._lease = worker, lease_ms, lease_ms / 1000
        self._in_hand, self._on_lost, self._on_fenced = in_hand, on_lost, on_fenced
        self._on_renewal = on_renewal
        self._over, self._fencing = threading.Event(), threading.Lock()
        self._threads = [
            threading.Thread(target=self._renew, name="tasker-lease", daemon=True),
            threading.Thread(target=self._watch, name="tasker-lease-watch", daemon=True),
        ]

    def start(self) -> None:
        """Start the threads. Registering the worker has just taken the lease."""
        self._renewed = self._clock.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and close the connection. May be called twice."""
        self._over.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=5)
        self._connection.close()

    def _renew(self) -> None:
        pause, failed = self._lease / 3, False
        while not self._over.wait(pause):
            pause = self._lease / 3
            try:
                self._beat_surely()
                if failed:
                    failed = False
                    self._on_renewal(None)
            except DatabaseUnavailable as error:
                pause, failed = min(RETRY_SECONDS, self._lease / 6), True
                self._on_renewal(error)
            except Exception:
                _log.exception("lease_beat_failed worker=%s", self._worker)

    def _beat_surely(self) -> None:
        """Send a heartbeat, and retry it once over a new connection if an open one was lost."""
        is_open = self._connection.is_open
        try:
            self._beat()
        except DatabaseUnavailable:
            if not is_open or self._over.is_set():
                raise
            self._beat()

    def _beat(self) -> None:
        started = self._clock.monotonic()
        pairs = self._in_hand()
        limit_ms = self._lease_ms // 3
        renewal = renew_lease(self._connection, self._worker, self._lease_ms, pairs, limit_ms=limit_ms)
        if self._over.is_set():
            return  # the answer came too late
        if not renewal.known:
            return self._fence()
        self._renewed = started
        if renewal.lost:
            # compare tokens, since this worker may have claimed the next attempt of the same step meanwhile
            self._on_lost([pair for pair in pairs if pair[0] in renewal.lost])

    def _watch(self) -> None:
        """Wait for the end of the lease, which every renewal postpones."""
        while (left := self._renewed + self._lease - self._clock.monotonic()) > 0:
            if self._over.wait(left):
                return
        self._fence()

    def _fence(self) -> None:
        """Fence the worker once, from either thread; do nothing after `stop`."""
        with self._fencing:
            if self._over.is_set():
                return
            self._over.set()
        self._on_fenced()


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
        lease_ms=worker.settings.lease.lease_ms,
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
