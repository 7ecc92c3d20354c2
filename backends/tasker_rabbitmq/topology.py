"""Queues on the broker: what they are called and how they are declared.

Names of the contract hold no dot, so a dot keeps ours apart from them.
"""

from __future__ import annotations

import math

from aiormq.abc import AbstractChannel
from aiormq.exceptions import ChannelNotFoundEntity

from tasker_rabbitmq.link import ADMIN, REPLY_SECONDS, Link
from tasker_rabbitmq.settings import RabbitmqSettings

DEAD_LETTERS_KEPT = 10_000
"""Dead letters beyond this number push out the oldest."""
IDLE_SECONDS = 60
"""A delay queue that nobody uses for this long, beyond its delay, is removed by the broker."""


class Topology:
    """Declares and removes queues. Names given and returned are the contract's, without the prefix."""

    def __init__(self, link: Link, settings: RabbitmqSettings) -> None:
        self._link, self._prefix, self._limit = link, settings.prefix, settings.delivery_limit
        self._dead_letters = f"{settings.prefix}dead.letters"
        self._delays: dict[str, set[int]] = {}

    def name(self, queue: str) -> str:
        """The name on the broker."""
        return self._prefix + queue

    async def counts(self, name: str) -> tuple[int, int] | None:
        """(ready messages, consumers) of a queue by its name on the broker; None when it does not exist."""
        channel = await self._link.channel(ADMIN)
        with self._link.errors():
            try:
                declared = await channel.queue_declare(name, passive=True, timeout=REPLY_SECONDS)
            except ChannelNotFoundEntity:
                return None
        return declared.message_count or 0, declared.consumer_count or 0

    async def create(self, queue: str) -> None:
        """Make a quorum queue whose rejected messages go to the dead letters. An existing one stays as it is."""
        if await self.counts(self.name(queue)) is not None:
            return
        channel = await self._link.channel(ADMIN)
        with self._link.errors():
            await self._create_dead_letters(channel)
            await _declare(channel, self.name(queue), {
                "x-delivery-limit": self._limit, "x-dead-letter-exchange": self._dead_letters,
            })

    async def _create_dead_letters(self, channel: AbstractChannel) -> None:
        await channel.exchange_declare(self._dead_letters, exchange_type="fanout", durable=True, timeout=REPLY_SECONDS)
        await _declare(channel, self._dead_letters, {"x-max-length": DEAD_LETTERS_KEPT})
        await channel.queue_bind(self._dead_letters, self._dead_letters, timeout=REPLY_SECONDS)

    async def delete(self, queue: str) -> None:
        """Remove the queue and those of its delay queues that this process has used."""
        channel = await self._link.channel(ADMIN)
        with self._link.errors():
            for name in [self.name(queue), *self._delay_names(queue)]:
                await channel.queue_delete(name, timeout=REPLY_SECONDS)
        self._delays.pop(queue, None)

    async def delay_queue(self, queue: str, seconds: float) -> str:
        """The name on the broker of the queue that passes its messages on to `queue` after the delay.

        Declaring it again renews its life, so it outlives every message in it.
        """
        milliseconds = rounded_up(seconds)
        name = self._delay_name(queue, milliseconds)
        channel = await self._link.channel(ADMIN)
        with self._link.errors():
            await _declare(channel, name, {
                "x-message-ttl": milliseconds, "x-expires": milliseconds + IDLE_SECONDS * 1000,
                "x-dead-letter-exchange": "", "x-dead-letter-routing-key": self.name(queue),
                "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
            })
        self._delays.setdefault(queue, set()).add(milliseconds)
        return name

    async def delayed(self, queue: str) -> int:
        """Messages that wait in the delay queues which this process has used for the queue."""
        counts = [await self.counts(name) for name in self._delay_names(queue)]
        return sum(found[0] for found in counts if found)

    def _delay_names(self, queue: str) -> list[str]:
        return [self._delay_name(queue, milliseconds) for milliseconds in sorted(self._delays.get(queue, ()))]

    def _delay_name(self, queue: str, milliseconds: int) -> str:
        return f"{self.name(queue)}.delay.{milliseconds}"


def rounded_up(seconds: float) -> int:
    """Milliseconds with two significant digits, never less than asked for: that bounds the number of delay queues."""
    milliseconds = max(1, math.ceil(round(seconds * 1000, 3)))
    unit = 10 ** max(0, len(str(milliseconds)) - 2)
    return -(-milliseconds // unit) * unit


async def _declare(channel: AbstractChannel, name: str, arguments: dict[str, str | int]) -> None:
    await channel.queue_declare(
        name, durable=True, arguments={"x-queue-type": "quorum", **arguments}, timeout=REPLY_SECONDS
    )
