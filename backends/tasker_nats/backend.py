"""Backend on NATS JetStream, with the features that JetStream lacks: timeouts of single messages, delays,
announcements."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from nats.aio.msg import Msg

from tasker.errors import MessagingError
from tasker.messaging.port import Capabilities, MessageAvailable, QueuedMessage, QueueStats
from tasker.settings.addresses import check_queue_name
from tasker_nats.link import Link
from tasker_nats.settings import NatsSettings
from tasker_nats.streams import CONSUMER, Streams
from tasker_nats.unsettled import Receipt, UnsettledMessages

BURST = 500
"""Maximum number of messages sent before their confirmations are awaited, and received in one call."""
TICK_SECONDS = 0.5
"""Interval of the check for overdue messages."""
QUIET_SECONDS = 2.0
"""Time without announcements after which a subscription notifies of all queues."""
DELAY = "Tasker-Delay-Ms"


class NatsBackend:
    """`Backend` on NATS JetStream.

    The server hides a received message for `ack_wait_seconds`; this process renews that until the visibility timeout
    ends, and releases the message then. If the process dies, the server releases it after `ack_wait_seconds`.
    """

    capabilities = Capabilities(push=True, native_delay=True, ack_extend=True)

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._link = Link(settings)
        self._streams = Streams(self._link, settings)
        self._unsettled = UnsettledMessages()
        self._known: set[str] = set()
        self._ticker: asyncio.Task[None] | None = None

    def provider_name(self) -> str:
        return "nats"

    async def open(self) -> None:
        """Connect to the server. Raises `BackendUnavailable`."""
        await self._link.open()
        self._ticker = self._ticker or asyncio.create_task(self._tick(), name="nats visibility timeouts")

    async def close(self) -> None:
        """Disconnect. Received messages that were not settled become visible after `ack_wait_seconds`."""
        if self._ticker is not None:
            self._ticker.cancel()
        self._ticker = None
        await self._link.close()

    async def health_check(self) -> bool:
        """Return True if JetStream answers."""
        with suppress(MessagingError):
            return await self._link.api("INFO") is not None
        return False

    async def create_queue(self, queue: str) -> None:
        await self._streams.create(check_queue_name(queue))

    async def delete_queue(self, queue: str) -> None:
        await self._streams.delete(check_queue_name(queue))
        self._known.discard(queue)

    async def queue_exists(self, queue: str) -> bool:
        return await self._streams.state(check_queue_name(queue)) is not None

    async def list_queues(self) -> list[str]:
        """Return the names of all queues with this prefix, sorted."""
        return await self._streams.queues()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send a message; return once the server has confirmed that it stored it."""
        return (await self._send(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send messages in order. If it raises an error, some of them may have been sent."""
        ids: list[int] = []
        for start in range(0, len(payloads), BURST):
            ids += await self._send(queue, payloads[start : start + BURST])
        return ids

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message with the time when it is due: a process that receives it earlier returns it with a delay."""
        return (await self._send(queue, [payload], {DELAY: str(max(0, round(delay_seconds * 1000)))}))[0]

    async def _send(self, queue: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None) -> list[int]:
        ids = await self._link.publish(self._streams.subject(check_queue_name(queue)), payloads, headers)
        if ids is None:
            raise _missing(queue)
        with suppress(MessagingError):  # the message is stored, and found without an announcement
            await self._link.publish_nowait(self._streams.subject(queue, "ready"))
        return ids

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Return up to `limit` messages, at most 500; returned messages come first."""
        await self._must_exist(queue)
        await self._return_ended()
        received: list[QueuedMessage] = []
        while len(received) < min(limit, BURST):
            began = self._monotonic()
            messages = await self._pull(queue, min(limit, BURST) - len(received))
            deliverable = [message for message in messages if not await self._bury_or_postpone(queue, message)]
            received += [self._hold(queue, message, visibility_timeout, began) for message in deliverable]
            if len(deliverable) == len(messages):
                break
        return received

    async def _pull(self, queue: str, limit: int) -> list[Msg]:
        try:
            return await self._link.pull(self._streams.name(queue), CONSUMER, limit)
        except MessagingError:
            self._known.discard(queue)
            await self._must_exist(queue)
            raise

    async def _must_exist(self, queue: str) -> None:
        if check_queue_name(queue) not in self._known:
            await self.queue_stats(queue)
            self._known.add(queue)

    async def _bury_or_postpone(self, queue: str, message: Msg) -> bool:
        """Bury a message with too many deliveries and postpone one that is not due.

        A delayed message is postponed at least once, so that one delivery can always be subtracted from its count.
        """
        deliveries, delay = message.metadata.num_delivered, (message.headers or {}).get(DELAY)
        if deliveries > self._settings.delivery_limit:
            await self._streams.bury(queue, message.data)
            return await self._verdict(message.reply, b"+TERM")
        if delay is None:
            return False
        remaining = int(delay) / 1000 - (self._now() - message.metadata.timestamp).total_seconds()
        return (deliveries == 1 or remaining > 0) and await self._verdict(message.reply, _nak(remaining))

    def _hold(self, queue: str, message: Msg, visibility_timeout: float, began: float) -> QueuedMessage:
        deadline = self._monotonic() + visibility_timeout
        message_id = message.metadata.sequence.stream
        self._unsettled.put((queue, message_id), Receipt(message.reply, deadline, began, self._link.generation))
        reads = message.metadata.num_delivered - (DELAY in (message.headers or {}))
        return QueuedMessage(queue, message_id, message.data, reads)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Raise `MessagingError`: consumers cannot fetch by id (`fetch_by_id` is not among the capabilities)."""
        raise MessagingError("a consumer gives messages in order only", retryable=False, hint="use receive_messages")

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Delete a message. Returns False also if the connection on which it was received was lost."""
        return await self._settle(queue, message_id, b"+ACK")

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Delete messages: all acknowledgements are sent before the first confirmation is awaited."""
        return list(await asyncio.gather(*(self.ack_message(queue, message_id) for message_id in message_ids)))

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Release a message; the server applies the delay."""
        return await self._settle(queue, message_id, _nak(delay_seconds))

    async def _settle(self, queue: str, message_id: int, verdict: bytes) -> bool:
        receipt = self._ours(queue, message_id)
        if receipt is None:
            return False
        settled = await self._verdict(receipt.reply, verdict)
        self._unsettled.receipts.pop((queue, message_id), None)
        return settled

    async def _verdict(self, reply: str, verdict: bytes) -> bool:
        """Send a verdict and wait for its confirmation; return False if the queue is gone."""
        return await self._link.request(reply, verdict) is not None

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Extend the deadline of a message."""
        receipt = self._ours(queue, message_id)
        if receipt is not None:
            receipt.deadline = self._monotonic() + seconds
        return receipt is not None

    def _ours(self, queue: str, message_id: int) -> Receipt | None:
        receipt = self._unsettled.receipts.get((check_queue_name(queue), message_id))
        lost = receipt is None or receipt.generation != self._link.generation or self._taken_back(receipt)
        return None if lost else receipt

    def _taken_back(self, receipt: Receipt) -> bool:
        """Return True if the last renewal is so old that the server may have delivered the message again."""
        return self._monotonic() - receipt.confirmed > self._settings.ack_wait_seconds

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            with suppress(MessagingError):
                await self._return_ended()
                await self._renew()

    async def _return_ended(self) -> None:
        ended = self._unsettled.take_ended(self._monotonic(), self._link.generation)
        await asyncio.gather(*(self._verdict(one.reply, _nak(0.0)) for one in ended if not self._taken_back(one)))

    async def _renew(self) -> None:
        """Renew the messages in progress, long before the server releases them."""
        now, third = self._monotonic(), self._settings.ack_wait_seconds / 3
        unsettled = self._unsettled.receipts.values()
        due = [one for one in unsettled if one.confirmed + third < now and not self._taken_back(one)]
        for receipt in due:
            await self._link.publish_nowait(receipt.reply, b"+WPI")
        if due and await self._link.api("INFO"):
            for receipt in due:
                receipt.confirmed = now

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return the depth, including hidden and delayed messages, and the age of the first one.

        Postponed messages count as in flight.
        """
        state = await self._streams.state(check_queue_name(queue))
        if state is None:
            raise _missing(queue)
        depth, in_flight, stored = state
        age = max(0.0, (self._now() - stored).total_seconds()) if stored else None
        return QueueStats(queue, depth, age, in_flight=in_flight)

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Yield a notification for each queue, after each send to it, and for all queues after a quiet time.

        Announcements are plain messages that follow the stored one. They are not repeated, and returned or due messages
        are not announced: the notifications after quiet times cover these.
        """
        queue_names = sorted({check_queue_name(queue) for queue in queues})
        waiting, news = dict.fromkeys(queue_names), asyncio.Event()

        async def announced(message: Msg) -> None:
            waiting[message.subject.rpartition(".")[2]] = None
            news.set()

        async with self._link.subscribed([self._streams.subject(queue, "ready") for queue in queue_names], announced):
            for queue in queue_names:
                await self.queue_stats(queue)  # refuses a missing queue; its answer confirms the subscription
            while True:
                for queue in list(waiting):
                    del waiting[queue]
                    yield MessageAvailable(queue)
                try:
                    await asyncio.wait_for(news.wait(), QUIET_SECONDS)
                except TimeoutError:
                    waiting.update(dict.fromkeys(queue_names))
                news.clear()

    def _now(self) -> datetime:
        return datetime.now(UTC)

    def _monotonic(self) -> float:
        return time.monotonic()


def _nak(delay_seconds: float) -> bytes:
    delay = max(0, round(delay_seconds * 1e9))
    return f'-NAK {{"delay": {delay}}}'.encode() if delay else b"-NAK"


def _missing(queue: str) -> MessagingError:
    return MessagingError(f"queue {queue!r} does not exist", hint="create it first")
