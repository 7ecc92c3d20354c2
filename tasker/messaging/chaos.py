"""Faults on purpose: a wrapper around any backend that drops, doubles and delays messages.

Chosen with `TASKER_CHAOS=drop:0.01,dup:0.01,delay:0.05` (shares of the messages sent) and optional `seed:7`,
`delay_ms:200`. A wrapped backend is never transactional: its messages are sent after the commit, where faults happen.
The engine must not care, because a message is only a hint.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tasker.contracts.messaging import Available, Backend, QueuedMessage, QueueStats
from tasker.errors import MessagingError, UsageError

VARIABLE = "TASKER_CHAOS"
_log = logging.getLogger("tasker.chaos")


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what goes wrong: shares from 0.0 to 1.0; `delay_ms` is how late a delayed message is sent."""

    drop: float = 0.0
    dup: float = 0.0
    delay: float = 0.0
    delay_ms: float = 200.0
    seed: int | None = None

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read `drop:0.01,dup:0.01,delay:0.05`. Raises `UsageError`."""
        values: dict[str, Any] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, value = part.partition(":")
            if name not in cls.__slots__:
                raise UsageError(f"{VARIABLE}: {name!r} is no fault", hint=f"expected {', '.join(cls.__slots__)}")
            values[name] = _number(name, value)
        seed = values.pop("seed", None)
        return replace(cls(**values), seed=None if seed is None else int(seed))


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if number < 0 or (name in ("drop", "dup", "delay") and number > 1):
        raise UsageError(f"{VARIABLE}: {name} is {value!r}", hint="expected a share from 0 to 1, as in drop:0.01")
    return number


class ChaosBackend:
    """A backend whose sends sometimes go wrong. `faults_done` counts what was done."""

    def __init__(self, backend: Backend, faults: Faults) -> None:
        self._backend, self._faults = backend, faults
        self._random = Random(faults.seed)
        self._late: set[asyncio.Task[None]] = set()
        self.capabilities = replace(backend.capabilities, transactional=False)
        self.faults_done: Counter[str] = Counter()

    def provider_name(self) -> str:
        """The name of the wrapped backend."""
        return self._backend.provider_name()

    async def open(self) -> None:
        """Connect."""
        await self._backend.open()

    async def close(self) -> None:
        """Send what is late, release connections."""
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._backend.close()

    async def health_check(self) -> bool:
        """True when the provider answers."""
        return await self._backend.health_check()

    async def create_queue(self, queue: str) -> None:
        """Make the queue."""
        await self._backend.create_queue(queue)

    async def delete_queue(self, queue: str) -> None:
        """Remove the queue."""
        await self._backend.delete_queue(queue)

    async def queue_exists(self, queue: str) -> bool:
        """True when the queue exists."""
        return await self._backend.queue_exists(queue)

    async def list_queues(self) -> list[str]:
        """Names of all queues."""
        return await self._backend.list_queues()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send, or not, or twice, or later."""
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send each, or not, or twice, or later; a message that was not sent has the identifier 0."""
        ids = []
        for payload in payloads:
            ids.append(await self._one(queue, payload))
        return ids

    async def _one(self, queue: str, payload: bytes) -> int:
        fault = self._draw()
        self.faults_done[fault] += 1
        if fault == "drop":
            return 0
        if fault == "delay":
            task = asyncio.create_task(self._send_late(queue, payload))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return 0
        if fault == "dup":
            await self._backend.send_message(queue, payload)
        return await self._backend.send_message(queue, payload)

    def _draw(self) -> str:
        number, edge = self._random.random(), 0.0
        for fault in ("drop", "dup", "delay"):
            edge += getattr(self._faults, fault)
            if number < edge:
                return fault
        return "none"

    async def _send_late(self, queue: str, payload: bytes) -> None:
        await asyncio.sleep(self._faults.delay_ms / 1000)
        try:
            await self._backend.send_message(queue, payload)
        except MessagingError as error:
            _log.info("a delayed message was lost: %s", error)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible after the delay."""
        return await self._backend.send_message_with_delay(queue, payload, delay_seconds)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Up to `limit` visible messages."""
        return await self._backend.receive_messages(queue, limit, visibility_timeout)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """The message of that id."""
        return await self._backend.receive_message(queue, message_id, visibility_timeout)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Done with it."""
        return await self._backend.ack_message(queue, message_id)

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Give it back."""
        return await self._backend.nack_message(queue, message_id, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Keep it hidden for longer."""
        return await self._backend.extend_visibility(queue, message_id, seconds)

    async def queue_stats(self, queue: str) -> QueueStats:
        """Depth and age."""
        return await self._backend.queue_stats(queue)

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[Available | QueuedMessage, None]:
        """Notifications for these queues."""
        return self._backend.subscribe_many(queues)
