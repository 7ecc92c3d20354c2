"""A RabbitMQ backend whose time a test sets, with its names apart from all others on the broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import aio_pika

from tasker_rabbitmq import create
from tasker_rabbitmq.backend import RabbitmqBackend
from tests.support.servers.brokers import PrivateServer


class HandClock:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


class Unwritten:
    """A channel's queue of frames that takes none."""

    async def put(self, _: object) -> None:
        raise RuntimeError("nobody writes any more")


class Rig:
    """A backend under a prefix of its own, its clock, and a plain connection to look behind it."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix, self.clock = url, f"tasker_test_{uuid4().hex[:8]}.", HandClock()
        self._made: list[RabbitmqBackend] = []
        self._due: dict[str, float] = {}
        self.backend = self.another()

    def another(self, **settings: object) -> RabbitmqBackend:
        self._made.append(create({"url": self.url, "prefix": self.prefix, "clock": self.clock, **settings}))
        return self._made[-1]

    def _names(self) -> set[str]:
        """Everything that was made on the broker."""
        delays = (names for backend in self._made for names in backend._topology._delays.values())
        return {"dead.letters"}.union(*(backend._known for backend in self._made), *delays)

    async def advance(self, seconds: float) -> None:
        """Set the clock, and do what the broker's own clock would do to its delay queues meanwhile."""
        before, self.clock.seconds = self.clock.seconds, self.clock.seconds + seconds
        delays = [name for names in self.backend._topology._delays.values() for name in names]
        if not delays:
            return
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel()
            for name in delays:
                await self._release_due(channel, name, before)

    async def _release_due(self, channel: aio_pika.abc.AbstractChannel, name: str, before: float) -> None:
        target, _, milliseconds = name.rpartition(".delay.")
        queue = await channel.get_queue(self.prefix + name)
        waiting = []
        while message := await queue.get(fail=False):
            waiting.append(message)
        for message in waiting:
            due = self._due.setdefault(f"{name} {message.message_id}", before + int(milliseconds) / 1000)
            if due > self.clock.seconds:
                await message.reject(requeue=True)
            else:
                await channel.default_exchange.publish(message, self.prefix + target)
                await message.ack()

    async def clean(self) -> None:
        await self.backend.close()
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel()
            for name in self._names():
                await channel.queue_delete(self.prefix + name)
            await channel.exchange_delete(f"{self.prefix}dead.letters")


@contextmanager
def alarm(broker: PrivateServer) -> Iterator[None]:
    """It has too little memory: it takes no messages."""
    broker.evaluate("vm_memory_monitor:set_vm_memory_high_watermark(0.00001).")
    try:
        yield
    finally:
        broker.evaluate("vm_memory_monitor:set_vm_memory_high_watermark(0.8).")
