"""Paused orchestration queues: their messages are not taken until they are resumed."""

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
    """The known pauses of orchestration queues. Until they are known, nothing is taken.

    Changes arrive by NOTIFY and are then read. Without notifications they come with the answer to each request for a
    sweep turn, over the same `engine`, so that the later answer is the newer one. `changed` is called at each change.
    """

    def __init__(self, engine: Engine, changed: Callable[[], None]) -> None:
        self._engine, self._changed = engine, changed
        self._paused: frozenset[str] | None = None
        self._again = asyncio.Event()

    def hold(self, queue: str) -> bool:
        """Return True while no message may be taken from the queue."""
        return self._paused is None or queue in self._paused

    def told(self, answer: Mapping[str, Any]) -> None:
        """Update the pauses from an answer of the database that names the `paused_queues`."""
        paused = frozenset(answer["paused_queues"])
        if paused != self._paused:
            self._paused = paused
            self._changed()

    def look_again(self) -> None:
        self._again.set()

    async def run(self) -> None:
        """Read the pauses at every signal, until cancelled. After a failure the next turn's answer brings them."""
        while True:
            self._again.clear()
            with contextlib.suppress(DatabaseError):
                self.told(await self._engine.read("paused_queues", {}))
            await self._again.wait()


class PausableInbox:
    """Inbox of a queue that can be paused."""

    def __init__(self, inbox: MessageInbox, queue: str, pauses: QueuePauses) -> None:
        self._inbox, self._queue, self._pauses = inbox, queue, pauses

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Receive messages from the inbox, or none while the queue is paused."""
        if self._pauses.hold(self._queue):
            return 0
        return await self._inbox.receive(caller, limit)

    def longest_pause(self) -> float:
        return self._inbox.longest_pause()
