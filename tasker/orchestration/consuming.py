"""The orchestrator's loop over parked results: woken by the messaging backend, polling with back-off below that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from tasker.contracts.clock import Random
from tasker.errors import DatabaseError, MessagingError
from tasker.orchestration.parking import ParkedResults
from tasker.services.exchange import Advanced, Caller

SHORTEST_SECONDS = 0.02


class ResultConsumer:
    """Ends parked steps until cancelled. `caller` says who this process is; `on_advanced` sees every answer."""

    def __init__(
        self,
        parked: ParkedResults,
        caller: Callable[[], Caller],
        random: Random,
        *,
        on_advanced: Callable[[Advanced], None],
        batch: int = 500,
        poll_seconds: float = 1.0,
    ) -> None:
        self._parked, self._caller, self._random, self._on_advanced = parked, caller, random, on_advanced
        self._batch, self._poll_seconds = batch, poll_seconds
        self._event = asyncio.Event()

    def wake(self) -> None:
        """There may be results."""
        self._event.set()

    async def run(self) -> None:
        """Look, end what is there, look again; wait when there is nothing."""
        pause = SHORTEST_SECONDS
        while True:
            self._event.clear()
            try:
                count, advanced = await self._parked.receive(self._caller(), self._batch)
                self._on_advanced(advanced)
            except (DatabaseError, MessagingError):
                count, pause = 0, 0.5
            pause = SHORTEST_SECONDS if count else min(pause * 2, self._poll_seconds)
            if not count:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause * (0.75 + 0.5 * self._random.random())):
                        await self._event.wait()
