"""Messages pushed by the broker, and the receipts by which they are settled."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from aiormq import Channel
from aiormq.abc import AbstractChannel, DeliveredMessage

from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.errors import MessagingError
from tasker_rabbitmq.link import RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.sending import READS, publish

HELD_LIMIT = 100_000
"""Maximum number of unsettled messages; receiving is refused beyond it."""
SILENCE_SECONDS = 5.0
"""Time without a pushed message after which the queue is polled: the broker may have stopped pushing."""
FREE_RETURNS = 5
FORCED_DELAY = BackoffPolicy(0.1, 25.6)
"""Growing delay with which a message is released after more than `FREE_RETURNS` receptions."""
LINGER_SECONDS = 0.5
"""Time after which pushed messages that were not requested are returned for other processes."""


def new_ids() -> Iterator[int]:
    """Return an iterator of growing ids that no other process is likely to use: RabbitMQ has no ids of its own."""
    return itertools.count(secrets.randbits(62))


@dataclass(slots=True)
class Receipt:
    """Receipt of a delivered message. It is valid as long as the channel that delivered the message is open."""

    message_id: int
    body: bytes
    reads: int
    sent_at: datetime | None
    channel: AbstractChannel
    tag: int
    deadline: float = 0.0
    """Time of the automatic release, a reading of the clock."""

    @property
    def void(self) -> bool:
        """True if the channel is closed: the broker has released the message."""
        return self.channel.is_closed

    async def acknowledge(self, link: Link) -> None:
        await acknowledge(link, [self])

    async def give_back(self, link: Link, *, requeue: bool = True) -> None:
        """Return the message to its position in the queue, or move it to the dead letters."""
        async with link.answered(self.channel):
            if not self.void:
                await link.settlements.reject(self.channel, self.tag, requeue=requeue)


async def acknowledge(link: Link, receipts: Sequence[Receipt]) -> None:
    """Acknowledge messages in few frames."""
    tags: dict[AbstractChannel, list[int]] = {}
    for receipt in receipts:
        tags.setdefault(receipt.channel, []).append(receipt.tag)
    for channel, of_channel in tags.items():
        async with link.answered(channel):
            await link.settlements.acknowledge(channel, of_channel)


def receipt_of(delivered: DeliveredMessage, ids: Iterator[int]) -> Receipt:
    """Create the receipt of a delivery; a message of another sender without an id gets a new one."""
    properties = delivered.header.properties
    headers = properties.headers or {}
    reads = 1 + sum(count for key in (READS, "x-delivery-count") if isinstance(count := headers.get(key), int))
    text = properties.message_id or ""
    message_id = int(text) if text.isdecimal() else next(ids)
    return Receipt(
        message_id, delivered.body, reads, properties.timestamp, delivered.channel, delivered.delivery_tag or 0
    )


def forced_delay(reads: int) -> float:
    """Return the delay in seconds after `reads` receptions: 0 at first, then 0.1, doubled each time up to 25.6."""
    return 0.0 if reads <= FREE_RETURNS else FORCED_DELAY.pause(reads - FREE_RETURNS - 1)


class UnsettledMessages:
    """Receipts by queue and message id. Those of closed channels do not count."""

    def __init__(self, limit: int = HELD_LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def room(self) -> int:
        """Return the number of messages that may still be received. Raises `MessagingError` if it is 0."""
        if len(self._receipts) < self._limit:
            return self._limit - len(self._receipts)
        raise MessagingError(f"{self._limit} received messages are not settled", hint="acknowledge or return them")

    def put(self, queue: str, receipt: Receipt) -> Receipt | None:
        """Store a receipt; return that of another copy of the message if there was one."""
        former = self.take(queue, receipt.message_id)
        self._receipts[queue, receipt.message_id] = receipt
        return former

    def get(self, queue: str, message_id: int) -> Receipt | None:
        """Return the valid receipt of the message."""
        receipt = self._receipts.get((queue, message_id))
        return receipt if receipt and not receipt.void else None

    def take(self, queue: str, message_id: int) -> Receipt | None:
        """Return the receipt like `get`, and forget the settled message."""
        receipt = self.get(queue, message_id)
        self._receipts.pop((queue, message_id), None)
        return receipt

    def of(self, queue: str) -> list[Receipt]:
        return [receipt for (name, _), receipt in self._receipts.items() if name == queue and not receipt.void]

    def take_overdue(self, now: float) -> list[Receipt]:
        """Remove and return the receipts whose deadline has passed; forget invalid ones."""
        keys = [key for key, receipt in self._receipts.items() if receipt.void or receipt.deadline <= now]
        return [receipt for key in keys if (receipt := self.take(*key))]


class Feed:
    """Consumer of one queue with the messages that have arrived and wait to be taken: at most its prefetch limit.

    `listeners` are notified of every arrival, and by `tend` of the end of the channel.
    """

    def __init__(self, link: Link, name: str, ids: Iterator[int]) -> None:
        self._link, self._name, self._ids = link, name, ids
        self._channel: Channel | None = None
        self._tag = ""
        self._heard = self._asked_at = 0.0
        self.prefetch = self._asked = 0
        self.waiting: deque[Receipt] = deque()
        self.listeners: set[asyncio.Event] = set()

    @property
    def running(self) -> bool:
        """True while the broker pushes messages."""
        return self._channel is not None and not self._channel.is_closed and self._tag in self._channel.consumers

    @property
    def lost(self) -> bool:
        """True if the broker was pushing messages and the channel is closed."""
        return self._channel is not None and self._channel.is_closed

    def silent(self) -> bool:
        """Return True if nothing was pushed for a while, at most once per `SILENCE_SECONDS`."""
        now = time.monotonic()
        if self.waiting or now - self._heard < SILENCE_SECONDS:
            return False
        self._heard = now
        return True

    async def start(self, prefetch: int) -> None:
        """Let the broker push up to `prefetch` unsettled messages, unless it does so already. The queue must exist."""
        if self.running and prefetch <= self.prefetch:
            return
        channel = await self._link.channel(RECEIVE)
        async with self._link.answered(channel), self._link.consuming:
            if self.running and prefetch <= self.prefetch:
                return
            if self.running:
                await channel.basic_cancel(self._tag, timeout=REPLY_SECONDS)
            # The limit applies to consumers created after it.
            await channel.basic_qos(prefetch_count=prefetch, timeout=REPLY_SECONDS)
            reply = await channel.basic_consume(self._name, self._arrived, timeout=REPLY_SECONDS)
            self._channel, self._tag, self.prefetch = channel, reply.consumer_tag or "", prefetch
        if not self.listeners:  # they are gone meanwhile: no task would take pushed messages, or stop the consumer
            await self.stop()

    async def _arrived(self, delivered: DeliveredMessage) -> None:
        self._heard = time.monotonic()
        receipt = receipt_of(delivered, self._ids)
        receipt.deadline = self._heard + LINGER_SECONDS
        self.waiting.append(receipt)
        self._notify_listeners()

    def _notify_listeners(self) -> None:
        for event in self.listeners:
            event.set()

    def take(self, limit: int) -> list[Receipt]:
        """Return up to `limit` waiting messages, the oldest first."""
        self._asked, self._asked_at = limit, time.monotonic()
        taken = [self.waiting.popleft() for _ in range(min(limit, len(self.waiting)))]
        return [receipt for receipt in taken if not receipt.void]

    async def tend(self) -> None:
        """Return messages that have waited too long, because more came than are requested now.

        Notifies the listeners of the end of the channel.
        """
        now = time.monotonic()
        if self.lost:
            self._notify_listeners()
        elif self.waiting and now >= self.waiting[0].deadline:
            demand = self._asked if self.running and now - self._asked_at < LINGER_SECONDS else 0
            if not demand or demand < self.prefetch:
                await self.stop(demand)
                if demand:
                    await self.start(demand)

    async def stop(self, keep: int = 0) -> None:
        """Stop the pushes; return the waiting messages except the oldest `keep`."""
        channel, self._channel, self.prefetch = self._channel, None, 0
        async with self._link.answered(channel):
            if channel is not None and not channel.is_closed and self._tag in channel.consumers:
                await channel.basic_cancel(self._tag, timeout=REPLY_SECONDS)
            await self._return([self.waiting.pop() for _ in range(len(self.waiting) - keep)][::-1])

    async def _return(self, untaken: Sequence[Receipt]) -> None:
        """Return messages to the queue as copies.

        The broker counts a message sent ahead as delivered, and many deliveries mark a message as one that may have
        crashed its consumers. No caller has received these.
        """
        now = datetime.now(UTC)

        def origin(receipt: Receipt) -> tuple[datetime, int]:
            return receipt.sent_at or now, receipt.reads - 1

        valid = sorted((receipt for receipt in untaken if not receipt.void), key=origin)
        left = [(list(alike), *how) for how, alike in itertools.groupby(valid, origin)]
        try:
            while left:
                await self._return_alike(*left[0])
                left.pop(0)
        except MessagingError:  # return the originals: no other component knows of them
            for receipt in itertools.chain.from_iterable(receipts for receipts, *_ in left):
                await receipt.give_back(self._link)
            raise

    async def _return_alike(self, receipts: Sequence[Receipt], sent_at: datetime, reads: int) -> None:
        """Publish the copies first: a crash in between duplicates messages, and loses none."""
        copies = [(receipt.message_id, receipt.body) for receipt in receipts]
        with suppress(KeyError):  # the queue is gone, and its messages with it
            await publish(self._link, self._name, copies, sent_at, reads)
            await acknowledge(self._link, receipts)
