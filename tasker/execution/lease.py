"""Keeping the worker's lease: a thread and a connection of its own, so that a blocked event loop does not lose it.

The beat names the (step, token) pairs held in memory, never "all mine" (rule 4); its answer lists those that are no
longer ours. A worker that could not renew within its lease fences itself (rule 12).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tasker.contracts.clock import Clock
from tasker.db.connection import SyncConnection
from tasker.errors import DatabaseUnavailable

Held = Sequence[tuple[str, int]]


class LeaseKeeper:
    """Renews the lease every third of its length until stopped.

    Parameters: `held` gives the current (step, token) pairs and may be called from the thread; `on_lost` gets the steps
    whose token is no longer valid; `on_fenced` is called when the lease was lost as a whole.
    """

    def __init__(
        self,
        connection: SyncConnection,
        clock: Clock,
        *,
        worker: str,
        lease_ms: int,
        held: Callable[[], Held],
        on_lost: Callable[[list[str]], None],
        on_fenced: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._args = {"action": "beat", "worker": worker, "lease_ms": lease_ms}
        self._lease = lease_ms / 1000
        self._held, self._on_lost, self._on_fenced = held, on_lost, on_fenced
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tasker-lease", daemon=True)

    def start(self) -> None:
        """Begin; the lease was taken just now by registering the worker."""
        self._renewed = self._clock.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close its connection. May be called twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._connection.close()

    def _run(self) -> None:
        while not self._stop.wait(self._lease / 3):
            if not self.beat():
                return

    def beat(self) -> bool:
        """Renew once. False when the lease is gone and the worker must give up what it holds."""
        started = self._clock.monotonic()
        try:
            answer = self._connection.call(
                "tasker.worker_v1(%s::jsonb)", {**self._args, "held": [list(pair) for pair in self._held()]}
            )
        except DatabaseUnavailable:
            return self._still_ours()
        if not answer.get("known"):
            self._on_fenced()
            return False
        self._renewed = started
        if lost := answer.get("lost"):
            self._on_lost(lost)
        return True

    def _still_ours(self) -> bool:
        if self._clock.monotonic() - self._renewed < self._lease:
            return True
        self._on_fenced()
        return False
