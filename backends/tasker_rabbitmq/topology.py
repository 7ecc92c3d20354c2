"""Queues on the broker. Queue names of the contract have no dot, so a dot distinguishes internal names."""

from __future__ import annotations

import math
import time

from aiormq.abc import AbstractChannel
from aiormq.exceptions import ChannelNotFoundEntity
from pamqp.common import FieldTable

from tasker_rabbitmq.link import REPLY_SECONDS, Link
from tasker_rabbitmq.settings import RabbitmqSettings

DEAD_LETTERS_KEPT = 10_000
"""Maximum number of dead letters; new ones replace the oldest."""
SILENT_SECONDS, ATTEMPTS = 0.25, 8
"""A queue whose leader does not answer the broker for this time is reported as empty and without consumers (3.10)."""
IDLE_MS = 60_000
"""Time after which the broker removes an unused delay queue, in addition to its delay."""


class Topology:
    """Declaration and removal of queues, by their names without the prefix."""

    def __init__(self, link: Link, settings: RabbitmqSettings) -> None:
        self._link, self._prefix, self._limit = link, settings.prefix, settings.delivery_limit
        self._delays: dict[str, set[str]] = {}

    def name(self, queue: str) -> str:
        return self._prefix + queue

    async def counts(self, queue: str) -> tuple[int, int] | None:
        """Return (ready messages, consumers), or None if there is no such queue.

        Asks again if the queue may not have answered its broker in time.
        """
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            queue_counts = await self._declared(queue)
            if queue_counts != (0, 0) or time.monotonic() - began < SILENT_SECONDS:
                break
        return queue_counts

    async def _declared(self, queue: str) -> tuple[int, int] | None:
        async with self._link.alone() as channel:
            try:
                declared = await channel.queue_declare(self.name(queue), passive=True, timeout=REPLY_SECONDS)
            except ChannelNotFoundEntity:
                return None
        return declared.message_count or 0, declared.consumer_count or 0

    async def create(self, queue: str) -> None:
        """Create a quorum queue with dead letters. An existing one does not change."""
        if await self.counts(queue) is not None:
            return
        dead, newest = self.name("dead.letters"), self.name("the.newest")
        limits: FieldTable = {"x-delivery-limit": self._limit, "x-dead-letter-exchange": dead}
        async with self._link.alone() as channel:
            await channel.exchange_declare(dead, exchange_type="fanout", durable=True, timeout=REPLY_SECONDS)
            await _declare(channel, dead, {"x-max-length": DEAD_LETTERS_KEPT})
            await channel.queue_bind(dead, dead, timeout=REPLY_SECONDS)
            await _declare(channel, self.name(queue), limits)
            # A broker that is killed within seconds of creating a quorum queue never serves it again, because the data
            # of the newest queue is still in a write buffer (seen with 3.10). Creating another one flushes it.
            await _declare(channel, newest, {})
            await channel.queue_delete(newest, timeout=REPLY_SECONDS)

    async def delete(self, queue: str) -> None:
        """Delete the queue and the delay queues that this process used for it."""
        async with self._link.alone() as channel:
            for name in [queue, *self._delays.pop(queue, ())]:
                await channel.queue_delete(self.name(name), timeout=REPLY_SECONDS)

    async def delay_queue(self, queue: str, seconds: float) -> str:
        """Return a queue that moves its messages to `queue` after the delay.

        Declaring it again renews its lifetime, so it outlives every message in it.
        """
        milliseconds = rounded_up(seconds)
        delayed = f"{queue}.delay.{milliseconds}"
        limits: FieldTable = {
            "x-message-ttl": milliseconds,
            "x-expires": milliseconds + IDLE_MS,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.name(queue),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
        async with self._link.alone() as channel:
            await _declare(channel, self.name(delayed), limits)
        self._delays.setdefault(queue, set()).add(delayed)
        return delayed

    async def delayed(self, queue: str) -> int:
        """Return the number of waiting messages that this process delayed."""
        counts = [await self.counts(name) for name in self._delays.get(queue, ())]
        return sum(queue_counts[0] for queue_counts in counts if queue_counts)


def rounded_up(seconds: float) -> int:
    """Return milliseconds with two significant digits, rounded up: that limits the number of delay queues."""
    milliseconds = max(1, math.ceil(round(seconds * 1000, 3)))
    unit: int = 10 ** max(0, len(str(milliseconds)) - 2)
    return -(-milliseconds // unit) * unit


async def _declare(channel: AbstractChannel, name: str, arguments: FieldTable) -> None:
    arguments = {"x-queue-type": "quorum", **arguments}
    await channel.queue_declare(name, durable=True, arguments=arguments, timeout=REPLY_SECONDS)
