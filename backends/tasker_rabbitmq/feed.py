"""Messages that the broker pushes for one queue: they wait here, a bounded number, until somebody takes them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator

from aiormq.abc import AbstractChannel, DeliveredMessage

from tasker_rabbitmq.link import RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.messages import Receipt, receipt_of

LINGER_SECONDS = 1.0
"""How long pushed messages may lie here untouched before they go back for others, and the push stops until asked again."""


class Feed:
    """A consumer of one queue. `listeners` are told of every arrival, and of the end of the channel."""

    def __init__(self, link: Link, name: str, ids: Iterator[int], qos: asyncio.Lock) -> None:
        self._link, self._name, self._ids, self._qos = link, name, ids, qos
        self._channel: AbstractChannel | None = None
        self._tag = ""
        self._waiting: deque[Receipt] = deque()
        self._touched = 0.0
        self.listeners: set[asyncio.Event] = set()

    @property
    def running(self) -> bool:
        """True while the broker pushes."""
        return self._channel is not None and not self._channel.is_closed and self._tag in self._channel.consumers

    @property
    def waiting(self) -> list[Receipt]:
        """What has arrived and was not taken, oldest first."""
        return [receipt for receipt in self._waiting if not receipt.void]

    async def start(self, prefetch: int) -> None:
        """Let the broker push up to `prefetch` messages ahead. Raises `MessagingError`, for a missing queue too."""
        channel = await self._link.channel(RECEIVE)
        with self._link.errors():
            async with self._qos:  # the limit holds for the consumers that are made after it
                await channel.basic_qos(prefetch_count=prefetch, timeout=REPLY_SECONDS)
                reply = await channel.basic_consume(self._name, self._arrived, timeout=REPLY_SECONDS)
        self._tag = reply.consumer_tag or ""
        self._channel = channel
        channel.closing.add_done_callback(lambda _: self._tell())

    async def _arrived(self, delivered: DeliveredMessage) -> None:
        if not self._waiting:
            self._touched = time.monotonic()
        self._waiting.append(receipt_of(delivered, self._ids))
        self._tell()

    def _tell(self) -> None:
        for event in self.listeners:
            event.set()

    def take(self, limit: int) -> list[Receipt]:
        """Up to `limit` of what waits, the oldest first."""
        self._touched = time.monotonic()
        taken: list[Receipt] = []
        while self._waiting and len(taken) < limit:
            if not (receipt := self._waiting.popleft()).void:
                taken.append(receipt)
        return taken

    @property
    def neglected(self) -> bool:
        """True when messages lie here that nobody has asked for lately: others could work on them."""
        return bool(self._waiting) and time.monotonic() - self._touched > LINGER_SECONDS

    async def stop(self) -> None:
        """No more pushes; what was not taken goes back."""
        channel, self._channel = self._channel, None
        with self._link.errors():
            if channel is not None and not channel.is_closed and self._tag in channel.consumers:
                await channel.basic_cancel(self._tag, timeout=REPLY_SECONDS)
            while self._waiting:
                await self._waiting.pop().give_back()
