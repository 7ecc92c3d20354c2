"""Messages as they come: pushed by the broker, received by somebody, settled by their receipt."""

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

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import dataclass
from tasker.errors import MessagingError
from tasker_rabbitmq.link import RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.sending import READS, publish

HELD_LIMIT = 100_000
"""Unsettled messages at most; beyond it receiving is refused."""
SILENCE_SECONDS = 5.0
"""After so long without a pushed message the queue is looked at: the push of a broker may have come to a halt."""
FREE_RETURNS = 5
FORCED_DELAY = BackoffPolicy(0.1, 25.6)
"""A message that was received more often is not given back at once but with a growing delay."""
LINGER_SECONDS = 0.5
"""How long a pushed message may lie here before those that nobody asks for go back for others."""


def new_ids() -> Iterator[int]:
    """Ids that grow and that no other process is likely to give: RabbitMQ has none of its own."""
    return itertools.count(secrets.randbits(62))


@dataclass(slots=True)
class Receipt:
    """A delivered message. It can be settled as long as the channel lives that delivered it."""

    message_id: int
    body: bytes
    reads: int
    sent_at: datetime | None
    channel: AbstractChannel
    tag: int
    deadline: float = 0.0
    """When it goes back by itself, a reading of the clock."""

    @property
    def void(self) -> bool:
        """True when the channel is gone: the broker has put the message back."""
        return self.channel.is_closed

    async def acknowledge(self, link: Link) -> None:
        """Done with it."""
        await acknowledge(link, [self])

    async def give_back(self, link: Link, *, requeue: bool = True) -> None:
        """To its place in the queue, or else to the dead letters."""
        async with link.answered(self.channel):
            if not self.void:
                await link.settlements.reject(self.channel, self.tag, requeue=requeue)


async def acknowledge(link: Link, receipts: Sequence[Receipt]) -> None:
    """Done with all of them, in few frames."""
    tags: dict[AbstractChannel, list[int]] = {}
    for receipt in receipts:
        tags.setdefault(receipt.channel, []).append(receipt.tag)
    for channel, of_channel in tags.items():
        async with link.answered(channel):
            await link.settlements.acknowledge(channel, of_channel)


def receipt_of(delivered: DeliveredMessage, ids: Iterator[int]) -> Receipt:
    """The receipt of a delivery; what a stranger has sent gets an id of ours."""
    found = delivered.header.properties
    headers = found.headers or {}
    reads = 1 + sum(count for key in (READS, "x-delivery-count") if isinstance(count := headers.get(key), int))
    text = found.message_id or ""
    message_id = int(text) if text.isdecimal() else next(ids)
    return Receipt(message_id, delivered.body, reads, found.timestamp, delivered.channel, delivered.delivery_tag or 0)


def forced_delay(reads: int) -> float:
    """Seconds before a message that was received `reads` times is visible again: 0, then 0.1 doubled up to 25.6."""
    return 0.0 if reads <= FREE_RETURNS else FORCED_DELAY.pause(reads - FREE_RETURNS - 1)


