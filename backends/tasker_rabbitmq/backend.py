"""The backend: what AMQP lacks (ids, visibility timeouts, delays) is added here, all else is the broker's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import datetime

from aiormq.exceptions import ChannelNotFoundEntity, PublishError
from pamqp.commands import Basic

from tasker.contracts.messaging import Available, Capabilities, QueuedMessage, QueueStats, check_queue_name
from tasker.errors import MessagingError
from tasker_rabbitmq.feed import Feed
from tasker_rabbitmq.held import HeldMessages
from tasker_rabbitmq.link import ADMIN, PUBLISH, RECEIVE, REPLY_SECONDS, Link
from tasker_rabbitmq.messages import Receipt, new_ids, properties, receipt_of
from tasker_rabbitmq.settings import RabbitmqSettings
from tasker_rabbitmq.topology import Topology

BURST = 500
"""Messages that are published before their confirmations are awaited."""
TICK_SECONDS = 0.5
"""How often messages are looked for that are overdue."""
FREE_RETURNS = 5
"""A message that comes back more often than this is given back with a growing delay, never at once (E-17)."""
LONGEST_RETURN_SECONDS = 30.0
STRAGGLER_SECONDS = 0.1
"""How long a poll waits for messages that the broker has announced; a competitor may have got them."""


class RabbitmqBackend:
    """`Backend` on RabbitMQ.

    A received message stays unacknowledged on the broker until it is settled. Its visibility timeout is a deadline in
    this process, which then gives it back; when the process or its connection dies, the broker does so at once.
    """

    capabilities = Capabilities(push=True, native_delay=True, ack_extend=True)

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings, self._clock = settings, settings.clock
        self._link = Link(settings)
        self._topology = Topology(self._link, settings)
        self._held = HeldMessages()
        self._feeds: dict[str, Feed] = {}
        self._known: set[str] = set()
        self._ids = new_ids()
        self._qos = asyncio.Lock()
        self._ticker: asyncio.Task[None] | None = None

    def provider_name(self) -> str:
        """`rabbitmq`."""
        return "rabbitmq"

    async def open(self) -> None:
        """Connect. Raises `BackendUnavailable`."""
        await self._link.open()
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._tick(), name="rabbitmq visibility")

    async def close(self) -> None:
        """Disconnect; whatever was received and not settled is visible again at once."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
        await self._link.close()

    async def health_check(self) -> bool:
        """True when the broker answers."""
        try:
            await self._topology.counts("")  # the last queue named on the channel; there is none
        except MessagingError:
            return False
        return True

    # Queues

    async def create_queue(self, queue: str) -> None:
        """Make the queue if it does not exist."""
        await self._topology.create(check_queue_name(queue))
        self._known.add(queue)

    async def delete_queue(self, queue: str) -> None:
        """Remove the queue and its messages."""
        await self._topology.delete(check_queue_name(queue))
        self._known.discard(queue)
        self._held.forget(queue)

    async def queue_exists(self, queue: str) -> bool:
        """True when the broker has it."""
        return await self._counts(queue) is not None

    async def list_queues(self) -> list[str]:
        """Names of the queues that this process has used and that still exist: AMQP cannot tell of others."""
        return [queue for queue in sorted(self._known) if await self.queue_exists(queue)]

    async def _counts(self, queue: str) -> tuple[int, int] | None:
        counts = await self._topology.counts(self._topology.name(check_queue_name(queue)))
        (self._known.discard if counts is None else self._known.add)(queue)
        return counts

    async def _check_known(self, queue: str) -> None:
        """Ask for an unknown queue on a channel that has nothing to lose: a missing one closes the channel."""
        if check_queue_name(queue) not in self._known and await self._counts(queue) is None:
            raise _missing(queue)

    # Sending

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send; returns once the broker has confirmed that it keeps the message."""
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send in order. When it raises, some may have been sent."""
        name = self._topology.name(check_queue_name(queue))
        sent_at = self._clock.now()
        messages = [(next(self._ids), payload) for payload in payloads]
        for start in range(0, len(messages), BURST):
            await self._publish(queue, name, messages[start : start + BURST], sent_at)
        return [message_id for message_id, _ in messages]

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that waits in a queue whose time to live is the delay, rounded up to two digits."""
        if delay_seconds <= 0:
            return await self.send_message(queue, payload)
        await self._check_known(queue)
        message_id = next(self._ids)
        await self._send_later(queue, message_id, payload, delay_seconds, self._clock.now())
        return message_id

    async def _send_later(
        self, queue: str, message_id: int, payload: bytes, delay_seconds: float, sent_at: datetime, reads: int = 0
    ) -> None:
        name = await self._topology.delay_queue(queue, delay_seconds)
        await self._publish(queue, name, [(message_id, payload)], sent_at, reads)

    async def _publish(
        self, queue: str, name: str, messages: Sequence[tuple[int, bytes]], sent_at: datetime, reads: int = 0
    ) -> None:
        channel = await self._link.channel(PUBLISH)
        with self._link.errors():
            try:
                await asyncio.gather(*(
                    channel.basic_publish(
                        payload, routing_key=name, properties=properties(message_id, sent_at, reads), mandatory=True,
                        timeout=REPLY_SECONDS, wait=False,
                    )
                    for message_id, payload in messages
                ))
            except PublishError as error:
                self._known.discard(queue)
                raise _missing(queue) from error

    # Receiving

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Up to `limit` messages: those pushed for a subscription of this backend, else polled from the broker."""
        await self._check_known(queue)
        await self._return_overdue()
        limit = min(limit, self._held.room())
        feed = self._feeds.get(queue)
        receipts = await self._pushed(feed, queue, limit) if feed else await self._polled(queue, limit)
        return [await self._hold(queue, receipt, visibility_timeout) for receipt in receipts]

    async def _pushed(self, feed: Feed, queue: str, limit: int) -> list[Receipt]:
        receipts = feed.take(limit)
        if not feed.running:
            await feed.start(self._settings.prefetch_count)
        elif not receipts and self._held.count(queue) >= self._settings.prefetch_count:
            return await self._polled(queue, limit)  # the broker pushes no more until some are settled
        return receipts

    async def _polled(self, queue: str, limit: int) -> list[Receipt]:
        """One message by `basic_get`, which tells how many are left; those are taken in one burst."""
        channel = await self._link.channel(RECEIVE)
        with self._link.errors():
            try:
                found = await channel.basic_get(self._topology.name(queue), timeout=REPLY_SECONDS)
            except ChannelNotFoundEntity as error:
                self._known.discard(queue)
                raise _missing(queue) from error
        if not isinstance(found.delivery, Basic.GetOk):
            return []
        first = receipt_of(found, self._ids)
        rest = min(limit - 1, found.delivery.message_count or 0)
        return [first, *await self._burst(queue, rest)] if rest else [first]

    async def _burst(self, queue: str, count: int) -> list[Receipt]:
        feed = Feed(self._link, self._topology.name(queue), self._ids, self._qos)
        await feed.start(min(count, 65535))
        await feed.fill(count, STRAGGLER_SECONDS)
        receipts = feed.take(count)
        await feed.stop()
        return receipts + feed.take(count)

    async def _hold(self, queue: str, receipt: Receipt, visibility_timeout: float) -> QueuedMessage:
        receipt.deadline = self._clock.monotonic() + visibility_timeout
        if (copy := self._held.put(queue, receipt)) is not None:
            await copy.acknowledge()  # the same message twice: one of them is enough
        return QueuedMessage(queue, receipt.message_id, receipt.body, receipt.reads)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Not possible here (`fetch_by_id` is not claimed): raises `MessagingError`."""
        raise MessagingError(
            "RabbitMQ cannot fetch a message by its id", retryable=False, hint="use receive_messages, or see fetch_by_id"
        )

    # Settling

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Done with it. False also when the connection that it came by was lost."""
        receipt = self._held.take(check_queue_name(queue), message_id)
        if receipt is None:
            return False
        with self._link.errors():
            await receipt.acknowledge()
        return True

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Give it back. One that comes back often waits longer each time, and ends with the dead letters."""
        receipt = self._held.take(check_queue_name(queue), message_id)
        if receipt is None:
            return False
        delay = max(delay_seconds, _forced_delay(receipt.reads))
        with self._link.errors():
            if receipt.reads >= self._settings.delivery_limit:
                await receipt.give_back(requeue=False)
            elif delay > 0:
                await self._give_back_later(queue, receipt, delay)
            else:
                await receipt.give_back()
        return True

    async def _give_back_later(self, queue: str, receipt: Receipt, delay: float) -> None:
        """A copy with the delay first, then away with the original: a crash in between doubles it, none is lost."""
        sent_at = receipt.sent_at or self._clock.now()
        try:
            await self._send_later(queue, receipt.message_id, receipt.body, delay, sent_at, receipt.reads)
        except MessagingError:
            await receipt.give_back()
            raise
        await receipt.acknowledge()

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Move its deadline. The broker's own limit (`consumer_timeout`, 30 minutes) stays."""
        receipt = self._held.get(check_queue_name(queue), message_id)
        if receipt is None:
            return False
        receipt.deadline = self._clock.monotonic() + seconds
        return True

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            with suppress(MessagingError):
                await self._return_overdue()
                for feed in list(self._feeds.values()):
                    if feed.neglected:
                        await feed.stop()

    async def _return_overdue(self) -> None:
        with self._link.errors():
            for receipt in self._held.overdue(self._clock.monotonic()):
                await receipt.give_back()

    # Watching

    async def queue_stats(self, queue: str) -> QueueStats:
        """Ready messages, those that this process holds, and those it has delayed; what others hold is not known."""
        counts = await self._counts(queue)
        if counts is None:
            raise _missing(queue)
        ready, consumers = counts
        feed = self._feeds.get(queue)
        here = self._held.of(queue) + (feed.waiting if feed else [])
        depth = ready + len(here) + await self._topology.delayed(queue)
        return QueueStats(queue, depth, await self._oldest(queue, here), consumers)

    async def _oldest(self, queue: str, here: Sequence[Receipt]) -> float | None:
        """Age of the oldest message in sight. With none here, the first of the queue is looked at and put back."""
        times = [receipt.sent_at for receipt in here if receipt.sent_at]
        if not here:
            channel = await self._link.channel(ADMIN)
            with self._link.errors():
                found = await channel.basic_get(self._topology.name(queue), timeout=REPLY_SECONDS)
                if isinstance(found.delivery, Basic.GetOk):
                    receipt = receipt_of(found, self._ids)
                    await receipt.give_back()
                    times = [receipt.sent_at] if receipt.sent_at else []
        return max(0.0, (self._clock.now() - min(times)).total_seconds()) if times else None

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[Available, None]:
        """One notification for each queue, then one for each queue in which pushed messages wait to be received.

        Raises `BackendUnavailable` when the connection is lost: subscribe again.
        """
        wanted = sorted({check_queue_name(queue) for queue in queues})
        news = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            feeds = {queue: await stack.enter_async_context(self._fed(queue, news)) for queue in wanted}
            for queue in wanted:
                yield Available(queue)
            while True:
                await news.wait()
                news.clear()
                await self._link.channel(RECEIVE)
                for queue, feed in feeds.items():
                    if feed.waiting:
                        yield Available(queue)

    @contextlib.asynccontextmanager
    async def _fed(self, queue: str, news: asyncio.Event) -> AsyncGenerator[Feed, None]:
        """The feed of a queue, shared by its subscriptions; it ends with the last of them."""
        await self._check_known(queue)
        feed = self._feeds.get(queue)
        if feed is None:
            feed = self._feeds[queue] = Feed(self._link, self._topology.name(queue), self._ids, self._qos)
        feed.listeners.add(news)
        try:
            if not feed.running:
                await feed.start(self._settings.prefetch_count)
            yield feed
        finally:
            feed.listeners.discard(news)
            if not feed.listeners:
                del self._feeds[queue]
                with suppress(MessagingError):
                    await feed.stop()


def _forced_delay(reads: int) -> float:
    """Seconds before a message that was received `reads` times is visible again: 0 at first, then doubling."""
    return 0.0 if reads <= FREE_RETURNS else min(LONGEST_RETURN_SECONDS, 0.1 * 2 ** min(20, reads - FREE_RETURNS - 1))


def _missing(queue: str) -> MessagingError:
    return MessagingError(f"queue {queue!r} does not exist", hint="create it first")
