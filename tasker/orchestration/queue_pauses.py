"""Orchestration queues that are paused: what waits in them is not taken until they are resumed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from tasker.errors import DatabaseError
from tasker.orchestration.consuming import MessageInbox
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import CompletingWorker


class QueuePauses:
    """What this process knows of the pauses of orchestration queues. Until it knows, it takes nothing.

    It learns of a change by NOTIFY and looks; without notifications it is told when it asks whose turn it is to sweep,
    over the same `engine`, so that the later answer is the newer one. `changed` is called when there is news.
    """

    def __init__(self, engine: Engine, changed: Callable[[], None]) -> None:
        self._engine, self._changed = engine, changed
        self._paused: frozenset[str] | None = None
        self._again = asyncio.Event()

    def hold(self, queue: str) -> bool:
        """True while nothing may be taken from the queue."""
        return self._paused is None or queue in self._paused

    def told(self, answer: Mapping[str, Any]) -> None:
        """An answer of the database that names the `paused_queues`."""
        paused = frozenset(answer["paused_queues"])
        if paused != self._paused:
            self._paused = paused
            self._changed()

    def look_again(self) -> None:
        """There may be news."""
        self._again.set()

    async def run(self) -> None:
        """Look whenever there may be news, until cancelled. What fails is told with the next turn."""
        while True:
            self._again.clear()
            with contextlib.suppress(DatabaseError):
                self.told(await self._engine.read("paused_queues", {}))
            await self._again.wait()


class PausableInbox:
    """The inbox of a queue that can be paused."""

    def __init__(self, inbox: MessageInbox, queue: str, pauses: QueuePauses) -> None:
        self._inbox, self._queue, self._pauses = inbox, queue, pauses

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """As the inbox does; nothing while the queue is paused."""
        if self._pauses.hold(self._queue):
            return 0
        return await self._inbox.receive(caller, limit)

    def longest_pause(self) -> float:
        """Seconds until the next look at most."""
        return self._inbox.longest_pause()