class UnsettledMessages:
    """Receipts by queue and message id. Those whose channel is gone do not count."""

    def __init__(self, limit: int = HELD_LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def room(self) -> int:
        """How many more may come. Raises `MessagingError` when there is none."""
        if len(self._receipts) < self._limit:
            return self._limit - len(self._receipts)
        raise MessagingError(f"{self._limit} received messages are not settled", hint="acknowledge or return them")

    def put(self, queue: str, receipt: Receipt) -> Receipt | None:
        """Remember; returns the receipt of another copy of the message that was here already."""
        former = self.take(queue, receipt.message_id)
        self._receipts[queue, receipt.message_id] = receipt
        return former

    def get(self, queue: str, message_id: int) -> Receipt | None:
        """The valid receipt of the message."""
        receipt = self._receipts.get((queue, message_id))
        return receipt if receipt and not receipt.void else None

    def take(self, queue: str, message_id: int) -> Receipt | None:
        """Like `get`, and the message is settled."""
        receipt = self.get(queue, message_id)
        self._receipts.pop((queue, message_id), None)
        return receipt

    def of(self, queue: str) -> list[Receipt]:
        """The valid receipts of a queue."""
        return [receipt for (name, _), receipt in self._receipts.items() if name == queue and not receipt.void]

    def take_overdue(self, now: float) -> list[Receipt]:
        """Those whose deadline has passed are not ours any more; void ones are forgotten on the way."""
        keys = [key for key, receipt in self._receipts.items() if receipt.void or receipt.deadline <= now]
        return [receipt for key in keys if (receipt := self.take(*key))]


class Feed:
    """A consumer of one queue, and what has arrived and waits to be taken: at most its prefetch.

    `listeners` are told of every arrival, and by `tend` of the end of the channel.
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
        """True while the broker pushes."""
        return self._channel is not None and not self._channel.is_closed and self._tag in self._channel.consumers

    @property
    def lost(self) -> bool:
        """True when the broker was pushing and the channel is gone."""
        return self._channel is not None and self._channel.is_closed

    def silent(self) -> bool:
        """True once in a while when nothing is pushed."""
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
            # the limit holds for the consumer that is made after it
            await channel.basic_qos(prefetch_count=prefetch, timeout=REPLY_SECONDS)
            reply = await channel.basic_consume(self._name, self._arrived, timeout=REPLY_SECONDS)
            self._channel, self._tag, self.prefetch = channel, reply.consumer_tag or "", prefetch
        if not self.listeners:  # they have gone meanwhile: nobody would take what is pushed, or stop it
            await self.stop()

    async def _arrived(self, delivered: DeliveredMessage) -> None:
        self._heard = time.monotonic()
        receipt = receipt_of(delivered, self._ids)
        receipt.deadline = self._heard + LINGER_SECONDS
        self.waiting.append(receipt)
        self._tell()

    def _tell(self) -> None:
        for event in self.listeners:
            event.set()

    def take(self, limit: int) -> list[Receipt]:
        """Up to `limit` of what waits, the oldest first."""
        self._asked, self._asked_at = limit, time.monotonic()
        taken = [self.waiting.popleft() for _ in range(min(limit, len(self.waiting)))]
        return [receipt for receipt in taken if not receipt.void]

    async def tend(self) -> None:
        """Give back what lies here for too long: more came than is asked for now. Tell of the end of the channel."""
        now = time.monotonic()
        if self.lost:
            self._tell()
        elif self.waiting and now >= self.waiting[0].deadline:
            asked = self._asked if self.running and now - self._asked_at < LINGER_SECONDS else 0
            if not asked or asked < self.prefetch:
                await self.stop(asked)
                if asked:
                    await self.start(asked)

    async def stop(self, keep: int = 0) -> None:
        """No more pushes; what was not taken goes back, but for the oldest `keep`."""
        channel, self._channel, self.prefetch = self._channel, None, 0
        async with self._link.answered(channel):
            if channel is not None and not channel.is_closed and self._tag in channel.consumers:
                await channel.basic_cancel(self._tag, timeout=REPLY_SECONDS)
            await self._return([self.waiting.pop() for _ in range(len(self.waiting) - keep)][::-1])

    async def _return(self, untaken: Sequence[Receipt]) -> None:
        """Back to the queue, as copies: the broker counts what it has sent ahead as a delivery, and a message that
        came before counts as one that may have ended whoever received it. Nobody has received these.
        """
        now = datetime.now(UTC)

        def origin(receipt: Receipt) -> tuple[datetime, int]:
            return receipt.sent_at or now, receipt.reads - 1

        kept = sorted((receipt for receipt in untaken if not receipt.void), key=origin)
        left = [(list(alike), *how) for how, alike in itertools.groupby(kept, origin)]
        try:
            while left:
                await self._return_alike(*left[0])
                left.pop(0)
        except MessagingError:  # as what they are, then: nobody else knows of them
            for receipt in itertools.chain.from_iterable(receipts for receipts, *_ in left):
                await receipt.give_back(self._link)
            raise

    async def _return_alike(self, receipts: Sequence[Receipt], sent_at: datetime, reads: int) -> None:
        """The copies first: a crash in between doubles messages, and loses none."""
        copies = [(receipt.message_id, receipt.body) for receipt in receipts]
        with suppress(KeyError):  # the queue is gone, and the messages with it
            await publish(self._link, self._name, copies, sent_at, reads)
            await acknowledge(self._link, receipts)
