"""Backend on RabbitMQ, with the features that AMQP lacks: ids, visibility timeouts, delays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime

from tasker.errors import MessagingError
from tasker.messaging.port import Capabilities, MessageAvailable, QueuedMessage, QueueStats
from tasker.settings.addresses import check_queue_name
from tasker_rabbitmq.link import REPLY_SECONDS, Link
from tasker_rabbitmq.polling import poll
from tasker_rabbitmq.received import Feed, Receipt, UnsettledMessages, acknowledge, forced_delay, new_ids, receipt_of
from tasker_rabbitmq.sending import Messages, publish
from tasker_rabbitmq.settings import RabbitmqSettings
from tasker_rabbitmq.topology import Topology

TICK_SECONDS = 0.25
"""Interval of the check for overdue messages and lost connections."""
STATS_SECONDS = 30.0
"""Time for which the age of a queue's first message is cached."""
EMPTY_POLLS = 3
"""Number of consecutive checks with an empty queue after which other processes count as holding none of its messages:
messages pushed to a busy worker are invisible only for a moment."""


class RabbitmqBackend:
    """`Backend` on RabbitMQ.

    A received message stays unacknowledged on the broker until it is settled. Its visibility timeout is a deadline in
    this process, which then releases the message; if the process or its connection dies, the broker releases it at
    once.
    """

    capabilities = Capabilities(push=True, native_delay=True, ack_extend=True)

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings, self._clock = settings, settings.clock
        self._link = Link(settings)
        self._topology = Topology(self._link, settings)
        self._unsettled = UnsettledMessages()
        self._feeds: dict[str, Feed] = {}
        self._known: set[str] = set()
        self._looks: dict[str, tuple[float, datetime | None]] = {}
        self._empty: dict[str, tuple[float, int]] = {}
        self._ids = new_ids()
        self._ticker: asyncio.Task[None] | None = None

    def provider_name(self) -> str:
        return "rabbitmq"

    async def open(self) -> None:
        """Connect to the broker. Raises `BackendUnavailable`."""
        await self._link.open()
        self._ticker = self._ticker or asyncio.create_task(self._tick(), name="rabbitmq visibility timeouts")

    async def close(self) -> None:
        """Disconnect; received messages that were not settled are visible again at once."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        await self._link.close()

    async def health_check(self) -> bool:
        """Return True if the broker answers."""
        with suppress(MessagingError):
            await self._topology.counts("dead.letters")
            return True
        return False

    # Queues

    async def create_queue(self, queue: str) -> None:
        await self._topology.create(check_queue_name(queue))
        self._known.add(queue)

    async def delete_queue(self, queue: str) -> None:
        await self._topology.delete(check_queue_name(queue))
        self._known.discard(queue)

    async def queue_exists(self, queue: str) -> bool:
        return await self._counts(queue) is not None

    async def list_queues(self) -> list[str]:
        """Return the names of the existing queues that this process has used: AMQP cannot list others."""
        return [queue for queue in sorted(self._known) if await self.queue_exists(queue)]

    async def _counts(self, queue: str) -> tuple[int, int] | None:
        counts = await self._topology.counts(check_queue_name(queue))
        (self._known.discard if counts is None else self._known.add)(queue)
        return counts

    async def _must_exist(self, queue: str) -> None:
        """Check an unknown queue on a separate channel, because a missing queue closes the channel."""
        if check_queue_name(queue) not in self._known and await self._counts(queue) is None:
            raise self._missing(queue)

    def _missing(self, queue: str) -> MessagingError:
        self._known.discard(queue)
        return MessagingError(f"queue {queue!r} does not exist", hint="create it first")

    # Sending

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send a message; return once the broker has confirmed that it stored it."""
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send messages in order. If it raises an error, some of them may have been sent."""
        messages = [(next(self._ids), payload) for payload in payloads]
        await self._publish(queue, check_queue_name(queue), messages, self._clock.now())
        return [message_id for message_id, _ in messages]

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message through a queue whose messages expire after the delay, rounded up to two digits."""
        await self._must_exist(queue)
        message_id = next(self._ids)
        delayed = await self._topology.delay_queue(queue, delay_seconds)
        await self._publish(queue, delayed, [(message_id, payload)], self._clock.now())
        return message_id

    async def _publish(self, queue: str, target: str, messages: Messages, sent_at: datetime, reads: int = 0) -> None:
        """Send to `target`, the queue itself or a delay queue of it."""
        try:
            await publish(self._link, self._topology.name(target), messages, sent_at, reads)
        except KeyError as error:
            raise self._missing(queue) from error

    # Receiving

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Return up to `limit` messages: pushed ones if this backend has a subscription, else polled ones."""
        await self._must_exist(queue)
        await self._return_overdue()
        limit = min(limit, self._unsettled.room())
        feed = self._feeds.get(queue)
        receipts = await self._pushed(feed, queue, limit) if feed else await self._polled(queue, limit)
        return [await self._hold(queue, receipt, visibility_timeout) for receipt in receipts]

    async def _pushed(self, feed: Feed, queue: str, limit: int) -> list[Receipt]:
        """Return pushed messages. The prefetch limit follows the demand, so that other processes get the rest."""
        # each increase creates another consumer
        more = max(limit, 2 * feed.prefetch) if limit > feed.prefetch else limit
        if not feed.running:  # it had too many messages, or the queue was removed
            self._known.discard(queue)
            await self._must_exist(queue)
        await feed.start(min(more, self._settings.prefetch_count))
        receipts = feed.take(limit)
        # With as many unsettled messages as the prefetch limit, no more are pushed until some are settled.
        if not receipts and (feed.silent() or len(self._unsettled.of(queue)) >= feed.prefetch):
            return await self._polled(queue, limit)
        return receipts

    async def _polled(self, queue: str, limit: int) -> list[Receipt]:
        try:
            return await poll(self._link, self._topology.name(queue), self._ids, limit)
        except KeyError as error:
            raise self._missing(queue) from error

    async def _hold(self, queue: str, receipt: Receipt, visibility_timeout: float) -> QueuedMessage:
        receipt.deadline = self._clock.monotonic() + visibility_timeout
        if (copy := self._unsettled.put(queue, receipt)) is not None:
            await copy.acknowledge(self._link)  # a duplicate: one of the two is acknowledged
        return QueuedMessage(queue, receipt.message_id, receipt.body, receipt.reads)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Raise `MessagingError`: RabbitMQ cannot fetch by id (`fetch_by_id` is not among the capabilities)."""
        raise MessagingError("RabbitMQ cannot fetch a message by its id", retryable=False, hint="use receive_messages")

    # Settling

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Acknowledge a message. Returns False also if the connection on which it was received was lost."""
        return (await self.ack_messages(queue, [message_id]))[0]

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Acknowledge messages, in as few frames as other unsettled messages allow."""
        receipts = [self._unsettled.take(check_queue_name(queue), message_id) for message_id in message_ids]
        await acknowledge(self._link, [receipt for receipt in receipts if receipt is not None])
        return [receipt is not None for receipt in receipts]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Release a message. The delay grows with the number of its returns, until it is moved to the dead letters."""
        receipt = self._unsettled.take(check_queue_name(queue), message_id)
        if receipt is None:
            return False
        delay = max(delay_seconds, forced_delay(receipt.reads))
        requeue = receipt.reads < self._settings.delivery_limit
        if requeue and delay > 0:
            await self._replace(queue, receipt, receipt.reads, delay)
        else:
            await receipt.give_back(self._link, requeue=requeue)
        return True

    async def _replace(self, queue: str, receipt: Receipt, reads: int, delay: float = 0.0) -> None:
        """Append a copy, then acknowledge the original: a crash in between duplicates the message, and loses none."""
        copy, sent_at = (receipt.message_id, receipt.body), receipt.sent_at or self._clock.now()
        try:
            target = await self._topology.delay_queue(queue, delay) if delay else queue
            await self._publish(queue, target, [copy], sent_at, reads)
        except MessagingError:
            await receipt.give_back(self._link)
            raise
        await receipt.acknowledge(self._link)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Extend the deadline of a message. The broker's own limit (`consumer_timeout`, 30 minutes) still applies."""
        if (receipt := self._unsettled.get(check_queue_name(queue), message_id)) is not None:
            receipt.deadline = self._clock.monotonic() + seconds
        return receipt is not None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            for tend in [*(feed.tend for feed in self._feeds.values()), self._return_overdue]:
                with suppress(MessagingError):
                    await tend()

    async def _return_overdue(self) -> None:
        for receipt in self._unsettled.take_overdue(self._clock.monotonic()):
            await receipt.give_back(self._link)

    # Monitoring

    async def queue_stats(self, queue: str) -> QueueStats:
        """Count ready messages, unsettled ones, and those delayed by this process; other processes' messages are not
        known."""
        counts = await self._counts(queue)
        if counts is None:
            raise self._missing(queue)
        feed = self._feeds.get(queue)
        here = [*self._unsettled.of(queue), *(feed.waiting if feed else ())]
        depth = counts[0] + len(here) + await self._topology.delayed(queue)
        times = [receipt.sent_at for receipt in here] or [await self._first(queue) if counts[0] else None]
        oldest = min((time for time in times if time), default=None)
        age = max(0.0, (self._clock.now() - oldest).total_seconds()) if oldest else None
        others = counts[1] - (feed is not None and feed.running)
        unseen = 0 if self._idle(queue, counts[0]) else others * self._settings.prefetch_count
        return QueueStats(queue, depth, age, counts[1], unseen)

    def _idle(self, queue: str, ready: int) -> bool:
        """Return True if the queue was empty in so many consecutive checks that other processes only have messages in
        progress."""
        now = self._clock.monotonic()
        looked_at, polls = self._empty.get(queue, (now, 0))
        self._empty[queue] = now, 0 if ready else 1 if now - looked_at > STATS_SECONDS else polls + 1
        return self._empty[queue][1] >= EMPTY_POLLS

    async def _first(self, queue: str) -> datetime | None:
        """Return the time at which the first ready message was sent.

        The message is received and put back, so rarely, because that counts as a delivery.
        """
        looked_at, sent_at = self._looks.get(queue, (-STATS_SECONDS, None))
        if self._clock.monotonic() - looked_at >= STATS_SECONDS:
            async with self._link.alone() as channel:
                message = await channel.basic_get(self._topology.name(queue), timeout=REPLY_SECONDS)
                if message.delivery_tag is not None:
                    sent_at = (receipt := receipt_of(message, self._ids)).sent_at
                    await self._put_back(queue, receipt)
            self._looks[queue] = (self._clock.monotonic(), sent_at)
        return sent_at

    async def _put_back(self, queue: str, receipt: Receipt) -> None:
        """Put a message back: the first time to its position, later to the end, where nothing is counted.

        A message that no process takes because its queue is paused would otherwise reach the delivery limit by these
        checks alone.
        """
        looked_at = receipt.reads > 1
        await (self._replace(queue, receipt, receipt.reads - 1) if looked_at else receipt.give_back(self._link))

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Yield a notification for each queue, then one for each queue in which pushed messages wait to be received.

        Raises `BackendUnavailable` if the connection is lost: subscribe again.
        """
        queue_names = sorted({check_queue_name(queue) for queue in queues})
        news = asyncio.Event()
        async with AsyncExitStack() as stack:
            feeds = [(queue, await stack.enter_async_context(self._fed(queue, news))) for queue in queue_names]
            for queue in queue_names:
                yield MessageAvailable(queue)
            while await news.wait():
                news.clear()
                if any(feed.lost for _, feed in feeds):
                    raise self._link.unavailable("was lost")
                for queue in [queue for queue, feed in feeds if feed.waiting]:
                    yield MessageAvailable(queue)

    @asynccontextmanager
    async def _fed(self, queue: str, news: asyncio.Event) -> AsyncGenerator[Feed, None]:
        """Return the feed of a queue, shared by its subscriptions; it ends with the last of them."""
        await self._must_exist(queue)
        feed = self._feeds.setdefault(queue, Feed(self._link, self._topology.name(queue), self._ids))
        feed.listeners.add(news)
        try:
            await feed.start(1)
            yield feed
        finally:
            feed.listeners.discard(news)
            if not feed.listeners:
                del self._feeds[queue]
                await self._link.briefly(feed.stop())
